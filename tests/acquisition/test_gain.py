"""What one experiment is worth: the closed form, and what it is worth to different designs."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

import airbo
from airbo import acquisition, measures
from airbo import uncertainty as unc
from airbo.acquisition.gain import ExpectedGain, gain_of_lines
from airbo.acquisition.improvement import LogImprovement
from airbo.measures.posterior import SEARCH, MeasureModel
from airbo.models import ERBFGP, MMDGP, ExpectationGP, NominalGP

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
P, USE = unc.Normal(0.05), unc.Beta(0.4, 0.2, scale=0.1)


def made(kind=ExpectationGP, n=12, deployment=None):
    generator = torch.Generator().manual_seed(n)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    Y = torch.sin(6 * X).sum(-1, keepdim=True)
    Y += 0.1 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return kind(X, Y, uncertainty=P, bounds=BOUNDS, deployment=deployment).eval(), X


def lines(seed, k=9, batch=()):
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(*batch, k, generator=generator, dtype=torch.float64) for _ in range(2))
    return a, 0.5 * b


def by_quadrature(a, b):
    """Integrate the highest line between all points where two lines cross."""
    a, b = a.numpy(), b.numpy()
    i, j = np.triu_indices(len(a), 1)
    crossings = [-12.0, *np.sort(np.clip((a[j] - a[i]) / (b[i] - b[j]), -12, 12)), 12.0]
    parts = [
        quad(lambda z: (a + b * z).max() * norm.pdf(z), low, high, epsabs=1e-13)[0]
        for low, high in itertools.pairwise(crossings)
        if high > low
    ]
    return sum(parts) - a.max()


@pytest.mark.parametrize("seed", range(12))
def test_the_maximum_of_lines_is_that_of_quadrature(seed):
    a, b = lines(seed)
    assert gain_of_lines(a, b).item() == pytest.approx(by_quadrature(a, b), abs=1e-8)


def test_the_maximum_of_lines_is_that_of_many_draws():
    a, b = lines(1, k=65)
    z = torch.randn(200_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    highest = (a + b * z).amax(-1)
    error = highest.std().item() / math.sqrt(len(z))
    assert gain_of_lines(a, b).item() == pytest.approx(
        (highest.mean() - a.max()).item(), abs=4 * error
    )


@pytest.mark.parametrize("gap", [0.0, 1.0, 2.0, 4.0, 8.0])
def test_the_gain_of_one_other_line_has_no_ripple(gap):
    # E (Z - c)₊ = φ(c) - c Φ(-c)
    a, b = torch.tensor([0.0, -gap]), torch.tensor([0.0, 1.0])
    expected = norm.pdf(gap) - gap * norm.sf(gap)
    assert gain_of_lines(a.double(), b.double()).item() == pytest.approx(expected, rel=1e-9)


def test_gradients_of_the_maximum_are_those_of_differences():
    a, b = (v.requires_grad_() for v in lines(3))
    assert torch.autograd.gradcheck(gain_of_lines, (a, b))


def test_lines_in_batches_are_those_of_a_loop_and_copies_of_lines_change_nothing():
    a, b = lines(4, batch=(3, 2))
    gains = gain_of_lines(a, b)
    torch.testing.assert_close(gain_of_lines(a[2, 1], b[2, 1]), gains[2, 1])
    twice = gain_of_lines(torch.cat([a, a], -1), torch.cat([b, b], -1))
    torch.testing.assert_close(twice, gains)
    lower = gain_of_lines(torch.cat([a, a - 1], -1), torch.cat([b, b], -1))
    torch.testing.assert_close(lower, gains)


def test_parallel_lines_gain_nothing():
    a, b = lines(5)
    assert gain_of_lines(a, torch.full_like(b, 0.3)).item() == 0.0


def by_fantasies(model, known, x, experiments):
    """Observe two values that the experiment may give: means are lines in the value."""
    choices = torch.cat([known, x])
    with torch.no_grad():
        predicted = model.posterior(x, uncertainty=experiments)
        noise = model.noise_variance(x, experiments)
        std = (predicted.variance.squeeze() + noise.squeeze()).sqrt()
        means = []
        for z in (-1.0, 1.0):
            Y = predicted.mean + std * z
            after = model.condition_on_observations(x, Y, uncertainty=experiments)
            means.append(after.posterior(choices).mean.squeeze(-1))
        gain = by_quadrature((means[0] + means[1]) / 2, (means[1] - means[0]) / 2)
    return gain / model.outcome_transform.stdvs.squeeze()


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


def test_the_default_is_the_gain_of_means():
    model, X = made()
    default = acquisition.find_acquisition("default")
    assert isinstance(default(model, acquisition.Situation(X, uncertainty=P)), ExpectedGain)


def test_within_two_limits_every_second_experiment_is_made_where_the_expected_share_is_largest():
    model, X = made()
    measured = MeasureModel(model, measures.InSpec(0.0, 0.5), effort=SEARCH)
    default = acquisition.find_acquisition("default")
    confirming = default(measured, acquisition.Situation(X, uncertainty=P))
    with torch.no_grad():
        expected = measured.posterior(X).mean.squeeze(-1)
        torch.testing.assert_close(confirming(X.unsqueeze(-2)), expected)
    improving = default(measured, acquisition.Situation(X[:-1], uncertainty=P))
    assert isinstance(improving, LogImprovement)
    # one design is confirmed once: while others are under way, all of a batch improve
    waiting = default(measured, acquisition.Situation(X, X[:1], P))
    assert isinstance(waiting, LogImprovement)


@pytest.mark.parametrize("measure", [measures.Quantile(0.9), measures.InSpec(low=0.0)], ids=str)
@pytest.mark.parametrize("n", [11, 12])
def test_by_other_measures_every_experiment_is_to_improve(measure, n):
    model, X = made()
    measured = MeasureModel(model, measure, effort=SEARCH)
    default = acquisition.find_acquisition("default")
    assert isinstance(
        default(measured, acquisition.Situation(X[:n], uncertainty=P)), LogImprovement
    )


def test_pending_designs_lose_their_worth():
    model, X = made()
    x = torch.tensor([[0.3, 0.8]], dtype=torch.float64)
    plain = acquisition.KnowledgeGradient()(model, acquisition.Situation(X, uncertainty=P))
    waiting = acquisition.KnowledgeGradient()(model, acquisition.Situation(X, x, P))
    assert waiting(x.unsqueeze(0)) < plain(x.unsqueeze(0))


def test_the_default_works_with_the_symmetric_kl_kernel_where_the_uncertainty_changes():
    optimizer = airbo.Optimizer(
        {"x": (0.0, 1.0)},
        {"x": unc.Varying(lambda x: unc.Normal(0.02 + 0.1 * x))},
        surrogate="skl",
        n_initial=6,
    )
    for design in optimizer.ask(6):
        optimizer.tell(design, math.sin(7 * design["x"]))
    assert 0.0 <= optimizer.ask()["x"] <= 1.0
