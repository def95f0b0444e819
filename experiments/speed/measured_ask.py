"""An ask by a measure beside one by the mean: ``python -m experiments.speed.measured_ask``."""

import time
from statistics import mean

import torch

from airbo.measures import CVaR, InSpec, Mean, Measure, Quantile
from airbo.optimizer import Optimizer
from airbo.problems import Problem, problem

PROBLEMS = ("double-peak", "hills", "hartmann")
MEASURES: tuple[Measure, ...] = (Mean(), Quantile(0.9), CVaR(0.9), InSpec(low=0.0))
N_KNOWN, N_ASKS = 60, 3


def seconds(about: Problem, measure: Measure) -> float:
    """Return the processor time of an ask with a new observation, the fit included."""
    generator = torch.Generator().manual_seed(0)
    low, high = about.bounds
    spread = torch.rand(N_KNOWN + N_ASKS, len(low), generator=generator, dtype=torch.float64)
    X = low + (high - low) * spread
    values = about.observe(X, generator).tolist()
    names = [f"x{i}" for i in range(len(low))]
    designs = [dict(zip(names, x, strict=True)) for x in X.tolist()]
    ends = zip(low.tolist(), high.tolist(), strict=True)
    space = dict(zip(names, ends, strict=True))
    optimizer = Optimizer(space, about.uncertainty, about.direction, measure=measure)
    optimizer.tell(designs[:N_KNOWN], values[:N_KNOWN])
    optimizer.copy().ask()
    found = []
    for design, value in zip(designs[N_KNOWN:], values[N_KNOWN:], strict=True):
        optimizer.tell(design, value)
        start = time.process_time()
        optimizer.copy().ask()
        found.append(time.process_time() - start)
    return mean(found)


def main() -> None:
    """Print ratios within one run."""
    torch.set_num_threads(1)
    for name in PROBLEMS:
        base = 0.0
        for measure in MEASURES:
            taken = seconds(problem(name), measure)
            base = base or taken
            print(f"{name:12} {measure!s:32} {taken:6.2f} s  {taken / base:.1f}", flush=True)


if __name__ == "__main__":
    main()
