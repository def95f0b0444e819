"""Runs tasks in parallel processes, or on a Dask cluster, and stores their results."""

import json
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from experiments.harness import record
from experiments.harness.experiment import Experiment, Task
from experiments.harness.store import Store

POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task: a result, or the traceback of an error."""

    task: Task
    result: dict[str, Any] | None = None
    traceback: str = ""
    seconds: float = 0.0
    """Processor time."""


def run(
    experiment: Experiment,
    tasks: list[Task],
    store: Store,
    jobs: int = 1,
    dask: str | None = None,
    console: Console | None = None,
) -> list[Outcome]:
    """Run the tasks that have no result yet and return those that failed.

    Args:
        experiment: The experiment, which runs a task.
        tasks: The tasks.
        store: Where to keep results; each is written as soon as it is finished.
        jobs: Number of processes, each with one thread.
        dask: Address of the scheduler of a Dask cluster to use instead.
        console: Where to show progress.
    """
    console = console or Console(stderr=True)
    missing = [task for task in tasks if not store.has(task)]
    provenance = record.provenance()
    failed = []
    with _Bars(console, tasks, missing) as bars, _backend(jobs, dask):
        parallel = joblib.Parallel(
            n_jobs=None if dask else jobs, return_as="generator_unordered", batch_size=1
        )
        calls = (joblib.delayed(execute)(experiment, task, bars.file_of(task)) for task in missing)
        for outcome in parallel(calls):
            if outcome.result is None:
                failed.append(outcome)
                console.print(f"[red]{describe(outcome.task)} failed:[/red]")
                console.print(outcome.traceback, markup=False, highlight=False)
            else:
                spent = {"processor_seconds": round(outcome.seconds, 2)}
                store.write(outcome.task, outcome.result, provenance | spent)
            bars.finish(outcome.task)
    return failed


def execute(experiment: Experiment, task: Task, progress_file: Path | None = None) -> Outcome:
    """Run one task; an error in it is reported and does not stop the others."""
    torch.set_num_threads(1)

    def step(done: int, total: int) -> None:
        if progress_file is not None and progress_file.parent.is_dir():
            progress_file.write_text(f"{done} {total}")

    begun = time.process_time()
    try:
        result = experiment.run(task, step)
        json.dumps(result, allow_nan=False)  # a result must be storable
        return Outcome(task, result, seconds=time.process_time() - begun)
    except Exception:
        return Outcome(task, traceback=traceback.format_exc())


def describe(task: Task) -> str:
    return f"{task.experiment}, {task.label}, repeat {task.seed}"


@contextmanager
def _backend(jobs: int, dask: str | None) -> Iterator[None]:
    if dask is None:
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError('Dask is not installed: pip install "airbo[experiments]".') from None
    with Client(dask, timeout="20s"), joblib.parallel_config("dask"):
        yield


class _Bars:
    """Shows all steps of all tasks in one bar, and each running task in one of its own.

    Workers write their progress into files of a temporary folder, which is read twice a second.
    Workers on another machine do not see this folder; they count when they have finished.
    """

    def __init__(self, console: Console, tasks: list[Task], missing: list[Task]) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=600,
        )
        self.n_kept = len(tasks) - len(missing)
        self.n_all = len(tasks)
        self.missing = missing
        self.finished: set[Task] = set()
        self.bars: dict[Task, Any] = {}

    def __enter__(self) -> "_Bars":
        self.folder = Path(tempfile.mkdtemp(prefix="airbo-experiments-"))
        self.progress.start()
        self.by_file = {self.file_of(task): task for task in self.missing}
        total = sum(task.n_steps for task in self.missing)
        self.whole = self.progress.add_task(self._title(), total=total)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()
        self._look()
        self.progress.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def file_of(self, task: Task) -> Path:
        return self.folder / f"{task.set_name}-{task.seed}"

    def finish(self, task: Task) -> None:
        self.finished.add(task)

    def _files(self) -> list[Path]:
        """List the files of running tasks; none if the temporary folder has been deleted."""
        return list(self.folder.iterdir()) if self.folder.is_dir() else []

    def _title(self) -> str:
        return f"{self.n_kept + len(self.finished)} of {self.n_all} repeats; steps"

    def _watch(self) -> None:
        while not self.stopped.wait(POLL_SECONDS):
            self._look()

    def _look(self) -> None:
        finished = set(self.finished)
        done = sum(task.n_steps for task in finished)
        for file in self._files():
            task = self.by_file[file]
            if task in finished:
                file.unlink()
                if task in self.bars:
                    self.progress.remove_task(self.bars.pop(task))
                continue
            if task not in self.bars:
                title = f"  {describe(task)}"
                self.bars[task] = self.progress.add_task(title, total=task.n_steps)
            n = _steps_in(file)
            done += n
            self.progress.update(self.bars[task], completed=n)
        self.progress.update(self.whole, completed=done, description=self._title())


def _steps_in(file: Path) -> int:
    written = file.read_text().split()
    return int(written[0]) if written else 0  # just being written
