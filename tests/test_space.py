import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import airbo
from airbo import Categorical, Float, Integer, Space

MILL = Space(
    {
        "speed": (50.0, 200.0),
        "depth": Float(0.1, 2.0, log=True, unit="mm"),
        "passes": Integer(1, 5),
        "tool": Categorical(["A", "B", "C"]),
    }
)
DESIGN = {"speed": 80.0, "depth": 0.5, "passes": 2, "tool": "C"}


floats = st.floats(-1e3, 1e3)
positive = st.floats(1e-6, 1e3)


@st.composite
def float_parameters(draw):
    log = draw(st.booleans())
    low = draw(positive if log else floats)
    return Float(low, low + draw(st.floats(1e-2, 1e3)), log=log)


@st.composite
def grid_parameters(draw):
    low, step = (draw(st.integers(1, 99)) / scale for scale in (10, 100))
    return Float(low, low + draw(st.integers(1, 30)) * step, step=step)


@st.composite
def integer_parameters(draw):
    log = draw(st.booleans())
    low = draw(st.integers(1 if log else -50, 50))
    step = 1 if log else draw(st.integers(1, 3))
    return Integer(low, low + step * draw(st.integers(1, 30)), log=log, step=step)


def categorical_parameters():
    choices = st.lists(st.text(max_size=5), min_size=2, max_size=5, unique=True)
    return choices.map(Categorical)


@st.composite
def spaces(draw):
    kinds = st.one_of(
        float_parameters(), grid_parameters(), integer_parameters(), categorical_parameters()
    )
    parameters = draw(st.lists(kinds, min_size=1, max_size=4))
    return Space({f"p{i}": parameter for i, parameter in enumerate(parameters)})


def values(parameter):
    """Values that the parameter accepts."""
    if isinstance(parameter, Categorical):
        return st.sampled_from(parameter.choices)
    if isinstance(parameter, Integer):
        return st.integers(parameter.low, parameter.high)
    if parameter.step is not None:
        grid = (parameter.low + k * parameter.step for k in range(parameter.n_values))
        return st.sampled_from([parameter.decode(number) for number in grid])
    return st.floats(parameter.low, parameter.high)


def designs(space):
    return st.fixed_dictionaries({name: values(p) for name, p in space.parameters.items()})


@st.composite
def spaces_with_designs(draw):
    space = draw(spaces())
    return space, draw(st.lists(designs(space), max_size=4))


@given(spaces_with_designs())
def test_decoding_what_was_encoded_gives_the_designs_and_their_types_back(case):
    space, given_designs = case
    decoded = space.decode(space.encode(given_designs))
    assert decoded == given_designs
    for before, after in zip(given_designs, decoded, strict=True):
        assert all(type(after[name]) is type(before[name]) for name in space.names)


@given(spaces_with_designs())
def test_model_coordinates_of_designs_lie_in_the_unit_cube_and_lead_back(case):
    space, given_designs = case
    X = space.encode(given_designs)
    Z = space.to_model(X)
    assert ((Z >= -1e-12) & (Z <= 1 + 1e-12)).all()
    torch.testing.assert_close(space.from_model(Z), X, rtol=1e-9, atol=1e-9)


@given(spaces(), st.integers(0, 2**31))
def test_every_rounded_point_of_the_unit_cube_is_a_design_that_check_accepts(space, seed):
    Z = 1.4 * torch.rand(5, space.d, generator=torch.manual_seed(seed), dtype=torch.float64) - 0.2
    rounded = space.round(Z)
    for design in space.decode(space.from_model(rounded)):
        space.check(design)
    torch.testing.assert_close(space.round(rounded), rounded)


@given(spaces())
def test_a_space_survives_json_with_its_order(space):
    restored = Space.from_dict(json.loads(json.dumps(space.to_dict())))
    assert restored == space
    assert restored.names == space.names
    assert hash(restored) == hash(space)


def test_spaces_with_another_order_or_another_parameter_differ():
    assert Space({"a": (0, 1), "b": (0, 1)}) != Space({"b": (0, 1), "a": (0, 1)})
    assert Space({"a": (0, 1)}) != Space({"a": (0, 2)})


