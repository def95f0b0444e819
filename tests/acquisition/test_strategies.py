import functools
import math

import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorMean,
    UpperConfidenceBound,
    qLogNoisyExpectedImprovement,
)

from airbo import Optimizer
from airbo import uncertainty as unc
from airbo.acquisition import (
    EI,
    UCB,
    FromFactory,
    RandomizedUCB,
    Situation,
    TheoryUCB,
    find_acquisition,
    with_pending,
)
from airbo.measures import InSpec
from airbo.measures.posterior import SEARCH, MeasureModel
from airbo.models import ExpectationGP
from airbo.optimizer.search import without_numerical_warnings
from airbo.theory import information_gain
from tests.surrogates import ERBFGP, NominalGP, box, designs, surrogate

MODEL = surrogate(NominalGP, None, 1)
OBSERVED = designs(7, 1)
ALONE = Situation(OBSERVED)
BUSY = Situation(OBSERVED, X_pending=torch.tensor([[0.3], [1.1]], dtype=torch.float64))
X = torch.linspace(-2, 2, 9, dtype=torch.float64).reshape(-1, 1, 1)


def test_ucb_is_the_paper_s_mean_plus_two_deviations_so_that_botorch_s_beta_is_four():
    acquisition = find_acquisition("ucb")(MODEL, ALONE)
    assert acquisition.beta.item() == 4.0
    posterior = MODEL.posterior(X)
    expected = posterior.mean + 2 * posterior.variance.sqrt()
    torch.testing.assert_close(acquisition(X), expected.flatten())


def test_ei_is_log_ei_over_the_best_posterior_mean():
    acquisition = find_acquisition("ei")(MODEL, ALONE)
    assert isinstance(acquisition, LogExpectedImprovement)
    assert acquisition.best_f.item() == MODEL.posterior(OBSERVED).mean.max().item()


def test_ei_with_pending_designs_is_noisy_ei_that_knows_them():
    torch.manual_seed(0)
    acquisition = find_acquisition("ei")(MODEL, BUSY)
    ignorant = qLogNoisyExpectedImprovement(MODEL, X_baseline=OBSERVED)
    assert isinstance(acquisition, qLogNoisyExpectedImprovement)
    pending = BUSY.X_pending.unsqueeze(-2)
    with without_numerical_warnings():
        assert (acquisition(pending) < ignorant(pending)).all()


@pytest.mark.parametrize("name", ["default", "ei"])
@pytest.mark.parametrize("situation", [ALONE, BUSY], ids=["alone", "busy"])
def test_a_measure_is_searched_by_its_improvement_on_known_designs_draw_by_draw(name, situation):
    torch.manual_seed(0)
    model = surrogate(ExpectationGP, unc.Normal(0.2), 1)
    judged = MeasureModel(model, InSpec(-0.3, 0.3), effort=SEARCH)
    pending = situation.X_pending
    known = OBSERVED if pending is None else torch.cat([OBSERVED, pending])
    with torch.no_grad():
        gain = find_acquisition(name)(judged, situation)(X).exp()
        draws, best = (judged.posterior(Z).draws.squeeze(-1) for Z in (X.squeeze(-1), known))
        # E (m_s(x) - max_i m_s(x_i))₊
        expected = (draws - best.amax(-1, keepdim=True)).clamp_min(0).mean(0)
    assert expected.max() > 0
    # relative to the largest: the acquisition counts in units of what designs differ by
    torch.testing.assert_close(gain / gain.max(), expected / expected.max(), atol=1e-3, rtol=1e-3)


def test_ucb_theory_has_the_beta_of_the_theorem():
    K = MODEL.covar_module(MODEL.features(OBSERVED)).to_dense().detach()
    gain = information_gain(K, MODEL.likelihood.noise.item()).item()
    beta = TheoryUCB(b=1.5, noise_ratio=0.7, delta=0.2).beta(MODEL)
    assert beta == pytest.approx(1.5 + 0.7 * math.sqrt(2 * (gain + 1 - math.log(0.2))), rel=1e-6)
    acquisition = TheoryUCB(b=1.5, noise_ratio=0.7, delta=0.2)(MODEL, ALONE)
    assert acquisition.beta.item() == pytest.approx(beta**2)


def test_ucb_theory_estimates_what_is_not_given():
    assert TheoryUCB().beta(MODEL) > TheoryUCB(b=0.0).beta(MODEL) > 0


def test_a_randomized_beta_is_exponential_and_repeats_with_the_seed():
    def squares(n):
        torch.manual_seed(0)
        return torch.stack([RandomizedUCB(6.0)(MODEL, ALONE).beta for _ in range(n)])

    drawn = squares(500)
    # mean and deviation of an exponential are equal; 4 standard errors
    assert drawn.mean().item() == pytest.approx(6.0, abs=4 * 6.0 / 500**0.5)
    assert drawn.std().item() == pytest.approx(6.0, rel=0.25)
    assert torch.equal(squares(3), drawn[:3])


def test_every_design_of_an_optimizer_has_its_own_beta_and_a_copy_the_same():
    def asked():
        optimizer = Optimizer({"x": (0.0, 1.0)}, acquisition="ucb-random", seed=3, n_initial=2)
        for x in (0.1, 0.5, 0.9):
            optimizer.tell({"x": x}, math.sin(5 * x))
        return [design["x"] for design in optimizer.ask(3)]

    assert asked() == asked()
    assert len(set(asked())) == 3


