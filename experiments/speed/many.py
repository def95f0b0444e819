"""What commands cost in campaigns with very many experiments."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd

from airbo import Campaign
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Step, Task

FILE = """\
name = "many"
n_initial = {n_initial}
storage = "{storage}"
[parameters.x]
low = 0.0
high = 1.0
uncertainty = {{ kind = "normal", std = 0.05 }}
[parameters.y]
low = 0.0
high = 1.0
uncertainty = {{ kind = "normal", std = 0.05 }}
"""
STORAGES = {"journal file": "journal:///many.journal", "SQLite": "sqlite:///many.db"}
N_TOLD = 30
"""Experiments with a value where the others are pending."""
COMMANDS = {
    "status": ["status", "--json"],
    "ask": ["ask", "--json"],
    "tell": ["tell", "--json", "--yes", "0=1.5", "--correct"],
    "recommend": ["recommend", "--json"],
    "report": ["report", "--json", "-o", "report.html"],
}
CASES = {"different designs": 10_000, "one design": 10_000, "pending": 1000}


class Many(Experiment):
    """The commands of a day, each in a process of its own, in very large campaigns."""

    name = "many"
    paper = "beyond the paper"
    title = "Very many experiments"
    repeats = 1

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List the cases and storages."""
        return [
            Task(
                self.name,
                f"{n:,} {case}, {storage}",
                0,
                {"case": case, "n": n, "storage": storage},
                n_steps=len(COMMANDS),
            )
            for case, most in CASES.items()
            for n in [most // 100 if quick else most]
            for storage in STORAGES
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Return time, memory and messages of each command."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder), **task.config)
            for i, (name, words) in enumerate(COMMANDS.items()):
                found[name] = command(Path(folder), words)
                step(i + 1, len(COMMANDS))
        return found

    def summary(self, results: Results) -> str:
        """Tabulate processor time and peak memory."""
        rows = [
            [label, *(f"{c['seconds']:.1f} s, {c['gigabytes']:.1f} GB" for c in found.values())]
            for label in results.labels
            for found in results.of(label)
        ]
        notes = {c["note"] for _, found in results for c in found.values()} - {""}
        said = "".join(f"- {note}\n" for note in sorted(notes))
        return (
            "Processor time and peak memory of one command in a process of its own, start and "
            "imports included. Memory below that of the measuring process, 0.4 GB, is not seen.\n\n"
            f"{table.markdown(['experiments', *COMMANDS], rows)}\n\n"
            f"What the commands said:\n\n{said}"
        )


def prepare(folder: Path, case: str, n: int, storage: str) -> None:
    """Make a campaign with very many experiments."""
    path, url = folder / "campaign.toml", STORAGES[storage]
    pending = case == "pending"
    path.write_text(FILE.format(n_initial=10 * n if pending else 5, storage=url))
    with Campaign.open(path) as campaign:
        campaign.import_table(_told(N_TOLD if pending else n, case == "one design"))
        if pending:
            campaign.ask(n)  # from the initial sequence; from now on the model chooses
    path.write_text(FILE.format(n_initial=5, storage=url))


def _told(n: int, same: bool) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = np.full((n, 2), 0.5) if same else rng.random((n, 2))
    value = np.sin(5 * X[:, 0]) + np.cos(3 * X[:, 1]) + 0.1 * rng.standard_normal(n)
    return pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "value": value})


def command(folder: Path, words: list[str]) -> dict[str, Any]:
    """Run a command of ``airbo``; return its processor time, its peak memory and its remarks."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "airbo.lab.cli", *words],
            cwd=folder,
            stdout=out,
            stderr=err,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = [_text(stream) for stream in (out, err)]
    if process.returncode != 0:
        raise RuntimeError(f"airbo {' '.join(words)}: {said[0]}{said[1]}")
    return {
        "seconds": usage.ru_utime + usage.ru_stime,
        "elapsed": time.perf_counter() - begin,
        "gigabytes": usage.ru_maxrss / 1e6,
        "note": " ".join(said[1].split()),
    }


def _text(stream: Any) -> str:
    stream.seek(0)
    return str(stream.read().decode("utf-8", "replace"))


MANY = Many()
