"""Laws that every kernel keeps in every way of computing it."""

from functools import partial

import pytest
import torch
from gpytorch.mlls import ExactMarginalLogLikelihood
from hypothesis import given, settings
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom, ScaleMixtureKernel, features, inner_product
from airbo.models import (
    ERBFGP,
    MMDGP,
    SKLGP,
    UGP,
    ExpectationGP,
    NominalGP,
)
from tests.surrogates import (
    SAMPLE_KINDS,
    box,
    designs,
    gram,
    moments,
    set_hyperparameters,
    surrogate,
    values,
)
from tests.uncertainties import WAYS, turning_normal, wavy_beta

FEW = [
    (unc.Normal(0.1), 3),
    (unc.Empirical([[0.1, -0.2], [0.0, 0.3]]), 2),
    (unc.Varying(wavy_beta), 1),
    (unc.Varying(turning_normal), 2),
]
"""A function of the difference, of Gaussians and of points; on a line; in the plane."""

PAIRS = [(ExpectationGP, {}, u, d) for u, d in WAYS]  # the default's base kernel is the cheapest
PAIRS += [(k, {}, u, d) for k in (MMDGP, UGP) for u, d in FEW]  # the same embeddings
PAIRS += [(k, {}, u, d) for k in (SKLGP, ERBFGP) for u, d in FEW[1:]]  # they see moments only
PAIRS += [(NominalGP, {}, *FEW[3])]  # it does not look at them
PAIRS += [
    (MMDGP, {"estimator": e}, u, d)
    for e in (Empirical(8), Nystrom(8, 4))
    for u, d in (FEW[0], FEW[3])
]

every_kernel = pytest.mark.parametrize(
    ("kind", "uncertainty", "d"),
    [
        pytest.param(
            partial(k, **settings) if settings else k,
            u,
            d,
            marks=pytest.mark.slow if k is UGP else (),  # the kernel of ExpectationGP
        )
        for k, settings, u, d in PAIRS
    ],
    ids=["-".join([k.__name__, *map(repr, s.values()), f"{u!r:.40}"]) for k, s, u, _ in PAIRS],
)


def has_equal_covariances(uncertainty, X):
    C = uncertainty.covariance(X)
    return torch.allclose(C, C[:1].expand_as(C))


def assert_covariance(kind, K, uncertainty, X):
    torch.testing.assert_close(K, K.mT)
    if kind is not SKLGP or has_equal_covariances(uncertainty, X):  # else it is indefinite
        # rounding errors grow with the size of K
        assert torch.linalg.eigvalsh(K)[0] >= -1e-9 * max(10.0, K.diagonal().max())


@every_kernel
def test_a_gram_matrix_is_a_covariance(kind, uncertainty, d):
    X = designs(9, d, seed=1)
    X = torch.cat([X, X[:2]])  # the same design twice
    model = set_hyperparameters(surrogate(kind, uncertainty, d)).eval()
    K = gram(model, X).detach()
    assert_covariance(kind, K, uncertainty, X)

    diagonal = K.diagonal()
    if kind in (UGP, ExpectationGP, ERBFGP):
        if uncertainty.is_additive:
            torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    else:
        one = getattr(model.covar_module, "outputscale", torch.ones(())).to(K)
        torch.testing.assert_close(diagonal, one.expand_as(diagonal))

    # Nyström's weights are large and of both signs: their sum is rounded at 1e-4
    rough = {"atol": 1e-4, "rtol": 1e-3} if "Nystrom" in repr(kind) else {}
    f = model.features(X)
    torch.testing.assert_close(model.covar_module(f, diag=True), diagonal, **rough)
    flipped = model.covar_module(f, f.flip(0), diag=True)
    torch.testing.assert_close(flipped, K.flip(1).diagonal(), **rough)


@every_kernel
def test_a_gram_matrix_is_a_covariance_whatever_the_hyperparameters(kind, uncertainty, d):
    @settings(max_examples=3)
    @given(seed=st.integers(0, 2**31), spread=st.floats(0.0, 2.0), n=st.integers(1, 25))
    def check(seed, spread, n):
        X = designs(n, d, seed)
        model = set_hyperparameters(surrogate(kind, uncertainty, d), seed, spread)
        assert_covariance(kind, gram(model, X).detach(), uncertainty, X)

    check()


