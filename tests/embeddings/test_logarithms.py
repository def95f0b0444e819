"""What takes less time says the same: logarithms, fewer Gaussians, elimination."""

import math

import pytest
import torch

from airbo import uncertainty as unc
from airbo.embeddings import quadrature
from airbo.embeddings.dependent import _quadratic, widened
from airbo.embeddings.gaussian_sum import skeleton
from airbo.embeddings.terms import Looked, Terms
from airbo.models import MMDGP
from tests.surrogates import box, designs, values

LOGGED = 0.03 * torch.randn(200, 2, generator=torch.Generator().manual_seed(0)).double().cumsum(-1)
KINDS = {
    "normal": (unc.Normal(0.05), 3),
    "beta": (unc.Beta(0.4, 0.2, scale=0.1), 3),
    "percent": (unc.Relative(unc.Uniform(-0.1, 0.1)), 3),
    "ring": (unc.Ring(0.1), 2),
    "logged": (unc.Empirical(LOGGED), 2),
}
every_kind = pytest.mark.parametrize(("uncertainty", "d"), KINDS.values(), ids=KINDS)


def surrogate(uncertainty, d, n=12, lengthscale=None):
    X = designs(n, d, low=0.0, high=1.0)
    model = MMDGP(X, values(X), uncertainty, box(d, 0.0, 1.0))
    if lengthscale is not None:
        model.features.base_kernel.lengthscales = lengthscale
    return model, X


@every_kind
@pytest.mark.parametrize("lengthscale", [0.3, 2.0])
def test_polynomials_of_logarithms_give_what_the_other_ways_give(uncertainty, d, lengthscale):
    model, X = surrogate(uncertainty, d, lengthscale=lengthscale)
    features = model.eval().features
    f = features(X)
    with torch.no_grad():
        base, fast, _ = features._prepared()
        slow = Terms(features.plan, base, features.seen, features._extent())
        one = fast.look(f, weighed=True)
        fast_sum = torch.tensordot(base.weights, fast(one, one, False), dims=1)
        slow_sum = torch.tensordot(base.weights, slow(Looked(f), Looked(f), False), dims=1)
        slack = features.plan.groups[0].slack
    # every Gaussian may change by a third of SIMPLER, and the few narrow ones do
    assert (fast_sum - slow_sum).abs().max() < 2 * slack * quadrature.SIMPLER * base.at_zero


@pytest.mark.parametrize("kind", ["ring", "logged"])
@pytest.mark.parametrize("lengthscale", [0.3, 2.0])
def test_the_same_under_several_uncertainties_at_once(kind, lengthscale):
    uncertainty, d = KINDS[kind]
    model, X = surrogate(uncertainty, d, lengthscale=lengthscale)
    features = model.eval().features
    features.number_of(unc.Exact())
    f = features(torch.cat([X, torch.arange(len(X)).unsqueeze(-1) % 2], dim=-1))
    with torch.no_grad():
        base, fast, _ = features._prepared()
        slow = Terms(features.plan, base, features.seen, features._extent())
        one = fast.look(f, weighed=True)
        fast_sum = torch.tensordot(base.weights, fast(one, one, False), dims=1)
        slow_sum = torch.tensordot(base.weights, slow(Looked(f), Looked(f), False), dims=1)
    assert (fast_sum - slow_sum).abs().max() < quadrature.SIMPLER / 10 * base.at_zero
    assert min(map(len, fast.logs.left.values())) < len(base.weights) / 2


@every_kind
def test_at_the_default_length_scale_polynomials_serve_nearly_all_gaussians(uncertainty, d):
    model, X = surrogate(uncertainty, d)
    features = model.eval().features
    features(X)
    base, terms, _ = features._prepared()
    left = sum(map(len, terms.logs.left.values()))
    assert left <= len(base.weights) / 4


@pytest.mark.parametrize("lengthscale", [0.05, 0.3, 2.0])
def test_a_large_fit_sees_the_same_with_fewer_gaussians(lengthscale):
    uncertainty, d = KINDS["percent"]
    model, X = surrogate(uncertainty, d, n=quadrature.N_FEWER, lengthscale=lengthscale)
    features = model.train().features
    f, base = features(X), features._base()
    few = features._fewer(base, f)
    whole, short = (
        torch.tensordot(b.weights, features._each(b.detached(), f), dims=1) for b in (base, few)
    )
    assert len(few.weights) < 0.7 * len(base.weights)
    assert (whole - short).abs().max() < 1e-5 * base.at_zero


def test_a_skeleton_rebuilds_all_rows_from_those_that_it_keeps():
    x = torch.linspace(0, 1, 50, dtype=torch.float64)
    rows = torch.stack([torch.exp(-x * math.exp(k / 4)) for k in range(20)])
    kept, shares = skeleton(rows)
    assert len(kept) < len(rows)
    assert (shares @ rows[kept] - rows).abs().max() < 1e-5


@pytest.mark.parametrize("b", [1, 2, 4])
def test_elimination_gives_what_lapack_gives(b):
    generator = torch.Generator().manual_seed(b)
    root = torch.randn(7, b, b, generator=generator, dtype=torch.float64)
    t = torch.randn(7, b, generator=generator, dtype=torch.float64)
    precisions = 5 * torch.rand(4, b, generator=generator, dtype=torch.float64)
    V = root @ root.mT
    A, heights = widened(precisions, V)
    expected = torch.einsum("ja,jqab,jb->jq", t, A, t) - 2 * heights.log()
    torch.testing.assert_close(_quadratic(t, V, precisions), expected)