def test_a_tuple_is_a_float_parameter_even_of_integers_and_a_list_is_categorical():
    space = Space({"x": (0, 5), "tool": ["A", "B"]})
    assert space.parameters == {"x": Float(0.0, 5.0), "tool": Categorical(("A", "B"))}
    assert isinstance(space.decode(torch.tensor([[2.0, 0.0]]))[0]["x"], float)


def test_columns_and_lengths_follow_the_order_of_the_parameters():
    assert MILL.names == ("speed", "depth", "passes", "tool")
    assert len(MILL) == MILL.d == 4
    assert (MILL.log_columns, MILL.integer_columns, MILL.categorical_columns) == ([1], [2], [3])
    assert MILL.bounds.tolist() == [[50.0, 0.1, 1.0, 0.0], [200.0, 2.0, 5.0, 2.0]]
    assert MILL.model_bounds.tolist() == [[0.0] * 4, [1.0] * 4]
    assert MILL.n_values == {2: 5, 3: 3}
    assert MILL.values(2) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert MILL.values(3) == [0.0, 0.5, 1.0]


@given(spaces(), st.integers(0, 2**32))
def test_rounding_finds_a_nearest_value_of_every_column(space, seed):
    generator = torch.Generator().manual_seed(seed)
    Z = torch.rand(5, space.d, generator=generator, dtype=torch.float64)
    rounded = space.round(Z)
    torch.testing.assert_close(space.round(rounded), rounded)  # a second time changes nothing
    for column in range(space.d):
        if column not in space.n_values:
            assert rounded[:, column].equal(Z[:, column])
            continue
        values = torch.tensor(space.values(column), dtype=torch.float64)
        assert len(values) == space.n_values[column]
        gaps = (rounded[:, column, None] - values).abs().amin(-1)
        assert gaps.max() < 1e-9
        if column not in space.log_columns:  # whole numbers are rounded before the logarithm
            nearest = (Z[:, column, None] - values).abs().amin(-1)
            torch.testing.assert_close((rounded - Z)[:, column].abs(), nearest)


def test_what_is_proposed_lies_on_the_grid_with_its_short_decimals():
    space = Space({"x": Float(0.1, 1.0, step=0.1), "n": Integer(1, 9, step=4)})
    Z = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None].repeat(1, 2)
    rows = space.decode(space.from_model(space.round(Z)))
    assert {row["x"] for row in rows} == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}
    assert {row["n"] for row in rows} == {1, 5, 9}


def test_what_is_told_may_lie_beside_the_grid():
    space = Space({"x": Float(0.0, 1.0, step=0.5), "n": Integer(0, 4, step=2)})
    design = {"x": 0.3, "n": 1}
    assert space.decode(space.encode(design)) == [design]


def test_the_middle_of_a_log_parameter_is_the_geometric_mean():
    space = Space({"x": Float(0.01, 100.0, log=True)})
    assert space.from_model(torch.tensor([0.5], dtype=torch.float64)).item() == pytest.approx(1.0)


def test_executed_inputs_outside_the_bounds_leave_the_unit_cube_linearly_and_come_back():
    X = torch.tensor([[215.0, 4.0, 2.0, 1.0], [35.0, 0.05, 1.0, 0.0]], dtype=torch.float64)
    Z = MILL.to_model(X)
    assert Z[0, 0].item() == pytest.approx(1.1)
    assert Z[1, 0].item() == pytest.approx(-0.1)
    assert Z[0, 1] > 1 > 0 > Z[1, 1]
    torch.testing.assert_close(MILL.from_model(Z), X)


def test_scaling_a_batch_equals_scaling_each_design():
    X = MILL.encode([DESIGN, DESIGN | {"speed": 190.0}]).expand(3, 2, 4)
    for scale in (MILL.to_model, MILL.from_model, MILL.round):
        looped = torch.stack([torch.stack([scale(x) for x in batch]) for batch in X])
        torch.testing.assert_close(scale(X), looped)


