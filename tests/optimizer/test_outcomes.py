"""Several outcomes: what is told, what is asked next, and what is recommended."""

import json
import math
import pickle
from dataclasses import replace

import pandas as pd
import pytest
import torch

import airbo
from airbo import AtLeast, AtMost, Between, Maximize, Minimize, Optimizer, measures
from airbo import uncertainty as unc
from airbo.analysis import look_ahead, operating_window
from airbo.measures.posterior import Effort
from airbo.optimizer import choice, goal
from airbo.optimizer.surrogate import Surrogate
from tests.optimizer.common import LINE, SQUARE, hill, recommend, run

pytestmark = pytest.mark.usefixtures("few_draws")

P = {"x": unc.Normal(0.05)}
STRONG_AND_TIGHT = {"strength": Maximize(), "leak": AtMost(0.5, probability=0.9)}
TWO = {"strength": Maximize(), "weight": Minimize()}


def grid(n=9):
    return [{"x": i / (n - 1)} for i in range(n)]


def told(outcomes, f, designs=None, uncertainty=P, **settings):
    """An optimizer that knows what f gives at designs."""
    settings = {"n_initial": 3} | settings
    optimizer = Optimizer(LINE, uncertainty, outcomes=outcomes, **settings)
    for design in designs or grid():
        optimizer.tell(design, f(**design))
    return optimizer


# -- one outcome is the single value, exactly


@pytest.mark.parametrize(
    ("outcome", "direction"), [(Maximize(), "maximize"), (Minimize(), "minimize")]
)
def test_one_outcome_is_chosen_and_recommended_exactly_as_a_single_value(outcome, direction):
    named, same = (
        Optimizer(SQUARE, P, outcomes={name: outcome}, n_initial=3, seed=1)
        for name in ("height", "value")
    )
    plain = Optimizer(SQUARE, P, direction, n_initial=3, seed=1)
    assert run(named, 5, lambda d: {"height": hill(d)}) == run(plain, 5) == run(same, 5)
    assert same.to_json() == plain.to_json()
    expected = recommend(plain)
    assert expected.outcomes["value"].mean == expected.mean
    assert recommend(same) == expected
    assert recommend(named) == replace(expected, outcomes={"height": expected.outcomes["value"]})
    assert named.direction == plain.direction == direction
    assert named.predict([{"x": 0.3, "y": 0.2}]).equals(plain.predict([{"x": 0.3, "y": 0.2}]))


# -- telling


def test_observations_have_a_column_for_each_outcome():
    optimizer = Optimizer(LINE, P, outcomes=STRONG_AND_TIGHT)
    optimizer.tell({"x": 0.1}, {"strength": 1.0, "leak": 0.1})
    optimizer.tell({"x": 0.2}, {"leak": 0.2})
    optimizer.tell({"x": 0.3}, None)
    optimizer.tell({"x": 0.4}, None, infeasible=True)
    table = optimizer.observations
    assert [*table] == ["x", "strength", "leak", "status"]
    assert table["strength"].tolist() == pytest.approx([1.0] + 3 * [math.nan], nan_ok=True)
    assert table["status"].tolist() == ["ok", "ok", "failed", "infeasible"]
    other = Optimizer(LINE, P, outcomes=STRONG_AND_TIGHT)
    other.tell(table)
    pd.testing.assert_frame_equal(other.observations, table)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"leek": 0.1}, "did you mean 'leak'"),
        ({}, "No outcome was measured"),
        (1.0, "Expected a dict of outcomes"),
        ({"leak": "low"}, "Outcome 'leak'"),
    ],
)
def test_a_report_that_makes_no_sense_changes_nothing(value, message):
    optimizer = Optimizer(LINE, P, outcomes=STRONG_AND_TIGHT)
    design = optimizer.ask()
    with pytest.raises((ValueError, TypeError), match=message):
        optimizer.tell(design, value)
    assert optimizer.pending == [design]
    assert len(optimizer.observations) == 0


