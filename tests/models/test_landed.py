"""f at points beside its expected values under P_x, in closed form and by samples."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.models import ExpectationGP
from airbo.models.draws import FunctionDraws
from airbo.problems.hills import growing
from airbo.uncertainty import base_draws

KINDS = [
    unc.Normal((0.05, 0.1)),
    unc.Varying(growing),
    unc.Relative(unc.Normal(0.1)),
    unc.Product([unc.Exact(), unc.Normal(0.1)]),
    unc.Normal(cov=((0.02, 0.01), (0.01, 0.02))),
    unc.Relative(unc.Uniform(-0.1, 0.1)),
    unc.Product([unc.Normal(0.1), unc.Uniform(0.0, 0.1)]),
]


def fitted(uncertainty):
    X, square = base_draws(10, 2, seed=1), torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    Y = X.sum(-1, keepdim=True).sin()
    return ExpectationGP(X, Y, uncertainty=uncertainty, bounds=square).eval()


@pytest.mark.parametrize("uncertainty", KINDS, ids=repr)
def test_covariance_of_points_with_observations_is_the_mean_over_samples(uncertainty):
    model = fitted(uncertainty)
    points, X = 1.5 * base_draws(20, 2) - 0.25, model.train_inputs[0]
    with torch.no_grad():
        both = model.including(unc.Exact())
        f, observed = both.numbered(points, unc.Exact()), both.numbered(X, uncertainty)
        found = model.covar_module.outputscale * both.features.inner(
            both.features(f), both.features(observed)
        )
        landed = uncertainty.perturb(X, base_draws(2**12, 2))  # (n, s, d)
        K = model.features.base_kernel(points, landed.flatten(0, 1)).to_dense()
        expected = model.covar_module.outputscale * K.unflatten(-1, landed.shape[:2]).mean(-1)
    torch.testing.assert_close(found, expected, atol=1e-4 * expected.max().item(), rtol=0)


@pytest.mark.parametrize("uncertainty", KINDS, ids=repr)
def test_expected_values_of_draws_are_means_over_where_designs_land(uncertainty):
    draws = FunctionDraws(fitted(uncertainty), 2)
    designs = base_draws(5, 2, seed=2)
    with torch.no_grad():
        expected = draws.expected(designs, uncertainty)
        at = draws(uncertainty.perturb(designs, base_draws(2**12, 2)))
    means = torch.cat([at.mean + at.deviations, at.mean - at.deviations]).mean(-1)
    torch.testing.assert_close(expected, means, atol=2e-3, rtol=0)


def test_an_uncertainty_is_asked_about_its_own_designs_only():
    def half(x):
        if bool((x > 1).any()):
            raise ValueError("nobody knows")
        return unc.Normal(0.05 + 0.1 * x.abs())

    model = fitted(unc.Varying(half))
    outside = base_draws(5, 2) + 1
    with torch.no_grad():
        drawn = FunctionDraws(model, 2)(outside)
        joint = model.posterior(
            torch.cat([outside, base_draws(5, 2)]),
            uncertainty=[unc.Exact()] * 5 + [unc.Varying(half)] * 5,
        )
    assert drawn.mean.isfinite().all()
    assert joint.variance.isfinite().all()
