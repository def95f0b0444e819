"""What nobody sets: an environment with a law, measured or not, given or not."""

import json
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

import airbo
from airbo import Environment, Optimizer, measures
from airbo import uncertainty as unc
from airbo.analysis import look_ahead, operating_window, tolerance_budget
from airbo.measures import Mean
from tests.optimizer.common import recommend

LAW = unc.Normal(8.0)
HUMID = Environment(20.0, 90.0, typical=50.0, law=LAW)
SPACE = {"speed": (50.0, 200.0), "humidity": HUMID}
PLAIN = {"speed": (50.0, 200.0), "humidity": (20.0, 90.0)}


def dry(speed, humidity):
    """The best speed falls with humidity: 150 at 40%, 125 at 50%, 100 at 60%."""
    return -(((speed - 125.0 + 2.5 * (humidity - 50.0)) / 40.0) ** 2)


def days(n, seed=0):
    """Speeds and humidities of n days, evenly over the law."""
    u = unc.base_draws(n, 2, seed=seed).numpy()
    normal = torch.special.ndtri(torch.tensor(u[:, 1])).numpy()
    return list(zip(50 + 150 * u[:, 0], np.clip(50 + 8 * normal, 20, 90), strict=True))


def told(measured=True, n=20, space=SPACE, **settings):
    optimizer = Optimizer(space, **{"n_initial": 3} | settings)
    for speed, humidity in days(n):
        executed = {"humidity": humidity} if measured else None
        optimizer.tell({"speed": speed}, dry(speed, humidity), executed=executed)
    return optimizer


@pytest.fixture(scope="module")
def known():
    return told()


# -- one more column of P_x, which no design sets


def test_designs_do_not_have_the_environment():
    optimizer = Optimizer(SPACE)
    assert [*optimizer.ask()] == ["speed"]
    assert optimizer.space.names == ("speed",)
    assert optimizer.space.whole.names == ("speed", "humidity")


def test_an_environment_is_a_parameter_that_every_design_sets_to_its_typical_value():
    named, plain = told(measured=False), Optimizer(PLAIN, {"humidity": LAW}, n_initial=3)
    for speed, humidity in days(20):
        plain.tell({"speed": speed, "humidity": 50.0}, dry(speed, humidity))
    for speed in (60.0, 120.0, 190.0):
        mine = named.evaluate({"speed": speed})
        other = plain.evaluate({"speed": speed, "humidity": 50.0})
        assert (mine.mean, mine.std) == pytest.approx((other.mean, other.std), rel=1e-9)


def test_a_measured_environment_is_a_parameter_that_was_set_exactly(known):
    plain = Optimizer(PLAIN, deployment={"humidity": LAW}, n_initial=3)
    for speed, humidity in days(20):
        plain.tell({"speed": speed, "humidity": humidity}, dry(speed, humidity))
    mine = known.predict([{"speed": 120.0}])
    other = plain.predict([{"speed": 120.0, "humidity": 50.0}])
    assert mine["mean"][0] == pytest.approx(other["mean"][0], abs=0.02)


def test_an_environment_that_hardly_varies_is_a_constant():
    tiny = Environment(20.0, 90.0, typical=50.0, law=unc.Normal(1e-6))
    varying, fixed = Optimizer({"speed": (50.0, 200.0), "humidity": tiny}), Optimizer(PLAIN)
    for speed, _ in days(8):
        varying.tell({"speed": speed}, dry(speed, 50.0))
        fixed.tell({"speed": speed, "humidity": 50.0}, dry(speed, 50.0))
    mine = varying.predict([{"speed": 111.0}])["mean"][0]
    assert mine == pytest.approx(
        fixed.predict([{"speed": 111.0, "humidity": 50.0}])["mean"][0], abs=1e-4
    )


