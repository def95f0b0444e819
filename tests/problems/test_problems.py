import pytest
import torch

from airbo.problems import (
    PROBLEMS,
    RKHS,
    Branin,
    BumpedBowl,
    Cliff,
    DoublePeak,
    Hills,
    Wave,
    problem,
)
from airbo.problems.truth import best_point, estimate
from airbo.uncertainty import Beta, Exact, Normal, base_draws
from tests.problems.common import HARTMANN

BETA = Beta(0.4, 0.2, scale=0.1)
ALL_PROBLEMS = [
    RKHS(),
    RKHS(BETA),
    DoublePeak(),
    DoublePeak(Normal(0.03)),
    Wave(),
    Wave(BETA),
    BumpedBowl(),
    BumpedBowl(3, Normal(0.2)),
    Hills(),
    Cliff(),
    Branin(),
    HARTMANN,
]


def named(problem):
    """Name a problem and the kind of its uncertainty."""
    return f"{problem.name}-{type(problem.uncertainty).__name__}"


def column(*x):
    return torch.tensor(x, dtype=torch.float64).unsqueeze(-1)


@pytest.mark.parametrize(
    ("problem", "x", "value"),
    [(RKHS(), 0.89236, 5.73839), (DoublePeak(), 0.35008, 8.98484)],
    ids=repr,
)
def test_the_nominal_optimum_is_where_the_notes_say(problem, x, value):
    assert problem.nominal_optimum.design.item() == pytest.approx(x, abs=1e-5)
    assert problem.nominal_optimum.value == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    ("problem", "x", "value"),
    [
        (RKHS(), 0.0776, 4.9382),
        (RKHS(BETA), 0.0068, 4.5926),
        (DoublePeak(), 0.2523, 6.4143),
    ],
    ids=repr,
)
def test_the_robust_optimum_is_where_the_notes_say(problem, x, value):
    assert problem.robust_optimum.design.item() == pytest.approx(x, abs=1e-4)
    assert problem.robust_optimum.value == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize(("problem", "value"), [(RKHS(), 4.805), (RKHS(BETA), 2.887)], ids=repr)
def test_the_nominal_optimum_of_rkhs_is_not_the_best_design(problem, value):
    X = problem.nominal_optimum.design.unsqueeze(0)
    assert problem.expected(X).item() == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize(("x", "regret"), [(0.2781, 2.84), (0.3447, 4.27), (0.156, 6.4143 - 3.966)])
def test_designs_that_come_from_wrong_beliefs_have_their_regret_on_the_double_peak(x, regret):
    assert DoublePeak().regret(column(x)).item() == pytest.approx(regret, abs=1e-2)


def test_the_next_best_design_of_the_double_peak_is_a_local_optimum():
    E = DoublePeak().expected(column(0.146, 0.156, 0.166))
    assert E[1].item() == pytest.approx(3.966, abs=1e-3)
    assert E[1] > E[0]
    assert E[1] > E[2]


@pytest.mark.parametrize("std", [0.003, 0.01, 0.1])
def test_the_closed_form_of_rkhs_agrees_with_samples(std):
    problem, X = RKHS(Normal(std)), column(0.0, 0.08, 0.5, 0.89, 1.0)
    sampled = estimate(problem, problem.uncertainty, X).mean
    torch.testing.assert_close(problem.expected(X), sampled, atol=5e-3, rtol=0)


def test_the_quadrature_of_a_beta_agrees_with_samples():
    problem, X = DoublePeak(), column(0.0, 0.156, 0.2523, 0.35, 1.0)
    executed = BETA.perturb(X, base_draws(2**14, 1))
    torch.testing.assert_close(problem.expected(X), problem(executed).mean(-1), atol=5e-3, rtol=0)


@pytest.mark.parametrize("kind", [RKHS, DoublePeak])
def test_without_uncertainty_the_expectation_is_the_function(kind):
    X = torch.linspace(0, 1, 21, dtype=torch.float64).unsqueeze(-1)
    torch.testing.assert_close(kind(Exact()).expected(X), kind()(X))


@pytest.mark.parametrize("problem", ALL_PROBLEMS, ids=named)
def test_regret_is_zero_at_the_robust_optimum_and_positive_elsewhere(problem):
    best = problem.robust_optimum.design.unsqueeze(0)
    assert problem.regret(best).item() == pytest.approx(0, abs=1e-12)
    assert (problem.regret(designs(problem, 50)) > 0).all()


