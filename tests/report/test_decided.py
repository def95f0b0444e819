"""Pages where a measure decides, or several outcomes do."""

import re

import pytest

import airbo
from airbo import measures
from airbo import uncertainty as unc
from airbo.report import write_report
from tests.report.test_report import rows_of, tiles_of, words_of

pytestmark = pytest.mark.usefixtures("as_without_shape_checks")

SPACE = {"x": airbo.Float(0.0, 10.0, unit="mm"), "y": (0.0, 10.0)}
P = {"x": unc.Normal(0.3), "y": unc.Normal(0.2)}
LIMITED = {"strength": airbo.Maximize(), "leak": airbo.AtMost(30.0, probability=0.9)}
FRONT = {"strength": airbo.Maximize(), "weight": airbo.Minimize(), "leak": airbo.AtMost(30.0)}


def values(design):
    x, y = design["x"], design["y"]
    return {"strength": x + y, "weight": x * x, "leak": 2 * x + 4 * y}


def several(outcomes, n=8):
    opt = airbo.Optimizer(SPACE, P, outcomes=outcomes, n_initial=n)
    for design in opt.ask(n):
        opt.tell(design, {k: v for k, v in values(design).items() if k in outcomes})
    return opt


def measured(measure, n=8):
    opt = airbo.Optimizer(SPACE, P, measure=measure, n_initial=n)
    for design in opt.ask(n):
        opt.tell(design, values(design)["leak"])
    return opt


def page_of(opt, tmp_path, **settings):
    return write_report(opt, tmp_path / "report.html", **settings).read_text(encoding="utf-8")


def test_the_first_screen_has_a_tile_for_every_outcome(tmp_path):
    opt = several(LIMITED)
    page = page_of(opt, tmp_path, units={"leak": "ml"})
    best, tiles = opt.recommend(), tiles_of(page)
    assert set(tiles) == {"strength, mean", "leak at most 30 ml"}
    within = float(tiles["leak at most 30 ml"].removesuffix("%"))
    assert within == pytest.approx(100 * best.outcomes["leak"].within, abs=0.5)
    assert [row[0] for row in rows_of(page, "set")] == ["x", "y"]
    text = words_of(page)
    assert best.reason in text
    assert "Required: 90%. Probability that the design meets this:" in text
    assert f"Cpk: {best.outcomes['leak'].capability.cpk:.2f} (" in text
    for title in ("Operating window", "leak · Tolerance budget", "strength · What matters"):
        assert title in text
    assert "The front" not in text
    assert "nan" not in re.findall(r"\w+", text)


def test_two_objectives_have_a_front(tmp_path):
    opt = several(FRONT)
    text = words_of(page_of(opt, tmp_path))
    assert "The front" in text
    assert "weight over strength" in text


def test_shares_in_spec_stand_on_the_first_screen(tmp_path):
    opt = measured(measures.InSpec(high=30.0))
    page = page_of(opt, tmp_path, value_name="leak")
    assert set(tiles_of(page)) == {"In spec", "Cpk", "Out of spec", "Expected leak"}
    assert "Tolerance budget" in words_of(page)


@pytest.mark.parametrize("measure", [measures.CVaR(0.9), measures.Target(20.0)], ids=str)
def test_other_measures_have_a_page_without_limits(measure, tmp_path):
    text = words_of(page_of(measured(measure, n=5), tmp_path))
    assert "Operating window" not in text
    assert "where the mean of one value decides" in text


def test_what_nobody_has_measured_is_named(tmp_path):
    opt = airbo.Optimizer(SPACE, P, outcomes=LIMITED, n_initial=4)
    assert "measured strength and leak yet" in words_of(page_of(opt, tmp_path))
    opt.tell(opt.ask(), {"strength": 1.0})
    assert "measured leak yet" in words_of(page_of(opt, tmp_path))


@pytest.mark.slow
def test_an_experiment_that_measured_one_outcome_only_is_shown(tmp_path):
    opt = several(LIMITED)
    opt.tell({"x": 1.0, "y": 1.0}, {"strength": 2.0})
    opt.tell({"x": 9.0, "y": 9.0}, None, infeasible=True)
    tiles = tiles_of(page_of(opt, tmp_path))
    assert "feasible: works" in tiles


def test_a_single_outcome_has_the_page_of_a_value(tmp_path):
    opt = several({"strength": airbo.Maximize()})
    settings = {"value_name": "strength", "history": 0}
    assert "Expected strength" in tiles_of(page_of(opt, tmp_path, **settings))
    opt.tell({"x": 9.0, "y": 9.0}, None, infeasible=True)
    tiles = tiles_of(page_of(opt, tmp_path, **settings))
    assert {"strength, mean", "feasible: works"} <= {*tiles}
