"""How fast eight workers finish one campaign, on each kind of storage.

    python -m experiments.speed.workers [--postgres postgresql://user@host/database]

Every worker asks, waits a moment (the experiment) and tells, until the campaign has its trials;
two of them are killed on the way.
"""

import argparse
import multiprocessing
import tempfile
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path
from statistics import median, quantiles

import torch

from airbo import Campaign
from experiments.harness import table
from experiments.harness.places import RESULTS

PAUSE = 0.05
"""Seconds that an experiment takes."""
STORAGES = {"journal file": "journal:///c.journal", "SQLite": "sqlite:///c.db"}
FILE = """\
name = "{name}"
surrogate = "{surrogate}"
n_initial = 20
storage = "{url}"
[parameters.x]
low = 0.0
high = 1.0
uncertainty = {{ kind = "normal", std = 0.05 }}
"""


def work(path: Path, log: Path, n_trials: int) -> None:
    """Ask and tell until the campaign has its trials; log how long every ask took."""
    torch.set_num_threads(1)
    campaign = Campaign.open(path)
    with log.open("a") as file:
        while campaign.status().n_ok < n_trials:
            begin = time.perf_counter()
            [experiment] = campaign.ask()
            seconds = time.perf_counter() - begin
            time.sleep(PAUSE)
            campaign.tell(experiment.number, 1 - (experiment.design["x"] - 0.3) ** 2)
            file.write(f"{seconds}\n")
            file.flush()


def measure(url: str, surrogate: str, n_trials: int, n_workers: int) -> list[str]:
    """Let workers run a campaign to its end; return a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "campaign.toml"
        path.write_text(FILE.format(name=folder, url=url, surrogate=surrogate))
        Campaign.open(path)  # create the study before several processes try to
        logs = [Path(folder) / f"{i}.log" for i in range(n_workers)]
        begin = time.perf_counter()
        workers = [_start(path, log, n_trials) for log in logs]
        for victim, part in zip(workers[:2], (0.25, 0.5), strict=True):
            while len(_seconds(logs)) < part * n_trials:
                time.sleep(0.05)
            victim.kill()
        for worker in workers:
            worker.join()
        elapsed = time.perf_counter() - begin
        seconds = _seconds(logs)
    return [
        f"{len(seconds)}",
        f"{elapsed:.0f}",
        f"{len(seconds) / elapsed:.1f}",
        f"{median(seconds):.2f}",
        f"{quantiles(seconds, n=20)[-1]:.2f}",
    ]


def _start(path: Path, log: Path, n_trials: int) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(
        target=work, args=(path, log, n_trials), daemon=True
    )
    process.start()
    return process


def _seconds(logs: list[Path]) -> list[float]:
    """Read all whole lines."""
    texts = [log.read_text() for log in logs if log.exists()]
    return [float(line) for text in texts for line in text.split("\n")[:-1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--surrogate", default="nominal")
    parser.add_argument("--postgres", metavar="URL", help="a database to measure as well")
    given = parser.parse_args()
    storages = STORAGES | ({"PostgreSQL": given.postgres} if given.postgres else {})
    header = ["storage", "trials told", "seconds", "trials per second"]
    header += ["seconds per ask: median", "95%"]
    rows = [
        [name, *measure(url, given.surrogate, given.trials, given.workers)]
        for name, url in storages.items()
    ]
    text = table.markdown(header, rows)
    print(text)
    (RESULTS / "workers.md").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