@pytest.mark.parametrize("mean_square", [-1.0, math.inf, math.nan])
def test_a_mean_square_that_makes_no_sense_is_refused(mean_square):
    with pytest.raises(ValueError, match="mean_square must be finite and >= 0"):
        RandomizedUCB(mean_square)


@pytest.mark.parametrize("name", ["default", "ucb", "ucb-random", "ucb-theory", "ei"])
def test_the_named_acquisitions_are_finite_with_and_without_pending_designs(name):
    for situation in (ALONE, BUSY):
        assert find_acquisition(name)(MODEL, situation)(X).isfinite().all()


@pytest.mark.parametrize("beta", [-1.0, math.inf, math.nan])
def test_a_beta_that_makes_no_sense_is_refused(beta):
    with pytest.raises(ValueError, match="beta must be finite and >= 0"):
        UCB(beta)


# -- pending designs


def test_believing_keeps_the_mean_and_takes_the_deviation_at_pending_designs():
    believer = with_pending(MODEL, BUSY)
    before, after = MODEL.posterior(X.squeeze(-1)), believer.posterior(X.squeeze(-1))
    torch.testing.assert_close(after.mean, before.mean, atol=1e-6, rtol=1e-6)
    assert (after.variance <= before.variance + 1e-9).all()
    there = believer.posterior(BUSY.X_pending).variance / MODEL.posterior(BUSY.X_pending).variance
    assert (there < 0.9).all()


def test_without_pending_designs_there_is_nothing_to_believe():
    assert with_pending(MODEL, ALONE) is MODEL


def test_pending_designs_are_believed_under_their_own_uncertainty():
    """Not under that of most observations, which may have been measured exactly."""
    P, data = unc.Normal(0.5), designs(5, 1)
    pending = torch.tensor([[0.3]], dtype=torch.float64)

    def posterior(make):
        model = ERBFGP(data, data.sin(), unc.Exact(), box(1))
        return make(model).posterior(data, uncertainty=P).variance.detach()

    believed = posterior(lambda model: with_pending(model, Situation(data, pending, P)))
    expected = posterior(
        lambda model: model.condition_on_observations(
            pending, model.posterior(pending, uncertainty=P).mean, uncertainty=P
        )
    )
    exact = posterior(lambda model: with_pending(model, Situation(data, pending)))
    torch.testing.assert_close(believed, expected)
    assert not torch.allclose(believed, exact)


# -- factories


def given_to(factory_of):
    """Return what a factory with some arguments was given."""
    seen = {}
    acquisition = FromFactory(factory_of(seen))(MODEL, BUSY)
    assert acquisition(X).isfinite().all()
    return seen


def test_a_factory_of_the_model_gets_one_that_believes_in_pending_designs():
    def factory_of(seen):
        return lambda model: seen.update(model=model) or PosteriorMean(model)

    assert given_to(factory_of)["model"].train_targets.shape[-1] == 7 + 2


def test_a_factory_that_takes_pending_designs_gets_them_and_the_plain_model():
    def factory_of(seen):
        def factory(model, X_pending):
            seen.update(model=model, X_pending=X_pending)
            return PosteriorMean(model)

        return factory

    seen = given_to(factory_of)
    assert seen["model"] is MODEL
    assert seen["X_pending"] is BUSY.X_pending


def test_a_factory_that_takes_the_best_mean_gets_it():
    def factory_of(seen):
        def factory(model, best_f):
            seen.update(best_f=best_f)
            return LogExpectedImprovement(model, best_f)

        return factory

    expected = MODEL.posterior(OBSERVED).mean.max().item()
    assert given_to(factory_of)["best_f"].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "factory",
    [
        qLogNoisyExpectedImprovement,
        LogExpectedImprovement,
        functools.partial(UpperConfidenceBound, beta=0.2),
        lambda model, X_observed, **rest: PosteriorMean(model),
    ],
)
def test_botorch_s_own_classes_are_factories(factory):
    for situation in (ALONE, BUSY):
        assert FromFactory(factory)(MODEL, situation)(X).isfinite().all()


def test_a_factory_that_asks_for_something_unknown_is_refused_at_once():
    with pytest.raises(TypeError, match=r"asks for 'beta'; besides the model it can have X_obs"):
        find_acquisition(lambda model, beta: UpperConfidenceBound(model, beta))


@pytest.mark.parametrize("factory", [lambda: None, lambda *, model: None])
def test_a_factory_without_a_place_for_the_model_is_refused_at_once(factory):
    with pytest.raises(TypeError, match="the model as its first argument"):
        find_acquisition(factory)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_factory_that_makes_something_else_is_refused():
    with pytest.raises(TypeError, match="must return a BoTorch acquisition, got 3"):
        FromFactory(lambda model: 3)(MODEL, ALONE)


@pytest.mark.parametrize("given", [UCB(1.0), TheoryUCB(), EI()], ids=str)
def test_acquisitions_with_other_settings_are_taken_as_they_are(given):
    assert find_acquisition(given) is given


@pytest.mark.parametrize("given", ["ubc", None, 3], ids=str)
def test_what_is_no_acquisition_is_refused(given):
    with pytest.raises(ValueError, match="must be one of 'default', 'knowledge-gradient'"):
        find_acquisition(given)
