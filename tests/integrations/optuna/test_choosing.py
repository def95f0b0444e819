"""Which parameters the sampler chooses, and what they depend on."""

import copy
import inspect
import pickle
import re

import numpy as np
import optuna
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler

import airbo
from airbo import Optimizer
from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler, distributions_of, optimizer_of, sampler
from airbo.integrations.optuna.search_space import SearchSpace
from tests.integrations.optuna.common import (
    LINE,
    MILL,
    SQUARE,
    done,
    hill,
    quick,
    run,
    study_of,
    warnings_in,
)


def distinct(params):
    return len({tuple(p.items()) for p in params}) == len(params)


# -- the parameters


@pytest.mark.parametrize(
    "distribution",
    [
        *MILL.values(),
        IntDistribution(-5, 5),
        CategoricalDistribution([1, 2.5, "a", False]),
        CategoricalDistribution([1, "1"]),
        CategoricalDistribution([None, "None"]),
        CategoricalDistribution([float("nan"), 0.5]),
    ],
    ids=repr,
)
def test_params_are_the_same_after_a_way_through_a_design(distribution):
    space = SearchSpace({"p": distribution})
    if isinstance(distribution, CategoricalDistribution):
        values = distribution.choices
    else:
        values = [distribution.low, distribution.high, distribution.low + (distribution.step or 0)]
    for value in values:
        design = space.space.checked(space.design({"p": value}))
        back = space.params(design)["p"]
        assert type(back) is type(value)
        assert distribution.to_internal_repr(back) == distribution.to_internal_repr(value)


def test_a_space_survives_the_way_to_optuna_and_back():
    space = airbo.Space(
        {
            "speed": airbo.Float(50, 200, unit="mm/s"),
            "depth": airbo.Float(0.1, 2.0, log=True),
            "gap": airbo.Float(0.1, 0.7, step=0.2),
            "passes": airbo.Integer(1, 64, log=True),
            "teeth": airbo.Integer(2, 8, step=2),
            "tool": ["A", "B"],
        }
    )
    assert SearchSpace(distributions_of(space), space.parameters).space == space


def test_the_model_chooses_values_that_every_kind_of_parameter_can_have():
    study = study_of(quick({"speed": unc.Normal(2.0), "passes": unc.Uniform(0, 0.5)}))
    run(study, 8, MILL)
    for trial in study.trials:
        for name, distribution in MILL.items():
            value = trial.params[name]
            assert distribution._contains(distribution.to_internal_repr(value))
    assert distinct([trial.params for trial in study.trials])


def test_the_model_prefers_what_has_been_better():
    study = study_of(
        quick({"x": unc.Normal(0.05)}, surrogate="nominal", acquisition="ucb", n_startup_trials=8)
    )
    params = run(study, 14, LINE, lambda p: -((p["x"] - 0.3) ** 2))
    late = [abs(p["x"] - 0.3) for p in params[9:]]
    assert np.median(late) < 0.1 < np.median([abs(p["x"] - 0.3) for p in params[:8]])


# -- what the choice depends on


def test_same_seed_and_same_trials_give_the_same_parameters():
    first, second, other = (run(study_of(quick(seed=s)), 6) for s in (1, 1, 2))
    assert first == second
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_without_a_seed_every_sampler_goes_its_own_way():
    first, second = (run(study_of(quick(seed=None)), 4) for _ in range(2))
    assert all(a != b for a, b in zip(first, second, strict=True))


def test_a_sampler_made_anew_for_every_trial_chooses_as_one_that_lives_on(tmp_path):
    once = run(study_of(quick()), 5)
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study_of(None, storage=url, study_name="s")
    for _ in range(5):
        run(optuna.load_study(study_name="s", storage=url, sampler=quick()), 1)
    assert [t.params for t in optuna.load_study(study_name="s", storage=url).trials] == once