def test_scaling_has_the_gradient_of_finite_differences_also_at_negative_inputs():
    space = Space({"x": (-2.0, 2.0), "y": Float(0.1, 2.0, log=True)})
    X = torch.tensor([[-1.0, 0.3], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(space.to_model, X)
    assert torch.autograd.gradcheck(space.from_model, X)


def test_scaling_keeps_the_dtype_of_the_data():
    assert MILL.to_model(MILL.encode(DESIGN).float()).dtype == torch.float32


def test_rounding_leaves_float_columns_alone_and_clamps_to_the_cube():
    Z = torch.tensor([[0.123, 1.5, 0.3, 0.8]], dtype=torch.float64)
    assert MILL.round(Z).tolist() == [[0.123, 1.0, 0.25, 1.0]]
    assert Z[0, 1] == 1.5  # the argument is unchanged


def test_dicts_tables_and_arrays_of_the_same_designs_encode_to_the_same_numbers():
    rows = [DESIGN, DESIGN | {"passes": 5, "tool": "A"}]
    expected = torch.tensor([[80.0, 0.5, 2.0, 2.0], [80.0, 0.5, 5.0, 0.0]], dtype=torch.float64)
    table = pd.DataFrame(rows)
    shuffled = table[["tool", "depth", "passes", "speed"]]
    for form in (rows, tuple(rows), table, shuffled, expected, expected.numpy()):
        assert torch.equal(MILL.encode(form), expected)
    assert torch.equal(MILL.encode(DESIGN), expected[:1])
    assert torch.equal(MILL.encode(expected[0]), expected[:1])
    assert MILL.encode([]).shape == (0, 4)


def test_numbers_of_numpy_and_torch_are_numbers():
    design = {"speed": np.float32(80), "depth": torch.tensor(0.5), "passes": np.int64(2)}
    assert MILL.encode(design | {"tool": np.str_("C")}).tolist() == [[80.0, 0.5, 2.0, 2.0]]


def test_whole_floats_count_as_integers_because_tables_turn_them_so():
    MILL.check(DESIGN | {"passes": 2.0})


def test_true_is_not_the_category_one():
    space = Space({"x": Categorical([1, 2])})
    with pytest.raises(ValueError, match=r"expected one of \[1, 2\], got True"):
        space.check({"x": True})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 201.0}, "'speed': value must be between 50 and 200, got 201.0"),
        ({"speed": "fast"}, "'speed': value must be a number, got 'fast'"),
        ({"speed": True}, "'speed': value must be a number, got True"),
        ({"speed": None}, "'speed': value must be a number, got None"),
        ({"depth": math.nan}, "'depth': value must be finite, got nan"),
        ({"depth": math.inf}, "'depth': value must be finite, got inf"),
        ({"passes": 2.5}, r"'passes': value must be an integer, got 2\.5"),
        ({"passes": 0}, "'passes': value must be between 1 and 5"),
        ({"tool": "D"}, r"'tool': expected one of \['A', 'B', 'C'\], got 'D'"),
        ({"sped": 80.0}, "Unknown parameter 'sped'; did you mean 'speed'"),
        ({"humidity": 80.0}, r"Unknown parameter 'humidity'; there are \['speed'"),
    ],
)
def test_a_design_outside_the_space_is_refused_with_the_name_of_the_parameter(change, message):
    with pytest.raises(ValueError, match=message):
        MILL.check(DESIGN | change)
    with pytest.raises(ValueError, match=message):
        MILL.encode([DESIGN, DESIGN | change])


def test_a_missing_parameter_is_named():
    with pytest.raises(ValueError, match="'depth' is missing"):
        MILL.check({"speed": 80.0, "passes": 2, "tool": "A"})


def test_executed_inputs_may_lie_outside_the_bounds_but_nothing_else():
    outside = DESIGN | {"speed": 201.0, "passes": 9}
    MILL.check(outside, allow_outside=True)
    assert MILL.encode(outside, allow_outside=True)[0, 0] == 201.0
    with pytest.raises(ValueError, match="'tool': expected one of"):
        MILL.check(outside | {"tool": "D"}, allow_outside=True)


