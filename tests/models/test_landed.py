"""Closed forms for normal P_x, beside what samples of P_x give."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.models import ExpectationGP
from airbo.models.draws import FunctionDraws
from airbo.models.paths import normal_landing
from airbo.problems.hills import growing
from airbo.uncertainty import base_draws

NORMAL = [
    unc.Normal((0.05, 0.1)),
    unc.Varying(growing),
    unc.Relative(unc.Normal(0.1)),
    unc.Product([unc.Exact(), unc.Normal(0.1)]),
]
OTHERS = [
    unc.Uniform(-0.1, 0.1),
    unc.LogNormal(0.1),
    unc.Normal(cov=((0.02, 0.01), (0.01, 0.02))),
    unc.Product([unc.Normal(0.1), unc.Uniform(0.0, 0.1)]),
]


def fitted(uncertainty):
    X, square = base_draws(10, 2, seed=1), torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    Y = X.sum(-1, keepdim=True).sin()
    return ExpectationGP(X, Y, uncertainty=uncertainty, bounds=square).eval()


@pytest.mark.parametrize("uncertainty", NORMAL, ids=repr)
def test_covariance_with_normal_observations_is_the_mean_over_samples(uncertainty):
    model = fitted(uncertainty)
    points = 1.5 * base_draws(20, 2) - 0.25
    with torch.no_grad():
        found = FunctionDraws(model, 2)._covariance(points)
        landed = uncertainty.perturb(model.train_inputs[0], base_draws(2**12, 2))  # (n, s, d)
        K = model.features.base_kernel(points, landed.flatten(0, 1)).to_dense()
        expected = model.covar_module.outputscale * K.unflatten(-1, landed.shape[:2]).mean(-1)
    torch.testing.assert_close(found, expected, atol=1e-4 * expected.max().item(), rtol=0)


@pytest.mark.parametrize("uncertainty", NORMAL, ids=repr)
def test_expected_values_of_draws_are_means_over_where_designs_land(uncertainty):
    draws = FunctionDraws(fitted(uncertainty), 2)
    designs = base_draws(5, 2, seed=2)
    with torch.no_grad():
        expected = draws.expected(designs, uncertainty)
        at = draws(uncertainty.perturb(designs, base_draws(2**12, 2)))
    means = torch.cat([at.mean + at.deviations, at.mean - at.deviations]).mean(-1)
    torch.testing.assert_close(expected, means, atol=2e-3, rtol=0)


@pytest.mark.parametrize("uncertainty", OTHERS, ids=repr)
def test_what_is_not_normal_by_column_is_left_to_other_ways(uncertainty):
    assert normal_landing(uncertainty, base_draws(3, 2)) is None