def test_a_row_of_a_table_that_measured_nothing_is_named():
    table = pd.DataFrame([{"x": 0.1, "leak": 0.1}, {"x": 0.2, "leak": math.nan}])
    optimizer = Optimizer(LINE, P, outcomes=STRONG_AND_TIGHT)
    with pytest.raises(ValueError, match="Row 1 of the table: No outcome was measured"):
        optimizer.tell(table)
    with pytest.raises(ValueError, match="no column 'strength' or 'leak'"):
        optimizer.tell(table[["x"]])


def test_only_failed_experiments_can_be_infeasible():
    with pytest.raises(ValueError, match="is infeasible, but it has outcomes"):
        told(TWO, lambda x: {"weight": x}).tell({"x": 0.1}, {"weight": 1}, infeasible=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"outcomes": {"x": Maximize()}}, "An outcome cannot be called 'x': a parameter has"),
        ({"outcomes": {"status": Maximize()}}, "An outcome cannot be called 'status'"),
        ({"outcomes": TWO, "direction": "minimize"}, "leave direction out"),
        ({"outcomes": TWO, "acquisition": "ei"}, "leave acquisition out"),
        ({"outcomes": TWO, "surrogate": "nominal"}, "surrogate='default'"),
    ],
)
def test_settings_that_contradict_outcomes_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(LINE, P, **settings)


# -- each outcome is modelled from the experiments that measured it


def test_a_missing_outcome_drops_nothing_of_the_others():
    def f(x):
        return {"strength": math.sin(3 * x), "weight": x * x}

    whole = told(TWO, f)
    holes = Optimizer(LINE, P, outcomes=TWO, n_initial=3)
    for i, design in enumerate(grid()):
        values = f(**design)
        holes.tell(design, {"weight": values["weight"]} if i % 2 else values)
    at = grid(5)
    assert holes.predict(at)["weight_mean"].equals(whole.predict(at)["weight_mean"])
    alone = Optimizer(LINE, P, n_initial=3)
    for design in grid()[::2]:
        alone.tell(design, f(**design)["strength"])
    assert holes.predict(at)["strength_mean"].tolist() == alone.predict(at)["mean"].tolist()


def test_until_every_outcome_was_measured_designs_are_spread():
    optimizer = told(TWO, lambda x: {"strength": x})
    start = Optimizer(LINE, P, outcomes=TWO, n_initial=3)
    assert optimizer.ask() == start.ask()
    with pytest.raises(ValueError, match="no model of 'weight' yet: no experiment measured it"):
        optimizer.recommend()
    assert 0.4 < optimizer.evaluate({"x": 0.5}, outcome="strength").mean < 0.6
    with pytest.raises(ValueError, match="no model of 'weight' yet"):
        optimizer.evaluate({"x": 0.5}, outcome="weight")


# -- limits


def rising(x):
    """The stronger the leakier; in truth, P(leak <= 0.5) >= 0.9 up to 0.5 - 1.2816 * 0.05."""
    return {"strength": 2 * x, "leak": x}


def share_within(design, limit=0.5, std=0.05):
    return 0.5 * (1 + math.erf((limit - design["x"]) / std / math.sqrt(2)))


@pytest.mark.parametrize("policy", ["observed", "anywhere"])
def test_the_recommended_design_keeps_its_limit_and_comes_close_to_it(policy):
    best = told(STRONG_AND_TIGHT, rising, grid(33)).recommend(policy)
    assert share_within(best.design) >= 0.9
    assert best.design["x"] > 0.38
    leak = best.outcomes["leak"]
    assert leak.within == pytest.approx(share_within(best.design), abs=0.06)
    assert best.holds == leak.holds >= 0.9
    assert (
        best.mean == best.outcomes["strength"].mean == pytest.approx(2 * best.design["x"], abs=0.1)
    )