@every_kernel
def test_a_batch_equals_a_loop(kind, uncertainty, d):
    model = surrogate(kind, uncertainty, d)
    X = designs(4, d, seed=2).reshape(2, 2, d)
    with torch.no_grad():
        together = moments(model, X)
        alone = [torch.stack(m) for m in zip(*(moments(model, x) for x in X), strict=True)]
        for a, b in zip(together, alone, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)

        Q = designs(2, d, seed=3)
        one_by_one = model.posterior(Q.unsqueeze(-2))
        jointly = model.posterior(Q)
    torch.testing.assert_close(one_by_one.mean.squeeze(-2), jointly.mean, atol=1e-6, rtol=1e-6)
    if kind is not SKLGP or has_equal_covariances(uncertainty, Q):  # else its covariance is cut off
        torch.testing.assert_close(
            one_by_one.variance.squeeze(-2), jointly.variance, atol=1e-6, rtol=1e-6
        )
    nested = model.posterior(Q.reshape(2, 1, 1, d))
    torch.testing.assert_close(nested.mean.flatten(), jointly.mean.flatten(), atol=1e-6, rtol=1e-6)


@every_kernel
def test_the_same_seed_gives_the_same_numbers_and_order_does_not_matter(kind, uncertainty, d):
    X, Q = designs(7, d), designs(3, d, seed=1)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    first = moments(kind(X, values(X), uncertainty, box(d)), Q)
    torch.rand(7)  # global random state has no say
    again = moments(kind(X, values(X), uncertainty, box(d)), Q)
    shuffled = moments(kind(X[order], values(X[order]), uncertainty, box(d)), Q)
    for a, b, c in zip(first, again, shuffled, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, atol=1e-7, rtol=1e-7)


def slope(function, step=1e-5):
    """Difference quotient of a function of one number at 0."""
    with torch.no_grad():
        return (function(step).item() - function(-step).item()) / (2 * step)


@every_kernel
def test_gradients_of_the_posterior_equal_finite_differences(kind, uncertainty, d):
    model = surrogate(kind, uncertainty, d)
    X, direction = designs(2, d, seed=4), designs(2, d, seed=5)
    weights = torch.tensor([[1.0], [-0.7]], dtype=torch.float64)

    def total(Z):
        posterior = model.posterior(Z)
        return (weights * (posterior.mean + posterior.variance)).sum()

    probe = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(total(probe), probe)
    expected = slope(lambda t: total(X + t * direction))
    assert (gradient * direction).sum().item() == pytest.approx(expected, abs=1e-5, rel=1e-4)


@every_kernel
def test_gradients_of_the_likelihood_equal_finite_differences(kind, uncertainty, d):
    model = set_hyperparameters(surrogate(kind, uncertainty, d)).train()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    parameters = list(model.parameters())
    starts = [p.detach().clone() for p in parameters]
    generator = torch.Generator().manual_seed(0)
    directions = [torch.randn(p.shape, generator=generator).to(p) for p in parameters]

    def loss(t):
        with torch.no_grad():
            for p, start, direction in zip(parameters, starts, directions, strict=True):
                p.copy_(start + t * direction)
        return mll(model(*model.train_inputs), model.train_targets, *model.train_inputs)

    gradients = torch.autograd.grad(loss(0.0), parameters)
    along = sum((g * v).sum().item() for g, v in zip(gradients, directions, strict=True))
    assert along == pytest.approx(slope(loss), abs=1e-6, rel=1e-5)


def test_what_a_fit_remembers_is_worked_out_again_when_factors_change_without_gradients():
    X, kernel = designs(7, 2), ScaleMixtureKernel(0.5, ard_num_dims=2)
    model = UGP(X, values(X), unc.Normal(0.1), box(2), base_kernel=kernel).train()

    def covariance():
        return model(*model.train_inputs).covariance_matrix.detach()

    before = covariance()
    with torch.no_grad():
        covariance()
        kernel.factors = torch.tensor([0.5, 2.0], dtype=torch.float64)
        unrecorded = covariance()
    assert not torch.allclose(before, unrecorded, rtol=0.1)
    torch.testing.assert_close(unrecorded, covariance(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", [MMDGP, UGP])
def test_gram_matrices_computed_in_portions_are_the_same(kind, monkeypatch):
    for uncertainty, d in SAMPLE_KINDS:
        X, Q = designs(7, d, seed=1), designs(6, d, seed=2).reshape(2, 3, d)
        with torch.no_grad():
            whole = (
                gram(surrogate(kind, uncertainty, d), X),
                gram(surrogate(kind, uncertainty, d), Q, X),
            )
            monkeypatch.setattr(features, "PORTION", 1)
            monkeypatch.setattr(inner_product, "PORTION", 1)
            pieces = (
                gram(surrogate(kind, uncertainty, d), X),
                gram(surrogate(kind, uncertainty, d), Q, X),
            )
            monkeypatch.undo()
        for a, b in zip(whole, pieces, strict=True):
            torch.testing.assert_close(a, b)
