"""Regret and its bound: every inequality of the proof on small cases."""

import math

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
from hypothesis import given
from hypothesis import strategies as st

from airbo.problems import RKHS
from airbo.theory import information_gain, information_gains, ucb_beta
from experiments.theory.regret import cumulative_regret, regret_bound, run_regret

LENGTHSCALE = 0.2


def kernel(a, b):
    return torch.exp(-0.5 * (a - b.mT) ** 2 / LENGTHSCALE**2)


def points(n, seed=0):
    return torch.rand(n, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def deviations_one_by_one(X, noise_variance):
    """σ_{t-1}(x_t) from the posterior after each of the first observations."""
    found = [1.0]
    for t in range(1, len(X)):
        K, k = kernel(X[:t], X[:t]), kernel(X[t : t + 1], X[:t])
        A = torch.linalg.inv(K + noise_variance * torch.eye(t, dtype=torch.float64))
        found.append((1 - k @ A @ k.mT).clamp_min(0).sqrt().item())
    return torch.tensor(found, dtype=torch.float64)


@given(st.integers(1, 15), st.integers(0, 10**6))
def test_the_sum_of_deviations_is_bounded_by_half_the_log_determinant(n, seed):
    X, noise_variance = points(n, seed), 1 + 2 / n
    total = deviations_one_by_one(X, noise_variance).sum().item()
    gamma = information_gain(kernel(X, X), noise_variance).item()  # ½ ln det
    assert total <= math.sqrt(4 * (n + 2) * gamma) + 1e-9
    # what regret_bound puts there, for β = ½
    bound = regret_bound(
        information_gains(kernel(X, X), noise_variance), torch.full((n,), 0.5).double()
    )
    assert bound[-1].item() == pytest.approx(math.sqrt(4 * (n + 2) * gamma))


@given(st.integers(1, 15), st.integers(0, 10**6), st.floats(0.01, 5))
def test_the_sum_of_deviations_is_bounded_for_every_noise(n, seed, noise_variance):
    X = points(n, seed)
    total = deviations_one_by_one(X, noise_variance).cumsum(0)
    gains = information_gains(kernel(X, X), noise_variance)
    bound = regret_bound(gains, torch.full_like(gains, 0.5), noise_variance=noise_variance)
    assert (total <= bound + 1e-7).all()


@given(st.integers(1, 60))
def test_the_general_bound_is_not_above_that_of_the_theorem(n):
    gains, betas = torch.ones(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64)
    general = regret_bound(gains, betas, noise_variance=1 + 2 / n)
    assert general[-1] <= regret_bound(gains, betas)[-1]


def test_the_bound_with_an_estimated_kernel_is_the_formula_of_the_proof():
    gains = torch.tensor([0.5, 0.9, 1.2, 1.4], dtype=torch.float64)
    betas = torch.tensor([2.0, 2.2, 2.1, 2.6], dtype=torch.float64)
    e, largest, nu = 1e-3, 3.0, 0.7
    expected = []
    for n in range(1, 5):
        widths = math.sqrt(4 * (n + 2) * (gains[n - 1].item() + 0.5 * n**1.5 * e))
        error = sum(
            (betas[t].item() * (1 + t) + nu * t**0.75) * math.sqrt(e) + (t + t**2) * largest * e
            for t in range(n)
        )
        expected.append(2 * betas[:n].max().item() * widths + 2 * error)
    assert regret_bound(gains, betas, e, largest, nu).tolist() == pytest.approx(expected)


def test_cumulative_regret_adds_up_what_designs_lose_in_expectation():
    problem, X = RKHS(), points(6)
    best, total = problem.robust_optimum.value, 0.0
    for i, R in enumerate(cumulative_regret(X, problem).tolist()):
        total += best - problem.expected(X[i : i + 1]).item()
        assert total == pytest.approx(R)


def test_cumulative_regret_of_the_best_design_is_zero():
    problem = RKHS()
    X = problem.robust_optimum.design.unsqueeze(0).repeat(5, 1)
    assert cumulative_regret(X, problem).abs().max().item() < 1e-9


class Upside:
    """The same problem, where small values are good."""

    def __init__(self, problem):
        self.problem, self.direction = problem, "minimize"
        best = problem.robust_optimum
        self.robust_optimum = best._replace(value=-best.value)

    def expected(self, X):
        return -self.problem.expected(X)


def test_cumulative_regret_follows_the_direction():
    X, problem = points(6), RKHS()
    torch.testing.assert_close(cumulative_regret(X, Upside(problem)), cumulative_regret(X, problem))


def known_kernel_model(X, y, noise_variance, transform=False):
    covariance = RBFKernel().double()
    covariance.lengthscale = LENGTHSCALE
    options = {} if transform else {"outcome_transform": None}
    model = SingleTaskGP(X, y, covar_module=covariance, **options).double()
    model.likelihood.noise = noise_variance
    return model.eval()


def test_a_run_is_put_beside_the_bound_step_by_step():
    problem, X, noise_variance = RKHS(), points(8), 0.3
    model = known_kernel_model(X, problem(X).unsqueeze(-1), noise_variance)
    run = run_regret(model, X, problem, b=2.0, noise_ratio=0.5, delta=0.2)

    gains = [0.0] + [
        information_gain(kernel(X[:i], X[:i]), noise_variance).item() for i in range(1, 9)
    ]
    betas = [ucb_beta(gain, 2.0, 0.5, 0.2) for gain in gains[:-1]]
    assert run.gains.tolist() == pytest.approx(gains[1:], rel=1e-5)
    assert run.betas.tolist() == pytest.approx(betas, rel=1e-5)
    torch.testing.assert_close(run.regret, cumulative_regret(X, problem))
    deviations = deviations_one_by_one(X, noise_variance)
    widths = 2 * (torch.tensor(betas, dtype=torch.float64) * deviations).cumsum(0)
    torch.testing.assert_close(run.widths, widths, rtol=1e-4, atol=1e-4)
    assert (run.widths <= run.bound).all()


def test_initial_designs_lose_no_more_than_the_norm_allows():
    problem, X = RKHS(), points(8)
    model = known_kernel_model(X, problem(X).unsqueeze(-1), 0.3)
    without, with_three = (run_regret(model, X, problem, b=2.0, n_initial=n) for n in (0, 3))
    assert with_three.widths[2].item() == pytest.approx(3 * 2 * 2.0)  # 2 b √k, k = 1
    step = without.widths.diff()[2:]
    torch.testing.assert_close(with_three.widths.diff()[2:], step)
    torch.testing.assert_close(
        (with_three.bound - without.bound)[2:], torch.full((6,), 12.0).double()
    )


def test_widths_and_bound_are_in_the_units_of_the_values():
    problem, X = RKHS(), points(8)
    y = problem(X).unsqueeze(-1)
    small, large = (
        run_regret(known_kernel_model(X, scale * y, 0.3, transform=True), X, problem)
        for scale in (1.0, 10.0)
    )
    torch.testing.assert_close(large.widths, 10 * small.widths)
    torch.testing.assert_close(large.bound, 10 * small.bound)
    torch.testing.assert_close(large.betas, small.betas)


def test_designs_that_are_not_those_of_the_model_are_refused():
    X = points(8)
    model = known_kernel_model(X, RKHS()(X).unsqueeze(-1), 0.3)
    with pytest.raises(ValueError, match="There are 7 designs but 8 observations"):
        run_regret(model, X[:7], RKHS())