@pytest.mark.parametrize("way", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copied_sampler_goes_on_as_the_original(way):
    study = study_of(quick())
    run(study, 5)
    study, twin = copy.deepcopy(study), copy.deepcopy(study)
    twin.sampler = way(study.sampler)
    assert run(study, 2) == run(twin, 2)


def test_a_sampler_of_two_studies_chooses_in_each_as_if_there_were_no_other():
    up, down = lambda p: p["x"], lambda p: -p["x"]
    shared = quick()
    studies = [study_of(shared), study_of(shared)]
    for _ in range(5):
        for study, f in zip(studies, (up, down), strict=True):
            run(study, 1, f=f)
    for study, f in zip(studies, (up, down), strict=True):
        assert [t.params for t in study.trials] == run(study_of(quick()), 5, f=f)


def test_a_trial_that_ends_late_counts_as_if_it_had_ended_in_time():
    study = study_of(quick())
    run(study, 3)
    late = study.ask(SQUARE)
    run(study, 2)
    study.tell(late, 5.0)
    fresh = copy.deepcopy(study)
    fresh.sampler = quick()
    assert list(optimizer_of(study).observations["value"])[3] == 5.0
    assert study.ask(SQUARE).params == fresh.ask(SQUARE).params


def test_the_order_in_which_an_objective_asks_does_not_matter():
    backwards = dict(reversed(SQUARE.items()))
    f = lambda p: p["x"] - p["y"] ** 2  # noqa: E731
    assert run(study_of(quick()), 6, SQUARE, f) == run(study_of(quick()), 6, backwards, f)


def test_minimizing_is_maximizing_the_negative():
    down = run(study_of(quick(), "minimize"), 6, f=lambda p: -hill(p))
    assert down == run(study_of(quick(), "maximize"), 6)


def test_the_global_random_numbers_stay_as_they_are():
    study = study_of(quick())
    run(study, 4)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    run(study, 1)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()


def test_the_first_trials_spread_as_the_initial_designs_of_an_optimizer():
    sampler = quick(search_space=SQUARE, n_startup_trials=8)
    optimizer = Optimizer({"x": (0, 1), "y": (0, 1)}, n_initial=8, seed=0)
    params = run(study_of(sampler), 8)
    assert params == optimizer.ask(8)


def test_an_independent_sampler_draws_the_first_trials_and_only_these():
    class Counting(RandomSampler):
        drawn = ()

        def sample_independent(self, study, trial, name, distribution):
            self.drawn = (*self.drawn, trial.number)
            return super().sample_independent(study, trial, name, distribution)

    counting = Counting(seed=3)
    run(study_of(quick(independent_sampler=counting, n_startup_trials=4)), 6)
    assert counting.drawn == (0, 0, 1, 1, 2, 2, 3, 3)


# -- others who ask


def close(a, b):
    return max(abs(a[name] - b[name]) for name in a) < 0.01


@pytest.mark.parametrize("n_told", [1, 6])
def test_workers_with_one_seed_that_do_not_wait_for_each_other_choose_different_designs(n_told):
    study = study_of(quick())
    run(study, n_told)
    params = []
    for _ in range(4):  # each with a sampler of its own, as in other processes
        study.sampler = quick()
        params.append(study.ask(SQUARE).params)
    assert not any(close(a, b) for i, a in enumerate(params) for b in params[:i])


def test_a_sampler_chooses_like_an_optimizer_unless_told_otherwise():
    ours, theirs = (inspect.signature(kind).parameters for kind in (AIRBOSampler, Optimizer))
    for setting in ("surrogate", "acquisition"):
        assert ours[setting].default == theirs[setting].default


def test_a_design_that_another_worker_takes_during_the_search_is_not_taken_twice(monkeypatch):
    study = study_of(quick(acquisition="ucb"))
    run(study, 6)
    ask, others = Optimizer.ask, []

    def interrupted(self, **number):
        design = ask(self, **number)
        if not others:  # while we were searching, another process has started and finished
            others.append(None)
            other = copy.copy(study)
            other.sampler = quick(acquisition="ucb")
            others.append(other.ask(SQUARE).params)
            assert close(others[-1], design)  # without a second look it would be a duplicate
        return design

    monkeypatch.setattr(Optimizer, "ask", interrupted)
    assert not close(study.ask(SQUARE).params, others[-1])


@pytest.mark.parametrize("rival_is_earlier", [True, False])
def test_of_two_that_choose_in_the_same_moment_whoever_sees_it_gives_way(
    rival_is_earlier, monkeypatch
):
    study = study_of(quick())
    run(study, 6)
    if rival_is_earlier:
        rival = study.ask()  # has no parameters yet
    trial = study.ask()
    if not rival_is_earlier:
        rival = study.ask()
    publish, published = sampler.publish, []

    def at_once(study, number, params):
        if not published:
            publish(study, rival.number, params)
        published.append(params)
        publish(study, number, params)

    monkeypatch.setattr(sampler, "publish", at_once)
    params = {name: trial.suggest_float(name, 0.0, 1.0) for name in SQUARE}
    assert not close(params, published[0])
    assert len(published) == 2


def test_a_worker_that_is_always_forestalled_settles_and_says_so(monkeypatch):
    study = study_of(quick())
    run(study, 6)
    monkeypatch.setattr(sampler, "has_rival", lambda *args: True)
    trial = study.ask()
    x = trial.suggest_float("x", 0.0, 1.0)
    [pending] = optimizer_of(study).pending  # y is known, too
    assert pending["x"] == x


def test_designs_under_way_are_pending_from_the_moment_they_are_chosen():
    study = study_of(quick())
    run(study, 4)
    trial = study.ask()
    assert optimizer_of(study).pending == []
    trial.suggest_float("x", 0.0, 1.0)  # both are chosen now
    [pending] = optimizer_of(study).pending
    y = trial.suggest_float("y", 0.0, 1.0)
    assert pending == {"x": trial.params["x"], "y": y}


def test_enqueued_designs_are_pending_if_they_are_whole():
    study = study_of(quick())
    run(study, 4)
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 0.25, "y": 0.75})
    assert optimizer_of(study).pending == [{"x": 0.25, "y": 0.75}]
    first, second = study.ask(SQUARE), study.ask(SQUARE)
    assert first.params["x"] == 0.25
    assert second.params == {"x": 0.25, "y": 0.75}
    assert optimizer_of(study).pending == [first.params, second.params]


