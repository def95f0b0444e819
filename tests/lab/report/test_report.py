"""The page as a whole: it is written for every kind of optimization, and says what is true."""

import base64
import datetime
import gzip
import html
import os
import re

import pytest
from botorch.models import SingleTaskGP
from plotly.offline import get_plotlyjs

import airbo
from airbo import uncertainty as unc
from airbo.lab import Campaign, StorageError
from airbo.lab.digits import digits_of
from airbo.lab.report import Findings, records, write_report
from airbo.lab.report.report import section
from tests.lab.report.common import HOSTILE, hostile, milling, one, optimizer, ten

pytestmark = pytest.mark.usefixtures("as_without_shape_checks")

CASES = {
    "one parameter": lambda: one(n=4),
    "mixed parameters, minimize": lambda: milling(direction="minimize", n=4, surrogate="ugp"),
    "ten parameters": lambda: ten(n=3, surrogate="erbf"),
    "hit exactly": lambda: optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)}, n=3, surrogate="nominal"),
    "three experiments, one failed": lambda: one(n=3, failed=[1], surrogate="ugp"),
    "one experiment": lambda: one(n=1, surrogate="ugp"),
    "categories only": lambda: optimizer({"a": ["x", "y"], "b": [True, False]}, n=3),
    "many integers": lambda: optimizer({"a": airbo.Integer(1, 400, log=True)}, n=3),
    "equal values": lambda: one(n=3, f=lambda design: 2.0, surrogate="ugp"),
    "tiny values": lambda: one(n=4, f=lambda design: 1e-9 * design["x"], surrogate="ugp"),
    "nothing but failures": lambda: one(n=3, failed=[0, 1, 2]),
    "nothing yet": lambda: one(n=0),
    "used elsewhere": lambda: one(n=3, deployment={"x": unc.Normal(0.2)}),
    "nominal surrogate": lambda: one(n=3, surrogate="nominal"),
    "surrogate of BoTorch": lambda: one(n=3, surrogate=SingleTaskGP),
    "a function of the design": lambda: optimizer(
        {"x": (0.0, 1.0)}, unc.Varying(growing), n=3, surrogate="ugp"
    ),
}


def growing(x):
    return unc.Normal(0.05 + 0.1 * x)


def words_of(page):
    """Return what a reader sees of a page, without charts."""
    page = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


SELDOM = ("hit exactly", "three experiments, one failed", "many integers", "nominal surrogate")
"""Shown like others, so that their pages are written in the slow tier."""


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=pytest.mark.slow if name in SELDOM else ())
        for name, make in CASES.items()
    ],
)
def test_every_optimization_gets_a_page(make, tmp_path):
    opt = make()
    path = write_report(opt, tmp_path / "report.html")
    text = words_of(path.read_text(encoding="utf-8"))
    assert "nan" not in re.findall(r"\w+", text)
    for name in opt.space.names:
        assert name in text
    has_values = opt.observations["value"].notna().any()
    assert ("Can the model be believed?" in text) == has_values
    assert ("No experiment has given a value yet" in text) != has_values


