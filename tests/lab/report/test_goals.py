"""What the page says of each kind of goal: measures, limits, in spec, several objectives."""

import re
from functools import cache

import pytest
import torch

import airbo
from airbo import measures
from airbo import uncertainty as unc
from airbo.analysis.words import window_sentences
from airbo.lab.report import Findings, sections, write_report
from airbo.lab.report.limits import in_spec_figure
from airbo.lab.report.report import section
from airbo.measures.capability import COUNTED
from airbo.words import percent
from tests.lab.report.test_report import rows_of, tiles_of, words_of

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


def measured(measure, n=8, **settings):
    opt = airbo.Optimizer(SPACE, P, measure=measure, n_initial=n, **settings)
    for design in opt.ask(n):
        opt.tell(design, values(design)["leak"])
    return opt


def page_of(opt, tmp_path, **settings):
    return write_report(opt, tmp_path / "report.html", **settings).read_text(encoding="utf-8")


HIGH = measures.InSpec(high=30.0)
SHOWN = {
    "limited": lambda: several(LIMITED),
    "front": lambda: several(FRONT),
    "in spec": lambda: measured(HIGH),
    "tail": lambda: measured(measures.CVaR(0.9), n=5),
    "target": lambda: measured(measures.Target(20.0), n=5),
    "two limits": lambda: several(
        {**LIMITED, "weight": airbo.Minimize(measures.InSpec(4.0, 50.0))}
    ),
}
UNITS = {"leak": "ml", "value": "ml"}


@cache
def findings_of(name):
    """What is known of an optimization that no test changes."""
    return Findings(SHOWN[name](), UNITS)


@cache
def sections_of(name):
    return dict(sections(findings_of(name)))


def shown(name):
    return "\n".join(sections_of(name).values())


def test_the_first_screen_has_a_tile_for_every_outcome():
    page = shown("limited")
    best, tiles = findings_of("limited").best, tiles_of(page)
    assert set(tiles) == {"Expected strength", "leak at most 30 ml"}
    within = float(tiles["leak at most 30 ml"].removesuffix("%"))
    assert within == pytest.approx(100 * best.outcomes["leak"].capability.share, abs=0.5)
    assert [row[0] for row in rows_of(page, "set")] == ["x", "y"]
    text = words_of(page)
    assert best.reason in text
    assert "Required: 90%. Probability that the design meets this:" in text
    assert best.outcomes["leak"].capability.words in text
    for title in ("Operating window", "Tolerance budget", "What matters"):
        assert title in text
    assert "The front" not in text
    assert "nan" not in re.findall(r"\w+", text)


def test_two_objectives_have_a_front():
    text = words_of(shown("front"))
    assert "The front" in text
    assert "weight over strength" in text


def test_a_share_in_spec_is_one_number_on_the_whole_page():
    page, capability = shown("in spec"), findings_of("in spec").best.capability
    tiles = tiles_of(page)
    assert set(tiles) == {
        "In spec: value at most 30 ml",
        "Cpk",
        "Out of spec",
        "Expected value",
    }
    assert tiles["In spec: value at most 30 ml"] == percent(capability.share)
    assert capability.words in words_of(page)
    assert "Tolerance budget" in words_of(page)
    [budget] = findings_of("in spec").handover.budgets
    assert budget.in_spec.value == capability.share


def test_a_window_ends_where_the_command_line_says():
    findings = findings_of("limited")
    assert findings.handover.window.alone
    text = words_of(shown("limited"))
    for sentence in window_sentences(findings.handover.window, findings.space)[1:]:
        alone, together = sentence.partition(": ")[2].split("; ")
        assert alone.removesuffix(" alone") in text
        assert together.removesuffix(" if all move at once.") in text


@pytest.mark.parametrize("name", ["tail", "target"])
def test_other_measures_have_a_page_without_limits(name):
    text = words_of(shown(name))
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
    assert "Expected strength" in tiles_of(page_of(opt, tmp_path))
    opt.tell({"x": 9.0, "y": 9.0}, None, infeasible=True)
    tiles = tiles_of(page_of(opt, tmp_path))
    assert {"Expected strength", "feasible: works"} <= {*tiles}


# -- settings


def settings_of(opt):
    return words_of(section("settings", Findings(opt)))


@pytest.mark.parametrize("n", [8, 0])
def test_the_settings_name_outcomes_with_their_limits_and_probabilities(n):
    outcomes = {**LIMITED, "weight": airbo.Minimize(measures.CVaR(0.9))}
    opt = several(outcomes) if n else airbo.Optimizer(SPACE, P, outcomes=outcomes)
    found = settings_of(opt)
    for name, want in opt.outcomes.items():
        assert f" {name} {want.words(name)} " in found
    assert "leak at most 30 for 90% of executed inputs" in found
    assert "noise" not in found


