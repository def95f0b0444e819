"""Is a predicted probability of being in spec what truly comes out? A reliability diagram."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import airbo
from airbo import measures, problems
from airbo import uncertainty as unc
from airbo.problems import Problem
from airbo.uncertainty import base_draws
from experiments.harness import draw, table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.palette import style
from experiments.measures.cases import GROUPS
from experiments.subjects.cases import Case
from experiments.subjects.internals import estimate_measure
from experiments.subjects.loops import BoTorchLoop, PerturbedLoop

PROBLEMS: dict[str, Problem] = {
    p.name: p for p in (problems.RKHS(), problems.Wave(), problems.Hills(), problems.Branin())
}
SIZES = (40, 80)
N_QUERIES = 128
N_TRUE = 2**13
"""Samples behind a true share: it is wrong by less than 0.006 as a standard deviation."""
N_SPECIFIED = 1024
BINS = np.linspace(0, 1, 11)
AIRBO, PERTURBED, PLAIN = "airbo", "BoTorch InputPerturbation", "plain GP"
METHODS = (AIRBO, PERTURBED, PLAIN)


@dataclass(frozen=True)
class InSpecCalibration(Experiment):
    """Predicted against true shares within limits, at designs that nobody chose."""

    name: str = "in-spec"
    paper: str = "beyond the paper"
    title: str = "Predicted against true probability of being in spec"
    repeats: int = 20

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all problems, sizes and groups; one task has all methods on the same data."""
        return [
            Task(
                self.name, f"{name}, {group}, n = {n}", seed,
                {"problem": name, "group": group, "n": n},
            )
            for seed in range(1 if quick else repeats)
            for group in GROUPS
            for n in (SIZES[:1] if quick else SIZES)
            for name in (list(PROBLEMS)[:1] if quick else PROBLEMS)
        ]  # fmt: skip

    def run(self, task: Task) -> dict[str, Any]:
        """Fit every method to the same data, and ask for the same designs."""
        problem = PROBLEMS[task.config["problem"]]
        tried = None if task.config["group"] == "unseen" else unc.Exact()
        case = Case(f"{problem.name}, {task.config['group']}", "in spec", problem, tried)
        X = case.designs(base_draws(task.config["n"], case.space.d, seed=2 * task.seed))
        landed = [case.executed(x, task.seed, i) for i, x in enumerate(X.tolist())]
        values = [case.value(x, task.seed, i) for i, x in enumerate(landed)]
        queries = case.designs(base_draws(N_QUERIES, case.space.d, seed=2 * task.seed + 1))
        spec = specification(problem)
        what = (problem.quick, problem.uncertainty, queries, spec, problem.direction)
        true = estimate_measure(*what, N_TRUE, n_parts=1).mean
        result: dict[str, Any] = {"true": np.round(true.tolist(), 4).tolist()}
        for method in METHODS:
            predicted = predict(method, case, spec, X.tolist(), values, queries, task.seed)
            result[method] = np.round(predicted, 4).tolist()
        return result

    def summary(self, results: Results) -> str:
        """Tabulate the expected calibration error."""
        parts = []
        for group in GROUPS:
            labels = [label for label in results.labels if f", {group}, " in label]
            rows = [
                [
                    label,
                    *(f"{calibration_error(*_pairs(results, [label], m)):.3f}" for m in METHODS),
                ]
                for label in labels
            ]
            if labels:
                pooled = [calibration_error(*_pairs(results, labels, m)) for m in METHODS]
                rows.append(["all", *(f"**{error:.3f}**" for error in pooled)])
                parts += [
                    f"## {group.capitalize()} experiments",
                    table.markdown(["expected calibration error", *METHODS], rows),
                ]
        return "\n\n".join(parts)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the reliability diagram of every method, unseen and exact experiments apart."""
        path = folder / f"{self.name}.png"
        with draw.picture(path, 9.5, 4.4) as figure:
            for ax, group in zip(figure.subplots(1, 2), GROUPS, strict=True):
                labels = [label for label in results.labels if f", {group}, " in label]
                ax.plot([0, 1], [0, 1], color=draw.TRUTH, linewidth=1, linestyle=":")
                for method in METHODS:
                    predicted, true = _pairs(results, labels, method)
                    where = np.digitize(predicted, BINS[1:-1])
                    found = [b for b in range(10) if (where == b).any()]
                    x = [predicted[where == b].mean() for b in found]
                    y = [true[where == b].mean() for b in found]
                    colour, marker = style(method)
                    error = calibration_error(predicted, true)
                    ax.plot(x, y, color=colour, marker=marker, label=f"{method}: {error:.3f}")
                ax.set(xlabel="predicted P(in spec)", ylabel="true share in spec")
                ax.set_title(f"{group} experiments")
                ax.legend(title="expected calibration error", fontsize=8)
        return [path]


def specification(problem: Problem) -> measures.InSpec:
    """Return limits that a third of all values keeps, over designs and where they land."""
    low, high = problem.bounds
    X = low + (high - low) * base_draws(N_SPECIFIED, len(low))
    values = problem.observe(X, torch.Generator().manual_seed(0))
    if problem.direction == "maximize":
        return measures.InSpec(low=round(values.quantile(2 / 3).item(), 3))
    return measures.InSpec(high=round(values.quantile(1 / 3).item(), 3))


def predict(
    method: str,
    case: Case,
    spec: measures.InSpec,
    designs: list[list[float]],
    values: list[float],
    queries: torch.Tensor,
    seed: int,
) -> np.ndarray:
    """Return the probability of being in spec that a method predicts."""
    if method == AIRBO:
        optimizer = airbo.Optimizer(
            case.space, case.tried_under, case.problem.direction, seed=seed, measure=spec,
            deployment=None if case.same_use else case.problem.uncertainty,
        )  # fmt: skip
        names = case.space.names
        rows = [dict(zip(names, design, strict=True)) for design in designs]
        optimizer.tell(rows, values)
        asked = [dict(zip(names, design, strict=True)) for design in queries.tolist()]
        mean: np.ndarray = optimizer.predict(asked)["mean"].to_numpy()
        return mean
    loop = (PerturbedLoop if method == PERTURBED else BoTorchLoop)(case, seed)
    for design, value in zip(designs, values, strict=True):
        loop.tell(design, value)
    return _share_in_spec(loop, spec, queries, noisy=method == PLAIN and case.same_use)


def _share_in_spec(
    loop: BoTorchLoop, spec: measures.InSpec, queries: torch.Tensor, noisy: bool
) -> np.ndarray:
    """Integrate the posterior over the limits.

    A plain GP takes the scatter of values for noise, so what it says of a single value, with its
    noise, is its best guess of the share in spec. Perturbed inputs have the scatter already.
    """
    model = loop._fitted()
    with torch.no_grad():
        posterior = model.posterior(loop._to_cube(queries), observation_noise=noisy)
    mean, std = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1).clamp_min(1e-12).sqrt()
    normal = torch.distributions.Normal(loop.case.sign * mean, std)
    low, high = torch.zeros_like(mean), torch.ones_like(mean)
    if spec.high is not None:
        high = normal.cdf(mean.new_tensor(spec.high))
    if spec.low is not None:
        low = normal.cdf(mean.new_tensor(spec.low))
    share = (high - low).reshape(len(queries), -1).mean(-1)  # over perturbations, if there are any
    return share.detach().numpy()


def calibration_error(predicted: np.ndarray, true: np.ndarray) -> float:
    """Return the mean distance of predicted and true shares over ten bins of predictions."""
    where = np.digitize(predicted, BINS[1:-1])
    gaps = [
        abs(predicted[where == b].mean() - true[where == b].mean()) * (where == b).mean()
        for b in range(10)
        if (where == b).any()
    ]
    return float(sum(gaps))


def _pairs(results: Results, labels: list[str], method: str) -> tuple[np.ndarray, np.ndarray]:
    each = [result for label in labels for result in results.of(label)]
    return (
        np.concatenate([r[method] for r in each]) if each else np.zeros(0),
        np.concatenate([r["true"] for r in each]) if each else np.zeros(0),
    )


IN_SPEC = InSpecCalibration()