def test_another_law_in_use_gives_another_answer(known):
    wild = told(deployment={"humidity": unc.Normal(12.0)})
    # E f falls by the variance of the best speed
    expected = {opt: -((2.5 * std / 40.0) ** 2) for opt, std in ((known, 8.0), (wild, 12.0))}
    for optimizer, value in expected.items():
        found = optimizer.evaluate({"speed": 125.0}).mean
        assert found == pytest.approx(value, abs=0.05)


# -- best over the law, and best for today


def test_the_recommendation_is_best_over_the_law(known):
    best = recommend(known, policy="anywhere")
    assert best.design["speed"] == pytest.approx(125.0, abs=8.0)
    assert best.mean == pytest.approx(-0.25, abs=0.06)


@pytest.mark.parametrize(("humidity", "speed"), [(40.0, 150.0), (60.0, 100.0)])
def test_what_is_given_is_best_for_today(known, humidity, speed):
    best = recommend(known, given={"humidity": humidity})
    assert best.design["speed"] == pytest.approx(speed, abs=8.0)
    assert best.mean == pytest.approx(0.0, abs=0.06)


def test_what_is_given_is_what_was_measured(known):
    """E f at a given humidity is the mean at an exact executed input."""
    given = known.evaluate({"speed": 90.0}, given={"humidity": 58.0}).mean
    model = known.outcome_model()
    Z = model.surrogate.points.cube.whole.from_columns(torch.tensor([[90.0, 58.0]]).double())
    there = model.model.posterior(Z, uncertainty=unc.Exact()).mean.item()
    assert given == pytest.approx(model.factor * there, rel=1e-6)


def test_the_mean_over_what_may_be_given_is_the_mean_over_the_law(known):
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    today = [
        known.evaluate({"speed": 90.0}, given={"humidity": 50 + 8 * z}).mean
        for z in np.clip(nodes, -3.7, 4.9)
    ]
    over = known.evaluate({"speed": 90.0}).mean
    assert np.dot(weights, today) / weights.sum() == pytest.approx(over, abs=1e-3)


def test_questions_about_today_change_no_answer(known):
    before = known.evaluate({"speed": 90.0})
    recommend(known, given={"humidity": 40.0})
    assert known.evaluate({"speed": 90.0}) == before


def test_asking_for_today_finds_the_best_design_of_today():
    optimizer = Optimizer(SPACE, n_initial=4, seed=1)
    for i in range(14):
        humidity = 40.0 if i % 2 else 60.0
        design = optimizer.ask(given={"humidity": humidity})
        optimizer.tell(design, dry(design["speed"], humidity), executed={"humidity": humidity})
    for humidity, speed in ((40.0, 150.0), (60.0, 100.0)):
        best = recommend(optimizer, given={"humidity": humidity})
        assert best.design["speed"] == pytest.approx(speed, abs=10.0)


# -- parameters that are given


MILL = {"speed": (50.0, 200.0), "tool": ["A", "B"], "passes": airbo.Integer(1, 5)}


def test_a_given_parameter_is_held():
    optimizer = Optimizer(MILL, {"speed": unc.Normal(2.0)}, n_initial=3)
    for i in range(10):
        design = optimizer.ask(given={"tool": "AB"[i % 2]})
        assert design["tool"] == "AB"[i % 2]
        best = 80.0 if design["tool"] == "A" else 150.0
        optimizer.tell(design, -(((design["speed"] - best) / 40.0) ** 2) + (design["tool"] == "B"))
    for tool in "AB":
        assert recommend(optimizer, given={"tool": tool}).design["tool"] == tool
        assert recommend(optimizer, policy="observed", given={"tool": tool}).design["tool"] == tool
    design = optimizer.ask(given={"tool": "A", "passes": 3})
    assert (design["tool"], design["passes"]) == ("A", 3)


def test_given_parameters_leave_the_rest_of_a_constraint():
    space = airbo.Space({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}, ["a + b + c == 1"])
    optimizer = Optimizer(space, n_initial=2)
    for _ in range(5):
        design = optimizer.ask(given={"a": 0.7})
        assert design["a"] == 0.7
        assert sum(design.values()) == pytest.approx(1.0)
        optimizer.tell(design, -((design["b"] - 0.1) ** 2))
    best = recommend(optimizer, given={"a": 0.7})
    assert sum(best.design.values()) == pytest.approx(1.0)


