"""The pictures of the README: the best point is not the best setting; and the benchmark."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from airbo import uncertainty as unc
from airbo.problems import DoublePeak
from experiments.benchmark import plan, report
from experiments.harness.draw import DATA, FUNCTION, MODEL, TRUTH, picture, save
from experiments.harness.experiment import Results
from experiments.harness.palette import colour, shown
from experiments.harness.statistics import interval_of_mean
from experiments.paper import posteriors as post
from experiments.subjects.cases import find_case

RIVALS = ("BoTorch", "BoTorch InputPerturbation", "Optuna GPSampler", "random")
"""What others use today."""


def draw_readme(folder: Path) -> None:
    """Show why the best point is not the best setting."""
    figure, ax = plt.subplots(figsize=(7, 4.3), layout="constrained")
    draw_problem(ax)
    save(figure, folder / "readme.png")


def draw_problem(ax: Axes) -> None:
    """Draw the double peak, what settings give on average, and where two of them land."""
    problem = DoublePeak()
    grid = post.designs(np.linspace(0.05, 0.6, 801))
    ax.plot(grid, problem(grid), color=FUNCTION, lw=1.5)
    ax.plot(grid, problem.expected(grid), color=TRUTH, lw=1.5, ls="--")
    ax.text(0.385, 5.2, "result if the machine\nhits the setting", color="#707070")
    ax.text(0.06, 4.3, "result on average:\nit overshoots")

    nominal, robust = problem.nominal_optimum.design, problem.robust_optimum.design
    landing = unc.base_draws(60, 1)
    for design, shade, y in ((nominal, DATA, -1.3), (robust, MODEL, -2.5)):
        x = design.item()
        average = problem.expected(design.unsqueeze(0)).item()
        ax.plot([x, x], [y, average], color=shade, lw=1, ls=":")
        ax.plot(x, average, "o", color=shade, ms=9, mec="white", zorder=3)
        samples = problem.uncertainty.perturb(design.unsqueeze(0), landing)[0, :, 0]
        ax.plot(samples, np.full(len(samples), y), "|", color=shade, ms=9, mew=0.8)
        ax.text(x + 0.11, y, f"where setting {x:.2f} lands", color=shade, va="center")
    ax.plot(nominal.item(), problem.nominal_optimum.value, "^", color=DATA, ms=9, mec="white")
    ax.text(
        0.385, 8.2, f"the best point gives {problem.nominal_optimum.value:.1f} once and\n"
        f"{problem.expected(nominal.unsqueeze(0)).item():.1f} on average", color=DATA,
    )  # fmt: skip
    ax.text(
        robust.item() - 0.015, 7.2, f"the best setting:\n{problem.robust_optimum.value:.1f} "
        "on average", color=MODEL, ha="right",
    )  # fmt: skip
    ax.set(xlim=(0.05, 0.6), ylim=(-3.2, 10), xlabel="setting", ylabel="result")
    ax.set_title("The best point is not the best setting")


def draw_benchmark(results: Results, folder: Path) -> Path:
    """Draw the mean regret of airbo and of what others use, readable on a phone."""
    path, found = folder / "readme.png", report.finals(results)
    pays = {c: m for c, m in found.items() if find_case(c).kind in plan.KNOWING_PAYS}
    others = {c: m for c, m in found.items() if c not in pays}
    methods = [m for m in (plan.AIRBO, *RIVALS) if all(m in each for each in found.values())]
    panels = {
        f"The error varies, is wide, or differs in use ({len(pays)} problems)": pays,
        f"The other {len(others)} problems": others,
    }
    with picture(path, 4.6, 4.6) as figure:
        for ax, (title, cases) in zip(
            figure.subplots(2, 1, sharex=True), panels.items(), strict=True
        ):
            at = -np.arange(len(methods))
            for y, method in zip(at, methods, strict=True):
                logs = np.log([100 * report.floored(c[method].values()) for c in cases.values()])
                value, ends = np.exp(logs.mean()), np.exp(interval_of_mean(logs))
                ax.barh(y, value, color=colour(method))
                ax.plot(ends, [y, y], color="black", lw=1)
                ax.text(ends[1], y, f" {value:.1f}%", va="center")
            ax.set_yticks(at, [shown(m) for m in methods])
            ax.margins(x=0.2)
            ax.set_title(title, fontsize=10, loc="right")
        ax.set_xlabel("regret, % of what can be gained\n(geometric mean; lines: 95%)")
    return path
