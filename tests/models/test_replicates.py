"""Replicates are folded exactly."""

import pytest
import torch
from gpytorch.mlls import ExactMarginalLogLikelihood

from airbo import uncertainty as unc
from airbo.models import SKLGP, UGP, ExpectationGP
from tests.surrogates import (
    ALL_SURROGATES,
    box,
    case,
    designs,
    every_surrogate,
    moments,
    set_hyperparameters,
    values,
)

P, Q = unc.Normal(0.3), unc.Uniform(-0.8, 0.8)
KINDS = {"one": [P] * 12, "two": [P, P, Q, P] * 3}


def data():
    """Twelve observations at five designs."""
    X = designs(5, 2)[[0, 1, 0, 2, 2, 0, 3, 4, 4, 0, 2, 4]]
    noise = torch.randn(12, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return X, values(X) + 0.3 * noise


def both(kind, own, **kwargs):
    """A model of all observations and one of their means, with the same hyper-parameters."""
    X, Y = data()
    models = [kind(X, Y, own, box(2), fold_replicates=fold, **kwargs) for fold in (False, True)]
    for model in models:
        set_hyperparameters(model)
    return models


def total_likelihood(model):
    """The log likelihood of the model, not divided by the number of rows, and its gradients."""
    model.train()
    model.zero_grad()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    rows = model.train_inputs
    total = mll(model(*rows), model.train_targets, *rows) * len(model.train_targets)
    total.backward()
    return total, torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad])


@every_surrogate
@pytest.mark.parametrize("own", KINDS.values(), ids=KINDS)
def test_folded_replicates_give_the_same_posterior(kind, own):
    whole, folded = both(kind, own)
    distinct = {(tuple(x), u) for x, u in zip(data()[0].tolist(), own, strict=True)}
    assert len(folded.train_targets) == (12 if kind is SKLGP else len(distinct))
    X = designs(4, 2, seed=2)
    for under in (None, unc.Exact()):
        pairs = (moments(m, X, uncertainty=under) for m in (whole, folded))
        for a, b in zip(*pairs, strict=True):
            torch.testing.assert_close(a, b, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(whole.noise_variance(X), folded.noise_variance(X))


@pytest.mark.parametrize("kind", [case(k) for k in ALL_SURROGATES if k is not SKLGP])
@pytest.mark.parametrize("own", KINDS.values(), ids=KINDS)
def test_folded_replicates_give_the_same_likelihood_and_gradients(kind, own):
    whole, folded = both(kind, own)
    for a, b in zip(total_likelihood(whole), total_likelihood(folded), strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-8)


@every_surrogate
def test_folded_models_are_conditioned_like_whole_ones(kind):
    whole, folded = both(kind, KINDS["two"])
    new, X = designs(2, 2, seed=4), designs(3, 2, seed=2)
    grown = [m.condition_on_observations(new, values(new), uncertainty=Q) for m in (whole, folded)]
    for a, b in zip(*(moments(m, X) for m in grown), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
    if kind is not SKLGP:
        for a, b in zip(*(total_likelihood(m) for m in grown), strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_rows_that_all_differ_stay_as_they_are():
    X = designs(5, 2)
    model = UGP(X, values(X), P, box(2), fold_replicates=True)
    assert len(model.train_inputs) == 1
    assert model.train_inputs[0] is X or torch.equal(model.train_inputs[0], X)


def test_equal_values_have_that_mean():
    X = designs(1, 2).expand(7, 2)
    Y = torch.full((7, 1), 0.1, dtype=torch.float64)
    model = ExpectationGP(X, Y, P, box(2), fold_replicates=True, outcome_transform=None)
    assert model.train_targets.tolist() == [0.1]


@pytest.mark.parametrize("kind", [case(k) for k in ALL_SURROGATES if k is not SKLGP])
@pytest.mark.parametrize("known", ["all", "some"])
def test_replicates_with_known_noise_fold_exactly(kind, known):
    """Only observations with the same noise are one row."""
    noise = torch.tensor([0.1, 0.1, 0.1, 0.4, 0.4, 0.4] * 2, dtype=torch.float64).unsqueeze(-1)
    if known == "some":
        noise[[2, 5, 7, 8, 11]] = torch.nan
    whole, folded = both(kind, KINDS["two"], train_Yvar=noise)
    assert len(folded.train_targets) < 12
    for a, b in zip(total_likelihood(whole), total_likelihood(folded), strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-8)
    X = designs(4, 2, seed=2)
    for a, b in zip(*(moments(m.eval(), X) for m in (whole, folded)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-8, rtol=1e-8)
