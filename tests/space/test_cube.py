import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airbo import Categorical, Float, Integer, Space
from airbo.space.cube import Cube
from tests.spaces import spaces, spaces_with_designs

MILL = Space(
    {
        "speed": (50.0, 200.0),
        "depth": Float(0.1, 2.0, log=True, unit="mm"),
        "passes": Integer(1, 5),
        "tool": Categorical(["A", "B", "C"]),
    }
)
CUBE = Cube(MILL)
DESIGN = {"speed": 80.0, "depth": 0.5, "passes": 2, "tool": "C"}


def test_a_category_becomes_one_column_per_choice_all_equally_far_apart():
    choices = CUBE.from_designs([DESIGN | {"tool": tool} for tool in "ABC"])
    assert choices.shape == (3, CUBE.m) == (3, 6)
    assert [CUBE.position(column) for column in range(4)] == [0, 1, 2, 3]
    torch.testing.assert_close(torch.pdist(choices), torch.ones(3, dtype=torch.float64))


def test_the_folded_cube_has_one_column_per_parameter_and_lists_its_values():
    assert CUBE.fold(CUBE.from_designs(DESIGN))[0, 3] == 1.0
    assert CUBE.values(2) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert CUBE.values(3) == [0.0, 0.5, 1.0]


@given(spaces_with_designs())
def test_designs_lie_in_the_unit_cube_and_come_back_from_it(case):
    space, given_designs = case
    cube = Cube(space)
    X = cube.columns(given_designs)
    Z = cube.from_columns(X)
    assert Z.shape == (len(X), cube.m)
    assert ((Z >= -1e-12) & (Z <= 1 + 1e-12)).all()
    torch.testing.assert_close(cube.to_columns(Z), X, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(cube.unfold(cube.fold(Z)), Z)
    torch.testing.assert_close(cube.from_designs(given_designs), Z)


@given(spaces(), st.integers(0, 2**31))
def test_every_rounded_point_of_the_unit_cube_is_a_design_that_check_accepts(space, seed):
    Z = 1.4 * torch.rand(5, space.d, generator=torch.manual_seed(seed), dtype=torch.float64) - 0.2
    cube = Cube(space)
    rounded = cube.round(Z)
    for design in cube.to_designs(cube.unfold(rounded)):
        space.check(design)
    torch.testing.assert_close(Cube(space).round(rounded), rounded)


@given(spaces(), st.integers(0, 2**32))
def test_rounding_finds_a_nearest_value_of_every_column(space, seed):
    generator = torch.Generator().manual_seed(seed)
    Z = torch.rand(5, space.d, generator=generator, dtype=torch.float64)
    rounded = Cube(space).round(Z)
    torch.testing.assert_close(Cube(space).round(rounded), rounded)  # a second time changes nothing
    for column in range(space.d):
        if column not in space.n_values:
            assert rounded[:, column].equal(Z[:, column])
            continue
        values = torch.tensor(Cube(space).values(column), dtype=torch.float64)
        assert len(values) == space.n_values[column]
        gaps = (rounded[:, column, None] - values).abs().amin(-1)
        assert gaps.max() < 1e-9
        if column not in space.log_columns:  # whole numbers are rounded before the logarithm
            nearest = (Z[:, column, None] - values).abs().amin(-1)
            torch.testing.assert_close((rounded - Z)[:, column].abs(), nearest)


def test_what_is_proposed_lies_on_the_grid_with_its_short_decimals():
    space = Space({"x": Float(0.1, 1.0, step=0.1), "n": Integer(1, 9, step=4)})
    Z = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None].repeat(1, 2)
    rows = Cube(space).to_designs(Cube(space).unfold(Cube(space).round(Z)))
    assert {row["x"] for row in rows} == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}
    assert {row["n"] for row in rows} == {1, 5, 9}


def test_the_middle_of_a_log_parameter_is_the_geometric_mean():
    space = Space({"x": Float(0.01, 100.0, log=True)})
    assert Cube(space).to_columns(torch.tensor([0.5], dtype=torch.float64)).item() == pytest.approx(
        1.0
    )


def test_executed_inputs_outside_the_bounds_leave_the_unit_cube_linearly_and_come_back():
    X = torch.tensor([[215.0, 4.0, 2.0, 1.0], [35.0, 0.05, 1.0, 0.0]], dtype=torch.float64)
    Z = CUBE.from_columns(X)
    assert Z[0, 0].item() == pytest.approx(1.1)
    assert Z[1, 0].item() == pytest.approx(-0.1)
    assert Z[0, 1] > 1 > 0 > Z[1, 1]
    torch.testing.assert_close(CUBE.to_columns(Z), X)


def test_scaling_a_batch_equals_scaling_each_design():
    X = CUBE.columns([DESIGN, DESIGN | {"speed": 190.0}]).expand(3, 2, 4)
    for scale in (CUBE.from_columns, CUBE.axes.to_columns, CUBE.round):
        looped = torch.stack([torch.stack([scale(x) for x in batch]) for batch in X])
        torch.testing.assert_close(scale(X), looped)


def test_scaling_has_the_gradient_of_finite_differences_also_at_negative_inputs():
    space = Space({"x": (-2.0, 2.0), "y": Float(0.1, 2.0, log=True)})
    X = torch.tensor([[-1.0, 0.3], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Cube(space).from_columns, X)
    assert torch.autograd.gradcheck(Cube(space).to_columns, X)


def test_scaling_keeps_the_dtype_of_the_data():
    assert CUBE.from_columns(CUBE.columns(DESIGN).float()).dtype == torch.float32


def test_rounding_leaves_float_columns_alone_and_clamps_to_the_cube():
    Z = torch.tensor([[0.123, 1.5, 0.3, 0.8]], dtype=torch.float64)
    assert CUBE.round(Z).tolist() == [[0.123, 1.0, 0.25, 1.0]]
    assert Z[0, 1] == 1.5  # the argument is unchanged


def test_an_executed_input_without_a_logarithm_is_refused():
    X = torch.tensor([[80.0, -0.5, 2.0, 0.0]], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"'depth' is logarithmic and must be > 0, got -0\.5"):
        CUBE.from_columns(X)
