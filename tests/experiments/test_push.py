"""The robot push: the simulator, the table that replaces it, and the best pushes."""

import sys
from math import cos, pi, sin

import pytest
import torch

from airbo.uncertainty import Normal, base_draws
from experiments.subjects.push import (
    FARTHEST_START,
    FREE_STRIDE,
    JOINT_STRIDE,
    LONGEST,
    RobotPush,
    ball_distance,
    n_steps,
    push,
    push_once,
)

PAPER, PUBLISHED = RobotPush(), RobotPush("published")
with_box2d = pytest.mark.needs("Box2D")


def rows(*points):
    return torch.tensor(points, dtype=torch.float64)


@pytest.fixture(scope="module")
def executed():
    """Return executed inputs of designs from all over the box."""
    low, high = PAPER.bounds
    X = low + (high - low) * base_draws(250, 3, seed=3)
    return X + PAPER.uncertainty.perturb(torch.zeros_like(X[:1]), base_draws(250, 4, seed=4))[0]


@pytest.fixture(scope="module")
def ends(executed):
    return PAPER.simulate(executed)


# the simulator


@pytest.mark.parametrize(
    ("design", "ball"),
    [
        ((-4, -4, 20), (2.198, 2.198)),
        ((-4, -4, 30), (4.358, 4.358)),
        ((-5, -5, 30), (3.678, 3.678)),
        ((-4, 0, 20), (4.255, 0)),
        ((0.5, 0.5, 10), (-2.319, -2.319)),
    ],
)
@with_box2d
def test_pushes_end_where_the_notes_say(design, ball):
    X = rows(design)
    assert PAPER.simulate(X)[0].tolist() == pytest.approx(ball, abs=1e-3)
    assert PAPER.ball(X)[0].tolist() == pytest.approx(ball, abs=1e-3)


@with_box2d
def test_the_same_push_ends_in_the_same_place_to_the_last_bit(executed, ends):
    assert torch.equal(PAPER.simulate(executed[:50]), ends[:50])
    assert torch.equal(PAPER.simulate(executed[:50].flip(0)).flip(0), ends[:50])


@pytest.mark.parametrize("angle", [0.1, pi / 2, 2.0, pi, 5.0])
@pytest.mark.parametrize(("distance", "steps"), [(0.2, 50), (1.5, 200), (4.0, 45), (6.0, 300)])
@with_box2d
def test_the_direction_of_a_push_does_not_matter(angle, distance, steps):
    x, y = push_once(distance * cos(angle), distance * sin(angle), steps)
    straight = -push_once(distance, 0.0, steps)[0]
    assert (x, y) == pytest.approx((-straight * cos(angle), -straight * sin(angle)), abs=1e-4)


@with_box2d
def test_a_hand_above_the_ball_pushes_it_down():
    x, y = push_once(0.0, 4.0, 200)
    assert (x, y) == pytest.approx((0.0, -4.255), abs=1e-3)


@with_box2d
def test_a_hand_on_the_very_ball_counts_as_standing_on_its_right():
    on_it, beside_it = rows((0, 0, 5)), rows((1e-5, 0, 5))
    assert PAPER.simulate(on_it)[0].tolist() == pytest.approx(
        PAPER.simulate(beside_it)[0].tolist(), abs=1e-4
    )
    torch.testing.assert_close(PAPER.ball(on_it), PAPER.simulate(on_it), atol=1e-4, rtol=0)


@with_box2d
def test_a_negative_duration_is_none():
    X = rows((1.0, 0.5, -3.0), (4.0, 4.0, -0.01), (4.0, 4.0, 0.0))
    still = X.clone()
    still[:, 2] = 0
    assert torch.equal(PAPER.simulate(X), PAPER.simulate(still))
    assert not PAPER.simulate(X)[1:].any()


def test_the_duration_counts_in_whole_steps():
    assert n_steps(rows((0, 0, 1.0), (0, 0, 1.09), (0, 0, 1.1), (0, 0, -5))).tolist() == [
        10, 10, 11, 0,
    ]  # fmt: skip


def test_a_hand_nowhere_is_refused():
    with pytest.raises(ValueError, match="start of the hand must be finite"):
        push(rows((float("nan"), 0.0)), torch.tensor([10]))


def test_without_the_simulator_pushes_say_what_to_install_and_expectations_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    X = rows((-4, -4, 30))
    with pytest.raises(ImportError, match=r'pip install "airbo\[push\]"'):
        PAPER(X)
    assert PAPER.expected(X).item() == pytest.approx(0.44, abs=0.01)


# the table


@with_box2d
def test_the_table_agrees_with_the_simulation(executed, ends):
    apart = (PAPER.ball(executed) - ends).norm(dim=-1)
    assert apart.median() < 3e-6
    assert apart.quantile(0.9) < 2e-5
    assert apart.max() < 0.02


