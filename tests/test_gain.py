"""What one experiment is worth: the closed form, and what it is worth to different designs."""

import numpy as np
import pytest
import torch

from airbo import acquisition
from airbo import uncertainty as unc
from airbo.gain import N_POSSIBLE, ExpectedGain
from airbo.models import ERBFGP, MMDGP, ExpectationGP, NominalGP

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
P, USE = unc.Normal(0.05), unc.Beta(0.4, 0.2, scale=0.1)


def made(kind=ExpectationGP, n=12, deployment=None):
    generator = torch.Generator().manual_seed(n)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    Y = torch.sin(6 * X).sum(-1, keepdim=True)
    Y += 0.1 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return kind(X, Y, uncertainty=P, bounds=BOUNDS, deployment=deployment).eval(), X


def by_fantasies(model, known, x, experiments):
    """Observe every value that the experiment may give, and average the best means."""
    z, weights = np.polynomial.hermite_e.hermegauss(N_POSSIBLE)
    choices = torch.cat([known, x])
    with torch.no_grad():
        before = model.posterior(choices).mean.max()
        predicted = model.posterior(x, uncertainty=experiments)
        noise = model.noise_variance(x, experiments)
        std = (predicted.variance.squeeze() + noise.squeeze()).sqrt()
        total = 0.0
        for node, weight in zip(z, weights / weights.sum(), strict=True):
            Y = predicted.mean + std * node
            after = model.condition_on_observations(x, Y, uncertainty=experiments)
            total += weight * after.posterior(choices).mean.max()
    return (total - before) / model.outcome_transform.stdvs.squeeze()


@pytest.mark.parametrize("kind", [ExpectationGP, MMDGP, ERBFGP, NominalGP])
def test_the_gain_is_that_of_all_values_that_may_come(kind):
    model, X = made(kind)
    x = torch.tensor([[0.3, 0.8]], dtype=torch.float64)
    gain = ExpectedGain(model, X)(x.unsqueeze(0))
    torch.testing.assert_close(gain.squeeze(), by_fantasies(model, X, x, P), rtol=1e-6, atol=1e-9)


def test_the_gain_is_that_in_use():
    model, X = made(deployment=USE)
    x = torch.tensor([[0.3, 0.8]], dtype=torch.float64)
    gain = ExpectedGain(model, X, P)(x.unsqueeze(0))
    torch.testing.assert_close(gain.squeeze(), by_fantasies(model, X, x, P), rtol=1e-6, atol=1e-9)


def test_a_batch_is_a_loop_and_gains_are_never_negative():
    model, X = made()
    Z = torch.rand(32, 1, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    function = ExpectedGain(model, X)
    together = function(Z)
    one_by_one = torch.stack([function(z) for z in Z])
    torch.testing.assert_close(together, one_by_one)
    assert (together >= -1e-12).all()


def test_a_known_design_is_worth_repeating_only_while_it_may_be_best():
    model, X = made()
    means = model.posterior(X).mean.squeeze(-1)
    function = ExpectedGain(model, X)
    best, worst = X[means.argmax()], X[means.argmin()]
    assert function(best[None, None]) > 10 * function(worst[None, None])


def test_gradients_are_those_of_differences():
    model, X = made()
    function = ExpectedGain(model, X)
    x = torch.tensor([[[0.31, 0.77]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, x, eps=1e-5, atol=1e-6, rtol=1e-3)


def test_the_coin_decides():
    model, X = made()
    situation = acquisition.Situation(X, uncertainty=P)
    for share, kind in [(0.0, False), (1.0, True)]:
        found = acquisition.Balanced(share)(model, situation)
        assert isinstance(found, ExpectedGain) is kind


def test_pending_designs_lose_their_worth():
    model, X = made()
    x = torch.tensor([[0.3, 0.8]], dtype=torch.float64)
    plain = acquisition.Balanced(1.0)(model, acquisition.Situation(X, uncertainty=P))
    waiting = acquisition.Balanced(1.0)(model, acquisition.Situation(X, x, P))
    assert waiting(x.unsqueeze(0)) < plain(x.unsqueeze(0))


@pytest.mark.parametrize("settings", [{"share": -0.1}, {"share": 1.1}, {"mean_square": -1.0}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        acquisition.Balanced(**settings)
