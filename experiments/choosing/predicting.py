"""How well candidates predict expected values, from random designs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from airbo.uncertainty import base_draws
from experiments.harness import draw, table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.harness.palette import shown
from experiments.harness.statistics import Z_90
from experiments.subjects.candidates import CANDIDATES
from experiments.subjects.cases import CASES, Case
from experiments.subjects.data import fit
from experiments.subjects.family import FAMILY
from experiments.subjects.methods import (
    DEFAULT,
    ERBF,
    EXPECTATION,
    GP,
    UGP_DEFAULT,
    Method,
    surrogate,
)

CASE_NAMES = ("rkhs", "double-peak", "wave", "cliff", "push", "hartmann-6")
"""The cases for choosing in which experiments and use have the same uncertainty."""
SIZES = (15, 40)
N_QUERIES = 200
SCORES = {
    "log_density": "Log density of the true expected value, median over repeats",
    "rmse": "RMSE, in standard deviations of the true expected values, mean over repeats",
    "covered": "Share of true expected values in the 90% interval, mean over repeats",
}


@dataclass(frozen=True)
class Predicting(Experiment):
    """Several surrogates on random designs of the cases for choosing."""

    name: str
    title: str
    methods: tuple[Method, ...]
    case_names: tuple[str, ...] = CASE_NAMES
    paper: str = "beyond the paper"
    repeats: int = 12

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all sizes and cases of all repeats; one task has all methods on the same data."""
        methods = {method.label: method.config() for method in self.methods}
        return [
            Task(
                self.name,
                f"{case}, n = {n}",
                seed,
                {"case": case, "n": n, "methods": methods},
                len(methods),
            )
            for seed in range(repeats)
            for n in (SIZES[:1] if quick else SIZES)
            for case in self.case_names
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Fit every method to the same data."""
        scores = {}
        for label, config in task.config["methods"].items():
            scores[label] = score(config, CASES[task.config["case"]], task.config["n"], task.seed)
            step(len(scores), task.n_steps)
        return scores

    def summary(self, results: Results) -> str:
        """Tabulate every score over methods and cases."""
        parts = []
        for name, title in SCORES.items():
            cells = self._cells(results, name)
            rows = [
                [method.label, *(_cell(value, name) for value in row)]
                for method, row in zip(self.methods, cells, strict=True)
            ]
            parts += [f"{title}:", table.markdown(["", *results.labels], rows)]
        return "\n\n".join(parts)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw how far each method is behind the best, case by case."""
        path = folder / f"{self.name}.png"
        cells = self._cells(results, "log_density")
        behind = cells.max(axis=0) - cells
        with draw.picture(path, 10, 0.35 * len(self.methods) + 2) as figure:
            ax = figure.subplots()
            shades = ax.imshow(behind.clip(0, 2), cmap="viridis_r", aspect="auto")
            for (i, j), value in np.ndenumerate(behind):
                colour = "white" if value > 1 else "black"
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
            ax.set_yticks(
                range(len(self.methods)), [shown(m.label) for m in self.methods], fontsize=8
            )
            ax.set_xticks(range(len(results.labels)), results.labels, fontsize=7, rotation=90)
            ax.set_title("Log density of the true expected values: how far behind the best")
            figure.colorbar(shades, label="behind the best (cut at 2)", shrink=0.8)
        return [path]

    def _cells(self, results: Results, score: str) -> np.ndarray:
        """Return one number per method and label."""
        middle = np.median if score == "log_density" else np.mean
        labels = results.labels
        return np.array(
            [
                [middle([result[m.label][score] for result in results.of(on)]) for on in labels]
                for m in self.methods
            ]
        )


def score(config: dict[str, Any], case: Case, n: int, seed: int) -> dict[str, float]:
    """Fit once and compare the posterior with the truth at other designs."""
    problem, (X, Y) = case.problem, _data(case, n, seed)
    model = fit(surrogate(config, seed)(X, Y, problem.uncertainty, problem.bounds))
    queries = case.designs(base_draws(N_QUERIES, case.space.d, seed=seed))
    with torch.no_grad():
        posterior = model.posterior(queries)
    true = problem.expected(queries)
    mean, std = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1).sqrt()
    error, unit = true - mean, true.std()
    density = torch.distributions.Normal(mean, std).log_prob(true) + unit.log()
    return {
        "log_density": round(density.mean().item(), 4),
        "rmse": round((error.square().mean().sqrt() / unit).item(), 4),
        "covered": round((error.abs() < Z_90 * std).double().mean().item(), 4),
    }


def _data(case: Case, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Run one experiment at each of some random designs; as they are told."""
    generator = torch.Generator().manual_seed(seed)
    X = case.designs(torch.rand(n, case.space.d, generator=generator, dtype=torch.float64))
    values = [case.observe(design, seed, i) for i, design in enumerate(X.tolist())]
    return X, torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


def _cell(value: float, name: str) -> str:
    return f"{value:.0%}" if name == "covered" else f"{value:.2f}"


PREDICTING = Predicting(
    "predicting",
    "Predicted expected values, from random designs",
    (EXPECTATION, *(Method(n, n) for n in CANDIDATES), UGP_DEFAULT, DEFAULT, ERBF, GP),
)
"""Priors and likelihoods of the expectation GP, and what the others do."""
FAMILY_PREDICTING = Predicting(
    "family",
    "Predicted expected values, with other ways to compare uncertain inputs",
    (EXPECTATION, *(Method(n, n) for n in FAMILY), DEFAULT, GP),
)
