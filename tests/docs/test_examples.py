"""The Python blocks of README and docs run, in order, and print what the page says."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
MADE = ROOT / "docs" / "tutorials"
"""Pages that scripts write: tests/docs/test_tutorials.py runs these."""
LANDING = ROOT / "docs" / "index.md"
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?")
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """Return the Python blocks, and what stands under them as printed.

    Each has as many empty lines before it as the page has.
    """
    text = page.read_text(encoding="utf-8")
    return [
        ("\n" * text[: m.start(1)].count("\n") + m.group(1), m.group(2))
        for m in BLOCK.finditer(text)
    ]


WITH_CODE = [page for page in PAGES if not {MADE, LANDING} & {page, *page.parents} and blocks(page)]


LONG = {"howto-limit.md": ("range(30)", "range(14)")}
"""Pages with many experiments, and how they have fewer; the slow tier has them all."""


@pytest.mark.parametrize("page", [p for p in WITH_CODE if p.name in LONG], ids=lambda p: p.name)
@pytest.mark.usefixtures("as_without_shape_checks", "quick_search", "few_draws")
def test_a_long_page_prints_its_words_after_fewer_experiments(page, tmp_path, monkeypatch):
    many, few = LONG[page.name]
    assert many in page.read_text(encoding="utf-8")
    for found, shown in printed(page, tmp_path, monkeypatch, lambda code: code.replace(many, few)):
        assert words_of(found) == words_of(shown), found


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if p.name in LONG else ()) for p in WITH_CODE],
    ids=lambda page: page.name,
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    for found, shown in printed(page, tmp_path, monkeypatch):
        if page.name == "README.md":
            assert found == shown  # what everybody sees first is exact
        else:
            assert_alike(found, shown)


def printed(page, folder, monkeypatch, changed=str) -> Iterator[tuple[str, str]]:
    """Run the blocks of a page; yield what they print, and what the page says."""
    monkeypatch.chdir(folder)
    matplotlib.use("agg")
    namespace = {"__name__": "__main__"}
    for block, shown in blocks(page):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(changed(block), str(page), "exec"), namespace)
        if shown is not None or page.name == "README.md":
            yield out.getvalue(), shown


def assert_alike(found: str, shown: str) -> None:
    """Compare words exactly, numbers to 5%, two units of the last decimal, or one if whole."""
    assert words_of(found) == words_of(shown), found
    for ours, theirs in zip(NUMBER.findall(found), NUMBER.findall(shown), strict=True):
        decimals = len(theirs.partition(".")[2])
        slack = 2 * 10.0**-decimals if decimals else 1.0
        number, same = (float(text.replace(",", "")) for text in (ours, theirs))
        assert number == pytest.approx(same, rel=0.05, abs=slack), found


def words_of(text: str) -> list[str]:
    return NUMBER.sub("#", text).split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_landing_page_has_the_example_of_the_readme():
    assert ROOT / "README.md" in WITH_CODE
    [(code, printed)] = blocks(LANDING)
    [(same, too)] = blocks(ROOT / "README.md")
    assert (code.strip(), printed) == (same.strip(), too)
