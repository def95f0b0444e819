"""How the cumulative regret grows on functions of the RKHS, compared with the theorem's bound."""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from airbo import Optimizer, TooLittleDataWarning
from airbo.theory import max_information_gain, ucb_beta
from experiments.harness import table
from experiments.harness.draw import picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.theory.drawn import (
    DELTA,
    LENGTHSCALE,
    METHODS,
    N_INITIAL,
    NOISE,
    NORM,
    STD,
    THEOREM,
    Drawn,
    designs_of,
    search,
)
from experiments.theory.regret import cumulative_regret, regret_bound, run_regret

OTHER_WINDOWS = (1 / 6, 1 / 3, 2 / 3)


class RegretGrowth(Experiment):
    """Searches on functions drawn at random; one repeat is one function."""

    name = "regret-growth"
    title = "Growth of the cumulative regret"
    repeats = 6
    paper = "theorem 1"

    def tasks(self, repeats: int) -> list[Task]:
        """List all ways to search, function by function."""
        config = {
            "lengthscale": LENGTHSCALE, "input std": STD, "noise": NOISE, "norm": NORM,
            "delta": DELTA, "n_initial": N_INITIAL, "n_steps": 60,
        }  # fmt: skip
        return [
            Task(self.name, method.name, seed, config)
            for seed in range(repeats)
            for method in METHODS
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Search once; if the kernel was known, add the theorem's bounds."""
        problem = Drawn.draw(task.seed)
        [method] = [method for method in METHODS if method.name == task.label]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooLittleDataWarning)
            optimizer = search(problem, method, task.seed, task.config["n_steps"])
        regret = cumulative_regret(designs_of(optimizer), problem).tolist()
        theorem = bounds_of(problem, optimizer) if method is THEOREM else {}
        return {"regret": regret, **theorem}

    def summary(self, results: Results) -> str:
        """Put growth and size of the regret in one table, regret and bounds in another."""
        R = _runs(results, THEOREM.name, "regret")
        widths, bound, gains = (
            _runs(results, THEOREM.name, name) for name in ("widths", "bound", "gains")
        )
        n, holds = R.shape[1], int((widths >= R).all(axis=1).sum())
        betas = [ucb_beta(gain, NORM, 1.0, DELTA) for gain in gains[:, N_INITIAL - 1 :].flat]
        return (
            f"{len(R)} functions drawn from the RKHS, {n} experiments each; R_n ~ n^p fitted to "
            "the second half; other windows: without the first 1/6, 1/3, 2/3.\n\n"
            f"{_growth(results)}\n\n"
            f"{THEOREM.name}, mean over the functions:\n\n{_bounds(R, widths, bound)}\n\n"
            f"R_n stayed below 2 Σ βσ at every step of {holds} of {len(R)} runs. "
            f"Gain of {n} observations: {gains[:, -1].min():.1f} to {gains[:, -1].max():.1f}; "
            f"β: {min(betas):.1f} to {max(betas):.1f}."
        )

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the regrets of all searches, and beside them the bounds of one."""
        path = folder / f"{self.name}.png"
        with picture(path, 10, 4.2) as figure:
            left, right = figure.subplots(1, 2)
            _draw_regrets(left, results)
            _draw_bounds(right, results)
        return [path]


def bounds_of(problem: Drawn, optimizer: Optimizer) -> dict[str, Any]:
    """Return the theorem's bounds for a run whose kernel was known."""
    run = run_regret(
        optimizer.model, designs_of(optimizer), problem, b=NORM, delta=DELTA, n_initial=N_INITIAL
    )
    grid = torch.linspace(0, 1, 201, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        K = optimizer.model.forward(grid).covariance_matrix
    noise_variance, n = problem.total_noise**2, len(run.regret)
    largest = max_information_gain(K, n, noise_variance) / (1 - 1 / math.e)
    before = [0.0, *largest[:-1].tolist()]
    betas = K.new_tensor([ucb_beta(gain, NORM, 1.0, DELTA) for gain in before])
    variance = K.diagonal().max().item()
    bound = regret_bound(largest, betas, noise_variance=noise_variance, largest_variance=variance)
    initial = 2 * NORM * math.sqrt(variance) * torch.arange(1, n + 1).clamp_max(N_INITIAL)
    return {
        "widths": run.widths.tolist(),
        "bound": (bound + initial).tolist(),
        "gains": run.gains.tolist(),
        "largest gains": largest.tolist(),
        "total noise": problem.total_noise,
    }


def exponent(regret: Sequence[float], after: float = 1 / 2) -> float:
    """Fit R_n ~ n^p to a run without its first part; by default to its second half."""
    n = np.arange(1, len(regret) + 1)
    late = n > after * len(regret)
    return float(np.polyfit(np.log(n[late]), np.log(np.asarray(regret)[late]), 1)[0])


def _runs(results: Results, label: str, name: str) -> np.ndarray:
    return np.array([result[name] for result in results.of(label)])  # (functions, n)


def _growth(results: Results) -> str:
    rows = []
    for label in results.labels:
        R = _runs(results, label, "regret")
        p = np.array([exponent(r) for r in R])
        late = (R[:, -1] - R[:, -11]) / 10
        rows.append(
            [
                label,
                f"{p.mean():.2f} ± {p.std(ddof=1):.2f}",
                f"{p.min():.2f} to {p.max():.2f}",
                f"{max(exponent(r, after) for r in R for after in OTHER_WINDOWS):.2f}",
                f"{R[:, -1].mean():.1f}",
                f"{late.mean():.2f} (at most {late.max():.2f})",
            ]
        )
    header = [
        "", "p, mean ± std", "p, range", "p, largest, other windows", f"R_{R.shape[1]}",
        "regret per step, last 10",
    ]  # fmt: skip
    return table.markdown(header, rows)


def _bounds(R: np.ndarray, widths: np.ndarray, bound: np.ndarray) -> str:
    n = R.shape[1]
    rows = [
        [
            str(i),
            f"{R[:, i - 1].mean():.1f}",
            f"{widths[:, i - 1].mean():.0f}",
            f"{bound[:, i - 1].mean():.0f}",
            f"{(bound / R)[:, i - 1].min():.0f} to {(bound / R)[:, i - 1].max():.0f}",
        ]
        for i in (n // 6, n // 2, n)
    ]
    return table.markdown(["n", "R_n", "2 Σ βσ", "bound of the theorem", "bound / R_n"], rows)


def _draw_regrets(ax: Axes, results: Results) -> None:
    colours = {method.name: method.colour for method in METHODS}
    for label in results.labels:
        R = _runs(results, label, "regret")
        n, p = np.arange(1, R.shape[1] + 1), np.mean([exponent(r) for r in R])
        ax.plot(n, R.mean(0), color=colours[label], label=f"{label}: p = {p:.2f}")
        ax.fill_between(n, R.min(0), R.max(0), color=colours[label], alpha=0.12, lw=0)
    ax.set(xlabel="experiments n", ylabel="cumulative regret $R_n$", xlim=(1, n[-1]), ylim=0)
    ax.set_title("Mean and range over the functions", fontsize=10)
    ax.legend(fontsize=8, loc="upper left")


def _draw_bounds(ax: Axes, results: Results) -> None:
    mean = _runs(results, THEOREM.name, "regret").mean(0)
    n = np.arange(1, len(mean) + 1)
    ax.plot(n, mean, color=THEOREM.colour, label="regret $R_n$")
    for name, line, label in (
        ("widths", "--", r"$2\,\Sigma\,\beta\sigma$ of the run"),
        ("bound", "-", "bound of the theorem"),
    ):
        ax.plot(n, _runs(results, THEOREM.name, name).mean(0), line, color="0.2", label=label)
    ax.plot(n, mean[-1] * n / n[-1], ":", color="0.6", label="linear growth")
    ax.set(xscale="log", yscale="log", xlabel="experiments n", xlim=(1, n[-1]))
    ax.set_ylabel("cumulative regret, and its bounds")
    ax.set_title(THEOREM.name, fontsize=10)
    ax.legend(fontsize=8, loc="lower right")


REGRET_GROWTH = RegretGrowth()
