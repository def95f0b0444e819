"""The default estimator against brute force, for the uncertainties of the paper."""

import math
from functools import lru_cache

import pytest
import torch

from airbo import uncertainty as unc
from airbo.embeddings import Nystrom, Quadrature, RationalQuadraticSum, default_base_kernel
from airbo.uncertainty import base_draws
from tests.surrogates import box, designs
from tests.uncertainties import wavy_beta

N_PAIRS = 2**17


ROBOT_COV = [[0.09, -0.01, 0.0], [-0.01, 0.09, 0.0], [0.0, 0.0, 1.0]]
BETA = unc.Beta(0.4, 0.2, scale=0.1)
CASES = {
    "normal 1": (unc.Normal(0.01), box(1, 0.0, 1.0)),
    "beta 1": (BETA, box(1, 0.0, 1.0)),
    "varying beta 1": (unc.Varying(wavy_beta), box(1, 0.0, 1.0)),
    "chi-squared 1": (
        unc.Piecewise([0.6], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7.0, scale=0.01)]),
        box(1, 0.0, 1.0),
    ),
    "normal 3": (unc.Normal(0.1), box(3, 0.0, 1.0)),
    "beta 3": (BETA, box(3, 0.0, 1.0)),
    "mixture 3": (
        unc.GaussianMixture([[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]], ROBOT_COV),
        torch.tensor([[-5.0, -5.0, 0.0], [5.0, 5.0, 30.0]], dtype=torch.float64),
    ),
    "varying beta 3": (unc.Varying(wavy_beta), box(3, 0.0, 1.0)),
    "normal 10": (unc.Normal(0.1), box(10, 0.0, 1.0)),
    "beta 10": (BETA, box(10, 0.0, 1.0)),
    "rounded 1": (unc.Rounded(unc.Normal(1.0), 1, 5), box(1, 1.0, 5.0)),
    "rounded 2": (
        unc.Product([unc.Rounded(unc.LogNormal(0.4), 1, 9), unc.Normal(0.1)]),
        torch.tensor([[1.0, 0.0], [9.0, 1.0]], dtype=torch.float64),
    ),
    "ring and normal 10": (unc.Product([unc.Ring(0.5), unc.Normal(0.1)]), box(10)),
}


@lru_cache(maxsize=4)
def pairs_of_draws(n_base):
    return base_draws(N_PAIRS, n_base, seed=7)


def brute_force(kernel, uncertainty, x, y, bounds):
    """E k(u, v) over pairs of independent draws u ~ P_x and v ~ P_y."""
    d = len(x)
    r = uncertainty.n_base(d)
    base = pairs_of_draws(2 * r)
    low, width = bounds[0], bounds[1] - bounds[0]
    u = (uncertainty.perturb(x.unsqueeze(0), base[:, :r])[0] - low) / width
    v = (uncertainty.perturb(y.unsqueeze(0), base[:, r:])[0] - low) / width
    with torch.no_grad():
        return kernel(u, v, diag=True).mean()


def nearby_designs(d, bounds):
    """Two designs near each other and one far off, in user units."""
    Z = designs(2, d, low=0.1, high=0.9)
    Z = torch.cat([Z, (Z[:1] + 0.05 / math.sqrt(d)).clamp_max(1)])
    return bounds[0] + Z * (bounds[1] - bounds[0])


def kernel_matrix(inner):
    diagonal = inner.diagonal()
    return torch.exp(-(diagonal.unsqueeze(-1) + diagonal.unsqueeze(-2) - 2 * inner))


SLOW = {"beta 10": pytest.mark.slow, "beta 3": pytest.mark.slow}


@pytest.mark.parametrize(
    ("uncertainty", "bounds"),
    [pytest.param(*case, id=name, marks=SLOW.get(name, ())) for name, case in CASES.items()],
)
@pytest.mark.parametrize("lengthscale", [pytest.param(None, marks=pytest.mark.slow), 0.05])
def test_the_default_estimator_is_exact_enough(uncertainty, bounds, lengthscale):
    d = bounds.shape[-1]
    kernel = default_base_kernel(d) if lengthscale is None else RationalQuadraticSum(lengthscale)
    kernel = kernel.double()
    X = nearby_designs(d, bounds)
    truth = torch.zeros(3, 3, dtype=torch.float64)
    for i, j in torch.combinations(torch.arange(3), with_replacement=True).tolist():
        truth[i, j] = truth[j, i] = brute_force(kernel, uncertainty, X[i], X[j], bounds)
    truth = kernel_matrix(truth)

    def error(estimator, fitting):
        embedding = estimator.embed([uncertainty], kernel, bounds).train(fitting)
        with torch.no_grad():
            features = embedding(X)
            return (kernel_matrix(embedding.inner(features, features)) - truth).abs().max().item()

    nystrom = error(Nystrom(160, 10), fitting=False)
    for fitting in (True, False):
        quadrature = error(Quadrature(), fitting)
        assert quadrature <= 1e-3
        # brute force itself, and the shortened sum of Gaussians, are not better than that
        assert quadrature <= max(nystrom, 2e-5 if fitting else 8e-5)


@pytest.mark.parametrize(("uncertainty", "bounds"), list(CASES.values())[:4], ids=list(CASES)[:4])
def test_more_nodes_do_not_change_what_twelve_have_found(uncertainty, bounds):
    kernel = RationalQuadraticSum(0.1).double()
    X = nearby_designs(1, bounds)
    with torch.no_grad():
        few, many = (
            e.inner(e(X), e(X))
            for e in (Quadrature(n).embed([uncertainty], kernel, bounds) for n in (12, 48))
        )
    torch.testing.assert_close(few, many, atol=2e-3, rtol=0)
