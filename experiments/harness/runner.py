"""Runs tasks in parallel processes and stores their results."""

import json
import time
import traceback
from dataclasses import dataclass
from typing import Any

import joblib
import torch
from rich.console import Console
from rich.progress import track

from experiments.harness import record
from experiments.harness.experiment import Experiment, Task
from experiments.harness.store import Store


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
    console: Console | None = None,
) -> list[Outcome]:
    """Run the tasks that have no result yet and return those that failed.

    Args:
        experiment: The experiment, which runs a task.
        tasks: The tasks.
        store: Where to keep results; each is written as soon as it is finished.
        jobs: Number of processes, each with one thread.
        console: Where to show progress.
    """
    console = console or Console(stderr=True)
    missing = [task for task in tasks if not store.has(task)]
    provenance = record.provenance()
    failed = []
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        outcomes = parallel(joblib.delayed(execute)(experiment, task) for task in missing)
        title = f"{len(missing)} of {len(tasks)} repeats to run"
        for outcome in track(outcomes, title, len(missing), console=console):
            if outcome.result is None:
                failed.append(outcome)
                console.print(f"[red]{describe(outcome.task)} failed:[/red]")
                console.print(outcome.traceback, markup=False, highlight=False)
            else:
                spent = {"processor_seconds": round(outcome.seconds, 2)}
                store.write(outcome.task, outcome.result, provenance | spent)
    return failed


def execute(experiment: Experiment, task: Task) -> Outcome:
    """Run one task; an error in it is reported and does not stop the others."""
    torch.set_num_threads(1)
    begun = time.process_time()
    try:
        result = experiment.run(task)
        json.dumps(result, allow_nan=False)  # a result must be storable
        return Outcome(task, result, seconds=time.process_time() - begun)
    except Exception:
        return Outcome(task, traceback=traceback.format_exc())


def describe(task: Task) -> str:
    return f"{task.experiment}, {task.label}, repeat {task.seed}"