@pytest.mark.parametrize("problem", ALL_PROBLEMS, ids=named)
def test_no_design_is_better_than_the_nominal_optimum_if_it_is_hit_exactly(problem):
    best, values = problem.nominal_optimum, problem.quick(designs(problem, 200))
    assert best.value == pytest.approx(problem.quick(best.design.unsqueeze(0)).item())
    better = values > best.value if problem.direction == "maximize" else values < best.value
    assert not better.any()


@pytest.mark.parametrize("problem", ALL_PROBLEMS, ids=named)
def test_optima_lie_within_the_bounds(problem):
    for optimum in (problem.nominal_optimum, problem.robust_optimum):
        assert (problem.bounds[0] <= optimum.design).all()
        assert (optimum.design <= problem.bounds[1]).all()


@pytest.mark.parametrize("problem", ALL_PROBLEMS, ids=named)
def test_a_batch_of_designs_equals_each_design(problem):
    X = designs(problem, 6).unflatten(0, (2, 3))
    for f in (problem, problem.expected, problem.expected_error, problem.regret):
        looped = torch.stack([torch.cat([f(x.unsqueeze(0)) for x in batch]) for batch in X])
        torch.testing.assert_close(f(X), looped)


@pytest.mark.parametrize("problem", ALL_PROBLEMS, ids=named)
def test_experiments_repeat_with_their_seed_and_average_to_the_expectation(problem):
    X = designs(problem, 1).expand(200, -1)
    Y = problem.observe(X, seeded())
    assert torch.equal(Y, problem.observe(X, seeded()))
    assert not torch.equal(Y, problem.observe(X, seeded(1)))
    standard_error = Y.std() / len(Y) ** 0.5
    assert (Y.mean() - problem.expected(X[:1])).abs().item() < 4 * standard_error


@pytest.mark.parametrize(
    "problem", [RKHS(), DoublePeak(), RKHS(BETA), Wave(), BumpedBowl(), Hills()], ids=repr
)
def test_closed_forms_and_quadrature_have_no_standard_error(problem):
    assert not problem.expected_error(designs(problem, 5)).any()


@pytest.mark.parametrize(
    "problem",
    [DoublePeak(Normal(0.03)), BumpedBowl(3, Normal(0.2)), Cliff(), HARTMANN],
    ids=repr,
)
def test_another_sample_agrees_within_the_standard_error(problem):
    X = designs(problem, 5)
    P = problem.uncertainty
    executed = P.perturb(X, base_draws(problem.n_samples, P.n_base(X.shape[-1]), seed=7))
    difference = problem.quick(executed).mean(-1) - problem.expected(X)
    assert (difference.abs() <= 2 * problem.expected_error(X)).all()


def test_the_standard_error_shrinks_with_the_root_of_the_number_of_samples():
    double_peak, X = DoublePeak(), column(0.2, 0.3)
    few, many = (estimate(double_peak, Normal(0.05), X, 2**n).error for n in (10, 14))
    torch.testing.assert_close(few / many, torch.full_like(few, 4.0), rtol=0.05, atol=0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_point_of_a_slanted_parabola_in_a_box_is_found(direction):
    sign = -1 if direction == "maximize" else 1
    top = torch.tensor([0.3, 1.5, -0.7], dtype=torch.float64)  # the second one lies outside
    bounds = torch.tensor([[-1.0] * 3, [1.0] * 3], dtype=torch.float64)
    slant = torch.tensor([[3.0, 0, 2.9], [0, 1, 0], [2.9, 0, 3]], dtype=torch.float64)

    def f(X):
        return sign * torch.einsum("...i,ij,...j->...", X - top, slant, X - top)

    best = best_point(f, bounds, direction)
    assert best.design.tolist() == pytest.approx([0.3, 1.0, -0.7], abs=1e-3)
    assert best.value == pytest.approx(sign * 0.25, abs=1e-6)


def test_every_problem_is_found_by_its_name():
    for name, kind in PROBLEMS.items():
        assert type(problem(name)) is kind
        assert problem(name).name == name


def test_an_unknown_name_is_answered_with_those_that_there_are():
    with pytest.raises(ValueError, match="no problem 'rastrigin'; choose from rkhs, double-peak"):
        problem("rastrigin")


def test_every_design_of_an_experiment_lands_by_its_own_draw():
    Y = DoublePeak().observe(column(0.25, 0.25, 0.25), seeded())
    assert len(set(Y.tolist())) == 3


def test_exact_experiments_return_the_function_at_each_design():
    X = column(0.1, 0.5, 0.9)
    assert torch.equal(RKHS(Exact()).observe(X, seeded()), RKHS()(X))


def designs(problem, n):
    low, high = problem.bounds
    return low + (high - low) * base_draws(n, problem.bounds.shape[-1], seed=5)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)
