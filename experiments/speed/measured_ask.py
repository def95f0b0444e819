"""Asks by a measure, or with limits, beside one by the mean.

Run ``python -m experiments.speed.measured_ask``.
"""

import time
from collections.abc import Mapping
from statistics import mean
from typing import Any

import torch

from airbo import AtLeast, Maximize, Minimize
from airbo.measures import CVaR, InSpec, Mean, Measure, Quantile
from airbo.optimizer import Optimizer
from airbo.outcomes import Want
from airbo.problems import Problem, problem

PROBLEMS = ("double-peak", "hills", "hartmann")
MEASURES: tuple[Measure, ...] = (Mean(), Quantile(0.9), CVaR(0.9), InSpec(low=0.0))
OUTCOMES: dict[str, dict[str, Want]] = {
    "one limit": {"a": Maximize(), "b": AtLeast(0.0)},
    "two limits": {"a": Maximize(), "b": AtLeast(0.0), "c": AtLeast(-1.0)},
    "two objectives": {"a": Maximize(), "b": Minimize()},
    "two objectives, one limit": {"a": Maximize(), "b": Minimize(), "c": AtLeast(0.0)},
}
"""All outcomes are observations of one problem, each with its own executed inputs."""
N_KNOWN, N_ASKS = 60, 3


def seconds(about: Problem, **wanted: Any) -> float:
    """Return the processor time of an ask with a new observation, all fits included.

    Args:
        about: The problem.
        **wanted: The measure or the outcomes of the optimizer.
    """
    generator = torch.Generator().manual_seed(0)
    low, high = about.bounds
    spread = torch.rand(N_KNOWN + N_ASKS, len(low), generator=generator, dtype=torch.float64)
    X = low + (high - low) * spread
    names = [f"x{i}" for i in range(len(low))]
    designs = [dict(zip(names, x, strict=True)) for x in X.tolist()]
    ends = zip(low.tolist(), high.tolist(), strict=True)
    space = dict(zip(names, ends, strict=True))
    if "outcomes" not in wanted:
        wanted["direction"] = about.direction
    optimizer = Optimizer(space, about.uncertainty, **wanted)
    values = _observed(about, X, generator, wanted.get("outcomes"))
    optimizer.tell(designs[:N_KNOWN], values[:N_KNOWN])
    optimizer.copy().ask()
    found = []
    for design, value in zip(designs[N_KNOWN:], values[N_KNOWN:], strict=True):
        optimizer.tell(design, value)
        start = time.process_time()
        optimizer.copy().ask()
        found.append(time.process_time() - start)
    return mean(found)


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


def main() -> None:
    """Print ratios within one run."""
    torch.set_num_threads(1)
    for name in PROBLEMS:
        base = 0.0
        rows: list[tuple[str, dict[str, Any]]] = [(str(m), {"measure": m}) for m in MEASURES]
        rows += [(what, {"outcomes": outcomes}) for what, outcomes in OUTCOMES.items()]
        for what, wanted in rows:
            taken = seconds(problem(name), **wanted)
            base = base or taken
            print(f"{name:12} {what:32} {taken:6.2f} s  {taken / base:.1f}", flush=True)


if __name__ == "__main__":
    main()
