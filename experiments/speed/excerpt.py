"""Puts measured tables into the documentation."""

from pathlib import Path

from experiments.harness.places import DOCS

PAGE = DOCS / "performance.md"
BEGIN, END = "<!-- measured by make bench: begin -->", "<!-- end -->"


def insert(text: str, page: Path = PAGE, begin: str = BEGIN) -> None:
    """Replace the text between two marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(END, 1)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{END}{after}", encoding="utf-8")
