"""Robust optimization: how the expected value of the outcome grows with the evaluations."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airbo.acquisition import UCB
from airbo.problems import Problem
from airbo.seeds import stream, stream_seed
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.harness.statistics import Z_90, interval_of_mean
from experiments.paper.regrets import draw_regrets
from experiments.subjects.cases import CASES, Case
from experiments.subjects.loops import AirboLoop
from experiments.subjects.methods import (
    DEFAULT,
    ERBF,
    GP,
    NYSTROM,
    NYSTROM_REDRAWN,
    SKL,
    UGP_40,
    Method,
    surrogate,
)

PROTOCOL: dict[str, Any] = {"n_initial": 10, "initial": "uniform", "beta": 2.0, "seeds": "streams"}
"""The same for every problem and method."""
METHODS = (NYSTROM, UGP_40, GP, SKL, ERBF, DEFAULT)

CHECKED, N_CHECKED = 0.5, 64
"""Share of the evaluations after which predictions are compared with the truth, and the number of
random designs at which they are."""


@dataclass(frozen=True)
class Optimization(Experiment):
    """All methods on one problem, from the same initial designs and values."""

    name: str
    paper: str
    title: str
    case_name: str
    n_steps: int
    """Evaluations after the initial ones."""
    methods: tuple[Method, ...] = METHODS
    acquisition: str = "ucb"
    """``"ucb"`` as in the text of the paper, or ``"ei"`` as in the authors' program."""
    repeats: int = 12

    @property
    def case(self) -> Case:
        return CASES[self.case_name]

    @property
    def problem(self) -> Problem:
        return self.case.problem

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all methods of all repeats, the repeats one after another."""
        n_steps = 4 if quick else self.n_steps
        return [
            Task(self.name, method.label, seed, self._config(method, n_steps), n_steps)
            for seed in range(repeats)
            for method in self.methods
        ]

    def _config(self, method: Method, n_steps: int) -> dict[str, Any]:
        return {
            "problem": self.case_name,
            "n_steps": n_steps,
            "protocol": {**PROTOCOL, "acquisition": self.acquisition},
            **method.config(),
        }

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Optimize once; record every design, value and outcome."""
        case, n_initial = self.case, task.config["protocol"]["n_initial"]
        acquisition = UCB(task.config["protocol"]["beta"]) if self.acquisition == "ucb" else "ei"
        model = surrogate(task.config, stream_seed(case.seed(task.seed), "draws") % 2**31)
        loop = AirboLoop(case, task.seed, model, acquisition, policy="observed")
        first, n = (
            case.first_designs(task.seed, n_initial, uniform=True),
            n_initial + task.config["n_steps"],
        )
        designs: list[list[float]] = []
        values, outcomes, seconds = [], [], []
        checked: dict[str, Any] = {}
        for i in range(n):
            begun = time.process_time()
            designs.append(first[i] if i < n_initial else loop.ask())
            seconds.append(time.process_time() - begun)
            values.append(case.value(case.executed(designs[-1], task.seed, i), task.seed, i))
            loop.tell(designs[-1], values[-1])
            if i + 1 >= n_initial:
                begun = time.process_time()
                outcomes.append(loop.recommend())
                seconds[-1] += time.process_time() - begun
            if i + 1 == round(CHECKED * n):
                checked = self.check(loop, task.seed)
            if i + 1 >= n_initial:
                step(i + 1 - n_initial, n - n_initial)
        return {
            "designs": np.round(designs, 6).tolist(),
            "values": np.round(values, 6).tolist(),
            "outcomes": [designs.index(outcome) for outcome in outcomes],
            "expected": _expected(self.problem, outcomes),
            "seconds": round(float(np.median(seconds[n_initial:])), 4),
            **checked,
        }

    def check(self, loop: AirboLoop, seed: int) -> dict[str, Any]:
        """Compare predictions at random designs with the truth."""
        random = stream(self.case.seed(seed), "checked designs")
        X = self.case.designs(torch.from_numpy(random.random((N_CHECKED, self.case.d))))
        mean, std = loop.predict(X)
        errors = self.problem.expected(X).numpy() - mean
        return {
            "covered": round(float((np.abs(errors) < Z_90 * std).mean()), 4),
            "rmse": round(float(np.sqrt((errors**2).mean())), 6),
        }

    # -- results

    def regrets(self, result: dict[str, Any]) -> np.ndarray:
        """Return the robust regret of the outcome, from the initial designs to the last one."""
        return np.array([self.regret_of(expected) for expected in result["expected"]])

    def regret_of(self, expected: float) -> float:
        """Return how far an expected value is from the best."""
        best = self.problem.robust_optimum.value
        return best - expected if self.problem.direction == "maximize" else expected - best

    def evaluations(self, result: dict[str, Any]) -> list[int]:
        """Return after how many evaluations the outcomes were taken."""
        return [PROTOCOL["n_initial"] + i for i in range(len(result["expected"]))]

    def curves(self, results: Results) -> dict[str, np.ndarray]:
        """Return regrets of every method, a row per repeat."""
        return {
            label: np.array([self.regrets(result) for result in results.of(label)])
            for label in results.labels
        }

    def summary(self, results: Results) -> str:
        """Tabulate the regrets of all methods."""
        rows = []
        for label, curves in self.curves(results).items():
            final = curves[:, -1]
            low, high = interval_of_mean(final)
            middle = curves[:, (curves.shape[1] - 1) // 2]
            best = curves.min(axis=1)
            seconds = np.median([r["seconds"] for r in results.of(label)])
            rows.append(
                [
                    label,
                    str(len(final)),
                    f"{curves[:, 0].mean():.3f}",
                    f"{middle.mean():.3f}",
                    f"{final.mean():.3f}",
                    f"{low:.3f} to {high:.3f}",
                    f"{np.median(final):.3f}",
                    f"{best.mean():.3f}",
                    f"{seconds:.2f}",
                ]
            )
        header = [
            "method",
            "repeats",
            "regret of the initial outcome",
            "half way",
            "at the end: mean",
            "95% interval",
            "median",
            "best so far",
            "seconds a step",
        ]
        return table.markdown(header, rows)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the regrets against the evaluations."""
        path = folder / f"{self.name}.png"
        evaluations = self.evaluations(results.each[0][1])
        return [draw_regrets(self.title, self.curves(results), evaluations, path)]


def _expected(problem: Problem, outcomes: list[list[float]]) -> list[float]:
    different = list(dict.fromkeys(map(tuple, outcomes)))
    values = problem.expected(torch.tensor(different, dtype=torch.float64)).tolist()
    known = dict(zip(different, values, strict=True))
    return [round(known[tuple(design)], 8) for design in outcomes]


RKHS_GAUSSIAN = Optimization(
    "rkhs",
    "figure 4 (a, b)",
    "RKHS function under N(0, 0.01²)",
    "rkhs",
    50,
    methods=(*METHODS, NYSTROM_REDRAWN),
)
DOUBLE_PEAK = Optimization(
    "double-peak",
    "figure 4 (c, d)",
    "Double peak under beta(0.4, 0.2, 0.1)",
    "double-peak",
    50,
    methods=(*METHODS, NYSTROM_REDRAWN),
)
BUMPED_BOWL = Optimization(
    "bumped-bowl",
    "figure 9",
    "Bumped bowl in 10 dimensions, ring and Gaussian",
    "bumped-bowl",
    100,
)


def with_ei(experiment: Optimization) -> Optimization:
    """Return MMDGP alone with expected improvement, as in the authors' program: few repeats."""
    methods = tuple(m for m in experiment.methods if m.model == "mmd" and m.estimator)[:1]
    name = f"{experiment.name}-ei"
    return replace(experiment, name=name, acquisition="ei", methods=methods, repeats=3)