def test_what_nobody_tried_cannot_be_the_best_tried_one():
    optimizer = Optimizer(MILL, n_initial=2)
    optimizer.tell({"speed": 80.0, "tool": "A", "passes": 1}, 1.0)
    with pytest.raises(ValueError, match=r"No experiment has \{'tool': 'B'\}"):
        recommend(optimizer, policy="observed", given={"tool": "B"})


# -- with everything else


def test_limits_and_measures_are_over_the_environment():
    optimizer = told(measure=measures.InSpec(low=-1.0))
    # dry >= -1 where |2.5 (h - 50)| <= 40: within 2 standard deviations
    share = math.erf(2 / math.sqrt(2))
    assert optimizer.evaluate({"speed": 125.0}).mean == pytest.approx(share, abs=0.04)
    assert optimizer.evaluate({"speed": 125.0}, given={"humidity": 50.0}).mean > 0.97
    window = operating_window(optimizer, 0.8, {"speed": 125.0})
    assert [*window.alone] == ["speed"]
    today = operating_window(optimizer, 0.8, {"speed": 125.0}, given={"humidity": 50.0})
    wider, narrower = (np.ptp(w.alone["speed"]) for w in (today, window))
    assert wider > narrower


def test_a_budget_names_the_environment_and_what_controlling_it_would_buy():
    optimizer = told(deployment={"speed": unc.Normal(4.0)})
    budget = tolerance_budget(optimizer, {"speed": 100.0})
    shares = {c.parameters: c.share.value for c in budget.contributions}
    # slopes at 100: variance 4² against (2.5 · 8)², both alike in f
    assert shares["humidity",] == pytest.approx(400 / 416, abs=0.05)
    assert [*shares] == [("speed",), ("humidity",)]
    given = tolerance_budget(optimizer, {"speed": 100.0}, given={"humidity": 50.0})
    assert [c.parameters for c in given.contributions] == [("speed",)]


def test_several_outcomes_and_fronts_know_what_is_given():
    outcomes = {"quality": airbo.Maximize(), "cost": airbo.Minimize()}
    optimizer = Optimizer(SPACE, outcomes=outcomes, n_initial=3)
    for speed, humidity in days(10):
        values = {"quality": dry(speed, humidity), "cost": speed / 100}
        optimizer.tell({"speed": speed}, values, executed={"humidity": humidity})
    tops = {h: optimizer.front(given={"humidity": h})[0].design["speed"] for h in (40.0, 60.0)}
    assert tops[40.0] > tops[60.0] + 20


def test_pending_designs_remember_what_was_given():
    optimizer = Optimizer(SPACE, n_initial=2)
    design = optimizer.ask(given={"humidity": 61.0})
    restored = Optimizer.from_json(optimizer.to_json())
    assert restored.to_json() == optimizer.to_json()
    for one in (optimizer, restored):
        one.tell(design, 1.0)
        assert one.observations["executed_humidity"].tolist() == [61.0]
        assert not one.pending
    optimizer.expect({"speed": 77.0}, given={"humidity": 44.0})
    optimizer.tell({"speed": 77.0}, 1.0, executed={"humidity": 45.0})  # it was otherwise
    assert optimizer.observations["executed_humidity"].tolist() == [61.0, 45.0]
    with pytest.raises(ValueError, match="given: unknown parameter 'humidty'"):
        optimizer.expect({"speed": 77.0}, given={"humidty": 44.0})


def test_without_a_law_what_was_given_need_not_be_told():
    optimizer = lawless()
    design = optimizer.ask(given={"humidity": 61.0})
    optimizer.tell(design, 1.0)
    assert optimizer.observations["executed_humidity"].tolist() == [61.0]


