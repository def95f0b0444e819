"""Optimize a function in one call."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from airbo.observed import whole_number
from airbo.optimizer import Design, Direction, Optimizer, Recommendation, TooLittleDataWarning
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
        progress: Whether to show a progress bar with the current recommendation.
        callback: Called with the optimizer after every experiment.
        **settings: As for ``Optimizer``: surrogate, acquisition, deployment, measure,
            outcomes and others.

    Returns:
        The recommended design, its expected value, and all observations. Ctrl-C ends the
        optimization early and returns the result so far.

    Raises:
        ExperimentError: If ``f`` raises an exception, airbo cannot find the next design, or all
            experiments failed. The error holds the optimizer.
    """
    settings |= {"progress": progress, "callback": callback}
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
    **settings: Any,
) -> Result:
    budget = whole_number("budget", budget, least=1)
    space = space if isinstance(space, Space) else Space(space)
    _check_direction(direction, settings.get("outcomes"))
    optimizer = Optimizer(space, uncertainty, direction, seed=seed, **settings)
    with _Bar(direction, budget, progress) as bar:
        try:
            for _ in range(budget):
                _step(f, optimizer)
                if callback is not None:
                    callback(optimizer)
                bar.advance(optimizer)
        except KeyboardInterrupt:
            if len(_not_measured(optimizer)) == len(optimizer.outcomes):
                raise
    if missing := _not_measured(optimizer):
        raise ExperimentError(f"No experiment measured {quoted(missing)}.", optimizer)
    best = optimizer.recommend()
    return Result(best.design, best.mean, best.std, optimizer)


def _step(f: Callable[[Design], Reported], optimizer: Optimizer) -> None:
    try:
        design = optimizer.ask()
    except Exception as error:
        what = f"Choosing the next design raised {_described(error)}"
        raise ExperimentError(what, optimizer) from error
    try:
        optimizer.tell(design, f(dict(design)))
    except Exception as error:
        what = f"The experiment at {design} raised {_described(error)}"
        raise ExperimentError(what, optimizer, design) from error


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


class _Bar:
    """A progress bar that shows the current recommendation."""

    def __init__(self, direction: Direction, budget: int, visible: bool) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn(direction),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}"),
            console=console,
            disable=not visible,
        )
        self._task = self._progress.add_task(direction, total=budget, best="")
        # outside a terminal, only the last state is printed
        self._visible = visible and console.is_terminal

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.stop()

    def advance(self, optimizer: Optimizer) -> None:
        """Count one experiment and show the best design so far."""
        best = ""
        if self._visible and not _not_measured(optimizer):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TooLittleDataWarning)
                best = _line(optimizer.recommend("observed"))
        self._progress.update(self._task, advance=1, best=best)


def _line(best: Recommendation) -> str:
    design = ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in best.design.items()
    )
    return f"best so far: {design} → {best.mean:.4g} ± {best.std:.2g}"
