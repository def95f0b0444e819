"""The page in a real browser: drawn, silent, alone; and on paper."""

import random
import re

import pytest

from airbo.lab.report import write_report
from tests.browser import CHROMIUM, MISSING, Browser
from tests.lab.common import campaign
from tests.lab.report.common import HOSTILE, hostile, milling, optimizer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING),
    pytest.mark.usefixtures("as_without_shape_checks"),
]

DRAWN = "[...document.querySelectorAll('.chart')].filter(c => c.querySelector('.main-svg')).length"
SHOWN = "document.querySelectorAll('.chart').length"
EMPTY = """[...document.querySelectorAll('.chart .plot')].filter(
    c => !c.querySelector('.trace, .contour, .heatmaplayer image, .barlayer path')).length"""
READY = "document.body.dataset.drawn"
TOO_WIDE = "document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def check_silent(browser):
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


def test_all_charts_are_drawn_without_complaint_or_request(browser, tmp_path):
    opt = milling(n=3, failed=[1], surrogate="ugp")
    opt.ask(2)
    browser.open(write_report(opt, tmp_path / "r.html"))
    browser.wait(READY)
    # trust, importances, parameters, pairs of numbers, progress
    n_charts = 1 + 1 + 4 + 3 + 1
    assert browser.run(SHOWN) == browser.run(DRAWN) == n_charts
    assert browser.run(EMPTY) == 0
    assert browser.run(TOO_WIDE) <= 0
    check_silent(browser)


def test_a_page_fits_a_phone(browser, tmp_path):
    opt = optimizer({name: (0.0, 1.0) for name in "abcd"}, n=3, surrogate="nominal")
    browser.resize(390, 800)
    browser.open(write_report(opt, tmp_path / "r.html"))
    browser.wait(READY)
    assert browser.run(DRAWN) == browser.run(SHOWN)
    assert browser.run(TOO_WIDE) <= 0
    browser.resize(1200, 900)
    check_silent(browser)


def test_nothing_in_a_name_or_a_title_runs(browser, tmp_path):
    names = {"title": HOSTILE, "units": {"value": HOSTILE}, "date": HOSTILE}
    browser.open(write_report(hostile(), tmp_path / "r.html", **names))
    browser.wait(READY)
    assert browser.run("typeof window.hacked") == "undefined"
    assert browser.run("document.querySelector('h1').textContent") == HOSTILE
    titles = "[...document.querySelectorAll('.xtitle')].map(t => t.textContent)"
    assert f"{HOSTILE} ({HOSTILE})" in browser.run(titles)
    check_silent(browser)


def test_charts_fit_the_paper(browser, tmp_path):
    browser.open(write_report(milling(n=3, surrogate="ugp"), tmp_path / "r.html"))
    browser.wait(READY)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.wait("[...plots()].every(p => p.querySelector('.main-svg').clientWidth <= 680)")
    browser.run("dispatchEvent(new Event('afterprint'))")
    browser.wait("[...plots()].some(p => p.querySelector('.main-svg').clientWidth > 700)")
    check_silent(browser)


REACTION = """
name = "reaction"
surrogate = "ugp"
[parameters.temp]
low = 40
high = 110
unit = "°C"
uncertainty = { kind = "normal", std = 2 }
[parameters.equiv]
low = 1.0
high = 2.5
uncertainty = { kind = "normal", std = "3%" }
[parameters.conc]
low = 0.1
high = 1.0
log = true
uncertainty = { kind = "normal", std = "2%" }
[parameters.solvent]
choices = ["THF", "MeCN", "DMF"]
[outcomes.yield]
goal = "maximize"
unit = "%"
[outcomes.impurity]
at_most = 0.5
unit = "%"
"""


def test_a_report_of_two_outcomes_and_forty_experiments_prints_on_six_pages(browser, tmp_path):
    rng = random.Random(0)
    with campaign(tmp_path, REACTION) as c:
        for i in range(40):
            temp, solvent = rng.uniform(40, 110), ["THF", "MeCN", "DMF"][i % 3]
            design = {"temp": temp, "equiv": rng.uniform(1, 2.5), "conc": rng.uniform(0.1, 1)}
            told = {"yield": 80 - (temp - 85) ** 2 / 30, "impurity": 0.004 * temp}
            c.tell({**design, "solvent": solvent}, told, sure=True)
        how = {"units": c.settings.units, "record": c.record()}
        browser.open(write_report(c.optimizer(), tmp_path / "r.html", **how))
    browser.wait(READY)
    browser.pdf(tmp_path / "r.pdf")
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "r.pdf").read_bytes())) <= 6
