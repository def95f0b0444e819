"""The robust answer of a study."""

import pytest
from optuna.distributions import CategoricalDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

import airbo
from airbo import uncertainty as unc
from airbo.integrations.optuna import optimizer_of, recommend, robust_trial
from airbo.optimizer.surrogate import Surrogate
from tests.integrations.optuna.common import LINE, done, quick, run, study_of

pytestmark = pytest.mark.filterwarnings("ignore::airbo.TooLittleDataWarning")


def lucky(direction="maximize"):
    """A study with a hill around 0.3, and one lucky value where all others were poor."""
    study = study_of(quick({"x": unc.Normal(0.05)}, surrogate="default"), direction)
    sign = 1 if direction == "maximize" else -1
    for i in range(9):
        x = i / 10
        study.add_trial(done({"x": x}, sign * (1 - 4 * (x - 0.3) ** 2)))
    for value in (-0.9, -1.1, 1.2):
        study.add_trial(done({"x": 0.9}, sign * value))
    return study


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_robust_trial_is_not_the_luckiest(direction):
    study = lucky(direction)
    assert study.best_trial.params == {"x": 0.9}
    assert robust_trial(study).params["x"] == pytest.approx(0.3, abs=0.11)
    assert recommend(study).design == robust_trial(study).params


def test_the_robust_trial_is_one_of_the_study_that_has_a_value():
    study = study_of(quick())
    study.add_trial(done({"x": 0.5}, state=TrialState.FAIL))
    study.add_trial(done({"x": 0.5}, 1.0))
    assert robust_trial(study) == study.trials[1]
    robust_trial(study).params["x"] = 7.0
    assert study.trials[1].params == {"x": 0.5}


def test_the_answer_speaks_of_the_choices_of_the_study():
    study = study_of(quick())
    space = {"tool": CategoricalDistribution([None, "A"])}
    for tool, value in ((None, 2.0), ("A", 1.0), (None, 2.0)):
        study.add_trial(done({"tool": tool}, value, space))
    assert recommend(study).design == {"tool": None}
    assert recommend(study, policy="anywhere").design == {"tool": None}


def test_what_will_be_used_elsewhere_is_judged_there():
    study = study_of(quick(deployment={"x": unc.Normal(0.2)}, surrogate="default"))
    for i in range(11):
        study.add_trial(done({"x": i / 10}, float(i == 8) + (i < 6)))
    assert robust_trial(study).params["x"] < 0.6
    assert recommend(study).design["x"] < 0.6


def test_any_study_can_be_answered_with_a_sampler():
    study = lucky()
    sampler, study.sampler = study.sampler, RandomSampler(seed=0)
    for answer in (recommend, robust_trial, optimizer_of):
        with pytest.raises(TypeError, match=r"pass one as sampler=\.\.\.; got RandomSampler"):
            answer(study)
    assert robust_trial(study, sampler=sampler).params == recommend(study, sampler=sampler).design


def test_a_study_without_trials_has_no_answer():
    study = study_of(quick())
    with pytest.raises(ValueError, match="the study has no complete trial"):
        recommend(study)
    study.sampler = quick(search_space=LINE)
    with pytest.raises(ValueError, match="no experiment measured it"):
        recommend(study)


def test_nothing_is_fitted_twice_to_the_same_trials(monkeypatch):
    fits = []
    fit = Surrogate.fit
    monkeypatch.setattr(
        Surrogate, "fit", lambda self, known: (fits.append(len(known)), fit(self, known))[1]
    )
    study = study_of(quick())
    run(study, 4, LINE)
    assert fits == [3]
    study.ask(LINE)
    study.ask(LINE)
    recommend(study)
    robust_trial(study)
    optimizer_of(study).predict({"x": 0.5})
    assert fits == [3, 4]


def test_nothing_done_to_an_optimizer_of_a_study_comes_back():
    study = lucky()
    before = optimizer_of(study).to_json()
    optimizer = optimizer_of(study)
    optimizer.tell({"x": 0.0}, {"value": 100.0})
    optimizer.ask()
    assert optimizer_of(study).to_json() == before
    assert recommend(study).design["x"] == pytest.approx(0.3, abs=0.11)


def test_units_are_kept_where_the_space_says_them():
    space = airbo.Space({"speed": airbo.Float(0, 1, unit="m/s"), "depth": (0, 1)})
    study = study_of(quick(search_space=space))
    assert optimizer_of(study).space == space
