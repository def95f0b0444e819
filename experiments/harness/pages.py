"""Puts what was measured into pages of the docs, between two marks."""

from pathlib import Path

from experiments.harness.places import DOCS

BENCHMARK = DOCS / "benchmark.md"
PAPER = DOCS / "paper.md"
END = "<!-- end -->"


def begin(name: str) -> str:
    return f"<!-- {name}: begin -->"


def insert(name: str, text: str, page: Path) -> None:
    """Replace what stands between the marks of this name."""
    before, rest = page.read_text(encoding="utf-8").split(begin(name))
    _, after = rest.split(END, 1)
    page.write_text(f"{before}{begin(name)}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def between(name: str, page: Path) -> str:
    """Return what stands between the marks of this name."""
    return page.read_text(encoding="utf-8").split(begin(name))[1].split(END)[0].strip()
