"""Measure whole asks: ``python -m experiments.speed``; ``--quick``: one data set, few rows."""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from experiments.harness import record, table
from experiments.harness.places import RESULTS, ROOT
from experiments.speed import asks

MOST_MEGABYTES = 1500
"""Peak memory of a process that asks after 1,000 observations, imports included."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="thirty observations, one data set")
    parser.add_argument("--only", help="measure the rows whose name has this text; store nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [r for r in asks.ROWS if not options.quick or r.n <= 30]
    rows = [r for r in rows if not options.only or options.only in r.label]
    found = measure(rows, quick=options.quick)
    text = page(found, record.provenance())
    Console().print(text, markup=False, soft_wrap=True)
    if not options.quick and not options.only:
        (RESULTS / "asks.md").write_text(f"{text}\n", encoding="utf-8")


def measure(rows: list[asks.Ask], quick: bool) -> list[dict[str, Any]]:
    """Time all rows; those of many observations also say how much memory they take."""
    found = []
    columns = (SpinnerColumn(), *Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        for row in bar.track(rows, description="asks"):
            times = asks.measure(row, 1 if quick else asks.N_DATA_SETS[row.n])
            memory = megabytes(row) if row.n == max(asks.N_DATA_SETS) else None
            found.append({"label": row.label, "aim": row.aim, **times, "megabytes": memory})
    return found


def megabytes(row: asks.Ask) -> float:
    """Ask once in a process of its own and return its peak memory."""
    command = [sys.executable, "-m", "experiments.speed.asks", row.label]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def page(found: list[dict[str, Any]], where: Mapping[str, Any]) -> str:
    """Return the table, and how many aims were reached."""
    rows = [
        [
            f["label"],
            f"{f['plain']:.2f}",
            f"{f['ask']:.2f}",
            f"{f['ratio']:.1f}",
            f"≤ {f['aim']:g}",
            "yes" if f["ratio"] <= f["aim"] else f"no, × {f['ratio'] / f['aim']:.1f}",
            "" if f["megabytes"] is None else f"{f['megabytes']:,.0f} MB",
        ]
        for f in found
    ]
    header = ["ask", "plain loop, s", "airbo, s", "ratio", "aim", "reached?", "peak memory"]
    reached = sum(f["ratio"] <= f["aim"] for f in found)
    large = [f["megabytes"] for f in found if f["megabytes"] is not None]
    memory = f" Memory: aim < {MOST_MEGABYTES:,} MB, largest {max(large):,.0f}." if large else ""
    return "\n\n".join(
        [
            table.markdown(header, rows),
            f"{reached} of {len(found)} aims reached.{memory}",
            record.describe(where),
        ]
    )


if __name__ == "__main__":
    main()