def rows_of(page, kind):
    """Return the cells of the rows of a table."""
    [table] = re.findall(rf'<table class="{kind}">(.*?)</table>', page, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    return [[html.unescape(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t", r)] for r in rows]


def tiles_of(page):
    found = re.findall(r'<dt>(.*?)</dt><dd><div class="value">(.*?)</div>', page)
    return {html.unescape(label): html.unescape(value) for label, value in found}


def test_the_first_screen_says_what_to_set_in_digits_of_the_machine():
    opt = milling(n=10, surrogate="ugp")
    best = opt.recommend()
    rows = rows_of(section("answer", Findings(opt, {"value": "µm"})), "set")
    assert [row[0] for row in rows] == ["speed", "depth", "passes", "tool"]
    (speed, depth, passes, tool) = (row[1] for row in rows)
    assert speed == f"{best.design['speed']:.0f} m/min"  # missed by 8 m/min
    places = digits_of(opt.space, opt.uncertainty)["depth"](best.design["depth"])
    held = round(best.design["depth"], places)
    assert depth == f"{held:g} mm"  # as a campaign would ask for it
    assert passes == str(best.design["passes"])
    assert tool == best.design["tool"]
    assert rows[0][2].startswith("lands at ")
    assert rows[2][2] == ""


def test_tiles_say_what_to_expect():
    opt = milling(n=10, surrogate="ugp")
    best = opt.recommend()
    tiles = tiles_of(section("answer", Findings(opt, {"value": "µm"})))
    assert set(tiles) == {"Expected value", "Single runs", "Left to gain"}
    mean, std = map(float, re.fullmatch(r"(.*) ± (.*) µm", tiles["Expected value"]).groups())
    assert mean == pytest.approx(best.mean, abs=0.1 * best.std)
    assert std == pytest.approx(best.std, rel=0.06)
    low, high = map(float, re.fullmatch(r"(.*) to (.*) µm", tiles["Single runs"]).groups())
    assert low < mean - 1.9 * std < mean + 1.9 * std < high


def test_too_little_data_is_said_first():
    page = section("answer", Findings(one(n=2, surrogate="ugp")))
    [lead] = re.findall(r'<p class="lead doubt">(.*?)</p>', page)
    assert lead.startswith("Too little is known to recommend a design: after 2 values the model")


def test_a_design_at_the_end_of_its_range_is_pointed_out():
    opt = one(n=8, f=lambda design: design["x"], surrogate="ugp")
    assert "end of its range" not in section("answer", Findings(one(n=8, surrogate="ugp")))
    opt.tell({"x": 1.0}, 1.0)
    opt.tell({"x": 1.0}, 1.0)
    assert "the upper end of its range" in section("answer", Findings(opt))


def test_a_report_changes_nothing(tmp_path):
    opt, twin = (one(n=5, surrogate="ugp") for _ in range(2))
    before = opt.to_json()
    write_report(opt, tmp_path / "r.html")
    assert opt.to_json() == before
    assert opt.recommend() == twin.recommend()
    opt.n_initial = twin.n_initial = 1
    assert opt.ask() == twin.ask()


def test_the_same_optimizer_gives_the_same_page(tmp_path):
    pages = [
        write_report(
            one(n=3, surrogate="ugp"),
            tmp_path / f"{i}.html",
            date=datetime.date(2026, 5, 1),
        ).read_bytes()
        for i in range(2)
    ]
    assert pages[0] == pages[1]
    assert b"2026-05-01" in pages[0]


def test_names_and_titles_are_text(tmp_path):
    path = write_report(
        hostile(),
        tmp_path / "r.html",
        title=HOSTILE,
        units={"value": HOSTILE},
        date=HOSTILE,
    )
    page = path.read_text(encoding="utf-8")
    assert html.escape(HOSTILE) in page
    assert "<script>window" not in page
    assert "<img" not in page.split("<script>")[0]


def test_the_library_of_the_charts_is_in_the_page_once(tmp_path):
    page = write_report(one(n=2, surrogate="ugp"), tmp_path / "r.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 3e6
    assert len(re.findall("<script src|<link", page)) == 0
    [packed] = re.findall(r'id="plotly">(.*?)</script>', page)
    assert gzip.decompress(base64.b64decode(packed)) == get_plotlyjs().encode()


def test_settings_are_in_words():
    opt = milling(n=2, deployment={"speed": unc.Normal(3.0)})
    opt.tell(
        {"speed": 300.0, "depth": 1.0, "passes": 2, "tool": "A"},
        0.0,
        executed={"speed": 301.0},
        allow_outside=True,
    )
    text = words_of(section("settings", Findings(opt)))
    for said in (
        "50 to 200 m/min",
        "0.1 to 2 mm, log scale",
        "whole numbers 1 to 5",
        "one of A, B & C",
        "normal, standard deviation 8 m/min",
        "normal, standard deviation 3 m/min",
        "default: relevance",
        f"airbo {airbo.__version__}",
    ):
        assert said in text


def test_bad_requests_are_refused_before_any_work(tmp_path):
    opt = one(n=2)
    with pytest.raises(StorageError, match=r"There is no folder .*nowhere"):
        write_report(opt, tmp_path / "nowhere" / "r.html")
    with pytest.raises(StorageError, match="is a folder"):
        write_report(opt, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_report(one(n=1, failed=[0]), path)
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    assert path.read_bytes() == b"old"


CAMPAIGN = """
name = "line"
surrogate = "nominal"
n_initial = 1000
value = { name = "wear", unit = "µm" }
[parameters.x]
low = 0.0
high = 1.0
uncertainty = { kind = "normal", std = 0.05 }
"""


@pytest.fixture
def campaign(tmp_path):
    path = tmp_path / "campaign.toml"
    path.write_text(CAMPAIGN, encoding="utf-8")
    with Campaign.open(path) as opened:
        yield opened.signed("Ann <b>")


def report_of(campaign, path):
    record = campaign.record()
    numbers = [e.number for e in campaign.modelled(record)]
    settings = {"units": campaign.settings.units, "numbers": numbers, "record": record}
    page = write_report(campaign.optimizer(record), path, date="today", **settings)
    return page.read_text(encoding="utf-8")


def test_failures_and_changes_are_on_the_page(campaign, tmp_path):
    first, second, third = (e.number for e in campaign.ask(3))
    campaign.tell(first, 1.0)
    campaign.fail(second)
    campaign.note(second, "the <i>tool</i> broke")
    campaign.tell(third, 139.0)
    campaign.undo()
    campaign.tell(third, 1.39)
    campaign.exclude(first, "loose sensor")
    page = report_of(campaign, tmp_path / "r.html")
    rows = {row[0]: row for row in cells_of(page, "experiments")}
    assert list(rows) == ["number", str(first), str(second), str(third)]
    assert rows["number"] == ["number", "x", "wear (µm)", "remarks"]
    assert rows[str(first)][2:] == ["1", "left out: loose sensor"]
    assert rows[str(second)][2:] == ["", "failed; the <i>tool</i> broke"]
    assert rows[str(third)][2:] == ["1.39", "recommended"]
    assert "<i>tool" not in page
    assert "Expected wear" in words_of(page)
    [history] = re.findall(r"<h2>History</h2>(.*?)</section>", page, re.DOTALL)
    assert history.strip().startswith("<details><summary>Show 7 changes")
    assert history.count("Ann &lt;b&gt;") == 7  # three asks, told, failed ... are no changes
    assert len(re.findall("<tr class=faded>.*?139", history)) == 1


def cells_of(page, key):
    """Return the rows of the table of a section, the header first."""
    [section] = re.findall(rf'data-key="{key}">(.*?)</section>', page, re.DOTALL)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", section, re.DOTALL)
    return [[html.unescape(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t", r)] for r in rows]


def test_an_optimizer_without_a_campaign_lists_its_experiments(tmp_path):
    opt = one(n=4, failed=[1], surrogate="ugp")
    page = write_report(opt, tmp_path / "r.html").read_text(encoding="utf-8")
    header, *rows = cells_of(page, "experiments")
    assert header == ["number", "x", "value", "remarks"]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert rows[1][2:] == ["", "failed"]
    assert ["recommended" in row[3] for row in rows].count(True) == 1
    assert float(rows[2][2]) == pytest.approx(opt.observations["value"][2], rel=1e-4)


def test_only_the_latest_of_many_experiments_are_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MOST_EXPERIMENTS", 2)
    page = write_report(one(n=3, surrogate="ugp"), tmp_path / "r.html")
    text = page.read_text(encoding="utf-8")
    assert "The latest 2 of 3 experiments." in text
    assert [row[0] for row in cells_of(text, "experiments")] == ["number", "2", "3"]


def test_the_numbers_of_a_campaign_are_on_the_axis(campaign, tmp_path):
    numbers = [e.number for e in campaign.ask(4)]
    campaign.tell(numbers[1], 1.0)
    campaign.tell(numbers[3], 2.0)
    page = report_of(campaign, tmp_path / "r.html")
    assert f'"experiment {numbers[1]}: 1 \\u00b5m"' in page
    assert f'"experiment {numbers[3]}: 2 \\u00b5m"' in page
