"""How fast eight workers finish one campaign with a model, on each kind of storage.

Every worker asks, waits a moment (the experiment) and tells, until there are enough values. Two of
them are killed on the way. Optuna's own GPSampler does the same work in the same database.
"""

import itertools
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from airbo import Campaign
from experiments.harness import postgres, table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.speed.many import FILE, STORAGES
from experiments.speed.optuna_ask import f
from experiments.subjects.internals import StorageURL, open_storage

PAUSE = 0.05
"""Seconds that an experiment takes."""
N_INITIAL = 20
SERVER = "PostgreSQL"
OURS, YARDSTICK = "airbo, default model", "Optuna's GPSampler"
SPACE: dict[str, BaseDistribution] = {name: FloatDistribution(0.0, 1.0) for name in "xy"}


class Workers(Experiment):
    """Many processes, one campaign."""

    name = "workers"
    paper = "beyond the paper"
    title = "Eight workers on one campaign"
    repeats = 1

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List the storages and samplers."""
        n_trials, n_workers = (30, 3) if quick else (200, 8)
        config = {"n_trials": n_trials, "n_workers": n_workers}
        return [
            Task(self.name, f"{storage}, {who}", 0, {**config, "storage": storage, "who": who})
            for storage in (SERVER, *STORAGES)
            for who in (OURS, YARDSTICK)
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Let the workers reach their number of values; return times, and what was lost."""
        with tempfile.TemporaryDirectory() as folder, _url(task.config["storage"]) as url:
            path = Path(folder) / "campaign.toml"
            path.write_text(FILE.format(n_initial=N_INITIAL, storage=url))
            return race(path, url, task.config)

    def summary(self, results: Results) -> str:
        """Tabulate throughput and times."""
        header = ["storage", "values", "lost", "designs again", "seconds", "values per second"]
        header += ["seconds per ask: median", "95%", "processor seconds per ask: median", "load"]
        rows = [
            [
                task.label,
                str(r["n_told"]),
                str(r["n_lost"]),
                str(r["n_again"]),
                f"{r['elapsed']:.0f}",
                f"{r['n_told'] / r['elapsed']:.1f}",
                f"{median(r['seconds']):.2f}",
                f"{quantiles(r['seconds'], n=20)[-1]:.2f}",
                f"{median(r['processor']):.2f}",
                f"{r['load'][0]:.0f} to {r['load'][1]:.0f}",
            ]
            for task, r in results
        ]
        config = results.each[0][0].config
        return (
            f"{config['n_workers']} workers on {os.cpu_count()} cores, {config['n_trials']} "
            f"values wanted, two workers killed, two parameters, {N_INITIAL} initial designs and "
            f"then a model, {PAUSE} s per experiment. Lost: acknowledged, and not in the storage. "
            "A model may ask for a design again whose value is known. "
            "Load: processes that wanted a core before and after, these workers included.\n\n"
            f"{table.markdown(header, rows)}"
        )


@contextmanager
def _url(storage: str) -> Iterator[str]:
    """Give a storage; a database server is started and stopped."""
    if storage != SERVER:
        yield STORAGES[storage]
        return
    reason = postgres.missing()
    if reason:
        raise RuntimeError(reason)
    with postgres.server() as url:
        yield url


def race(path: Path, url: str, config: dict[str, Any]) -> dict[str, Any]:
    """Start workers, kill two, wait for the others; compare what they logged with the storage."""
    ours = config["who"] == OURS
    if ours:
        Campaign.open(path).close()  # create the study before several processes try to
    else:
        optuna.create_study(storage=_storage(path, url), study_name="many", direction="maximize")
    logs = [path.with_name(f"{i}.log") for i in range(config["n_workers"])]
    load, begin = os.getloadavg()[0], time.perf_counter()
    workers = [_start(ours, path, url, log, config["n_trials"]) for log in logs]
    for victim, part in zip(workers[:2], (0.25, 0.5), strict=True):
        while len(_told(logs)) < part * config["n_trials"] and victim.is_alive():
            time.sleep(0.05)
        victim.kill()
    for worker in workers:
        worker.join()
    elapsed, told = time.perf_counter() - begin, _told(logs)
    trials = optuna.load_study(storage=_storage(path, url), study_name="many").get_trials()
    done = {t.number: t for t in trials if t.state == TrialState.COMPLETE}
    kept = [o for o in told if o["number"] in done and done[o["number"]].value == o["value"]]
    designs = [tuple(t.params.values()) for t in done.values()]
    return {
        "n_told": len(done),
        "n_lost": len(told) - len(kept),
        "n_again": len(designs) - len(set(designs)),
        "elapsed": elapsed,
        "seconds": [o["seconds"] for o in told],
        "processor": [o["processor"] for o in told],
        "load": [load, os.getloadavg()[0]],
    }


def work(ours: bool, path: Path, url: str, log: Path, n_trials: int) -> None:
    """Ask and tell until there are enough values; log what was told, and how long an ask took."""
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    worker: _OurWorker | _OptunaWorker = _OurWorker(path) if ours else _OptunaWorker(path, url)
    with log.open("a") as file:
        while worker.n_values() < n_trials:
            begin = time.perf_counter(), time.process_time()
            number, design = worker.ask()
            spent = time.perf_counter() - begin[0], time.process_time() - begin[1]
            time.sleep(PAUSE)
            value = f(**design)
            worker.tell(number, value)
            told = {"number": number, "value": value, "seconds": spent[0], "processor": spent[1]}
            file.write(f"{json.dumps(told)}\n")
            file.flush()


class _OurWorker:
    def __init__(self, path: Path) -> None:
        self.campaign = Campaign.open(path)

    def n_values(self) -> int:
        return self.campaign.status().n_ok

    def ask(self) -> tuple[int, dict[str, float]]:
        [experiment] = self.campaign.ask()
        return experiment.number, experiment.design

    def tell(self, number: int, value: float) -> None:
        self.campaign.tell(number, value)


class _OptunaWorker:
    def __init__(self, path: Path, url: str) -> None:
        sampler = optuna.samplers.GPSampler(n_startup_trials=N_INITIAL)
        self.study = optuna.load_study(
            storage=_storage(path, url), study_name="many", sampler=sampler
        )

    def n_values(self) -> int:
        return len(self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))

    def ask(self) -> tuple[int, dict[str, float]]:
        trial = self.study.ask(SPACE)
        return trial.number, trial.params

    def tell(self, number: int, value: float) -> None:
        self.study.tell(number, value)


def _storage(path: Path, url: str) -> BaseStorage:
    return open_storage(StorageURL(url), path.parent)


def _start(ours: bool, path: Path, url: str, log: Path, n_trials: int) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(
        target=work, args=(ours, path, url, log, n_trials), daemon=True
    )
    process.start()
    return process


def _told(logs: list[Path]) -> list[dict[str, Any]]:
    """Read all whole lines."""
    texts = [log.read_text() for log in logs if log.exists()]
    lines = itertools.chain.from_iterable(text.split("\n")[:-1] for text in texts)
    return [json.loads(line) for line in lines]


WORKERS = Workers()
