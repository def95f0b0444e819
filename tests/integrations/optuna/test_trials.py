"""What the trials of a study teach."""

import math

import pytest
import torch
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState

from airbo import Maximize, Optimizer
from airbo import uncertainty as unc
from airbo.integrations.optuna import (
    EXECUTED,
    GAVE_UP,
    UNCERTAINTY,
    AIRBOSampler,
    describe_uncertainty,
    optimizer_of,
    read_uncertainty,
)
from tests.integrations.optuna.common import (
    LINE,
    SQUARE,
    done,
    quick,
    run,
    study_of,
    unfitted,
    warnings_in,
)

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
P = {"x": unc.Normal(0.1), "y": unc.Uniform(-0.1, 0.2)}


def values(study):
    """Values by x, None for failed experiments, as the optimizer has them."""
    table = optimizer_of(study).observations
    return {
        x: None if math.isnan(v) else v for x, v in zip(table["x"], table["value"], strict=True)
    }


def failed(x, **attributes):
    return done({"x": x}, state=TrialState.FAIL, user_attrs=attributes)


def test_every_state_of_a_trial_has_its_meaning():
    study = study_of(quick())
    study.add_trials([done({"x": 0.1}, 1.0), failed(0.2), failed(0.3, **{GAVE_UP: True})])
    study.add_trial(done({"x": 0.4}, state=TrialState.PRUNED))
    study.add_trial(done({"x": 0.5}, 2.0, state=TrialState.PRUNED, intermediate_values={0: 2.0}))
    assert values(study) == {0.1: 1.0, 0.2: None, 0.4: None, 0.5: None}


def test_a_value_that_came_after_all_counts():
    study = study_of(quick())
    study.add_trial(done({"x": 0.1}, 1.0, user_attrs={GAVE_UP: True}))
    assert values(study) == {0.1: 1.0}


def test_a_running_trial_that_was_given_up_is_not_pending():
    study = study_of(quick())
    run(study, 1)
    study.ask(SQUARE).set_user_attr(GAVE_UP, True)
    assert optimizer_of(study).pending == []


def test_trials_with_a_category_that_is_no_longer_there_teach_nothing():
    old, new = ({"tool": CategoricalDistribution(c)} for c in (["A", "B"], ["B", "C"]))
    study = study_of(quick(search_space=old))
    study.add_trials([done({"tool": tool}, 1.0, old) for tool in "AB"])
    tools = [study.ask(old).params["tool"] for _ in range(2)]
    study.sampler = quick(search_space=new)
    optimizer = optimizer_of(study)
    assert list(optimizer.observations["tool"]) == ["B"]
    assert optimizer.pending == [{"tool": "B"}] * tools.count("B")


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e200])
def test_a_value_that_is_no_measurement_counts_as_failed_and_says_so(value, caplog):
    study = study_of(quick(n_startup_trials=1))
    run(study, 3, LINE)
    trial = study.ask(LINE)
    study.tell(trial, value)
    assert values(study)[trial.params["x"]] is None
    run(study, 1, LINE)
    said = f"Trial 3 gave {value}, which no model can use; airbo counts it as failed."
    assert warnings_in(caplog) == [said]


def test_a_value_that_is_not_a_number_fails_its_trial():
    study = study_of(quick(n_startup_trials=1))
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) * math.nan, n_trials=1)
    assert list(values(study).values())[2:] == [None]


def test_an_optimizer_of_a_study_is_one_that_was_told_its_trials():
    study = study_of(quick(P, deployment={"x": unc.Normal(0.2)}))
    other = {("y", "x"): unc.Normal(cov=[[0.04, 0.01], [0.01, 0.01]])}
    study.add_trial(done({"x": 0.1, "y": 0.2}, 1.0))
    study.add_trial(done({"x": 0.3, "y": 0.4}, 2.0, user_attrs={EXECUTED: {"x": 0.35, "y": None}}))
    attributes = {UNCERTAINTY: describe_uncertainty(other)}
    study.add_trial(done({"x": 0.5, "y": 0.6}, 3.0, user_attrs=attributes))
    study.add_trial(done({"x": 0.7, "y": 0.8}, state=TrialState.FAIL))

    settings = {"surrogate": unfitted, "deployment": {"x": unc.Normal(0.2)}, "n_initial": 3}
    settings["outcomes"] = {"value": Maximize()}
    told = Optimizer(BOX, P, seed=0, **settings)
    told.tell({"x": 0.1, "y": 0.2}, {"value": 1.0})
    told.tell({"x": 0.3, "y": 0.4}, {"value": 2.0}, executed={"x": 0.35})
    told.tell({"x": 0.5, "y": 0.6}, {"value": 3.0}, uncertainty=other)
    told.tell({"x": 0.7, "y": 0.8}, None)
    assert optimizer_of(study).to_json() == told.to_json()
    assert study.ask(SQUARE).params == told.ask(number=4)


