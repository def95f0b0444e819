"""The Python blocks of README and docs run, in order, as a reader would run them."""

import re
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHORTER = {"budget=30": "budget=7"}
"""What readers wait for and tests do not."""
HOW_TO = sorted((ROOT / "docs").glob("howto-*.md"))
WITH_OUTPUT = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[\d,]*\d(?:\.\d+)?")
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def blocks(page: Path) -> list[str]:
    """Return the Python blocks, each after as many empty lines as stand before it in the page."""
    text = page.read_text(encoding="utf-8")
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return ["\n" * text[: m.start(1)].count("\n") + m.group(1) for m in BLOCK.finditer(text)]


WITH_CODE = [page for page in PAGES if blocks(page) and page not in HOW_TO]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    namespace = {"__name__": "__main__"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.name)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_how_to_pages_print_what_they_show(page, capsys):
    text, namespace = page.read_text(encoding="utf-8"), {"__name__": "__main__"}
    pairs = WITH_OUTPUT.findall(text)
    assert len(pairs) == len(BLOCK.findall(text))
    for block, said in pairs:
        exec(compile(block, str(page), "exec"), namespace)
        found = capsys.readouterr().out
        assert NUMBER.sub("#", found) == NUMBER.sub("#", said)
        numbers, shown = (
            [float(n.replace(",", "")) for n in NUMBER.findall(t)] for t in (found, said)
        )
        # draws and searches differ in the last digits from machine to machine
        assert numbers == pytest.approx(shown, rel=0.05, abs=0.5)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_there_are_examples_to_run():
    assert ROOT / "README.md" in WITH_CODE