def test_a_batch_accounts_for_the_days_of_what_is_pending():
    """A design that is pending for a dry day leaves a humid day as it was."""
    optimizer = told(n=12)
    free = optimizer.copy().ask(given={"humidity": 60.0})
    elsewhere, same = optimizer.copy(), optimizer.copy()
    elsewhere.expect(free, given={"humidity": 22.0})
    same.expect(free, given={"humidity": 60.0})
    away = {
        name: abs(o.ask(given={"humidity": 60.0}, number=12)["speed"] - free["speed"])
        for name, o in (("elsewhere", elsewhere), ("same", same))
    }
    assert away["same"] > away["elsewhere"]


def test_what_further_experiments_bring_depends_on_today(known):
    today = look_ahead(known, (5,), given={"humidity": 60.0})
    assert today.recommendation.design["speed"] == pytest.approx(100.0, abs=8.0)
    over = look_ahead(known, (5,))
    assert today.spread < 0.5 * over.spread  # humidity does not scatter a given day
    assert today.gains[5] >= 0


def test_constraints_and_batches_know_the_environment():
    space = airbo.Space({**SPACE, "feed": (0.0, 1.0)}, ["speed + 100 feed <= 200"])
    optimizer = Optimizer(space, n_initial=3)
    for i, (speed, humidity) in enumerate(days(10)):
        design = {"speed": speed, "feed": 0.0 if speed > 150 else 0.1 * (i % 5)}
        optimizer.tell(design, dry(speed, humidity), executed={"humidity": humidity})
    designs = optimizer.ask(3, given={"humidity": 40.0})
    assert all(d["speed"] + 100 * d["feed"] <= 200 + 1e-6 for d in designs)
    assert len({d["speed"] for d in designs}) == 3
    assert all(o.executed == {"humidity": 40.0} for o in optimizer.record.pending)


def test_limits_are_kept_over_the_law_and_on_a_given_day():
    outcomes = {"speed_cost": airbo.Minimize(), "quality": airbo.AtLeast(-0.5, 0.9)}
    optimizer = Optimizer(SPACE, outcomes=outcomes, n_initial=3)
    for speed, humidity in days(16):
        values = {"speed_cost": speed / 100, "quality": dry(speed, humidity)}
        optimizer.tell({"speed": speed}, values, executed={"humidity": humidity})
    # quality >= -0.5 within 28.3 of the best speed: on a day with 50%, from 96.7 on
    today = recommend(optimizer, given={"humidity": 50.0})
    assert 96.7 <= today.design["speed"] < 110
    # over the law, deviations of the best speed of 20: no speed keeps it for 90%
    assert recommend(optimizer, policy="anywhere").holds < 0.9


@cache
def unseen_margin(n, seed):
    """Experiments whose margin x - θ scatters, because nobody sees θ, uniform from 1 to 3."""
    theta = Environment(1.0, 3.0, typical=2.0, law=unc.Uniform(-1.0, 1.0))
    wanted = {"cost": airbo.Minimize(), "margin": airbo.AtLeast(0.0, probability=0.9)}
    optimizer = Optimizer(
        airbo.Space({"x": (0.0, 4.0), "theta": theta}), outcomes=wanted, seed=seed
    )
    chance = np.random.default_rng(seed)
    for x in 4 * ((0.1 * seed + 0.618034 * np.arange(n)) % 1):
        optimizer.tell({"x": x}, {"cost": x, "margin": x - chance.uniform(1.0, 3.0)})
    return optimizer


two_seeds = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])


@two_seeds
@pytest.mark.parametrize(("n", "ratio"), [(15, 6.0), (60, 2.5)])
def test_values_alone_tell_how_much_an_unseen_environment_scatters_them(n, ratio, seed):
    _, margin, *_ = unseen_margin(n, seed).outcome_models()
    scatter = margin.values({"x": 2.8}).std(-1)
    low, high = scatter.quantile(torch.tensor([0.05, 0.95], dtype=torch.float64)).tolist()
    assert low < 1 / math.sqrt(3) < high
    assert high / low < ratio


