"""Parts that keep their limits: are recommended designs reliable, and what do they cost?"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.harness import draw, table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.harness.palette import style
from experiments.measures.cases import GROUPS
from experiments.measures.reliable_loops import METHODS
from experiments.subjects.reliability import LEVEL, RELIABLE, ReliableDesign

ON_LOG_SCALE = ("welded-beam", "spring")
"""Parts whose dimensions range over a factor of 40 or more; they are also tried on a log scale."""


@dataclass(frozen=True)
class Part:
    """A part, and the scale of its dimensions while it is designed."""

    problem: str
    log: bool = False

    @property
    def name(self) -> str:
        return f"{self.problem}, log scale" if self.log else self.problem

    @property
    def config(self) -> dict[str, Any]:
        return {"problem": self.problem, **({"scale": "log"} if self.log else {})}


PARTS = (*map(Part, RELIABLE), *(Part(name, log=True) for name in ON_LOG_SCALE))


@dataclass(frozen=True)
class Reliability(Experiment):
    """All methods on BoTorch's constrained test functions, with tolerances."""

    name: str = "reliability"
    paper: str = "beyond the paper"
    title: str = "Reliability-based design under tolerances of 0.5% and 2%"
    n_steps: int = 20
    repeats: int = 2

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all methods on all problems, the repeats one after another, few limits first."""
        n_steps = 1 if quick else self.n_steps
        parts = sorted(PARTS, key=lambda p: (RELIABLE[p.problem].n_limits, RELIABLE[p.problem].d))
        return [
            Task(
                self.name,
                f"{part.name}, {group}: {method}",
                seed,
                {**part.config, "group": group, "method": method, "n_steps": n_steps},
                n_steps,
            )
            for seed in range(1 if quick else repeats)
            for part in (parts[:1] if quick else parts)
            for group in GROUPS
            for method in METHODS
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Optimize once; hold the recommended design against the truth."""
        config = task.config
        problem, exact = RELIABLE[config["problem"]], config["group"] == "exact"
        n_initial = 4 * (problem.d + 1)
        log = config.get("scale") == "log"
        loop = METHODS[config["method"]](problem, exact, n_initial, task.seed, log=log)
        seconds = []
        for i in range(n_initial + config["n_steps"]):
            begun = time.process_time()
            design = loop.ask()
            seconds.append(time.process_time() - begun)
            loop.tell(design, observe(problem, design, exact, task.seed, i))
            step(max(i + 1 - n_initial, 0), config["n_steps"])
        found = loop.outcome()
        X = torch.tensor([found], dtype=torch.float64)
        return {
            "recommended": np.round(found, 6).tolist(),
            "reliability": round(problem.reliability(X).amin().item(), 5),
            "gap": round(problem.cost_gap(X).item(), 5),
            "seconds": round(float(np.median(seconds[n_initial:])), 4),
        }

    def summary(self, results: Results) -> str:
        """Tabulate how many recommended designs are reliable, and what those cost more."""
        parts = []
        header = ["problem", *(f"{method}: reliable, cost more by" for method in METHODS)]
        for group in GROUPS:
            rows = [
                [part.name, *(_cell(results.of(f"{part.name}, {group}: {m}")) for m in METHODS)]
                for part in PARTS
            ]
            parts += [f"## {group.capitalize()} experiments", table.markdown(header, rows)]
        return "\n\n".join(parts)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw reliability and cost of every recommended design."""
        path = folder / f"{self.name}.png"
        with draw.picture(path, 2.4 * len(PARTS), 6) as figure:
            axes = figure.subplots(len(GROUPS), len(PARTS), squeeze=False)
            for row, group in zip(axes, GROUPS, strict=True):
                for ax, part in zip(row, PARTS, strict=True):
                    for method in METHODS:
                        each = results.of(f"{part.name}, {group}: {method}")
                        colour, marker = style(method)
                        x = [100 * r["gap"] for r in each]
                        y = [r["reliability"] for r in each]
                        ax.scatter(x, y, color=colour, marker=marker, alpha=0.6, label=method)
                    ax.axhline(LEVEL, color=draw.TRUTH, linestyle=":", linewidth=1)
                    ax.set_title(f"{part.name}, {group}", fontsize=9)
                    ax.set(xlabel="cost above the best [%]", ylabel="P(worst limit)")
                    ax.set(ylim=(-0.05, 1.05))
            named = axes[0, 0].get_legend_handles_labels()
            figure.legend(*named, loc="outside upper center", ncols=len(METHODS), fontsize=8)
        return [path]


def observe(
    problem: ReliableDesign, design: list[float], exact: bool, seed: int, index: int
) -> list[float]:
    """Make one part and measure it; its draw is the same for all methods."""
    X = torch.tensor([design], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1_000_003 * seed + index)
    base = torch.rand(
        1, problem.uncertainty.n_base(problem.d), generator=generator, dtype=torch.float64
    )
    made = X if exact else problem.uncertainty.perturb(X, base)[0]
    row: list[float] = problem.measured(made)[0].tolist()
    return row


def _cell(results: list[dict[str, Any]]) -> str:
    if not results:
        return "–"
    reliable = [r for r in results if r["reliability"] >= LEVEL]
    share = f"{len(reliable)} of {len(results)}"
    if not reliable:
        return share
    return f"{share}, {100 * float(np.median([r['gap'] for r in reliable])):.0f}%"


RELIABILITY = Reliability()
