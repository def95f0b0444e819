"""Hills: the highest one stands where designs are hit least precisely."""

import pytest
import torch
from torch.distributions import MultivariateNormal

from airbo.problems import Hills
from airbo.problems.hills import HILLS, growing
from airbo.uncertainty import Exact, GaussianMixture, Normal, Varying, base_draws

N = 2**14
CORRELATED = [[0.02, 0.01], [0.01, 0.01]]


@pytest.mark.parametrize(
    "uncertainty",
    [
        Varying(growing),
        Normal(0.1),
        Normal([0.05, 0.2]),
        Normal(cov=[[0.01, 0.0], [0.0, 0.04]]),
    ],
    ids=repr,
)
def test_the_closed_form_is_the_mean_over_executed_inputs(uncertainty):
    hills, X = Hills(uncertainty), base_draws(20, 2)
    values = hills(uncertainty.perturb(X, base_draws(N, 2)))
    assert ((hills.exact(X) - values.mean(-1)).abs() < values.std(-1) / N**0.5).all()


@pytest.mark.parametrize(
    "uncertainty",
    [
        Normal(cov=CORRELATED),
        Varying(lambda x: Normal(cov=torch.tensor(CORRELATED).to(x).expand(*x.shape, 2))),
        GaussianMixture([[0.0, 0.0]], CORRELATED),
    ],
    ids=lambda uncertainty: type(uncertainty).__name__,
)
def test_what_has_no_closed_form_is_sampled(uncertainty):
    hills, X = Hills(uncertainty), base_draws(20, 2)
    assert hills.exact(X) is None
    error = hills.expected_error(X)
    assert (error > 0).all()
    assert ((hills.expected(X) - blurred(X, torch.tensor(CORRELATED).to(X))).abs() < error).all()


def blurred(X, covariance):
    """Return the hills after a normal error: each one times the density of its blurred top."""
    total = 0
    for height, top, width in HILLS:
        own = width**2 * torch.eye(2).to(X)
        density = MultivariateNormal(X, own + covariance).log_prob(X.new_tensor(top)).exp()
        total = total + height * 2 * torch.pi * width**2 * density
    return total


def test_without_uncertainty_the_expectation_is_the_function():
    X = base_draws(20, 2)
    torch.testing.assert_close(Hills(Exact()).expected(X), Hills()(X))
    torch.testing.assert_close(Hills(Normal(0.0)).expected(X), Hills()(X))


def test_the_function_fades_outside_the_square():
    X = torch.tensor([[-3.0, 0.5], [0.5, 4.0], [100.0, -100.0]], dtype=torch.float64)
    assert Hills()(X).tolist() == pytest.approx([0, 0, 0], abs=1e-9)


def test_the_robust_optimum_is_on_another_hill_than_the_nominal_one():
    hills = Hills()
    assert hill(hills.nominal_optimum.design) == 0
    assert hill(hills.robust_optimum.design) == 1
    assert hills.regret(hills.nominal_optimum.design.unsqueeze(0)).item() > 0.4


def test_designs_that_are_hit_precisely_belong_on_the_highest_hill():
    assert hill(Hills(Normal(0.02)).robust_optimum.design) == 0


def hill(design):
    """Return the number of the hill whose top is the closest."""
    return (design - design.new_tensor([top for _, top, _ in HILLS])).norm(dim=-1).argmin().item()
