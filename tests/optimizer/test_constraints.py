"""Every design that an optimizer asks for or recommends meets the constraints of its space."""

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from hypothesis import given, settings

import airbo
from airbo import Float, Integer, Optimizer, Space
from airbo import uncertainty as unc
from airbo.optimizer.record import History, Points
from airbo.optimizer.search import best_design, initial_design
from airbo.space.cube import Cube
from tests.optimizer.common import cheap, hill, recommend, run
from tests.space.test_constraints import MIXTURE, constrained_spaces

SPACES = {
    "inequality": Space({"a": (0.0, 1.0), "b": (0.0, 1.0)}, constraints=["a + b <= 1"]),
    "mixture": MIXTURE,
    "many parts": Space(
        {f"x{i}": (0.0, 1.0) for i in range(8)},
        constraints=[" + ".join(f"x{i}" for i in range(8)) + " == 1"],
    ),
    "log": Space(
        {"a": Float(1e-3, 1, log=True), "b": Float(1e-2, 1, log=True), "c": (0.0, 1.0)},
        constraints=["a + b <= 0.1", "a + b + c == 0.5"],
    ),
    "integers": Space(
        {"a": Integer(0, 9), "b": Integer(0, 9), "c": Integer(9, 40), "t": ["A", "B"], "x": (0, 1)},
        constraints=["a + b + c == 40", "a <= 10 * x"],
    ),
    "steps": Space(
        {"a": Float(0, 1, step=0.05), "b": Float(0, 1, step=0.05), "c": Float(0, 1, step=0.1)},
        constraints=["a + b + c == 1"],
    ),
    "small": Space({"a": Integer(0, 3), "b": Integer(0, 3)}, constraints=["a + b >= 4"]),
}  # fmt: skip


class Near(AcquisitionFunction):
    """Largest at one point of the unit cube."""

    def __init__(self, target):
        super().__init__(model=None)
        self.target = torch.tensor(target, dtype=torch.float64)

    def forward(self, X):
        return -(X - self.target).square().sum(dim=(-2, -1))


@pytest.mark.parametrize("name", ["mixture", "integers", "small"])
@pytest.mark.usefixtures("as_without_shape_checks")
def test_all_that_is_asked_or_recommended_meets_the_constraints(name):
    space = SPACES[name]
    optimizer = cheap(space, seed=1)
    designs = [*run(optimizer, 3), *optimizer.ask(2)]
    designs += [recommend(optimizer, policy=p).design for p in ("anywhere", "observed")]
    for design in designs:
        space.check(design)
    if name != "small":
        assert len({tuple(d.values()) for d in designs[:5]}) == 5


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_starts_and_best_points_of_every_kind_of_space_meet_the_constraints(name):
    _check_search(SPACES[name])


@given(space=constrained_spaces())
@settings(max_examples=12)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_initial_designs_and_the_best_ones_meet_drawn_constraints(space):
    _check_search(space)


def _check_search(space):
    cube, history = Cube(space), History(Points(space))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        [design] = cube.to_designs(initial_design(history, seed=0))
        space.check(design)
        best = best_design(Near([0.7] * cube.m), cube)
    assert space.polytope.holds(cube.to_columns(best).numpy()).all()


def test_inequalities_hold_to_the_last_digit_where_a_design_can_move():
    [Z] = [best_design(Near([1.0, 0.8]), Cube(SPACES["inequality"]))]
    [design] = Cube(SPACES["inequality"]).to_designs(Z)
    assert design["a"] + design["b"] <= 1
    assert design["a"] == pytest.approx(0.6, abs=1e-3)  # the foot of the perpendicular


def test_the_best_point_on_a_bent_constraint_is_found():
    # in log coordinates u, v: a = 10^(2u - 2), b = 10^(2v - 2), a + b <= 0.2; by symmetry a = b
    space = Space(
        {"a": Float(0.01, 1, log=True), "b": Float(0.01, 1, log=True)}, constraints=["a + b <= 0.2"]
    )
    [design] = Cube(space).to_designs(best_design(Near([0.9, 0.9]), Cube(space)))
    assert design["a"] == pytest.approx(0.1, rel=0.01)
    assert design["b"] == pytest.approx(0.1, rel=0.01)


def test_the_best_of_many_whole_numbers_is_found():
    space = Space(
        {"a": Integer(0, 200), "b": Integer(0, 200), "c": Integer(0, 400)},
        constraints=["a + b + c == 400", "a <= b"],
    )
    target = {"a": 90, "b": 110, "c": 200}
    Z = best_design(Near(Cube(space).from_designs(target)[0].tolist()), Cube(space))
    assert Cube(space).to_designs(Z) == [target]


def test_a_search_over_all_parts_of_a_mixture_finds_its_best_corner():
    space = SPACES["many parts"]
    Z = best_design(Near([1.0] + [0.0] * 7), Cube(space))
    assert Z[0, 0].item() == pytest.approx(1.0, abs=1e-3)


def test_told_designs_that_miss_a_constraint_need_permission_and_are_not_recommended():
    optimizer = cheap(SPACES["inequality"])
    with pytest.raises(ValueError, match=r"misses the constraint 'a \+ b <= 1' by 0.8"):
        optimizer.tell({"a": 0.9, "b": 0.9}, 5.0)
    assert optimizer.observations.empty
    optimizer.tell({"a": 0.9, "b": 0.9}, 5.0, allow_outside=True)
    run(optimizer, 2)
    for policy in ("observed", "anywhere"):
        assert SPACES["inequality"].meets(recommend(optimizer, policy=policy).design)


def test_executed_inputs_may_miss_the_constraints():
    optimizer = cheap(SPACES["inequality"], {"a": unc.Normal(0.1)})
    optimizer.tell({"a": 0.5, "b": 0.5}, 1.0, executed={"a": 0.7})
    assert optimizer.observations["executed_a"].tolist() == [0.7]


def test_a_saved_optimizer_goes_on_within_its_constraints():
    optimizer = cheap(MIXTURE, seed=2)
    run(optimizer, 3)
    again = Optimizer.from_json(optimizer.to_json())
    assert again.space == MIXTURE
    assert again.ask() == optimizer.ask()


def test_constraints_that_cut_nothing_leave_the_bounds_as_they_are():
    loose = Space({"a": (0.0, 1.0), "b": (0.0, 1.0)}, constraints=["a + b <= 2"])
    free = Space({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    assert run(cheap(loose), 3) == run(cheap(free), 3)  # the same Sobol points


def test_another_seed_gives_other_designs_and_the_same_seed_the_same():
    runs = [cheap(SPACES["many parts"], seed=seed).ask(3) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.usefixtures("as_without_shape_checks")
def test_deployment_and_constraints_work_together():
    optimizer = cheap(
        SPACES["inequality"], {"a": unc.Normal(0.05)}, deployment={"b": unc.Normal(0.1)},
        surrogate="default",
    )  # fmt: skip
    for design in run(optimizer, 4):
        SPACES["inequality"].check(design)


def test_one_call_respects_constraints_too():
    result = airbo.maximize(hill, SPACES["inequality"], budget=4, surrogate="nominal")
    assert SPACES["inequality"].meets(result.design)
    for row in result.observations[["a", "b"]].to_dict("records"):
        SPACES["inequality"].check(row)
