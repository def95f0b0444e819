"""One run of one method on one case, and the experiments that are made of such runs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airbo.seeds import stream
from experiments.benchmark import plan, report
from experiments.harness import pages
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.statistics import Z_90
from experiments.subjects.cases import Case, find_case, slip_case
from experiments.subjects.loops import AirboLoop, Loop

LOOKS = (0.25, 0.5, 0.75, 1.0)
"""Shares of the evaluations after the first designs, after which the answer is taken."""
N_NEAR, NEAR = 16, 0.05
"""Designs near the recommended one, and how near they are, relative to the ranges."""


def optimize(
    case: Case, start: plan.Start, repeat: int, budget: int, logged: bool = False
) -> dict[str, Any]:
    """Run one method once; compare its answers on the way with the truth."""
    loop, first = start(case, repeat), case.first_designs(repeat)
    n_first, n = len(first), max(budget, len(first) + 1)
    looks = sorted({n_first + round(share * (n - n_first)) for share in LOOKS})
    answers, asking, reached = [], [], []
    begun = time.process_time()
    for i in range(n):
        before = time.process_time()
        design = first[i] if i < n_first else loop.ask()
        asking.append(time.process_time() - before)
        executed = case.executed(design, repeat, i)
        value = case.value(executed, repeat, i)
        loop.tell(design, value, executed if logged else None)
        reached.append(case.sign * value)
        if i + 1 in looks:
            answers.append(loop.recommend())
    return {
        "at": looks,
        "regret": _short(case.regrets(answers)),
        "design": _short(answers[-1]),
        **by_policy(case, loop),
        "along": _short([along(case, reached)])[0],
        **covered(case, loop, answers[-1], repeat),
        "ask_seconds": _short([float(np.median(asking[n_first:]))])[0],
        "seconds": _short([time.process_time() - begun])[0],
    }


def along(case: Case, reached: list[float]) -> float:
    """Return the mean gap of the best executed value so far, as the study of slips has it.

    The study takes the area under the gap by the trapezoidal rule, from the first evaluation to the
    last one, first designs included, and divides it by its width.
    """
    gap = case.sign * case.truth["value"] - np.maximum.accumulate(reached)
    return float(np.trapezoid(gap) / (len(gap) - 1))


def by_policy(case: Case, loop: Loop) -> dict[str, Any]:
    """Return the regret of airbo's answer by both policies: a design tried, or any design."""
    if not isinstance(loop, AirboLoop):
        return {}
    answers = [loop.recommend("observed"), loop.recommend("anywhere")]
    return dict(zip(("observed", "anywhere"), _short(case.regrets(answers)), strict=True))


def covered(case: Case, loop: Loop, design: list[float], repeat: int) -> dict[str, Any]:
    """Say whether 90% intervals hold the truth: at the recommended design, and near it."""
    low, high = case.problem.bounds
    random = stream(case.seed(repeat), "designs near the answer")
    apart = torch.from_numpy(random.uniform(-NEAR, NEAR, (N_NEAR, case.d))) * (high - low)
    here = torch.tensor([design], dtype=torch.float64)
    X = torch.cat([here, (here + apart).clamp(low, high)])
    predicted = loop.predict(X)
    if predicted is None:
        return {}
    mean, std = predicted
    held = np.abs(case.expected(X).numpy() - mean) <= Z_90 * std
    return {"covered": bool(held[0]), "covered_near": round(float(held[1:].mean()), 3)}


def _short(values: list[float]) -> list[float]:
    return [float(f"{v:.5g}") for v in values]