def test_more_confidence_keeps_further_from_the_limit():
    def scattered(x):
        return {"strength": 2 * x, "leak": x + 0.05 * math.sin(50 * x)}

    optimizer = told(STRONG_AND_TIGHT, scattered, grid(12))
    bold, careful = (optimizer.recommend("anywhere", c).design["x"] for c in (0.2, 0.99))
    assert careful < bold - 0.01
    for wrong in (0.0, 1.0, 1.2):
        for refuses in (optimizer, Optimizer(LINE)):
            with pytest.raises(ValueError, match="confidence must be a number between 0 and 1"):
                refuses.recommend("anywhere", wrong)


@pytest.mark.parametrize(
    ("limit", "inside"),
    [
        (AtMost(0.5), lambda x: x < 0.5),
        (AtLeast(0.5), lambda x: x > 0.5),
        (Between(0.3, 0.7), lambda x: 0.3 < x < 0.7),
    ],
)
def test_limits_hold_on_their_own_side(limit, inside):
    optimizer = told({"cost": Minimize(), "leak": limit}, lambda x: {"cost": 0.0 * x, "leak": x})
    holds = {d["x"]: goals_holds(optimizer, d) for d in grid()}
    assert {x for x, p in holds.items() if p > 0.5} <= {x for x in holds if inside(x)}
    assert any(p > 0.5 for p in holds.values())


def goals_holds(optimizer, design):
    Z = optimizer.record.points.of([design])
    [candidate] = choice.candidates_among(optimizer.outcome_models(), Z, [design])
    return candidate.holds


def test_where_no_design_keeps_the_limits_the_likeliest_is_recommended_with_a_warning():
    outcomes = {"strength": Maximize(), "leak": AtMost(-1.0)}
    optimizer = told(outcomes, rising)
    with pytest.warns(airbo.TooLittleDataWarning, match="No design is known to keep all limits"):
        best = optimizer.recommend()
    assert best.holds < 0.5
    assert "most likely" in best.reason


def test_an_empty_front_says_which_limit_no_design_keeps():
    outcomes = {"strength": Maximize(), "leak": AtMost(-1.0), "again": AtMost(9.0)}
    optimizer = told(outcomes, lambda x: {**rising(x), "again": x}, grid(5))
    said = r"\(leak at most -1 for 95% of .* The hardest to keep is leak: 0.\d\d .* front is empty"
    with pytest.warns(airbo.TooLittleDataWarning, match=said) as caught:
        assert optimizer.front() == []
    assert [w.filename for w in caught] == [__file__]


def test_outcomes_that_never_differ_leave_a_next_design():
    optimizer = told(STRONG_AND_TIGHT, lambda x: {"strength": 1.0, "leak": x}, grid(4))
    assert 0 <= optimizer.ask()["x"] <= 1


def test_the_next_designs_go_where_limits_may_hold():
    optimizer = told(STRONG_AND_TIGHT, rising, grid(9))
    asked = optimizer.ask(3)
    assert max(d["x"] for d in asked) < 0.6
    assert len({round(d["x"], 4) for d in asked}) == 3


def test_a_failed_experiment_is_infeasible_only_if_the_user_says_so():
    outcomes = {"strength": Maximize(), "leak": AtMost(5.0)}
    silent, said = (told(outcomes, rising, grid(7)[:5]) for _ in range(2))
    for x in (0.8, 0.9, 1.0):
        silent.tell({"x": x}, None)
        said.tell({"x": x}, None, infeasible=True)
    assert "feasible" not in silent.recommend().outcomes
    assert goals_holds(silent, {"x": 0.9}) > 0.9
    assert goals_holds(said, {"x": 0.9}) < 0.1
    assert said.recommend(confidence=0.5).outcomes["feasible"].within > 0.9


def test_a_design_that_may_not_work_is_recommended_with_a_warning_that_says_so():
    optimizer = Optimizer(LINE, P, outcomes={"strength": Maximize()}, n_initial=3)
    optimizer.tell({"x": 0.5}, {"strength": 1.0})
    optimizer.tell({"x": 0.6}, None, infeasible=True)
    with pytest.warns(
        airbo.TooLittleDataWarning, match="the design can be used for 95% of executed"
    ):
        optimizer.recommend()


# -- fronts


def opposed(x):
    return {"strength": math.sin(1.5 * x), "weight": x * x}