@two_seeds
def test_the_best_design_keeps_its_limit_over_an_unseen_environment_and_comes_close_to_it(seed):
    # x >= 2.8 keeps it, and if the margin were known to be a line, 60 values would tell where that
    # is to σ √((1 + z² / 2) / n) = 0.10, with z = 1.39
    best = recommend(unseen_margin(60, seed), policy="anywhere")
    assert best.holds >= 0.9
    assert 2.8 < best.design["x"] < 3.7


def test_models_predict_under_any_law(known):
    model = known.model
    Z = known.outcome_model().surrogate.points.of([{"speed": 90.0}])
    narrow, wide = (
        model.posterior(
            Z, uncertainty=Optimizer(SPACE, {"humidity": u})._surrogate.experiments_in_cube
        )
        for u in (unc.Normal(1.0), unc.Normal(12.0))
    )
    # E f = -((90 - 125)² + (2.5 σ)²) / 40²
    assert narrow.mean.item() == pytest.approx(-((35 / 40) ** 2), abs=0.06)
    assert wide.mean.item() == pytest.approx(-(35**2 + 30**2) / 40**2, abs=0.15)


def test_the_state_survives_json():
    optimizer = told(n=6)
    optimizer.tell({"speed": 99.0}, 1.0)
    text = optimizer.to_json()
    restored = Optimizer.from_json(text)
    assert restored.to_json() == text
    assert restored.space == optimizer.space
    assert restored.uncertainty == optimizer.uncertainty
    given = {"humidity": 44.0}
    assert restored.ask(given=given) == optimizer.ask(given=given)
    assert json.loads(text)["observations"][0]["executed"]


def test_tables_hold_what_was_measured_of_the_environment(known):
    table = known.observations
    assert [*table] == ["speed", "value", "status", "executed_humidity"]
    again = Optimizer(SPACE, n_initial=3)
    again.tell(table)
    assert again.to_json() == known.to_json()


@pytest.mark.parametrize("surrogate", ["mmd", "ugp", "nominal"])
def test_other_surrogates_know_the_environment(surrogate):
    optimizer = told(surrogate=surrogate)
    best = recommend(optimizer, given={"humidity": 60.0})
    assert best.design["speed"] == pytest.approx(100.0, abs=20.0)


