"""The built site: formulas are drawn, nothing comes from elsewhere, every page can be reached."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, MISSING, Browser

ROOT = Path(__file__).parents[2]
QUOTED = re.compile(r"<(pre|code|script|style)\b.*?</\1>", re.DOTALL)
ADDRESS = re.compile(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?(https?:)?//""")
BROKEN = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
CUT = """[...document.querySelectorAll("pre code")].filter(
    c => c.scrollWidth > c.clientWidth + 1 && getComputedStyle(c).overflowX != "auto").length"""
TOO_WIDE = """[...document.querySelectorAll("math")].filter(
    m => !m.closest("table") && m.getBoundingClientRect().right > window.innerWidth).length"""

pytestmark = pytest.mark.needs("properdocs", "material", "mkdocstrings", "latex2mathml")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    beside = Path(sys.executable).with_name("properdocs")
    command = str(beside) if beside.exists() else shutil.which("properdocs")
    environment = {**os.environ, "REPOSITORY_URL": "https://host.example/airbo"}
    done = subprocess.run(
        [command, "build", "--strict", "-q", "-d", str(folder)],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """The text of every page, without what readers do not see as text."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}


def test_no_source_of_a_formula_is_left(pages):
    for path, text in pages.items():
        shown = html.unescape(re.sub(r"<[^>]+>", "", QUOTED.sub("", text)))
        assert not re.search(r"\$|\\[(\[a-z]|:math:", shown), path.name


def test_formulas_are_mathml(pages):
    drawn = sum(text.count("<math ") for text in pages.values())
    assert drawn > 200


def test_examples_of_docstrings_are_code(pages):
    for path, text in pages.items():
        assert "<blockquote>" not in text, path.name


def test_nothing_is_loaded_from_elsewhere(pages):
    for path, text in pages.items():
        assert not ADDRESS.search(text), path.name


def test_readers_find_the_way_on_and_the_repository(pages, site):
    text = pages[site / "optuna.html"]
    for way in ('rel="next"', 'rel="prev"', "https://host.example/airbo", "logo.svg"):
        assert way in text
    assert 'data-md-color-scheme="slate"' in text


def test_llms_txt_lists_every_page_of_the_navigation(site, pages):
    listed = set(re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text(encoding="utf-8")))
    there = {path.relative_to(site).as_posix() for path in pages}
    assert listed == {name for name in there if not name.startswith(("404", "experiments/"))}


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen_and_show_their_pictures(pages, site, tmp_path, width):
    with Browser(tmp_path / "profile", width) as browser:
        for path in pages.keys() - {site / "404.html"}:  # it is made for a server
            browser.open(path)
            assert browser.run("document.documentElement.scrollWidth") <= width, path.name
            assert browser.run(BROKEN) == browser.run(CUT) == 0, path.name
            assert browser.problems == [], path.name


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
def test_formulas_fit_a_phone_or_scroll(pages, tmp_path):
    with Browser(tmp_path / "profile", 390) as browser:
        for path in (path for path, text in pages.items() if "<math " in text):
            browser.open(path)
            assert browser.run(TOO_WIDE) == 0, path.name
