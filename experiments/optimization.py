"""Robust optimization: how the expected value of the outcome grows with the evaluations."""

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import airbo
from airbo import problems
from airbo import uncertainty as unc
from airbo.acquisition import UCB
from airbo.problems import Problem
from benchmarks import table
from benchmarks.statistics import interval_of_mean
from experiments import draw
from experiments.experiment import Experiment, Results, Step, Task
from experiments.methods import DEFAULT, ERBF, GP, NYSTROM, SKL, UGP_40, Method, surrogate

PROTOCOL = {"n_initial": 10, "initial": "random", "beta": 2.0}
"""The same for every problem and method."""
METHODS = (NYSTROM, UGP_40, GP, SKL, ERBF, DEFAULT)

PROBLEMS: dict[str, Problem] = {
    **{name: problems.problem(name) for name in ("rkhs", "double-peak", "bumped-bowl", "push")},
    "rkhs-beta": problems.RKHS(unc.Beta(0.4, 0.2, scale=0.1)),
}


@dataclass(frozen=True)
class Optimization(Experiment):
    """All methods on one problem, from the same initial designs and values."""

    name: str
    paper: str
    title: str
    problem_name: str
    n_steps: int
    """Evaluations after the initial ones."""
    methods: tuple[Method, ...] = METHODS
    acquisition: str = "ucb"
    """``"ucb"`` as in the text of the paper, or ``"ei"`` as in the program of its authors."""

    @property
    def problem(self) -> Problem:
        return PROBLEMS[self.problem_name]

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
            "problem": self.problem_name,
            "n_steps": n_steps,
            "protocol": {**PROTOCOL, "acquisition": self.acquisition},
            **method.config(),
        }

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Optimize once; record every design, value and outcome."""
        config, problem = task.config, PROBLEMS[task.config["problem"]]
        protocol = config["protocol"]
        optimizer = airbo.Optimizer(
            _space(problem),
            problem.uncertainty,
            problem.direction,
            surrogate(config, task.seed),
            _acquisition(protocol),
            seed=task.seed,
            n_initial=protocol["n_initial"],
            initial=protocol["initial"],
        )
        designs: list[list[float]] = []
        values, outcomes, seconds = [], [], []
        for i in range(protocol["n_initial"] + config["n_steps"]):
            start = time.process_time()
            design = optimizer.ask()
            seconds.append(time.process_time() - start)
            designs.append(list(design.values()))
            values.append(observe(problem, designs[-1], task.seed, i))
            optimizer.tell(design, values[-1])
            if i + 1 >= protocol["n_initial"]:
                start = time.process_time()
                outcomes.append(designs.index(_outcome(optimizer)))
                seconds[-1] += time.process_time() - start
                step(i + 1 - protocol["n_initial"], config["n_steps"])
        return {
            "designs": np.round(designs, 6).tolist(),
            "values": np.round(values, 6).tolist(),
            "outcomes": outcomes,
            "expected": _expected(problem, designs, outcomes),
            "seconds": round(float(np.median(seconds[protocol["n_initial"] :])), 4),
        }

    # -- what came out

    def regrets(self, result: dict[str, Any]) -> np.ndarray:
        """Return the robust regret of the outcome, from the initial designs to the last one."""
        best = self.problem.robust_optimum.value
        sign = 1 if self.problem.direction == "maximize" else -1
        return sign * (best - np.array(result["expected"]))

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
        return [draw.regrets(self.title, self.curves(results), folder / f"{self.name}.png")]


def observe(problem: Problem, design: list[float], seed: int, index: int) -> float:
    """Run the experiment of that number; its draw is the same for all methods."""
    X = torch.tensor([design], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1_000_003 * seed + index)
    return problem.observe(X, generator).item()


def _acquisition(protocol: dict[str, Any]) -> Any:
    return UCB(beta=protocol["beta"]) if protocol["acquisition"] == "ucb" else "ei"


def _space(problem: Problem) -> airbo.Space:
    low, high = problem.bounds.tolist()
    return airbo.Space({f"x{i}": b for i, b in enumerate(zip(low, high, strict=True))})


def _outcome(optimizer: airbo.Optimizer) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", airbo.TooLittleDataWarning)
        return list(optimizer.recommend(policy="observed").design.values())


def _expected(problem: Problem, designs: list[list[float]], outcomes: list[int]) -> list[float]:
    different = sorted(set(outcomes))
    X = torch.tensor([designs[i] for i in different], dtype=torch.float64)
    values = dict(zip(different, problem.expected(X).tolist(), strict=True))
    return [round(values[i], 8) for i in outcomes]


RKHS_GAUSSIAN = Optimization(
    "rkhs", "figure 3 (left)", "RKHS function under N(0, 0.01²)", "rkhs", 50
)
DOUBLE_PEAK = Optimization(
    "double-peak", "figure 3 (right)", "Double peak under beta(0.4, 0.2, 0.1)", "double-peak", 50
)
BUMPED_BOWL = Optimization(
    "bumped-bowl",
    "appendix, 10-D",
    "Bumped bowl in 10 dimensions, ring and Gaussian",
    "bumped-bowl",
    100,
)