@pytest.mark.parametrize(
    "law",
    [
        unc.Normal(cov=[[64.0, 15.0], [15.0, 9.0]]),
        unc.Joint([unc.Normal(8.0), unc.Normal(3.0)], [[1.0, 0.625], [0.625, 1.0]]),
    ],
)
def test_what_varies_with_what_is_given_follows_it(law):
    # E[f | humidity] = E[E[f | humidity, heat] | humidity], by the Gauss rule of the outer one
    space = {**SPACE, "heat": Environment(0.0, 60.0, typical=20.0)}
    optimizer = Optimizer(space, {("humidity", "heat"): law})
    rows = [(60.0, 70.0, 31.0), (100.0, 45.0, 20.0), (140.0, 55.0, 12.0), (110.0, 62.0, 25.0)]
    for speed, humidity, heat in rows:
        value = math.sin(speed / 40) + heat / 30 + humidity / 90
        optimizer.tell({"speed": speed}, value, executed={"humidity": humidity, "heat": heat})
    design = {"speed": 110.0}
    today = optimizer.evaluate(design, Mean(), given={"humidity": 62.0}).mean

    typical = optimizer.space.environment["humidity"].typical
    mean, std = 20.0 + 15.0 / 64.0 * (62.0 - typical), math.sqrt(9.0 - 15.0**2 / 64.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    known = [{"humidity": 62.0, "heat": mean + std * float(z)} for z in nodes]
    each = [optimizer.evaluate(design, Mean(), given=e).mean for e in known]
    exact = isinstance(law, unc.Normal)
    expected = float(np.dot(weights / weights.sum(), each))
    assert today == pytest.approx(expected, abs=1e-6 if exact else 0.02)


# -- without a law


def lawless():
    return Optimizer({"speed": (50.0, 200.0), "humidity": Environment(20.0, 90.0)}, n_initial=2)


def test_without_a_law_it_has_to_be_measured_and_given():
    optimizer = lawless()
    with pytest.raises(ValueError, match=r"'humidity' was not measured and has no law\. Tell exec"):
        optimizer.tell({"speed": 100.0}, 1.0)
    for speed, humidity in days(12):
        optimizer.tell({"speed": speed}, dry(speed, humidity), executed={"humidity": humidity})
    for question in (optimizer.recommend, optimizer.ask, optimizer.outcome_models):
        with pytest.raises(ValueError, match=r"'humidity' has no law.* given=\{'humidity'"):
            question()
    best = recommend(optimizer, given={"humidity": 60.0})
    assert best.design["speed"] == pytest.approx(100.0, abs=12.0)


# -- refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Environment(90.0, 20.0), "low must be < high"),
        (
            lambda: Environment(20.0, 90.0, typical=10.0),
            "typical must be between 20 and 90",
        ),
        (lambda: Environment(20.0, 90.0, law=8.0), "law must be an airbo.uncertainty or None"),
        (lambda: airbo.Space({"h": HUMID}), "at least one parameter that can be set"),
        (
            lambda: Optimizer({"x": (0, 1), "h": Environment(45.0, 55.0, law=LAW)}),
            "The law of 'h' takes it out of 45 to 55 in 5.% of all cases. Widen the bounds",
        ),
        (
            lambda: Optimizer(SPACE, {("speed", "humidity"): unc.Normal(cov=[[2, 1], [1, 2]])}),
            r"No design changes the environment: \['speed', 'humidity'\] cannot vary together",
        ),
        (lambda: airbo.Space(SPACE, ["speed + humidity <= 100"]), "humidity"),
        (lambda: Optimizer(SPACE).tell({"speed": 99.0, "humidity": 50.0}, 1.0), "no design sets"),
        (
            lambda: Optimizer(SPACE).tell({"speed": 99.0}, 1.0, executed={"humidity": 99.0}),
            "executed: 'humidity' is 99, but its bounds are 20 and 90",
        ),
        (lambda: Optimizer(SPACE).ask(given={"humidty": 50.0}), "given: unknown .*did you mean"),
        (
            lambda: Optimizer(SPACE).ask(given={"humidity": 99.0}),
            "given: Parameter 'humidity': value must be between 20 and 90",
        ),
        (lambda: Optimizer(SPACE).ask(given={"speed": 99.0}), "nothing is left to choose"),
        (
            lambda: Optimizer(airbo.Space({"a": (0, 1), "b": (0.5, 1)}, ["a + b <= 1"])).ask(
                given={"a": 0.6}
            ),
            r"No design with \{'a': 0.6\} meets the constraints",
        ),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda o: o.ask(given={"humidity": 99.0}), "given"),
        (lambda o: o.ask(0, number=7), "n must be a whole number >= 1"),
        (lambda o: o.ask(given="humidity"), "given: expected a dict of values by name, got 'hum"),
        (lambda o: o.recommend(given=[("humidity", 50.0)]), "given: expected a dict"),
        (lambda o: o.expect({"speed": 99.0}, given=50.0), "given: expected a dict"),
        (lambda o: o.tell({"speed": 99.0}, 1.0, executed=50.0), r"keys \['speed', 'humidity'\]"),
        (
            lambda o: o.tell(pd.DataFrame({"speed": [99.0], "value": 1.0, "humidity": 50.0})),
            "What was measured of 'humidity' stands in 'executed_humidity'",
        ),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_refused_question_changes_nothing(known, refused, message):
    before = known.to_json()
    with pytest.raises((ValueError, TypeError), match=message):
        refused(known)
    assert known.to_json() == before