def test_no_design_of_the_front_is_beaten_by_another():
    front = told(TWO, opposed).front()
    assert len(front) > 3
    strength = [r.outcomes["strength"].mean for r in front]
    weight = [r.outcomes["weight"].mean for r in front]
    assert strength == sorted(strength, reverse=True)
    assert weight == sorted(weight, reverse=True)  # who is stronger is heavier


def test_two_designs_on_a_front_are_no_compromise():
    both = told(TWO, lambda x: {"strength": x, "weight": x}, [{"x": 0.2}, {"x": 0.8}])
    best = recommend(both)
    assert "no compromise yet" in best.reason
    assert best.design["x"] == 0.8


def test_the_compromise_is_on_the_front_and_neither_of_its_ends():
    optimizer = told(TWO, opposed)
    front, best = optimizer.front(), optimizer.recommend()
    assert best.design in [r.design for r in front[1:-1]]
    assert "compromise" in best.reason
    assert best.holds is None


def test_two_objectives_are_asked_for_all_along_the_front():
    optimizer = told(
        TWO, lambda x: {"strength": x, "weight": abs(x - 0.5)}, [{"x": 0.0}, {"x": 0.2}]
    )
    for _ in range(4):
        design = optimizer.ask()
        optimizer.tell(design, {"strength": design["x"], "weight": abs(design["x"] - 0.5)})
    asked = optimizer.observations["x"][2:]
    assert (asked > 0.35).all()  # what is below 0.5 is worse by both
    assert asked.max() - asked.min() > 0.2


@pytest.mark.slow
def test_three_objectives_and_a_limit_go_together():
    outcomes = {"a": Maximize(), "b": Minimize(), "c": Maximize(), "d": AtLeast(0.0)}
    optimizer = told(outcomes, lambda x: {"a": x, "b": x * x, "c": -x, "d": x - 0.3})
    assert all(r.design["x"] > 0.3 for r in optimizer.front())
    assert optimizer.ask()["x"] > 0.2


def test_a_single_value_has_a_front_of_one():
    optimizer = Optimizer(LINE, P, n_initial=2)
    for design in grid():
        optimizer.tell(design, math.sin(3 * design["x"]))
    assert optimizer.front() == [optimizer.recommend()]


# -- deployment


@pytest.mark.slow
def test_designs_are_recommended_for_the_uncertainty_they_are_used_under():
    exact = told(STRONG_AND_TIGHT, rising, grid(17), None)
    rough = told(STRONG_AND_TIGHT, rising, grid(17), None, deployment={"x": unc.Normal(0.1)})
    assert recommend(rough).design["x"] < recommend(exact, policy="anywhere").design["x"] - 0.08
    assert 0 <= rough.ask()["x"] <= 1


# -- saving


def test_a_saved_optimizer_goes_on_as_the_one_that_was_saved():
    optimizer = told(STRONG_AND_TIGHT, rising)
    optimizer.tell({"x": 0.05}, {"leak": 0.0})
    optimizer.tell({"x": 0.95}, None, infeasible=True)
    saved = Optimizer.from_json(optimizer.to_json())
    pickled = pickle.loads(pickle.dumps(optimizer))
    assert json.loads(saved.to_json()) == json.loads(optimizer.to_json())
    pd.testing.assert_frame_equal(saved.observations, optimizer.observations)
    expected = recommend(optimizer)
    assert recommend(saved) == recommend(pickled) == expected
    assert saved.ask() == optimizer.ask()


def test_copies_and_models_of_several_outcomes():
    optimizer = told(TWO, opposed)
    assert recommend(optimizer.copy()) == recommend(optimizer)
    assert optimizer.model.num_outputs == 2
    assert torch.isfinite(optimizer.model.posterior(torch.rand(3, 1).double()).mean).all()


# -- what quality people ask for