def test_an_uncertainty_by_name_survives_json_in_whatever_order():
    by_name = {"x": unc.Normal(0.1), ("z", "y"): unc.Ring(0.3)}
    back = read_uncertainty(describe_uncertainty(by_name))
    assert back == {("x",): unc.Normal(0.1), ("z", "y"): unc.Ring(0.3)}
    assert read_uncertainty(describe_uncertainty(None)) == {}


def test_a_trial_without_uncertainty_of_its_own_can_say_that_it_was_exact():
    study = study_of(quick({"x": unc.Normal(0.3)}, surrogate="mmd"))
    attributes = {UNCERTAINTY: describe_uncertainty({})}
    for x, user_attrs in ((0.2, {}), (0.5, attributes), (0.8, {})):
        study.add_trial(done({"x": x}, x, user_attrs=user_attrs))
    exact = optimizer_of(study)._history.observations[1].uncertainty
    assert exact == unc.Exact()


# -- executed inputs


def test_measured_inputs_are_told_and_what_is_nan_was_not_measured():
    study = study_of(quick(P))
    for x in (0.2, 0.4):
        trial = study.ask(SQUARE)
        trial.set_user_attr(EXECUTED, {"x": x, "y": math.nan})
        study.tell(trial, 1.0)
    table = optimizer_of(study).observations
    assert list(table["executed_x"]) == [0.2, 0.4]
    assert "executed_y" not in table


@pytest.mark.parametrize(
    ("executed", "message"),
    [
        ({"speed": 0.1}, r"unknown parameter 'speed'; there are \['x', 'y'\]"),
        ({"x": "fast"}, "'x' must be a number, got 'fast'"),
        ({"x": True}, "'x' must be a number, got True"),
        ([0.1, 0.2], r"expected a dict of numbers by name, got \[0.1, 0.2\]"),
    ],
)
def test_a_measurement_that_makes_no_sense_is_refused_and_then_left_out(executed, message, caplog):
    study = study_of(quick(P))
    run(study, 1)
    trial = study.ask(SQUARE)
    trial.set_user_attr(EXECUTED, executed)
    with pytest.raises(ValueError, match=f"Trial 1: User attribute 'executed': {message}"):
        study.tell(trial, 1.0)
    run(study, 2)
    assert len(optimizer_of(study).observations) == 4
    [said] = warnings_in(caplog)
    assert said.endswith("airbo uses it as if nothing had been measured.")


def test_half_a_measurement_of_what_is_uncertain_together_is_used(caplog):
    study = study_of(quick({("x", "y"): unc.Ring(0.1)}))
    study.add_trial(done({"x": 0.3, "y": 0.4}, 2.0, user_attrs={EXECUTED: {"x": 0.35}}))
    assert optimizer_of(study).observations["executed_x"].tolist() == [0.35]
    assert "airbo uses it as if" not in caplog.text


# -- what cannot be


def refused(study, message, error=ValueError):
    with pytest.raises(error, match=message):
        run(study, 2)


def test_an_uncertainty_of_nothing_is_refused_at_first_use():
    refused(study_of(quick({"z": unc.Normal(0.1)})), "uncertainty names 'z', but no trial has such")
    refused(study_of(quick(deployment={"xx": unc.Normal(0.1)})), "deployment names 'xx'.*'x', 'y'")


def test_an_uncertainty_of_nothing_is_refused_at_birth_if_the_space_is_given():
    with pytest.raises(ValueError, match="uncertainty names 'z'"):
        quick({"z": unc.Normal(0.1)}, search_space=SQUARE)


