"""Asks by a measure, with limits or several objectives, beside one by the mean."""

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from rich.progress import Progress

from airbo import AtLeast, Maximize, Minimize
from airbo.measures import CVaR, InSpec, Mean, Measure, Quantile
from airbo.optimizer import Optimizer
from airbo.outcomes import Want
from airbo.problems import Problem, problem
from experiments.speed import timing

PROBLEMS = ("double-peak", "hills", "hartmann")
MEAN = "mean"
MEASURES: dict[str, Measure] = {
    MEAN: Mean(),
    "quantile": Quantile(0.9),
    "CVaR": CVaR(0.9),
    "in spec": InSpec(low=0.0),
}
TWO: dict[str, dict[str, Want]] = {
    "one limit": {"a": Maximize(), "b": AtLeast(0.0)},
    "two objectives": {"a": Maximize(), "b": Minimize()},
}
THREE: dict[str, dict[str, Want]] = {
    "two limits": {"a": Maximize(), "b": AtLeast(0.0), "c": AtLeast(-1.0)},
    "two objectives, one limit": {"a": Maximize(), "b": Minimize(), "c": AtLeast(0.0)},
}
"""All outcomes are observations of one problem, each with its own executed inputs."""
N_KNOWN, N_ASKS = 60, {True: 1, False: 3}


def measure(quick: bool, bar: Progress) -> dict[str, list[dict[str, float]]]:
    """Return the seconds of an ask, by problem, round and what decides."""
    chosen = PROBLEMS[:1] if quick else PROBLEMS
    tracked = bar.track(chosen, description="asks by a measure")
    return {name: asks(problem(name), N_ASKS[quick]) for name in tracked}


def asks(about: Problem, n_rounds: int) -> list[dict[str, float]]:
    """Time an ask after every further observation, all fits included; all ways take turns."""
    ways: dict[str, dict[str, Any]] = {name: {"measure": m} for name, m in MEASURES.items()}
    ways |= {name: {"outcomes": o} for name, o in {**TWO, **THREE}.items()}
    told = {name: _Told(about, n_rounds, wanted) for name, wanted in ways.items()}
    for one in told.values():
        one.optimizer.copy().ask()  # warm up
    found = []
    for _ in range(n_rounds):
        for one in told.values():
            one.tell_next()
        found.append({n: timing.seconds(one.optimizer.copy().ask) for n, one in told.items()})
    return found


class _Told:
    """An optimizer that has been told of all but the last experiments."""

    def __init__(self, about: Problem, n_left: int, wanted: dict[str, Any]) -> None:
        generator = torch.Generator().manual_seed(0)
        low, high = about.bounds
        n, d = N_KNOWN + n_left, len(low)
        X = low + (high - low) * torch.rand(n, d, generator=generator, dtype=torch.float64)
        names = [f"x{i}" for i in range(d)]
        designs = [dict(zip(names, x, strict=True)) for x in X.tolist()]
        values = _observed(about, X, generator, wanted.get("outcomes"))
        space = dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))
        if "outcomes" not in wanted:
            wanted = {**wanted, "direction": about.direction}
        self.optimizer = Optimizer(space, about.uncertainty, **wanted)
        self.optimizer.tell(designs[:N_KNOWN], values[:N_KNOWN])
        self.left = itertools.islice(zip(designs, values, strict=True), N_KNOWN, None)

    def tell_next(self) -> None:
        self.optimizer.tell(*next(self.left))


def _observed(
    about: Problem,
    X: torch.Tensor,
    generator: torch.Generator,
    outcomes: Mapping[str, Want] | None,
) -> list[Any]:
    if outcomes is None:
        return about.observe(X, generator).tolist()
    columns = {name: about.observe(X, generator).tolist() for name in outcomes}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
