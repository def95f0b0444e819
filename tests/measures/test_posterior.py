"""Draws of a measure as a BoTorch model: exact where a closed form is, and fit for acquisitions."""

import copy

import pytest
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.models.model import ModelList

from airbo import uncertainty as unc
from airbo.measures import CVaR, Mean, Quantile, Worst
from airbo.measures.posterior import FINE, SEARCH, Effort, MeasureModel, explained_variance
from airbo.models import ExpectationGP
from airbo.models.draws import FunctionDraws
from tests.surrogates import designs, surrogate

P = unc.Normal(0.3)


@pytest.fixture(scope="module")
def model():
    return surrogate(ExpectationGP, P, 2, n=9).eval()


def test_draws_have_the_moments_of_the_posterior_of_f(model):
    X = designs(5, 2, seed=3)
    torch.manual_seed(0)
    drawn = FunctionDraws(copy.deepcopy(model), 4000)(X)
    with torch.no_grad():
        posterior = copy.deepcopy(model).posterior(X, uncertainty=unc.Exact())
    torch.testing.assert_close(drawn.mean, posterior.mean.squeeze(-1), rtol=1e-5, atol=1e-5)
    found = drawn.deviations.square().mean(0)
    # 4,000 draws: ±2.2%; 512 shared waves: about ±5% of the prior's variance
    torch.testing.assert_close(found, posterior.variance.squeeze(-1), rtol=0.15, atol=0.1)


def test_the_mean_of_draws_agrees_with_the_posterior_of_expected_values(model):
    X = designs(6, 2, seed=4)
    torch.manual_seed(0)
    measured = MeasureModel(model, Mean(), P, effort=Effort(500, 1024)).posterior(X)
    with torch.no_grad():
        posterior = model.posterior(X)
    torch.testing.assert_close(measured.mean, posterior.mean, rtol=0.02, atol=0.02)
    torch.testing.assert_close(
        measured.variance.sqrt(), posterior.variance.sqrt(), rtol=0.15, atol=0.02
    )


def test_expected_values_of_draws_are_their_means_over_executed_inputs(model):
    X = designs(3, 2, seed=5)
    torch.manual_seed(0)
    own = copy.deepcopy(model)
    draws = FunctionDraws(own, 8)
    drawn = draws(P.perturb(X, unc.base_draws(4096, 2)))
    means = torch.cat([drawn.mean + drawn.deviations, drawn.mean - drawn.deviations]).mean(-1)
    # 4,096 points of a Sobol sequence
    torch.testing.assert_close(draws.expected(X, P), means, rtol=0, atol=5e-3)


def test_a_batch_of_designs_equals_a_loop_over_them(model):
    torch.manual_seed(0)
    judged = MeasureModel(model, CVaR(0.8), P)
    X = designs(6, 2).reshape(3, 2, 2)
    looped = torch.stack([judged.posterior(x).draws for x in X], dim=1)
    torch.testing.assert_close(judged.posterior(X).draws, looped)


def test_looking_at_a_measure_does_not_change_the_model(model):
    X = designs(3, 2)
    before = model.posterior(X).mean.clone()
    MeasureModel(model, Worst(), P).posterior(X)
    assert torch.equal(model.posterior(X).mean, before)
    assert unc.Exact() not in model.features.uncertainties


def test_botorch_acquisitions_take_one_measure_or_several(model):
    torch.manual_seed(0)
    X, few = designs(4, 2), Effort(8, 8, smooth=True)
    one, two = (MeasureModel(model, m, P, effort=few) for m in (CVaR(0.8), Mean()))
    pending = designs(1, 2, seed=8)
    single = qLogNoisyExpectedImprovement(one, X_baseline=X, X_pending=pending)
    both = qLogNoisyExpectedHypervolumeImprovement(
        ModelList(one, two), ref_point=[-5.0, -5.0], X_baseline=X
    )
    for acquisition in (single, both):
        x = designs(3, 2, seed=9).unsqueeze(-2).requires_grad_(True)
        value = acquisition(x)
        value.sum().backward()
        assert value.shape == (3,)
        assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99, 0.995, 0.999])
def test_at_least_five_executed_inputs_decide_a_number_that_people_see(level):
    for measure in (Quantile(level), CVaR(level)):
        n = FINE.n_executed_for(measure)
        assert (1 - level) * n >= 5
        assert n >= FINE.n_executed
        assert SEARCH.n_executed_for(measure) == SEARCH.n_executed


def test_values_are_counted_as_they_are_made(model):
    few = Effort(4, 16, n_in_tail=2)
    X = designs(1, 2)
    for measure in (Mean(), CVaR(0.9), CVaR(0.99), Worst()):
        judged = MeasureModel(model, measure, P, effort=few)
        assert judged.values(X).numel() == judged.n_values


def test_variance_that_something_else_explains():
    torch.manual_seed(0)
    g = torch.randn(4000, 2, dtype=torch.float64)
    other = torch.randn(4000, 2, dtype=torch.float64)
    # 2 g + 3 e has a variance of 13, of which g explains 4
    found = explained_variance(2 * g + 3 * other, g)
    assert found.tolist() == pytest.approx([4.0, 4.0], rel=0.15)
    torch.testing.assert_close(explained_variance(-2 * g, g), 4 * g.var(0))


def test_what_falls_to_both_sides_is_explained_as_well():
    torch.manual_seed(0)
    g = torch.randn(4000, 2, dtype=torch.float64)
    for bent in (g.square(), 3 * g - (g - 1).square()):
        torch.testing.assert_close(explained_variance(bent, g), bent.var(0))
    # of a bump in the middle a line explains nothing, a parabola half and more
    bump = (-g.square()).exp()
    assert (explained_variance(bump, g) > 0.5 * bump.var(0)).all()


def test_a_search_explores_what_experiments_can_teach(model):
    torch.manual_seed(0)
    X, search = designs(4, 2), Effort(32, 32, smooth=True)
    alike = MeasureModel(model, CVaR(0.8), P, effort=search).posterior(X)
    other = MeasureModel(model, CVaR(0.8), unc.Normal(0.2), effort=search).posterior(X)
    assert (alike.variance < alike.draws.var(0)).all()
    assert torch.equal(other.variance, other.draws.var(0))