@dataclass(frozen=True)
class Comparison(Experiment):
    """Methods on cases, all from the same first designs, values and errors."""

    name: str
    title: str
    cases: tuple[str, ...]
    methods: Mapping[str, plan.Start]
    repeats: int
    paper: str = "beyond the paper"

    def tasks(self, repeats: int) -> list[Task]:
        """List the repeats one after another, so that a part of them is a fair comparison."""
        return [
            Task(
                self.name,
                f"{case}: {method}",
                repeat,
                {"case": case, "method": method, "budget": find_case(case).budget},
            )
            for repeat in range(repeats)
            for case in self.cases
            for method in self.methods
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize once."""
        config = task.config
        start, case = self.methods[config["method"]], find_case(config["case"])
        return optimize(case, start, task.seed, config["budget"])

    def summary(self, results: Results) -> str:
        """Tabulate the regrets, who is ahead, and how well the intervals hold."""
        return report.comparison(results)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the regrets of all methods by kind of case."""
        return [report.draw_kinds(results, folder / f"{self.name}-kinds.png")]

    def excerpts(self, results: Results) -> dict[str, tuple[Path, str]]:
        """Return who is ahead where, and how well the intervals hold."""
        return {
            "benchmark": (pages.BENCHMARK, report.benchmark_excerpt(results)),
            "calibration": (pages.BENCHMARK, report.calibration(results)),
        }


@dataclass(frozen=True)
class Choice(Comparison):
    """Candidates for the default; the summary applies the rule."""

    def tasks(self, repeats: int) -> list[Task]:
        """List all repeats; of a candidate that is too slow with slips, a few without them."""
        return [
            task
            for task in super().tasks(repeats)
            if task.config["method"] not in plan.TOO_SLOW
            or (task.config["case"] in plan.WITHOUT_SLIPS and task.seed < plan.FIRST_LOOK)
        ]

    def summary(self, results: Results) -> str:
        """Tabulate the regrets and apply the rule."""
        return f"{report.choice(results, tuple(self.methods))}\n\n{report.comparison(results)}"

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw nothing: one table says it all."""
        return []

    def excerpts(self, results: Results) -> dict[str, tuple[Path, str]]:
        """Return what the rule says."""
        return {"choose": (pages.BENCHMARK, report.choice(results, tuple(self.methods)))}


@dataclass(frozen=True)
class Slips(Comparison):
    """The landscapes of the study, with slips that nobody sees, or that are logged."""

    def tasks(self, repeats: int) -> list[Task]:
        """List every slip, unseen and logged; without slips both are the same."""
        return [
            Task(
                self.name,
                f"{case}, {slip:.0%}{', logged' if logged else ''}: {method}",
                repeat,
                {"case": case, "method": method, "slip": slip, "logged": logged, "budget": n},
            )
            for repeat in range(repeats)
            for case in self.cases
            for slip in plan.SLIPS
            for logged in ((False, True) if slip else (False,))
            for method in self.methods
            for n in [slip_case(case, slip).budget]
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize once."""
        config = task.config
        case, start = slip_case(config["case"], config["slip"]), self.methods[config["method"]]
        return optimize(case, start, task.seed, config["budget"], config["logged"])

    def summary(self, results: Results) -> str:
        """Tabulate what slips cost, beside what the study published."""
        return report.slips(results)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw what slips cost, beside what the study published."""
        return [report.draw_slips(results, folder / f"{self.name}.png")]

    def excerpts(self, results: Results) -> dict[str, tuple[Path, str]]:
        """Return what slips cost, as soon as all landscapes have been run with every slip."""
        done = {(task.config["case"], task.config["slip"]) for task, _ in results}
        if len(done) < len(self.cases) * len(plan.SLIPS):
            text = (
                "These runs are not finished: a few landscapes say nothing about all. "
                "[What there is](../experiments/results/slip.md)."
            )
        else:
            text = f"![What slips cost](images/paper/slip.png)\n\n{report.slips(results)}"
        return {"slip": (pages.BENCHMARK, text)}


CHOOSE = Choice(
    "choose", "Which default to take", plan.CHOOSING, plan.CANDIDATES, plan.REPEATS_OF_CHOOSING
)
BENCHMARK = Comparison(
    "benchmark", "airbo and what others use today", plan.CONFIRMING, plan.METHODS, plan.REPEATS
)
SLIP = Slips(
    "slip",
    "What slips cost, on the landscapes for confirming",
    plan.SLIPS_CONFIRMING,
    plan.SLIP_METHODS,
    plan.REPEATS_OF_SLIPS,
)
