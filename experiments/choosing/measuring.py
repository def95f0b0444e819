"""How far to trust measures of f(x') over P_x: do their 90% intervals hold the truth?"""

from dataclasses import dataclass, field
from statistics import mean
from typing import Any, ClassVar

import torch
from torch import Tensor

import airbo
from airbo.measures import CVaR, InSpec, Mean, MeanStd, Quantile
from airbo.observed import Direction
from airbo.problems import RELIABLE, Problem, problem
from airbo.uncertainty import InputUncertainty, Normal, Relative, base_draws
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.subjects.internals import FunctionDraws, Measure, ReliableDesign, corrected

PROBLEMS = ("rkhs", "double-peak", "bumped-bowl", "hills", "cliff", "branin", "hartmann")
WAYS = ("naive", "corrected")
N_OBSERVATIONS, N_QUERIES, N_PAIRS, N_EXECUTED = 70, 40, 64, 256


class Measuring(Experiment):
    """Measures of random designs, from unseen executed inputs or exact experiments."""

    name = "measuring"
    paper = "beyond the paper"
    title = "Measures and their intervals"
    repeats = 4
    problems: tuple[str, ...] = PROBLEMS

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all problems, with executed inputs that nobody saw and with exact ones."""
        return [
            Task(
                self.name,
                f"{name}, {group}",
                seed,
                {"problem": name, "exact": group == "exact", "n": 15 if quick else N_OBSERVATIONS},
            )
            for group in ("unseen", "exact")
            for name in (self.problems[:2] if quick else self.problems)
            for seed in range(repeats)
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Compare measures of draws with those of the true function."""
        about = subject(task.config["problem"])
        optimizer, X = observed(about, task.config["n"], task.config["exact"], task.seed)
        sign = 1 if about.direction == "maximize" else -1
        values = sign * torch.tensor(optimizer.observations["value"], dtype=torch.float64)
        true = sign * about(landed(about, X, 4096))
        found: dict[str, Any] = {}
        for way, drawn in draws(optimizer, about, X, task.seed).items():
            found[way] = {
                name: scores(measure, drawn, true, values.std())
                for name, measure in measures_of(values).items()
            }
        step(1, 1)
        return found

    def summary(self, results: Results) -> str:
        """Tabulate how many intervals hold the truth, before and after the correction."""
        parts = []
        for group in ("unseen", "exact"):
            labels = [label for label in results.labels if label.endswith(group)]
            if not labels:
                continue
            names = list(results.of(labels[0])[0]["naive"])
            rows = [
                [label.removesuffix(f", {group}"), *(_cell(results, [label], n) for n in names)]
                for label in labels
            ]
            rows.append(["**all**", *(_cell(results, labels, name) for name in names)])
            parts.append(f"### Experiments: {group}\n\n{table.markdown(['', *names], rows)}")
        return (
            f"Share of true measures in the 90% interval, of {N_QUERIES} random designs after "
            f"{N_OBSERVATIONS} observations: naive draws → with the corrected spread; in brackets, "
            "the RMSE in standard deviations of the observed values (for shares: of the share).\n\n"
            + "\n\n".join(parts)
        )


def observed(about: Problem, n: int, exact: bool, seed: int) -> tuple[airbo.Optimizer, Tensor]:
    """Return an optimizer that knows random experiments, and designs to ask it about."""
    generator = torch.Generator().manual_seed(seed)
    low, high = about.bounds
    spread = torch.rand(n + N_QUERIES, len(low), generator=generator, dtype=torch.float64)
    X = low + (high - low) * spread
    y = about(X[:n]) if exact else about.observe(X[:n], generator)
    names = [f"x{i}" for i in range(len(low))]
    optimizer = airbo.Optimizer(
        {name: (a, b) for name, a, b in zip(names, low.tolist(), high.tolist(), strict=True)},
        None if exact else about.uncertainty,
        about.direction,
        deployment=about.uncertainty,
    )
    designs = [dict(zip(names, x, strict=True)) for x in X[:n].tolist()]
    optimizer.tell(designs, y.tolist())
    return optimizer, X[n:]