def test_threads_share_a_sampler():
    study = study_of(quick(n_startup_trials=2))

    def objective(trial):
        return trial.suggest_float("x", 0, 1) - trial.suggest_float("y", 0, 1) ** 2

    study.optimize(objective, n_trials=10, n_jobs=3)
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
    assert distinct([trial.params for trial in study.trials])


def test_small_spaces_run_out_without_harm():
    space = {"n": IntDistribution(1, 3)}
    study = study_of(quick())
    trials = [study.ask(space) for _ in range(2)]
    study.tell(trials[0], 1.0)
    assert {study.ask(space).params["n"] for _ in range(4)} == {1, 2, 3}


# -- parameters that only some trials have


def conditional(trial):
    kind = trial.suggest_categorical("kind", ["a", "b"])
    x = trial.suggest_float("x", 0, 1)
    return x + trial.suggest_float(f"only_{kind}", 0, 1)


def test_conditional_parameters_are_drawn_and_the_others_chosen(caplog):
    study = study_of(quick())
    study.optimize(conditional, n_trials=3)
    assert not warnings_in(caplog)
    study.optimize(conditional, n_trials=2)
    said = [re.sub("only_.", "only", text) for text in warnings_in(caplog)]
    assert [text.split(" by ")[0] for text in said] == [
        f"The parameter `only` in Trial#{number} is sampled independently" for number in (3, 4)
    ]
    assert optimizer_of(study).space.names == ("kind", "x")


def test_the_warning_of_conditional_parameters_can_be_switched_off(caplog):
    study_of(quick(warn_independent_sampling=False)).optimize(conditional, n_trials=6)
    assert not warnings_in(caplog)


def test_trials_of_another_range_count_if_the_space_is_given():
    study = study_of(quick(search_space=LINE))
    wide = {"x": FloatDistribution(-1.0, 3.0)}
    for x in (-0.5, 0.5, 2.0):
        study.add_trial(done({"x": x}, x, wide))
    assert list(optimizer_of(study).observations["x"]) == [-0.5, 0.5, 2.0]
    assert 0.0 <= study.ask(LINE).params["x"] <= 1.0


def test_without_a_common_parameter_all_are_drawn():
    study = study_of(quick())
    for name in ("x", "y", "x"):
        study.add_trial(done({name: 0.5}, 1.0))
    assert study.ask(SQUARE).params.keys() == {"x", "y"}
    with pytest.raises(ValueError, match="no parameter with the same range in common"):
        optimizer_of(study)


def test_a_study_under_hyperband_goes_on():
    study = study_of(quick(n_startup_trials=1), pruner=optuna.pruners.HyperbandPruner())
    run(study, 8)
    assert len(study.trials) == 8


def test_the_default_sampler_needs_nothing():
    study = study_of(AIRBOSampler())
    run(study, 2)
    assert len(study.trials) == 2
