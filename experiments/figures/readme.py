"""The picture of the README: why the best point is not the best design."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes

from airbo import uncertainty as unc
from airbo.problems import DoublePeak
from experiments.figures.modelling import draw_posterior
from experiments.harness.draw import DATA, FUNCTION, MODEL, TRUTH, save
from experiments.subjects.methods import EXPECTATION, GP


def draw_readme(folder: Path) -> None:
    """Show why the best point is not the best design, and what surrogates make of ten values."""
    figure = plt.figure(figsize=(9, 6.6), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.05, 1])
    top, bottom = parts
    draw_problem(top.subplots())
    axes = bottom.subplots(1, 2, sharey=True)
    shown = {
        "Ten observations, seen by a plain GP ...": GP,
        "... and by the default, under N(0, 0.01²)": EXPECTATION,
    }
    for ax, (title, method) in zip(axes, shown.items(), strict=True):
        draw_posterior(ax, "normal", method)
        ax.set_title(title)
        ax.set_xlabel("design x")
    axes[0].set_ylabel("value")
    bottom.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    save(figure, folder / "readme.png")


def draw_problem(ax: Axes) -> None:
    """Draw the double peak, what designs give on average, and where two of them land."""
    problem = DoublePeak()
    grid = torch.linspace(0.05, 0.6, 801, dtype=torch.float64).unsqueeze(-1)
    ax.plot(grid, problem(grid), color=FUNCTION, lw=1.5)
    ax.plot(grid, problem.expected(grid), color=TRUTH, lw=1.5, ls="--")
    ax.text(0.377, 6.4, "f at the point that is hit", color="#707070")
    ax.text(0.145, 4.3, "expected value\nof a design", ha="right")

    nominal, robust = problem.nominal_optimum.design, problem.robust_optimum.design
    landing = unc.base_draws(60, 1)
    for design, colour, y in ((nominal, DATA, -1.3), (robust, MODEL, -2.5)):
        x = design.item()
        average = problem.expected(design.unsqueeze(0)).item()
        ax.plot([x, x], [y, average], color=colour, lw=1, ls=":")
        ax.plot(x, average, "o", color=colour, ms=9, mec="white", zorder=3)
        samples = problem.uncertainty.perturb(design.unsqueeze(0), landing)[0, :, 0]
        ax.plot(samples, np.full(len(samples), y), "|", color=colour, ms=9, mew=0.8)
        ax.text(x + 0.107, y, f"here lands x = {x:.2f}", color=colour, va="center")
    ax.plot(nominal.item(), problem.nominal_optimum.value, "^", color=DATA, ms=9, mec="white")
    ax.annotate(
        f"the best point, f = {problem.nominal_optimum.value:.1f},\nis a bad design: "
        f"{problem.expected(nominal.unsqueeze(0)).item():.1f} on average",
        (nominal.item(), problem.nominal_optimum.value), (0.377, 8.0), color=DATA,
    )  # fmt: skip
    ax.annotate(
        f"the best design:\n{problem.robust_optimum.value:.1f} on average",
        (robust.item(), problem.robust_optimum.value), (0.235, 7.6), color=MODEL, ha="right",
    )  # fmt: skip
    ax.set(xlim=(0.05, 0.6), ylim=(-3.2, 10), xlabel="x", ylabel="value")
    ax.set_title("The best point of a function is not its best design", fontsize=12)
