"""Processor time of the commands, and of importing a large table.

    python -m experiments.speed.commands [--rounds 5]

Every command runs as a user runs it, in a process of its own, on a campaign with four parameters
and thirty experiments. The result is a table in ``docs/performance.md``.
"""

import argparse
import csv
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.progress import track

import airbo
from experiments.harness import pages, record, table
from experiments.harness.places import RESULTS

N_EXPERIMENTS = 30
N_ROWS = 10_000
NEW = (
    "init", "--name", "reaction", "--value", "yield:%",
    "--parameter", "temp=40:120:°C", "--parameter", "flow=10:50:l/min",
    "--parameter", "dose=0.1:10:mol%:log", "--parameter", "stages=1:5::integer",
    "--uncertainty", "temp=normal:2", "--uncertainty", "flow=normal:5%",
)  # fmt: skip
COMMANDS: dict[tuple[str, ...], float | None] = {
    NEW: None,
    ("check",): None,
    ("import", "done.csv"): None,
    ("status",): 1.5,
    ("ask",): 4.0,
    ("tell", str(N_EXPERIMENTS), "55"): 1.5,
    ("note", "3", "a new batch"): 1.5,
    ("undo",): 1.5,
    ("recommend",): None,
    ("report",): 10.0,
    ("export", "-o", "all.csv"): None,
}
"""What a user types, in this order, and how many seconds it may take."""
IMPORT = ("import", "many.csv")
IMPORT_TARGET = 10.0
"""For "in seconds"."""
SOURCE = Path(airbo.__file__).parents[1]
"""The package that is measured, whatever is installed."""
YARDSTICK = ("python", "import torch")
"""What says how fast the machine was: it takes 1.1 s where nothing else runs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    n_rounds = parser.parse_args().rounds
    where = record.provenance()
    rounds = [_round() for _ in track(range(n_rounds), "rounds")]
    text = "\n\n".join([_page(rounds), record.describe(where)])
    (RESULTS / "commands.md").write_text(f"{text}\n", encoding="utf-8")
    pages.insert("commands", text, pages.PERFORMANCE)
    print(text)


def _round() -> dict[tuple[str, ...], float]:
    """Work through all commands once; return the processor time of each."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "done.csv", N_EXPERIMENTS)
        _write(Path(folder) / "many.csv", N_ROWS)
        return {command: _seconds(command, folder) for command in (YARDSTICK, *COMMANDS, IMPORT)}


def _seconds(command: Sequence[str], folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["-c", "import torch"] if command == YARDSTICK else ["-m", "airbo.lab.cli", *command]
    subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _write(path: Path, n: int) -> None:
    """Write the results of a reaction that has its best yield near 85 °C and 30 l/min."""
    chance = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["temp [°C]", "flow", "dose", "stages", "yield"])
        for _ in range(n):
            temp, flow = round(chance.uniform(40, 120), 1), round(chance.uniform(10, 50), 1)
            dose, stages = round(10 ** chance.uniform(-1, 1), 3), chance.randint(1, 5)
            mean = 60 - ((temp - 85) / 7) ** 2 - ((flow - 30) / 5) ** 2 + stages
            value = mean - 6 * math.log10(dose) ** 2 + chance.gauss(0, 1)
            writer.writerow([temp, flow, dose, stages, round(value, 2)])


def _page(rounds: Sequence[dict[tuple[str, ...], float]]) -> str:
    rows = []
    for command, target in {YARDSTICK: None, **COMMANDS, IMPORT: IMPORT_TARGET}.items():
        seconds = [times[command] for times in rounds]
        what = f"`airbo {'init ...' if command == NEW else ' '.join(command)}`"
        what += f", {N_ROWS:,} rows" if command == IMPORT else ""
        what = "for comparison: `import torch`" if command == YARDSTICK else what
        reached = "" if target is None else "yes" if median(seconds) <= target else "no"
        goal = "" if target is None else f"≤ {target:g}"
        rows.append([what, goal, f"{median(seconds):.1f}", f"{max(seconds):.1f}", reached])
    header = ["command", "target in s", "median in s", f"worst of {len(rounds)}", "reached?"]
    return table.markdown(header, rows)


if __name__ == "__main__":
    main()
