import json
import math
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given

import airbo
from airbo import Categorical, Float, Integer, Space
from tests.spaces import spaces, spaces_with_designs

MILL = Space(
    {
        "speed": (50.0, 200.0),
        "depth": Float(0.1, 2.0, log=True, unit="mm"),
        "passes": Integer(1, 5),
        "tool": Categorical(["A", "B", "C"]),
    }
)
DESIGN = {"speed": 80.0, "depth": 0.5, "passes": 2, "tool": "C"}


@given(spaces_with_designs())
def test_decoding_what_was_encoded_gives_the_designs_and_their_types_back(case):
    space, given_designs = case
    decoded = space.to_designs(space.to_columns(given_designs))
    assert decoded == given_designs
    for before, after in zip(given_designs, decoded, strict=True):
        assert all(type(after[name]) is type(before[name]) for name in space.names)


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
    assert isinstance(space.to_designs(torch.tensor([[2.0, 0.0]]))[0]["x"], float)


def test_columns_and_lengths_follow_the_order_of_the_parameters():
    assert MILL.names == ("speed", "depth", "passes", "tool")
    assert len(MILL) == MILL.d == 4
    assert (MILL.log_columns, MILL.integer_columns, MILL.categorical_columns) == ((1,), (2,), (3,))
    assert MILL.bounds == ((50.0, 0.1, 1.0, 0.0), (200.0, 2.0, 5.0, 2.0))
    assert MILL.n_values == {2: 5, 3: 3}


def test_what_is_told_may_lie_beside_the_grid():
    space = Space({"x": Float(0.0, 1.0, step=0.5), "n": Integer(0, 4, step=2)})
    design = {"x": 0.3, "n": 1}
    assert space.to_designs(space.to_columns(design)) == [design]


def test_dicts_and_tables_of_the_same_designs_encode_to_the_same_numbers():
    rows = [DESIGN, DESIGN | {"passes": 5, "tool": "A"}]
    expected = [[80.0, 0.5, 2.0, 2.0], [80.0, 0.5, 5.0, 0.0]]
    table = pd.DataFrame(rows)
    shuffled = table[["tool", "depth", "passes", "speed"]]
    for form in (rows, tuple(rows), table, shuffled):
        assert MILL.to_columns(form) == expected
    assert MILL.to_columns(DESIGN) == expected[:1]
    assert MILL.to_columns([]) == []


def test_numbers_of_numpy_and_torch_are_numbers():
    design = {"speed": np.float32(80), "depth": torch.tensor(0.5), "passes": np.int64(2)}
    assert MILL.to_columns(design | {"tool": np.str_("C")}) == [[80.0, 0.5, 2.0, 2.0]]


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
        ({"sped": 80.0}, r"Unknown parameter 'sped'; did you mean 'speed'\?$"),
        ({"humidity": 80.0}, r"Unknown parameter 'humidity'; there are \['speed'"),
    ],
)
def test_a_design_outside_the_space_is_refused_with_the_name_of_the_parameter(change, message):
    with pytest.raises(ValueError, match=message):
        MILL.check(DESIGN | change)
    with pytest.raises(ValueError, match=message):
        MILL.to_columns([DESIGN, DESIGN | change])


def test_a_missing_parameter_is_named():
    with pytest.raises(ValueError, match="'depth' is missing"):
        MILL.check({"speed": 80.0, "passes": 2, "tool": "A"})


def test_executed_inputs_may_lie_outside_the_bounds_but_nothing_else():
    outside = DESIGN | {"speed": 201.0, "passes": 9}
    MILL.check(outside, allow_outside=True)
    assert MILL.to_columns(outside, allow_outside=True)[0][0] == 201.0
    with pytest.raises(ValueError, match="'tool': expected one of"):
        MILL.check(outside | {"tool": "D"}, allow_outside=True)


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


def test_the_distance_of_designs_is_that_of_the_folded_cube():
    a, b = DESIGN, DESIGN | {"speed": 95.0, "depth": 1.0}
    assert MILL.distance(a, a) == 0
    assert MILL.distance(a, b) == pytest.approx(math.log(2) / math.log(20))
    assert MILL.distance(a, a | {"tool": "B"}) == 1
    assert MILL.distance(a, a | {"depth": -1.0}) == math.inf


def test_designs_are_checked_without_importing_torch():
    code = (
        "import sys, airbo; airbo.Space({'x': airbo.Float(0.1, 1.0)}).checked({'x': 0.5});"
        "print([m for m in ('torch', 'numpy', 'pandas') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