def test_a_limit_of_the_recommended_design_has_share_cpk_and_ppm():
    optimizer = told(STRONG_AND_TIGHT, lambda x: {"strength": x, "leak": x})
    best = optimizer.recommend()
    leak = best.outcomes["leak"]
    assert leak.capability == optimizer.evaluate(best.design, outcome="leak").capability
    assert leak.capability.share == leak.within
    assert best.outcomes["strength"].capability is None
    assert best.capability is None
    # leak = x' with x' ~ N(x, 0.05²), at most 0.5
    low, high = leak.capability.cpk_interval
    assert low <= (0.5 - best.design["x"]) / 0.15 <= high


def test_an_objective_in_spec_beside_a_limit_has_share_cpk_and_ppm():
    aim = Maximize(measures.InSpec(0.2, 0.5))
    optimizer = told({"width": aim, "leak": AtMost(2.0)}, lambda x: {"width": x, "leak": x})
    best = optimizer.recommend()
    assert best.capability == best.outcomes["width"].capability
    assert best.capability == optimizer.evaluate(best.design, outcome="width").capability
    low, high = best.capability.share_interval
    assert low <= best.capability.share <= high


def test_every_design_of_a_front_has_the_capability_of_its_limits():
    wants = {**TWO, "leak": AtMost(0.8, probability=0.9)}
    optimizer = told(wants, lambda x: {"strength": x, "weight": x * x, "leak": x})
    front = optimizer.front()
    assert len(front) > 1
    for best in front:
        found = optimizer.evaluate(best.design, outcome="leak").capability
        assert best.outcomes["leak"].capability == found


def test_whether_a_design_can_be_used_has_no_cpk():
    optimizer = told({"strength": Maximize()}, lambda x: {"strength": x})
    optimizer.tell({"x": 1.0}, None, infeasible=True)
    assert optimizer.recommend().outcomes["feasible"].capability is None


# -- one computation


@pytest.mark.parametrize("name", ["strength", "leak"])
def test_the_mean_of_one_outcome_is_read_off_the_model_that_is_fitted_already(name, monkeypatch):
    optimizer = told(STRONG_AND_TIGHT, rising)
    optimizer.recommend()
    monkeypatch.setattr(Surrogate, "fit", lambda *args: pytest.fail("fitted twice"))
    best = look_ahead(optimizer, outcome=name).recommendation
    expected = optimizer.evaluate(best.design, measures.Mean(), outcome=name)
    assert best.mean == pytest.approx(expected.mean, abs=1e-12)


def test_what_is_recommended_and_what_is_evaluated_are_the_same_numbers():
    optimizer = told(STRONG_AND_TIGHT, rising)
    best = optimizer.recommend(confidence=0.5)
    leak = best.outcomes["leak"]
    share = optimizer.evaluate(best.design, outcome="leak").capability
    assert (leak.within, leak.within_std) == (share.share, share.share_std)
    window = operating_window(optimizer, 0.5, best.design)
    assert window.probability == pytest.approx(leak.within, abs=1e-12)


# -- strict limits, which few executed inputs cannot show


@pytest.mark.parametrize("n", [64, 512])
def test_far_quantiles_of_normal_values_are_those_of_the_normal_distribution(n):
    z = torch.special.ndtri(unc.base_draws(n, 1))[:, 0]
    found = goal.margin(AtLeast(0.0, probability=0.99865), 1.0 + 0.2 * z, 1.0).item()
    assert found == pytest.approx(1.0 - 3 * 0.2, abs=0.03)


def test_a_strict_limit_is_kept_truly(monkeypatch):
    """x' >= 0.5 in 99.865% of all cases: x = 0.5 + 3 · 0.05, and no more than a little above."""
    monkeypatch.setattr(goal, "FINE", Effort(32, 256))
    outcomes = {"cost": Minimize(), "reach": AtLeast(0.5, probability=0.99865)}
    optimizer = Optimizer(LINE, P, outcomes=outcomes, n_initial=3)
    for i in range(17):
        x = i / 16
        optimizer.tell({"x": x}, {"cost": x, "reach": x}, executed={"x": x})
    best = recommend(optimizer, policy="anywhere")
    assert 0.645 < best.design["x"] < 0.68
    assert best.holds >= 0.9