def test_an_uncertainty_of_a_conditional_parameter_is_not_used_and_says_so_once(caplog):
    study = study_of(quick({"z": unc.Normal(0.1)}, warn_independent_sampling=False))
    study.add_trial(done({"x": 0.5, "z": 0.5}, 1.0, LINE | {"z": LINE["x"]}))
    study.add_trial(done({"x": 0.7}, 1.0))
    run(study, 3, LINE)
    [said] = warnings_in(caplog)
    assert said.startswith("The uncertainty of 'z' is not used")


def test_a_group_of_which_only_some_are_known_is_refused():
    study = study_of(quick({("x", "z"): unc.Ring(0.1)}))
    study.add_trial(done({"x": 0.5, "z": 0.5}, 1.0, LINE | {"z": LINE["x"]}))
    study.add_trial(done({"x": 0.7}, 1.0))
    refused(study, r"\['x', 'z'\] have a joint uncertainty, but the model cannot choose \['z'\]")


def test_an_uncertainty_of_a_category_is_refused():
    space = {"tool": CategoricalDistribution(["A", "B"])}
    with pytest.raises(ValueError, match="'tool' is categorical"):
        quick({"tool": unc.Normal(0.1)}, search_space=space)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"uncertainty": unc.Normal(0.1)}, TypeError, "uncertainty must be a dict"),
        ({"uncertainty": {"x": 0.1}}, TypeError, "uncertainty of 'x' must be an airbo.uncertainty"),
        ({"uncertainty": {3: unc.Exact()}}, TypeError, "a name or a tuple of names, got 3"),
        ({"deployment": {"x": 0.1}}, TypeError, "deployment of 'x' must be"),
        ({"surrogate": "gp"}, ValueError, "surrogate must be one of"),
        ({"acquisition": "pi"}, ValueError, "acquisition"),
        ({"noise": "part"}, ValueError, "noise must be 'measurement' or 'product', got 'part'"),
        ({"n_startup_trials": -1}, ValueError, "n_startup_trials must be a whole number >= 0"),
        ({"seed": -1}, ValueError, "seed must be a whole number >= 0, got -1"),
        ({"search_space": {"x": (0, 1)}}, TypeError, "'x': expected an Optuna distribution"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_settings_that_make_no_sense_are_refused_at_birth(settings, error, message):
    with pytest.raises(error, match=message):
        AIRBOSampler(**settings)


@pytest.mark.parametrize(
    "said",
    [
        {"x": 3},
        [{"parameters": ["x"], "uncertainty": {"kind": "Odd"}}],
        describe_uncertainty({"x": unc.Normal([0.1, 0.2])}),
        describe_uncertainty({("x", "z"): unc.Ring(0.1)}),
    ],
)
def test_an_uncertainty_that_makes_no_sense_is_refused_and_then_left_out(said, caplog):
    study = study_of(quick(P))
    run(study, 1)
    trial = study.ask(SQUARE)
    trial.set_user_attr(UNCERTAINTY, said)
    trial.set_user_attr(EXECUTED, {"x": 0.5})
    with pytest.raises(ValueError, match="Trial 1: "):
        study.tell(trial, 1.0)
    run(study, 2)
    observations = optimizer_of(study).observations
    assert len(observations) == 4
    assert observations["executed_x"][1] == 0.5
    assert warnings_in(caplog)[0].endswith("airbo uses it as if it had no uncertainty of its own.")


def test_a_trial_of_which_nothing_can_be_used_still_has_its_value(caplog):
    study = study_of(quick(P))
    wrong = {UNCERTAINTY: {"x": 3}, EXECUTED: {"x": "fast"}}
    study.add_trial(done({"x": 0.1, "y": 0.2}, 1.0, user_attrs=wrong))
    assert list(optimizer_of(study).observations["value"]) == [1.0]
    assert [text.partition(" airbo uses it as if ")[2] for text in warnings_in(caplog)] == [
        "nothing had been measured.",
        "it had no uncertainty of its own.",
    ]


def test_the_posterior_is_that_of_the_measured_input():
    study = study_of(quick({"x": unc.Normal(0.1)}, surrogate="mmd"))
    for x, where in ((0.2, 0.3), (0.5, 0.4), (0.8, 0.9)):
        study.add_trial(done({"x": x}, math.sin(6 * where), user_attrs={EXECUTED: {"x": where}}))
    model = optimizer_of(study).model
    torch.testing.assert_close(
        model.train_inputs[0][..., 0], torch.tensor([0.3, 0.4, 0.9]).double()
    )
