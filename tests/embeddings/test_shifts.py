"""Under additive uncertainty, functions of the difference of two designs."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.embeddings import RationalQuadraticSum, resolutions
from airbo.embeddings.mixtures import ComponentEmbedding
from airbo.embeddings.scales import TOLERANCE
from airbo.embeddings.shifts import ShiftEmbedding
from airbo.embeddings.tables import Table
from airbo.models import MMDGP
from tests.strategies import numbers
from tests.uncertainties import SAVEABLE

ADDITIVE = [(u, d) for u, d in SAVEABLE if u.is_additive]


def box(d):
    return torch.tensor([[-2.0] * d, [2.0] * d], dtype=torch.float64)


def designs(n, d, seed=0):
    return 4 * torch.rand(n, d, generator=torch.Generator().manual_seed(seed)).double() - 2


def embed(uncertainties, d, lengthscale=0.2, kind=ShiftEmbedding, n_atoms=12):
    kernel = RationalQuadraticSum(lengthscale).double()
    return kind(n_atoms, uncertainties, kernel, box(d))


@pytest.mark.parametrize("fitting", [True, False])
@pytest.mark.parametrize(("uncertainty", "d"), ADDITIVE, ids=repr)
def test_differences_say_the_same_as_components(uncertainty, d, fitting):
    X = designs(6, d)
    # on lines and circles, differences are resolved three times as finely as elsewhere
    shift, coarse, fine = (
        embed([uncertainty], d, kind=kind, n_atoms=n).train(fitting)
        for kind, n in ((ShiftEmbedding, 12), (ComponentEmbedding, 12), (ComponentEmbedding, 36))
    )
    with torch.no_grad():
        ours, *theirs = (e.inner(e(X), e(X)) for e in (shift, coarse, fine))
    assert min((ours - other).abs().max().item() for other in theirs) < 2e-3


@pytest.mark.parametrize(("uncertainty", "d"), ADDITIVE, ids=repr)
def test_fitting_and_predicting_agree_to_the_tolerances_of_what_is_shortened(uncertainty, d):
    embedding, X = embed([uncertainty], d), designs(6, d)
    with torch.no_grad():
        fitting = embedding.train().inner(embedding(X), embedding(X))
        predicting = embedding.eval().inner(embedding(X), embedding(X))
    sampled = isinstance(uncertainty, unc.Empirical | unc.SciPy | unc.Torch | unc.Sampler)
    coarser = resolutions.TOLERANCE_OF_SAMPLES if sampled else resolutions.TOLERANCE
    atol = 1.01 * TOLERANCE + 2 * coarser
    torch.testing.assert_close(fitting, predicting, atol=atol, rtol=0)


@pytest.mark.parametrize("d", [1, 2])
def test_between_two_uncertainties_each_pair_has_its_own_function(d):
    both = [unc.Normal(0.3), unc.Beta(0.4, 0.2, scale=0.5), unc.Exact()]
    X = designs(9, d)
    numbered = torch.cat([X, torch.arange(9).remainder(3).unsqueeze(-1)], dim=-1)
    shift, components = (
        embed(both, d, kind=kind, n_atoms=n).eval()
        for kind, n in ((ShiftEmbedding, 12), (ComponentEmbedding, 36))
    )
    with torch.no_grad():
        ours, theirs = (e.mmd2(e(numbered), e(numbered)) for e in (shift, components))
        diagonal = shift.mmd2(shift(numbered), shift(numbered.flip(0)), diag=True)
        whole = shift.mmd2(shift(numbered), shift(numbered.flip(0)))
    torch.testing.assert_close(ours, theirs, atol=2e-3, rtol=0)
    torch.testing.assert_close(diagonal, whole.diagonal())


@pytest.mark.parametrize(("uncertainty", "d"), [ADDITIVE[7], ADDITIVE[13], ADDITIVE[1]], ids=repr)
def test_what_lies_beyond_the_tables_is_worked_out(uncertainty, d):
    embedding = embed([uncertainty], d).eval()
    edge = 4 * 1.25 * math.sqrt(d)  # tables end here
    far = torch.zeros(3, d).double()
    far[:, 0] = torch.tensor([edge - 1e-6, edge + 1e-6, 40.0])
    near = torch.zeros(1, d).double()
    with torch.no_grad():
        inside, outside, remote = embedding.inner(embedding(far), embedding(near)).flatten()
    assert inside.item() == pytest.approx(outside.item(), abs=1e-6)
    assert 0 < remote < outside


@pytest.mark.parametrize(("uncertainty", "d"), [ADDITIVE[7], ADDITIVE[13], ADDITIVE[23]], ids=repr)
def test_gradients_are_those_of_the_function(uncertainty, d):
    embedding = embed([uncertainty], d).eval()
    known = embedding(designs(4, d, seed=1)).detach()

    def function(X):
        return embedding.inner(embedding(X), known)

    X = designs(3, d).requires_grad_()
    torch.autograd.gradcheck(function, (X,), eps=1e-6, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(numbers(0.01, 5.0), min_size=5, max_size=5))
def test_a_shortened_sum_of_gaussians_is_the_same_kernel(lengths):
    kernel = RationalQuadraticSum().double()
    kernel.lengthscales = torch.tensor(lengths)
    whole = kernel.gaussian_scales()
    short = whole.shortened()
    s = torch.linspace(0, 40, 500).double()
    sums = [torch.exp(-0.5 * s.unsqueeze(-1) * v.precisions) @ v.weights for v in (whole, short)]
    assert len(short.weights) < 26
    assert bool((short.weights >= 0).all() and (short.precisions > 0).all())
    torch.testing.assert_close(sums[0], sums[1], atol=2 * TOLERANCE, rtol=0)


def test_a_table_is_the_functions_that_it_was_made_of():
    grid = torch.linspace(-1, 2, 301).double()
    functions = torch.stack([torch.sin(3 * grid), torch.exp(-(grid**2))], dim=-1)
    table = Table.of(-1.0, 2.0, functions.numpy())
    t = torch.linspace(-1, 2, 77).double()
    expected = torch.stack([torch.sin(3 * t), torch.exp(-(t**2))], dim=-1)
    torch.testing.assert_close(table(t), expected, atol=1e-6, rtol=0)
    weights = torch.tensor([2.0, -1.0]).double()
    torch.testing.assert_close(table.summed(weights)(t), (table(t) @ weights).unsqueeze(-1))
    assert table.outside(torch.tensor([-1.1, 0.0, 2.1])).tolist() == [True, False, True]


def test_exact_designs_beside_independent_columns_stay_independent_columns():
    both = [unc.Exact(), unc.Beta(0.4, 0.2, scale=0.5)]
    shift = embed(both, 4).eval()
    groups = shift._groups(0, 1)
    assert [type(g.exact).__name__ for g in groups] == ["Tabulated"]  # one table for all columns
    numbered = torch.cat([designs(6, 4), torch.tensor([0, 1] * 3).unsqueeze(-1)], dim=-1)
    components = embed(both, 4, kind=ComponentEmbedding, n_atoms=24).eval()
    with torch.no_grad():
        ours, theirs = (e.inner(e(numbered), e(numbered)) for e in (shift, components))
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    "uncertainties",
    [[unc.Normal(0.2)], [unc.Beta(0.4, 0.2, scale=0.5)], [unc.Normal(0.2), unc.Uniform(0, 1)]],
    ids=["normal", "beta", "two"],
)
def test_what_is_too_large_to_remember_is_the_same_when_worked_out_anew(monkeypatch, uncertainties):
    numbers = torch.arange(40).remainder(len(uncertainties)).unsqueeze(-1)
    X = torch.cat([designs(40, 3), numbers], dim=-1)
    slope = torch.rand(40, 40, generator=torch.Generator().manual_seed(1)).double()
    results = []
    for limit in (10**9, 0):
        monkeypatch.setattr("airbo.embeddings.shifts.MAX_REMEMBERED", limit)
        embedding = embed(uncertainties, 3)
        inner = embedding.inner(embedding(X), embedding(X))
        (inner * slope).sum().backward()
        results.append((inner.detach(), embedding.base_kernel.raw_lengthscales.grad))
    torch.testing.assert_close(*results, atol=1e-6, rtol=1e-6)


def test_portions_are_the_whole(monkeypatch):
    X = designs(20, 3)
    embedding = embed([unc.Product([unc.Ring(0.3), unc.Normal(0.1)])], 3).eval()
    f = embedding(X)
    with torch.no_grad():
        whole = embedding.inner(f, f), embedding.inner(f.unsqueeze(-2), f[:5])
        monkeypatch.setattr("airbo.embeddings.embedding.PORTION", 50)
        parts = embedding.inner(f, f), embedding.inner(f.unsqueeze(-2), f[:5])
    torch.testing.assert_close(whole, parts)


def test_an_uncertainty_that_varies_may_come_later():
    X = designs(8, 1)
    model = MMDGP(X, X.sin(), unc.Normal(0.1), box(1))
    varying = unc.Varying(lambda x: unc.Uniform(-0.1 - x**2 / 9, 0.1 + x**2 / 9))
    both = MMDGP(X, X.sin(), [unc.Normal(0.1)] * 8, box(1), deployment=varying)
    Q = designs(100, 1, seed=1)
    with torch.no_grad():
        before = model.posterior(Q)  # its covariances are worked out after the way was changed
        later = model.posterior(Q, uncertainty=varying)
        torch.testing.assert_close(later.mean, both.posterior(Q).mean, atol=1e-4, rtol=0)
        again = MMDGP(X, X.sin(), unc.Normal(0.1), box(1)).posterior(Q)
        torch.testing.assert_close(
            before.distribution.covariance_matrix, again.distribution.covariance_matrix
        )


def test_the_covariances_of_many_designs_are_there_when_asked_for():
    X, Q = designs(8, 2), designs(80, 2, seed=1)
    model = MMDGP(X, X.sin().sum(-1, keepdim=True), unc.Normal(0.1), box(2))
    with torch.no_grad():
        many = model.posterior(Q).distribution.covariance_matrix
        few = model.posterior(Q[:5]).distribution.covariance_matrix
    torch.testing.assert_close(many[:5, :5], few)
