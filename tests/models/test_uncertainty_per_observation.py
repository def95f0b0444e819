"""Observations that were made under different uncertainties, and predictions under others."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.embeddings import Quadrature, default_base_kernel
from airbo.embeddings.kernels import IntegralKernel
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP, NominalGP
from tests.surrogates import (
    SAMPLE_KINDS,
    SURROGATES_AND_WAYS,
    box,
    designs,
    moments,
    set_hyperparameters,
    surrogate,
    values,
)

every_surrogate_in_every_way = pytest.mark.parametrize(
    ("kind", "uncertainty", "d"), SURROGATES_AND_WAYS
)
every_joint_gaussian = pytest.mark.parametrize(
    ("kind", "uncertainty", "d"),
    [each for each in SURROGATES_AND_WAYS if each.values[0] not in (SKLGP, NominalGP)],
)


def other_than(uncertainty, d):
    """Another uncertainty: with dependent columns, where the first has them too."""
    dependent = d == 2 and uncertainty.is_additive
    return unc.Ring(0.7) if dependent else unc.Uniform(-0.8, 0.4)


def posterior_by_hand(model, X, own, Q, at, noise=None):
    """Condition a Gaussian by hand, with all covariances from one joint Gram matrix."""
    model = model.including(*own, at)
    features = model.features
    numbers = [features.uncertainties.index(u) for u in [*own, *[at] * len(Q)]]
    numbered = torch.cat([torch.cat([X, Q]), torch.tensor(numbers).to(X).unsqueeze(-1)], dim=-1)
    K = model.covar_module(features(numbered)).to_dense().detach()
    n = len(X)
    noise_covariance = model.likelihood.noise.detach() * torch.eye(n).to(K)
    if isinstance(model, ERBFGP | ExpectationGP):
        unseen = model.covar_module.outputscale.detach() - K.diagonal()[:n]
        noise_covariance = noise_covariance + unseen.clamp_min(0).diag()
    mean = model.mean_module(Q).detach()[:1]
    solved = torch.linalg.solve(K[:n, :n] + noise_covariance, K[:n, n:])
    targets = model.outcome_transform(values(X))[0].squeeze(-1)
    scale, shift = model.outcome_transform.stdvs.squeeze(), model.outcome_transform.means.squeeze()
    posterior_mean = mean + solved.mT @ (targets - mean)
    covariance = K[n:, n:] - K[n:, :n] @ solved
    return (shift + scale * posterior_mean).unsqueeze(-1), scale**2 * covariance


def assert_close(ours, theirs, atol=1e-5):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.detach(), b, atol=atol, rtol=1e-5)


@every_surrogate_in_every_way
def test_a_list_of_equal_uncertainties_is_that_uncertainty(kind, uncertainty, d):
    Q = designs(3, d, seed=1)
    one = moments(surrogate(kind, uncertainty, d), Q)
    many = moments(surrogate(kind, [uncertainty] * 7, d), Q)
    for a, b in zip(one, many, strict=True):
        assert torch.equal(a, b)


@every_surrogate_in_every_way
def test_predicting_under_the_own_uncertainty_changes_nothing(kind, uncertainty, d):
    model = surrogate(kind, uncertainty, d)
    Q = designs(3, d, seed=1)
    assert_close(
        moments(model, Q), [m.detach() for m in moments(model, Q, uncertainty=uncertainty)]
    )


@every_joint_gaussian
def test_measured_inputs_mix_with_uncertain_ones(kind, uncertainty, d):
    X, Q = designs(7, d), designs(3, d, seed=1)
    own = [
        uncertainty,
        unc.Exact(),
        uncertainty,
        uncertainty,
        unc.Exact(),
        uncertainty,
        uncertainty,
    ]
    model = set_hyperparameters(kind(X, values(X), own, box(d)))
    assert_close(moments(model, Q), posterior_by_hand(model, X, own, Q, uncertainty))
    exactly = moments(model, Q, uncertainty=unc.Exact())
    assert_close(exactly, posterior_by_hand(model, X, own, Q, unc.Exact()))
    assert (exactly[0] - moments(model, Q)[0]).abs().max() > 1e-6


@every_joint_gaussian
def test_predicting_under_another_uncertainty_is_the_joint_gaussian(kind, uncertainty, d):
    model = set_hyperparameters(surrogate(kind, uncertainty, d))
    X, Q = designs(7, d), designs(3, d, seed=1)
    before = moments(model, Q)
    other = other_than(uncertainty, d)
    assert_close(
        moments(model, Q, uncertainty=other),
        posterior_by_hand(model, X, [uncertainty] * 7, Q, other),
    )
    assert_close(moments(model, Q), [m.detach() for m in before])  # and nothing stays behind


@every_surrogate_in_every_way
def test_conditioning_under_another_uncertainty_equals_a_model_with_a_list(kind, uncertainty, d):
    model = set_hyperparameters(surrogate(kind, uncertainty, d))
    new_X, Q = designs(2, d, seed=1), designs(3, d, seed=2)
    for other in (unc.Exact(), other_than(uncertainty, d)):
        conditioned = model.condition_on_observations(new_X, values(new_X), uncertainty=other)
        joined = torch.cat([designs(7, d), new_X])
        fresh = kind(joined, values(joined), [uncertainty] * 7 + [other] * 2, box(d))
        fresh.load_state_dict(model.state_dict())
        Y, _ = fresh.outcome_transform(values(joined))
        fresh.set_train_data(targets=Y.squeeze(-1), strict=False)
        assert_close(moments(conditioned, Q), [m.detach() for m in moments(fresh, Q)], atol=1e-5)


@pytest.mark.parametrize("kind", [MMDGP, UGP, ExpectationGP, ERBFGP, SKLGP])
def test_conditioning_twice_under_new_uncertainties_equals_a_model_with_a_list(kind):
    model = set_hyperparameters(surrogate(kind, unc.Normal(0.2), 2))
    A, B, Q = (designs(2, 2, seed=s) for s in (1, 2, 3))
    conditioned = model.condition_on_observations(A, values(A), uncertainty=unc.Normal(0.5))
    conditioned = conditioned.condition_on_observations(B, values(B), uncertainty=unc.Normal(0.9))
    joined = torch.cat([designs(7, 2), A, B])
    own = [unc.Normal(0.2)] * 7 + [unc.Normal(0.5)] * 2 + [unc.Normal(0.9)] * 2
    fresh = kind(joined, values(joined), own, box(2))
    fresh.load_state_dict(model.state_dict())
    Y, _ = fresh.outcome_transform(values(joined))
    fresh.set_train_data(targets=Y.squeeze(-1), strict=False)
    assert_close(moments(conditioned, Q), [m.detach() for m in moments(fresh, Q)], atol=1e-5)


def test_the_nominal_model_does_not_care():
    Q = designs(3, 2, seed=1)
    plain = moments(surrogate(NominalGP, unc.Exact(), 2), Q)
    model = surrogate(NominalGP, [unc.Normal(0.5)] * 4 + [unc.Ring(2.0)] * 3, 2)
    assert_close(moments(model, Q), [m.detach() for m in plain])


def test_a_better_machine_is_predicted_with_the_sharper_peak():
    X = torch.linspace(0, 1, 25, dtype=torch.float64).unsqueeze(-1)
    Y = torch.exp(-((X - 0.5) ** 2) / (2 * (0.1**2 + 0.1**2)))  # a peak of width 0.1, blurred
    bounds = box(1, 0.0, 1.0)
    model = UGP(X, Y, unc.Normal(0.1), bounds)
    model.likelihood.noise = 1e-4
    peak = torch.full((1, 1), 0.5, dtype=torch.float64)
    blurred = model.posterior(peak).mean.item()
    assert blurred == pytest.approx(1.0, abs=0.05)
    assert model.posterior(peak, uncertainty=unc.Normal(0.05)).mean.item() > blurred + 0.02


@pytest.mark.parametrize("n_later", [1, 4])
@pytest.mark.parametrize(("uncertainty", "d"), SAMPLE_KINDS)
def test_an_uncertainty_that_comes_later_gives_the_same_numbers_as_one_known_before(
    uncertainty, d, n_later
):
    later = [unc.Exact(), unc.Normal(0.2), unc.Normal(0.35), unc.Normal(0.5)][:n_later]
    kernel = default_base_kernel(d).double()
    before = Quadrature().embed([uncertainty, *later], kernel, box(d), 0)
    after = Quadrature().embed([uncertainty], kernel, box(d), 0)
    X = designs(3, d)
    with torch.no_grad():
        IntegralKernel(after)(after(X)).to_dense()  # it has been used already
        after = after.including(*later)
        numbers = [
            [e.uncertainties.index(u) for u in (uncertainty, *later)] for e in (before, after)
        ]
        assert numbers[0] == numbers[1]
        column = torch.tensor(numbers[0]).to(X).repeat_interleave(3).unsqueeze(-1)
        rows = torch.cat([X.repeat(1 + n_later, 1), column], dim=-1)
        ours, theirs = (IntegralKernel(e)(e(rows)).to_dense() for e in (after, before))
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
