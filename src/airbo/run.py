"""Optimize a function in one call."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from airbo.observed import whole_number
from airbo.optimizer import Design, Direction, Optimizer
from airbo.outcomes import check_outcomes, objectives
from airbo.space import Space
from airbo.uncertainty.in_cube import NamedUncertainty
from airbo.words import quoted

if TYPE_CHECKING:
    import pandas as pd

Reported = float | Mapping[str, float | None] | None
"""What an experiment gives: a value, or outcomes by name; None if it failed."""


@dataclass(frozen=True)
class Result:
    """What an optimization found."""

    design: Design
    """The recommended design."""
    mean: float
    """Its expected value."""
    std: float
    """Standard deviation of the expected value: the uncertainty of the model."""
    optimizer: Optimizer
    """The optimizer, to continue with or to inspect."""

    @property
    def observations(self) -> "pd.DataFrame":
        """All experiments."""
        return self.optimizer.observations


class ExperimentError(RuntimeError):
    """The optimization had to stop; ``optimizer`` holds everything observed until then."""

    def __init__(self, what: str, optimizer: Optimizer, design: Design | None = None) -> None:
        """Describe what happened, and at which design."""
        super().__init__(
            f"{what} {len(optimizer.observations)} observation(s) are kept in .optimizer of this "
            "error."
        )
        self.optimizer = optimizer
        self.design = design
        """The design of the experiment that raised an exception."""


def maximize(
    f: Callable[[Design], Reported],
    space: Space | dict[str, Any],
    uncertainty: NamedUncertainty = None,
    budget: int = 50,
    seed: int = 0,
    *,
    progress: bool = True,
    callback: Callable[[Optimizer], object] | None = None,
    executor: Executor | None = None,
    **settings: Any,
) -> Result:
    """Find the design with the largest expected value.

    Args:
        f: The experiment. It takes a design and returns a value, a dict of outcomes if there are
            several, or None if the experiment failed.
        space: The parameters of a design.
        uncertainty: How accurately parameters are set, by parameter name or tuple of names.
        budget: Number of experiments.
        seed: Makes the run reproducible.
        progress: Whether to show a progress bar.
        callback: Called with the optimizer after every experiment.
        executor: Runs experiments side by side, as many as it has workers: one of
            ``concurrent.futures``, or of any library that makes such executors. When a result comes
            in, the next experiment starts. The same seed and order of results give the same
            designs. By default experiments run one after the other.
        **settings: As for ``Optimizer``: surrogate, acquisition, deployment, measure,
            outcomes and others.

    Returns:
        The recommended design, its expected value, and all observations. Ctrl-C ends the
        optimization early and returns the result so far.

    Raises:
        ExperimentError: If ``f`` raises an exception, a worker dies, airbo cannot find the next
            design, or all experiments failed. The error holds the optimizer.
    """
    settings |= {"progress": progress, "callback": callback, "executor": executor}
    return _optimize(f, "maximize", space, uncertainty, budget, seed, **settings)


def minimize(
    f: Callable[[Design], Reported],
    space: Space | dict[str, Any],
    uncertainty: NamedUncertainty = None,
    budget: int = 50,
    seed: int = 0,
    **settings: Any,
) -> Result:
    """Find the design with the smallest expected value; see ``maximize``."""
    return _optimize(f, "minimize", space, uncertainty, budget, seed, **settings)


def _optimize(
    f: Callable[[Design], Reported],
    direction: Direction,
    space: Space | dict[str, Any],
    uncertainty: NamedUncertainty,
    budget: int,
    seed: int,
    progress: bool = True,
    callback: Callable[[Optimizer], object] | None = None,
    executor: Executor | None = None,
    **settings: Any,
) -> Result:
    budget = whole_number("budget", budget, least=1)
    space = space if isinstance(space, Space) else Space(space)
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor must be one of concurrent.futures, got {executor!r}.")
    _check_direction(direction, settings.get("outcomes"))
    optimizer = Optimizer(space, uncertainty, direction, seed=seed, **settings)
    runs = _Runs(f, optimizer, executor or _OneByOne())
    with _bar(progress) as bar:
        task = bar.add_task(direction, total=budget)
        try:
            for number in range(budget):
                runs.begin(min(runs.n_workers, budget - number))
                runs.end_one()
                if callback is not None:
                    callback(optimizer)
                bar.update(task, advance=1)
        except KeyboardInterrupt:
            runs.stop()
            if len(_not_measured(optimizer)) == len(optimizer.outcomes):
                raise
        except ExperimentError:
            runs.stop()
            raise
    if missing := _not_measured(optimizer):
        raise ExperimentError(f"No experiment measured {quoted(missing)}.", optimizer)
    best = optimizer.recommend()
    return Result(best.design, best.mean, best.std, optimizer)


class _OneByOne(Executor):
    """Runs an experiment at once, in this thread."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # kept for whoever asks for the result
            future.set_exception(error)
        return future


