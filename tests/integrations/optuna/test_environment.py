"""What no trial sets: an environment that is measured, given, or neither."""

import optuna
import pytest

import airbo
from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler, front, optimizer_of, recommend
from tests.integrations.optuna.common import warnings_in

HUMID = airbo.Environment(20.0, 90.0, typical=50.0, law=unc.Normal(8.0))
SPEED = optuna.distributions.FloatDistribution(50.0, 200.0)


def value(speed, humidity):
    """The best speed falls with humidity: 150 at 40%, 125 at 50%, 100 at 60%."""
    return -(((speed - 125.0 + 2.5 * (humidity - 50.0)) / 40.0) ** 2)


def new_study(**settings):
    given = {"environment": {"humidity": HUMID}, "n_startup_trials": 3, "seed": 0} | settings
    return optuna.create_study(direction="maximize", sampler=AIRBOSampler(**given))


def add(study, speed, humidity, **attributes):
    study.add_trial(
        optuna.trial.create_trial(
            params={"speed": speed},
            distributions={"speed": SPEED},
            value=value(speed, humidity),
            user_attrs=attributes,
        )
    )


@pytest.fixture(scope="module")
def study():
    study = new_study()
    for i in range(16):
        humidity = (38.0, 46.0, 54.0, 62.0)[i % 4]
        measured = {"executed": {"humidity": humidity}}
        add(
            study,
            55.0 + 9 * i,
            humidity,
            **(measured if i % 2 else {"given": measured["executed"]}),
        )
    return study


def test_measured_and_given_values_reach_the_optimizer(study):
    table = optimizer_of(study).observations
    assert table["executed_humidity"].tolist() == [38.0, 46.0, 54.0, 62.0] * 4


def test_the_answer_of_today_is_that_of_the_optimizer(study):
    given = {"humidity": 60.0}
    best = recommend(study, given=given)
    assert best.design["speed"] == pytest.approx(100.0, abs=15.0)
    assert best == optimizer_of(study).recommend(given=given)


def test_an_enqueued_trial_is_chosen_for_its_day_and_remembers_it(study):
    study.enqueue_trial({}, user_attrs={"given": {"humidity": 60.0}})
    trial = study.ask({"speed": SPEED})
    optimizer = optimizer_of(study)
    assert [o.executed for o in optimizer.record.pending] == [{"humidity": 60.0}]
    assert optimizer.pending == [trial.params]
    study.tell(trial, value(trial.params["speed"], 60.0))
    assert optimizer_of(study).observations["executed_humidity"].iloc[-1] == 60.0


def test_a_search_space_may_bring_the_environment():
    space = airbo.Space({"speed": (50.0, 200.0), "humidity": HUMID})
    study = new_study(environment=None, search_space=space)
    add(study, 100.0, 50.0, executed={"humidity": 51.0})
    assert optimizer_of(study).observations["executed_humidity"].tolist() == [51.0]
    assert [*study.ask({"speed": SPEED}).params] == ["speed"]


def test_the_front_of_today_is_that_of_the_optimizer(study):
    given = {"humidity": 60.0}
    assert front(study, given=given) == optimizer_of(study).front(given=given)


def test_a_finished_trial_out_of_bounds_counts_as_not_measured(caplog):
    study = new_study()
    add(study, 100.0, 50.0, executed={"humidity": 99.0})
    add(study, 120.0, 50.0, executed={"humidity": 51.0})
    table = optimizer_of(study).observations
    assert table["executed_humidity"].isna().tolist() == [True, False]
    [said] = warnings_in(caplog)
    assert "'humidity' is 99, but its bounds are 20 and 90. airbo uses it as if nothing" in said


def test_a_finished_trial_without_law_and_measurement_counts_as_failed(caplog):
    study = new_study(environment={"humidity": airbo.Environment(20.0, 90.0)})
    add(study, 100.0, 50.0)
    add(study, 120.0, 50.0, executed={"humidity": 51.0})
    assert optimizer_of(study).observations["status"].tolist() == ["failed", "ok"]
    [said] = warnings_in(caplog)
    assert "'humidity' was not measured and has no law" in said
    assert said.endswith("airbo counts it as failed.")


def test_what_is_no_environment_is_refused_at_birth():
    with pytest.raises(TypeError, match=r"'humidity' must be an airbo\.Environment, got 5"):
        new_study(environment={"humidity": 5})


def test_names_that_nobody_knows_are_refused():
    study = new_study()
    add(study, 100.0, 50.0)
    study.enqueue_trial({}, user_attrs={"given": {"humidty": 60.0}})
    with pytest.raises(ValueError, match=r"User attribute 'given': unknown parameter 'humidty'"):
        study.ask({"speed": SPEED})