@pytest.mark.parametrize("steps", [200, 300, 400])
@with_box2d
def test_long_pushes_agree_at_every_distance(steps):
    r = torch.linspace(0.0, 9.5, 24, dtype=torch.float64)
    simulated = torch.tensor([-push_once(x, 0.0, steps)[0] for x in r.tolist()]).to(r)
    table = ball_distance(r, torch.full(r.shape, steps))
    torch.testing.assert_close(table, simulated, atol=2e-4, rtol=0)


@with_box2d
def test_a_stride_farther_away_and_a_step_longer_end_in_the_same_place():
    r = FARTHEST_START - 0.01
    near, far = push_once(r, 0.0, 140), push_once(r + 40 * FREE_STRIDE, 0.0, 180)
    assert near == pytest.approx(far, abs=2e-5)


@pytest.mark.parametrize("distance", [0.0, 1.3, FARTHEST_START])
@with_box2d
def test_every_step_of_a_long_push_adds_the_same_stride(distance):
    short, long = (push_once(distance, 0.0, n)[0] for n in (LONGEST, LONGEST + 100))
    assert short - long == pytest.approx(100 * JOINT_STRIDE, abs=5e-5)


@with_box2d
def test_expectations_by_table_and_by_simulation_agree():
    best = rows((5.0, 4.137, 25.55))
    samples = PAPER.uncertainty.perturb(best, base_draws(256, 4))
    assert PAPER(samples).mean().item() == pytest.approx(
        PAPER.quick(samples).mean().item(), abs=5e-5
    )


# the loss and its best pushes


def test_the_loss_is_the_distance_to_the_closest_goal_and_squared_at_the_first():
    balls = rows((-3, -3), (-3, -1), (-3, 1), (4.3, 4.3), (5.1, 2.5))
    assert PAPER.loss(balls).tolist() == pytest.approx([0, 4, 2, 0, 0.5])
    balls = rows((-3, 3), (-3, 1), (3, -3), (3, -1), (4.3, 4.3), (5.1, 2.5))
    assert PUBLISHED.loss(balls).tolist() == pytest.approx([0, 4, 0, 2, 0, 0.5])


@pytest.mark.parametrize("problem", [PAPER, PUBLISHED], ids=repr)
@with_box2d
def test_some_push_hits_a_goal(problem):
    best = problem.nominal_optimum
    assert best.value == pytest.approx(0, abs=1e-9)
    assert problem(best.design.unsqueeze(0)).item() < 1e-4


@pytest.mark.parametrize(
    ("quadrant", "design", "value"),
    [
        ("III", (5.0, 4.15, 25.6), 0.38),
        ("I", (-4.17, -4.08, 30.0), 0.43),
        ("II", (5.0, -5.0, 25.3), 0.57),
    ],
)
def test_the_best_pushes_into_three_quadrants_are_near_those_of_the_notes(quadrant, design, value):
    best = PAPER.robust_optima[quadrant]
    assert best.design.tolist() == pytest.approx(design, abs=0.1)
    assert best.value == pytest.approx(value, abs=0.012)


def test_the_twin_goals_are_not_quite_the_best_choice():
    assert PAPER.robust_optimum == PAPER.robust_optima["III"]
    assert PAPER.robust_optimum.value == pytest.approx(0.3897, abs=3e-4)
    assert PAPER.robust_optima["I"].value == pytest.approx(0.4284, abs=3e-4)


def test_with_the_published_goals_quadrant_two_beats_quadrant_one():
    second = rows((5.0, -5.0, 25.35))
    value = PUBLISHED.expected(second).item()
    assert value == pytest.approx(0.4145, abs=3e-4)
    around = second + rows((-0.2, 0, 0), (0, 0.2, 0), (0, 0, -0.5), (0, 0, 0.5))
    assert (PUBLISHED.expected(around) > value).all()

    first = PAPER.robust_optima["I"]  # the twin goals are the same
    assert PUBLISHED.expected(first.design.unsqueeze(0)).item() == pytest.approx(first.value)
    assert value < first.value


def test_unknown_goals_are_refused():
    with pytest.raises(ValueError, match="one of paper, published, got 'mine'"):
        RobotPush("mine")


def test_an_uncertainty_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match="2 columns, got 3"):
        RobotPush(uncertainty=Normal([0.1, 0.1]))


@pytest.mark.usefixtures("as_without_shape_checks")
def test_points_with_too_few_columns_are_refused():
    for f in (PAPER, PAPER.quick):
        with pytest.raises(ValueError, match="push has points with 3 columns, got 2"):
            f(torch.zeros(1, 2, dtype=torch.float64))
