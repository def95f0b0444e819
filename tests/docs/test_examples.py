"""The Python blocks of README and docs run, in order, and print what the page says."""

import contextlib
import io
import re
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


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    namespace = {"__name__": "__main__"}
    for block, printed in blocks(page):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, str(page), "exec"), namespace)
        if page.name == "README.md":
            assert out.getvalue() == printed  # what everybody sees first is exact
        elif printed is not None:
            assert_alike(out.getvalue(), printed)


def assert_alike(found: str, shown: str) -> None:
    """Compare words exactly, numbers to 5%, two units of the last decimal, or one if whole."""
    assert NUMBER.sub("#", found).split() == NUMBER.sub("#", shown).split(), found
    for ours, theirs in zip(NUMBER.findall(found), NUMBER.findall(shown), strict=True):
        decimals = len(theirs.partition(".")[2])
        slack = 2 * 10.0**-decimals if decimals else 1.0
        number, same = (float(text.replace(",", "")) for text in (ours, theirs))
        assert number == pytest.approx(same, rel=0.05, abs=slack), found


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
