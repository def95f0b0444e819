"""Do recommended designs keep their limits under tolerances, and what do they cost?

Two problems with published optima: the constrained polynomial of Bertsimas, Nohadani and Teo, as in
the study of CARBO, and the speed reducer in the form of the literature on reliability.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from botorch.test_functions.synthetic import SpeedReducer
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

import airbo
from airbo.seeds import reproducible, stream, stream_seed
from airbo.uncertainty import InputUncertainty, Normal, Uniform, base_draws
from experiments.harness import draw, table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.palette import style
from experiments.measures.cases import GROUPS
from experiments.subjects.cases import Design
from experiments.subjects.published import Polynomial

N_TRUE = 2**15
"""Executed inputs behind a true probability."""
TOLERATED = 0.005
"""A limit counts as kept if its probability is at most this much below its level."""
N_RESTARTS, N_RAW = 6, 128


@dataclass(frozen=True)
class Part:
    """A cost to minimize and margins that must be positive with a probability."""

    name: str
    ranges: tuple[tuple[float, float], ...]
    measured: Callable[[Tensor], Tensor]
    """Cost and margins of executed inputs, (..., d) -> (..., 1 + limits)."""
    n_limits: int
    uncertainty: InputUncertainty
    level: float
    best: float
    """The published expected cost of the cheapest design that keeps all limits."""

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        return torch.tensor(self.ranges, dtype=torch.float64).T

    @property
    def d(self) -> int:
        return len(self.ranges)

    def executed(self, design: Design, seed: int, i: int) -> Tensor:
        """Return where experiment number i lands: the same error for every method."""
        random = stream(seed, f"executed input of {self.name}", i)
        base = torch.from_numpy(random.random((1, self.uncertainty.n_base(self.d))))
        X = torch.tensor([design], dtype=torch.float64)
        return self.uncertainty.perturb(X, base.clamp(1e-12, 1 - 1e-12))[0, 0]

    def judge(self, design: Design) -> tuple[float, float]:
        """Return the expected cost, and the least probability of a limit."""
        X = torch.tensor([design], dtype=torch.float64)
        landed = self.uncertainty.perturb(X, base_draws(N_TRUE, self.uncertainty.n_base(self.d)))
        values = self.measured(landed[0])
        return values[:, 0].mean().item(), (values[:, 1:] >= 0).double().mean(0).min().item()


def polynomial(X: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n 3"]:
    """Return the polynomial and both margins."""
    x, y = X.unbind(-1)
    first = 10.125 - (x - 1.5) ** 4 - (y - 1.5) ** 4
    second = (2.5 - x) ** 3 + (y + 1.5) ** 3 - 15.75
    return torch.stack([Polynomial.formula(x, y), first, second], dim=-1)


def speed_reducer(X: Float[Tensor, "*n 7"]) -> Float[Tensor, "*n 12"]:
    """Return the weight and eleven margins."""
    function = SpeedReducer(dtype=X.dtype, bounds=[(-1e9, 1e9)] * 7)
    flat = X.reshape(-1, 7)
    rows = torch.cat(
        [function.evaluate_true(flat).unsqueeze(-1), function.evaluate_slack_true(flat)], -1
    )
    return rows.reshape(*X.shape[:-1], -1)


REDUCER = tuple((float(low), float(high)) for low, high in SpeedReducer._bounds)
PARTS = {
    part.name: part
    for part in (
        Part("polynomial", ((-1.0, 4.0),) * 2, polynomial, 2, Uniform(-0.5, 0.5), 0.95, 4.496),
        Part("speed-reducer", REDUCER, speed_reducer, 11, Normal(0.005), 0.99865, 3039.73),
    )
}


class AirboLimits:
    """``airbo.Optimizer`` with limits that must hold with a probability."""

    def __init__(self, part: Part, exact: bool, seed: int) -> None:
        """Start without observations."""
        space = {f"x{i}": ends for i, ends in enumerate(part.ranges)}
        self.names = ["cost", *(f"margin{k}" for k in range(part.n_limits))]
        limits = {name: airbo.AtLeast(0.0, probability=part.level) for name in self.names[1:]}
        self.optimizer = airbo.Optimizer(
            space,
            None if exact else part.uncertainty,
            outcomes={"cost": airbo.Minimize(), **limits},
            deployment=part.uncertainty if exact else None,
            n_initial=1,
            seed=stream_seed(seed, "optimizer"),
        )

    def ask(self) -> Design:
        return list(self.optimizer.ask().values())

    def tell(self, design: Design, row: Sequence[float]) -> None:
        named = dict(zip(self.optimizer.space.names, design, strict=True))
        self.optimizer.tell(named, dict(zip(self.names, row, strict=True)))

    def recommend(self) -> Design:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(self.optimizer.recommend().design.values())


class BoTorchLimits:
    """``SingleTaskGP`` and constrained qLogNEI, as documented: limits of the design itself."""

    def __init__(self, part: Part, exact: bool, seed: int) -> None:
        """Start without observations."""
        self.part, self.seed = part, stream_seed(seed, "optimizer")
        self.low, high = part.bounds
        self.width = high - self.low
        self.designs: list[Design] = []
        self.rows: list[Sequence[float]] = []

    def ask(self) -> Design:
        with reproducible(self.seed, "ask", len(self.rows)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Z = self._to_cube(self.designs)
            better = qLogNoisyExpectedImprovement(
                self._fitted(Z),
                Z,
                objective=GenericMCObjective(partial(_minus, 0)),
                constraints=[partial(_minus, k + 1) for k in range(self.part.n_limits)],
                prune_baseline=True,
            )
            cube = torch.stack([torch.zeros_like(self.low), torch.ones_like(self.low)])
            best, _ = optimize_acqf(better, cube, 1, num_restarts=N_RESTARTS, raw_samples=N_RAW)
        design: Design = (self.low + self.width * best.detach())[0].tolist()
        return design

    def tell(self, design: Design, row: Sequence[float]) -> None:
        self.designs.append(design)
        self.rows.append(row)

    def recommend(self) -> Design:
        """Return the cheapest design tried whose mean margins are positive, by the model."""
        Z = self._to_cube(self.designs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self._fitted(Z)
            with torch.no_grad():
                mean = model.posterior(Z).mean
        margin = mean[:, 1:].amin(-1)
        kept = margin >= 0
        i = int(
            torch.where(kept, mean[:, 0], torch.inf).argmin() if kept.any() else margin.argmax()
        )
        return self.designs[i]

    def _fitted(self, Z: Tensor) -> SingleTaskGP:
        model = SingleTaskGP(Z, torch.tensor(self.rows, dtype=torch.float64))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _to_cube(self, designs: Any) -> Tensor:
        return (torch.tensor(designs, dtype=torch.float64) - self.low) / self.width


def _minus(k: int, Y: Tensor, X: Tensor | None = None) -> Tensor:
    """Return what BoTorch maximizes of a cost, and what it keeps below zero of a margin."""
    return -Y[..., k]


METHODS: dict[str, Any] = {"airbo": AirboLimits, "BoTorch": BoTorchLimits}


class Limits(Experiment):
    """Both methods on both parts, where experiments land like the product, or are exact."""

    name = "limits"
    paper = "beyond the paper"
    title = "Designs that keep their limits under tolerances"
    repeats = 6
    n_steps = 25

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all methods, the repeats one after another."""
        n = 1 if quick else self.n_steps
        return [
            Task(
                self.name,
                f"{part}, {group}: {method}",
                seed,
                {"part": part, "group": group, "method": method, "n_steps": n},
            )
            for seed in range(repeats)
            for part in (list(PARTS)[:1] if quick else PARTS)
            for group in GROUPS
            for method in METHODS
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize once; judge the recommended design by the truth."""
        config, seed = task.config, task.seed
        part, exact = PARTS[config["part"]], config["group"] == "exact"
        loop = METHODS[config["method"]](part, exact, seed)
        low, high = part.bounds
        chance = stream_seed(seed, "first designs") % 2**31
        first = SobolEngine(part.d, scramble=True, seed=chance).draw(4 * (part.d + 1))
        designs = (low + (high - low) * first.double()).tolist()
        for i in range(len(designs) + config["n_steps"]):
            design = designs[i] if i < len(designs) else loop.ask()
            landed = torch.tensor(design).double() if exact else part.executed(design, seed, i)
            loop.tell(design, part.measured(landed).tolist())
        found = loop.recommend()
        cost, probability = part.judge(found)
        return {
            "recommended": [float(f"{x:.6g}") for x in found],
            "cost": float(f"{cost:.6g}"),
            "probability": round(probability, 5),
        }

    def summary(self, results: Results) -> str:
        """Tabulate how many recommended designs keep all limits, and what those cost more."""
        rows = [
            [f"{part.name}, {group}", *(_cell(part, results.of(f"{part.name}, {group}: {m}"))
             for m in METHODS)]
            for part in PARTS.values() for group in GROUPS
        ]  # fmt: skip
        return (
            "How many recommended designs truly keep all limits, and by how much the median one of "
            "those costs more than the published optimum.\n\n"
            f"{table.markdown(['part, experiments', *METHODS], rows)}"
        )

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw cost and probability of every recommended design."""
        path = folder / f"{self.name}.png"
        with draw.picture(path, 9, 6) as figure:
            axes = figure.subplots(len(PARTS), len(GROUPS), squeeze=False)
            for row, part in zip(axes, PARTS.values(), strict=True):
                for ax, group in zip(row, GROUPS, strict=True):
                    for method in METHODS:
                        each = results.of(f"{part.name}, {group}: {method}")
                        shade, marker = style(method)
                        x, y = [r["cost"] for r in each], [r["probability"] for r in each]
                        ax.scatter(x, y, color=shade, marker=marker, alpha=0.6, label=method)
                    ax.axhline(part.level, color=draw.TRUTH, linestyle=":", linewidth=1)
                    ax.axvline(part.best, color=draw.TRUTH, linestyle=":", linewidth=1)
                    ax.set_title(f"{part.name}, {group}", fontsize=9)
                    ax.set(xlabel="expected cost", ylabel="P(worst limit)")
            axes[0, 0].legend(fontsize=8)
        return [path]


def _cell(part: Part, results: list[dict[str, Any]]) -> str:
    if not results:
        return "–"
    kept = [r["cost"] for r in results if r["probability"] >= part.level - TOLERATED]
    more = f", {100 * (np.median(kept) - part.best) / abs(part.best):+.1f}%" if kept else ""
    return f"{len(kept)} of {len(results)}{more}"


LIMITS = Limits()