class _Runs:
    """Experiments that are running; each result is told before the next design is chosen."""

    def __init__(
        self, f: Callable[[Design], Reported], optimizer: Optimizer, executor: Executor
    ) -> None:
        self.f, self.optimizer, self.executor = f, optimizer, executor
        self.running: dict[Future[Reported], Design] = {}
        self.n_workers = _n_workers(executor) or os.cpu_count() or 1

    def begin(self, n: int) -> None:
        """Start experiments until ``n`` are running."""
        while len(self.running) < n:
            try:
                design = self.optimizer.ask()
            except Exception as error:
                what = f"Choosing the next design raised {_described(error)}"
                raise ExperimentError(what, self.optimizer) from error
            try:
                future = self.executor.submit(self.f, dict(design))
            except Exception as error:  # a worker died, or the executor was shut down
                what = f"Starting the experiment at {design} raised {_described(error)}"
                raise ExperimentError(what, self.optimizer, design) from error
            self.running[future] = design

    def end_one(self) -> None:
        """Wait for a result; of several, take that of the experiment that began first."""
        done, _ = wait(self.running, return_when=FIRST_COMPLETED)
        self._tell(next(future for future in self.running if future in done))

    def stop(self) -> None:
        """Keep the results that are there, and begin nothing more."""
        for future in [*self.running]:
            if not future.cancel() and future.done() and future.exception() is None:
                self._tell(future)

    def _tell(self, future: "Future[Reported]") -> None:
        design = self.running.pop(future)
        try:
            self.optimizer.tell(design, future.result())
        except Exception as error:
            what = f"The experiment at {design} raised {_described(error)}"
            raise ExperimentError(what, self.optimizer, design) from error


def _n_workers(executor: Any) -> int | None:
    """Return how many experiments an executor runs at a time; None: it does not say."""
    # the standard library and those that imitate it; mpi4py; Dask, whose workers come and go
    for name in ("_max_workers", "num_workers"):
        if n := getattr(executor, name, None):
            return int(n)
    client: Any = getattr(executor, "_client", None)
    return sum(client.nthreads().values()) if hasattr(client, "nthreads") else None


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).rstrip('.')}."


def _check_direction(direction: Direction, outcomes: Any) -> None:
    """Refuse to minimize what is to be maximized; ``maximize`` leaves it to the outcomes."""
    if outcomes is None or direction == "maximize":
        return
    name, aim = next(iter(objectives(check_outcomes(outcomes)).items()))
    if aim.direction != direction:
        raise ValueError(
            f"airbo.{direction}: the first objective is {name!r}, and outcomes {aim.direction} it. "
            f"Call airbo.{aim.direction}."
        )


def _not_measured(optimizer: Optimizer) -> list[str]:
    """Return the outcomes that no experiment has measured so far."""
    table = optimizer.observations
    return [name for name in optimizer.outcomes if not table[name].notna().any()]


def _bar(visible: bool) -> AbstractContextManager[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not visible)