@pytest.mark.parametrize("measure", [HIGH, measures.CVaR(0.9)], ids=str)
def test_the_settings_name_the_measure_and_noise_of_the_product(measure):
    opt = measured(measure, n=5, noise="product")
    found = settings_of(opt)
    assert opt.outcomes["value"].words("value") in found
    assert "noise a property of the product" in found


# -- the picture of the values and their limits


def drawn_share(figure, name):
    """Return the area of the bars with a name."""
    [bars] = [trace for trace in figure.data if trace.name == name]
    return sum(y * width for y, width in zip(bars.y, bars.width, strict=True))


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("limited", {"leak": (None, 30.0)}),
        ("in spec", {"value": (None, 30.0)}),
        ("two limits", {"leak": (None, 30.0), "weight": (4.0, 50.0)}),
    ],
)
def test_the_red_area_is_the_share_out_of_spec(name, bounds):
    findings = findings_of(name)
    limited = {o.name: o for o in findings.parts if o.limits}
    assert section("limits", findings).count('class="chart"') == len(limited)
    assert {name: o.want.bounds for name, o in limited.items()} == bounds
    for name, outcome in limited.items():
        own, capability = bounds[name], findings.expected[name].capability
        figure = in_spec_figure(outcome.in_use, own, outcome.label)
        few = COUNTED / outcome.in_use.shape[-1]  # of fewer, the tail tells the share
        assert drawn_share(figure, "in spec") == pytest.approx(capability.share, abs=few)
        assert drawn_share(figure, "out of spec") == pytest.approx(1 - capability.share, abs=few)
        lines = [shape.x0 for shape in figure.layout.shapes]
        assert lines == [limit for limit in own if limit is not None]


def test_no_value_is_drawn_where_none_can_be():
    opt = several(LIMITED)
    free = Findings(opt).parts[1].in_use
    low = free.median().item()
    assert (Findings(opt, plausible={"leak": (low, None)}).parts[1].in_use >= low).all()
    assert Findings(opt, plausible={"leak": (None, None)}).parts[1].in_use.equal(free)


@pytest.mark.parametrize("bounds", [(0.0, None), (None, 5.0), (-1e6, 1e6)])
def test_values_that_never_differ_have_a_picture(bounds):
    figure = in_spec_figure(torch.zeros(4, 1, dtype=torch.float64), bounds, "leak (<b>)")
    assert drawn_share(figure, "in spec") == pytest.approx(1)
    assert "<b>" not in figure.layout.xaxis.title.text


def test_every_value_with_limits_has_its_picture_on_the_page():
    title = "Values in use, and the limits"
    assert title in words_of(shown("limited"))
    assert title in words_of(shown("in spec"))
    assert title not in words_of(shown("tail"))


# -- the words of each goal

GOALS = {
    "mean": (airbo.Maximize(), "Larger is better.", "get the best leak on average"),
    "smaller": (airbo.Minimize(), "Smaller is better.", "get the best leak on average"),
    "quantile": (
        airbo.Minimize(measures.Quantile(0.9)),
        "Smaller is better.",
        "get the best leak by what counts: the value that 90 of 100",
    ),
    "in spec": (
        airbo.Maximize(measures.InSpec(10.0, 30.0)),
        "Between 10 and 30 ml is in spec.",
        "get leak in spec most often: between 10 and 30 ml",
    ),
    "target": (
        airbo.Maximize(measures.Target(20.0)),
        "Nearer to 20 ml is better.",
        "get leak as near as possible to 20 ml",
    ),
}


@pytest.mark.parametrize("goal", GOALS)
def test_every_goal_has_its_own_words(goal):
    want, better, lead = GOALS[goal]
    text = words_of("".join(page for _, page in sections(Findings(several({"leak": want}), UNITS))))
    assert better in text
    assert lead in text
    others = {other for _, other, _ in GOALS.values()} - {better}
    assert not [other for other in others if other in text]
    assert ("Bright is good" in text) == bool(want.sign)
    assert want.words("leak", "ml") in text


def test_every_outcome_of_several_is_compared_by_its_own_goal():
    text = words_of(shown("front"))
    for said in (
        "strength: larger is better.",
        "weight: smaller is better.",
        "leak: must be at most 30 ml.",
    ):
        assert said in text


def test_sections_come_one_after_the_other_and_need_nothing_around_them():
    found = sections_of("limited")
    keys = list(found)
    assert keys[0] == "answer"
    assert keys[-1] == "settings"
    assert {"limits", "window", "budget", "trust", "along", "experiments"} <= {*keys}
    for page in found.values():
        assert page.count("<section") == page.count("</section>") == 1
        assert " style=" not in page
        assert " id=" not in page
        assert not re.findall(r"<script(?! type=.application/json.)", page)
