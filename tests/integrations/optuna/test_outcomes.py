"""Studies with several objectives, and trials with constraints."""

import optuna
import pytest
from optuna.visualization import plot_pareto_front

from airbo import AtMost, Maximize, measures
from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler, front, optimizer_of, recommend, robust_trial
from airbo.measures.posterior import Effort
from airbo.optimizer import choice, goal, search

NORMAL = {"x": unc.Normal(0.05)}


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    for module, name in ((search, "SEARCH"), (choice, "RECOMMEND")):
        monkeypatch.setattr(module, name, Effort(8, 16, smooth=True))
    monkeypatch.setattr(goal, "FINE", Effort(32, 64))


def sampler(**settings):
    return AIRBOSampler(NORMAL, n_startup_trials=4, seed=0, **settings)


def two(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    return x, x * x


def limited(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.set_constraint("leak", x - 0.5)
    return x


def test_a_study_may_have_several_directions_and_its_front_can_be_drawn():
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler())
    study.optimize(two, n_trials=6)
    assert len(study.trials) == 6
    found = front(study)
    assert len(found) > 1
    assert recommend(study).design in [r.design for r in found]
    assert robust_trial(study).params == recommend(study).design
    assert [*found[0].outcomes] == ["value:0", "value:1"]
    drawn = plot_pareto_front(study)
    assert sum(len(part.x) for part in drawn.data) == 6


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_names_of_metrics_are_names_of_outcomes():
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler())
    study.set_metric_names(["strength", "weight"])
    study.optimize(two, n_trials=4)
    assert [*optimizer_of(study).outcomes] == ["strength", "weight"]


def test_constraints_are_limits_that_hold_with_a_probability():
    study = optuna.create_study(direction="maximize", sampler=sampler(constraint_probability=0.9))
    study.optimize(limited, n_trials=6)
    study.enqueue_trial({"x": 0.1})
    study.enqueue_trial({"x": 0.38})
    study.enqueue_trial({"x": 0.49})
    study.optimize(limited, n_trials=3)
    best = recommend(study, policy="observed")
    assert best.design["x"] < 0.5 - 1.28 * 0.05
    assert best.outcomes["constraint:leak"].holds == best.holds >= 0.9
    assert robust_trial(study).params == best.design


def test_a_failed_trial_is_known_by_its_constraints():
    def fails(trial):
        limited(trial)
        raise RuntimeError

    study = optuna.create_study(sampler=sampler())
    study.optimize(limited, n_trials=1)
    study.optimize(fails, n_trials=1, catch=RuntimeError)
    table = optimizer_of(study).observations
    assert table["status"].tolist() == ["ok", "ok"]
    assert table["value"].isna().tolist() == [False, True]
    assert table["constraint:leak"].notna().all()


def test_a_constraint_that_only_later_trials_set_is_missing_in_the_first():
    study = optuna.create_study(sampler=sampler())
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    study.optimize(limited, n_trials=2)
    table = optimizer_of(study).observations
    assert table["constraint:leak"].isna().tolist() == 5 * [True] + 2 * [False]
    assert table["value"].notna().all()


def test_more_objectives_than_anybody_can_weigh_are_refused():
    study = optuna.create_study(directions=4 * ["minimize"], sampler=sampler())
    with pytest.raises(ValueError, match="at most 3 objectives, the study has 4"):
        study.optimize(lambda trial: 4 * [trial.suggest_float("x", 0, 1)], n_trials=2)


def test_a_probability_that_is_none_is_refused():
    with pytest.raises(
        ValueError, match=r"^constraint_probability must .* between 0 and 1, .* got 1\.5\.$"
    ):
        sampler(constraint_probability=1.5)


LIMITED = {"strength": Maximize(), "leak": AtMost(0.5)}


def reporting(outcomes):
    """Return an objective whose trials report outcomes in their user attribute."""

    def objective(trial):
        trial.set_user_attr("outcomes", outcomes)
        return trial.suggest_float("x", 0.0, 1.0)

    return objective


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ({"leek": 0.1}, "unknown outcome 'leek'; did you mean 'leak'?"),
        ({"leak": "low"}, "'leak' must be a number, got 'low'."),
        ([0.1], "expected a dict of numbers by name, got [0.1]."),
    ],
)
def test_an_outcome_that_cannot_be_used_is_named_once_and_the_value_counts(
    caplog, outcomes, message
):
    study = optuna.create_study(direction="maximize", sampler=sampler(outcomes=LIMITED))
    study.optimize(reporting(outcomes), n_trials=4)
    said = [r.getMessage() for r in caplog.records if r.name.startswith("airbo")]
    assert said == [f"Trial 0, user attribute 'outcomes': {message}"]
    table = optimizer_of(study).observations
    assert table["strength"].tolist() == [t.value for t in study.trials]
    assert table["leak"].isna().all()


def test_what_else_a_trial_reports_stands_beside_its_value_whatever_it_equals():
    study = optuna.create_study(direction="maximize", sampler=sampler(outcomes=LIMITED))
    study.add_trial(
        optuna.create_trial(
            params={"x": 0.5},
            distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
            value=3.0,
            user_attrs={"outcomes": {"loss": 3.0, "leak": 0.1}},  # a name that is no longer used
        )
    )
    table = optimizer_of(study).observations
    assert (table["strength"].tolist(), table["leak"].tolist()) == ([3.0], [0.1])


def test_each_outcome_has_its_own_measure():
    with pytest.raises(ValueError, match="each has its own measure: leave measure out"):
        sampler(outcomes=LIMITED, measure=measures.CVaR(0.9))