def test_an_executed_input_without_a_logarithm_is_refused():
    X = torch.tensor([[80.0, -0.5, 2.0, 0.0]], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"'depth' is logarithmic and must be > 0, got -0\.5"):
        MILL.to_model(X)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3)), r"shape \(n, 4\), got \(2, 3\)"),
        (torch.zeros(2, 2, 4), r"shape \(n, 4\), got \(2, 2, 4\)"),
        (np.array([80.0, 0.5, 2.0, 7.0]), "'tool': expected the position of a choice, 0 to 2"),
        (np.array([80.0, 0.5, 2.0, 0.5]), "'tool': expected the position of a choice, 0 to 2"),
    ],
)
def test_an_array_that_does_not_fit_the_space_is_refused(array, message):
    with pytest.raises(ValueError, match=message):
        MILL.encode(array)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(1.0, 1.0), "low must be < high"),
        (lambda: Float(0.0, math.inf), "high must be finite, got inf"),
        (lambda: Float(math.nan, 1.0), "low must be finite, got nan"),
        (lambda: Float(0.0, 1.0, log=True), r"A log parameter needs low > 0, got low=0\.0"),
        (lambda: Float(0.0, 1.0, step=0.3), "a whole number of steps, got .* 3.33333 steps"),
        (lambda: Float(0.0, 1.0, step=2.0), "a whole number of steps"),
        (lambda: Float(0.0, 1.0, step=0.0), "step must be > 0, got 0.0"),
        (lambda: Float(0.0, 1.0, step=math.nan), "step must be finite, got nan"),
        (lambda: Float(1.0, 2.0, log=True, step=1.0), "A log parameter cannot have a step"),
        (lambda: Integer(0, 5, step=2), "a whole number of steps, got .* 2.5 steps"),
        (lambda: Integer(0, 5, log=True), "A log parameter needs low > 0, got low=0"),
        (lambda: Integer(2, 6, log=True, step=2), "A log parameter cannot have a step"),
        (lambda: Integer(5, 1), "low must be < high"),
        (lambda: Categorical(["A"]), "At least two choices"),
        (lambda: Categorical(["A", "B", "A"]), "choices must differ"),
        (lambda: Categorical(["A", None]), "A choice must be a string or a number, got None"),
        (lambda: Space({}), "at least one parameter"),
        (lambda: Space({"": (0, 1)}), "non-empty strings, got ''"),
        (lambda: Space({"x": (1, 0)}), "Parameter 'x': low must be < high"),
        (lambda: Space({"x": ("a", 1)}), "Parameter 'x': low must be a number, got 'a'"),
        (lambda: Space({"x": (0, 1, 2)}), "Parameter 'x': expected"),
        (lambda: Space({"x": 3.0}), "Parameter 'x': expected"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_at_birth(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "x", "type": "complex"}, "Parameter 'x': type must be one of"),
        ({"name": "x", "type": "float", "low": 0}, "Parameter 'x': .*'high'"),
        ({"name": "x", "type": "float", "low": 1, "high": 0}, "Parameter 'x': low must be < high"),
        ({"name": "x", "type": "float", "low": 0, "high": 1, "by": 2}, "Parameter 'x': .*'by'"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Space.from_dict({"parameters": [fields]})


def test_a_parameter_described_twice_is_refused():
    fields = {"name": "x", "type": "float", "low": 0, "high": 1}
    with pytest.raises(ValueError, match="'x' is described twice"):
        Space.from_dict({"parameters": [fields, fields]})


def test_spaces_and_parameters_are_frozen():
    with pytest.raises(FrozenInstanceError):
        MILL.names = ("a",)
    with pytest.raises(FrozenInstanceError):
        MILL.parameters["speed"].low = 0.0


def test_the_names_of_the_space_are_at_the_top_of_the_package():
    assert {"Space", "Float", "Integer", "Categorical"} <= set(airbo.__all__)
