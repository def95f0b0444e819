"""Copies the part of the results that the documentation shows, after a full run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.harness import record, table
from experiments.harness.places import DOCS
from experiments.speed.targets import Numbers, targets

PAGE = DOCS / "performance.md"
BEGIN, END = "<!-- measured by make bench: begin -->", "<!-- end -->"


def excerpt(results: Numbers, where: Mapping[str, Any]) -> str:
    """Return the targets, with a link to the rest."""
    header = ["what", "target", "median", "worst", "reached?"]
    return "\n\n".join(
        [
            table.markdown(header, [t.row for t in targets(results)]),
            "All numbers: [experiments/results/speed.md](../experiments/results/speed.md).",
            record.describe(where),
        ]
    )


def insert(text: str, page: Path = PAGE, begin: str = BEGIN) -> None:
    """Replace the text between two marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(END, 1)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{END}{after}", encoding="utf-8")