def landed(about: Problem, X: Tensor, n: int) -> Tensor:
    """Return executed inputs of designs."""
    return about.uncertainty.perturb(
        X, base_draws(n, about.uncertainty.n_base(X.shape[-1]), seed=5)
    )


def draws(optimizer: airbo.Optimizer, about: Problem, X: Tensor, seed: int) -> dict[str, Tensor]:
    """Return draws of the values at executed inputs, as they come and corrected."""
    low, high = about.bounds
    executed = (landed(about, X, N_EXECUTED) - low) / (high - low)
    model: Any = optimizer.model
    torch.manual_seed(seed)
    with torch.no_grad():
        drawn = FunctionDraws(model, N_PAIRS)(executed)
    e = drawn.deviations
    return {"naive": torch.cat([drawn.mean + e, drawn.mean - e]), "corrected": corrected(drawn)}


def measures_of(values: Tensor) -> dict[str, Measure | None]:
    """Return what is measured; limits at the median of the observed values."""
    return {
        "mean": Mean(),
        "standard deviation": None,
        "mean - 2 sd": MeanStd(2.0),
        "quantile 0.9": Quantile(0.9),
        "CVaR 0.8": CVaR(0.8),
        "in spec": InSpec(low=values.median().item()),
    }


def scores(measure: Measure | None, drawn: Tensor, true: Tensor, scale: Tensor) -> dict[str, float]:
    """Return the share of true measures in the 90% interval, and the error of the mean draw."""
    found, truth = (v.std(-1) if measure is None else measure.of(v) for v in (drawn, true))
    low, high = found.quantile(0.05, dim=0), found.quantile(0.95, dim=0)
    # executed inputs are samples: a share is known to one of them
    slack = 1 / N_EXECUTED if isinstance(measure, InSpec) else 0.02 * scale.item()
    covered = (truth >= low - slack) & (truth <= high + slack)
    error = (found.mean(0) - truth).square().mean().sqrt()
    unit = 1.0 if isinstance(measure, InSpec) else scale.item()
    return {"covered": covered.double().mean().item(), "rmse": error.item() / unit}


def _cell(results: Results, labels: list[str], name: str) -> str:
    each = [result for label in labels for result in results.of(label)]
    covered, rmse = (
        [mean(result[way][name][score] for result in each) for way in WAYS]
        for score in ("covered", "rmse")
    )
    return f"{covered[0]:.0%} → {covered[1]:.0%} ({rmse[0]:.2f} → {rmse[1]:.2f})"


class HeldOut(Measuring):
    """The same on problems that nobody looked at while the correction was chosen."""

    name = "measuring-held-out"
    title = "Measures and their intervals, on problems that were held out"
    repeats = 2
    problems = ("wave", "welded-beam", "pressure-vessel", "spring")


@dataclass(frozen=True)
class NarrowestMargin(Problem):
    """The smallest margin of a machine part to any of its limits, with errors of 10%."""

    name: ClassVar[str] = "narrowest margin"
    direction: ClassVar[Direction] = "maximize"

    part: ReliableDesign
    uncertainty: InputUncertainty = field(default_factory=lambda: Relative(Normal(0.1)))

    @property
    def bounds(self) -> Tensor:
        """Those of the part."""
        return self.part.bounds

    def __call__(self, X: Tensor) -> Tensor:
        """Return the smallest margin of parts as they were made."""
        return self.part.margins(X).amin(-1)


def subject(name: str) -> Problem:
    """Return a benchmark problem, or the narrowest margin of a part."""
    return NarrowestMargin(RELIABLE[name]) if name in RELIABLE else problem(name)


MEASURING, HELD_OUT = Measuring(), HeldOut()
