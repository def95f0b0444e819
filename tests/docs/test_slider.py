"""The page with the slider shows what the library computes, in a real browser."""

import re
from pathlib import Path

import pytest
import torch

from airbo import uncertainty as unc
from tests.browser import CHROMIUM, MISSING, Browser

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=MISSING)]

DOCS = Path(__file__).parents[2] / "docs"
GRID = torch.linspace(0, 1, 481, dtype=torch.float64).unsqueeze(-1)
MOVE = """(kind, width) => {
    document.querySelector(`input[value=${kind}]`).checked = true;
    const slider = document.querySelector('input[type=range]');
    slider.value = width;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    return document.querySelector('#airbo-slider p').textContent;
}"""
JUMP = re.compile(r"error of (\S+) the narrow peak at (\S+) is best.* broad one at ([\d.]+\d)")
BUMP = re.compile(r"at: ([\d.]+), width: ([\d.]+), height: ([\d.]+)")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """The slider alone on a page."""
    folder = tmp_path_factory.mktemp("slider")
    page = folder / "page.html"
    script = (DOCS / "assets" / "slider.js").read_text(encoding="utf-8")
    page.write_text(f"<div id='airbo-slider'></div><script>{script}</script>", encoding="utf-8")
    with Browser(folder / "profile") as browser:
        browser.open(page)
        yield browser


def shown(browser, kind, width):
    """Return best setting, its average, the highest point, and its average, as the page says."""
    words = browser.run(f"({MOVE})('{kind}', {width})")
    assert browser.problems == []
    return [float(number) for number in re.findall(r"\d+\.\d+", words)]


def averages(kind, width):
    """Return f and its average over where the settings land, by the library."""
    script = (DOCS / "assets" / "slider.js").read_text(encoding="utf-8")
    bumps = [tuple(map(float, found)) for found in BUMP.findall(script)]
    assert len(bumps) == 2

    def f(x):
        return sum(h * torch.exp(-(((x - a) / w) ** 2)) for a, w, h in bumps).squeeze(-1)

    P = unc.Normal(width) if kind == "normal" else unc.Empirical([[0.0], [width]])
    landed = P.perturb(GRID, unc.base_draws(4096, P.n_base(1), seed=0))
    return f(GRID), f(landed).mean(-1)


@pytest.mark.parametrize("kind", ["normal", "modes"])
@pytest.mark.parametrize("width", [0.02, 0.06, 0.1, 0.2])
def test_the_slider_shows_the_averages_of_the_library(browser, kind, width):
    best, average, highest, lost = shown(browser, kind, width)
    f, expected = averages(kind, width)
    assert average == pytest.approx(expected.max().item(), abs=0.01)
    assert expected[round(best * 480)] == pytest.approx(average, abs=0.02)
    assert highest == pytest.approx(GRID[f.argmax()].item(), abs=0.006)
    assert lost == pytest.approx(expected[f.argmax()].item(), abs=0.01)


def test_the_best_setting_jumps_where_the_page_says(browser):
    [said] = JUMP.findall((DOCS / "slider.md").read_text(encoding="utf-8"))
    width, narrow, broad = map(float, said)
    assert shown(browser, "normal", width)[0] == pytest.approx(narrow, abs=0.01)
    assert shown(browser, "normal", width + 0.002)[0] == pytest.approx(broad, abs=0.01)
