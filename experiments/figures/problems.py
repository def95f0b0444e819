"""Pictures of the benchmark problems."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.contour import ContourSet
from matplotlib.patches import Circle, Rectangle
from torch import Tensor

from airbo.problems import RKHS, Branin, BumpedBowl, Cliff, DoublePeak, Hills, Problem, Wave
from airbo.uncertainty import base_draws
from experiments.figures.uncertainties import draw_density
from experiments.harness.draw import DATA, FUNCTION, MODEL, TRUTH, save
from experiments.subjects.internals import Function, estimate

N_ROUGH = 2**11
"""Samples per point of a landscape: more than the eye can tell."""
N_GRID = 301
N_LANDINGS = 60

LABEL_BOX = {"facecolor": "white", "alpha": 0.9, "edgecolor": "none", "boxstyle": "round"}
MARGIN = 0.15
"""What is shown around the box of the designs, as a share of its width."""


def draw_problems(folder: Path) -> None:
    """Draw all of them."""
    draw_line(folder, RKHS(), "The highest peaks are too narrow to be hit")
    draw_line(folder, DoublePeak(), "The uncertainty has two modes, as far apart as the peaks")
    draw_line(folder, Wave(), "Designs on the right are hit less precisely")
    draw_bowl(folder)
    hills = "The highest hill stands where designs are hit less precisely"
    draw_plane(folder, Hills(), hills, np.linspace(0, 1.05, 15))
    cliff = "Designs overshoot to the right, now and then by far"
    draw_plane(folder, Cliff(), cliff, np.linspace(-1, 1, 17))
    branin = "The inputs mostly miss in the same direction: along one valley, across the others"
    levels, twins = np.array([0, *2.0 ** np.arange(8)]), [[-np.pi, 12.275], [3 * np.pi, 2.475]]
    draw_plane(folder, Branin(), branin, levels, twins)


def draw_line(folder: Path, problem: Problem, title: str) -> None:
    """Draw a problem of one variable over the distribution of its deviations."""
    figure, (ax, strip) = plt.subplots(
        2, 1, figsize=(9, 4.6), sharex=True, height_ratios=[4, 1], layout="constrained"
    )
    grid = torch.linspace(0, 1, 1601, dtype=torch.float64).unsqueeze(-1)
    ax.plot(grid, problem(grid), color=FUNCTION, lw=1.5, label="function f")
    ax.plot(grid, problem.expected(grid), color=TRUTH, lw=1.5, ls="--", label="expected value E f")
    nominal, robust = problem.nominal_optimum, problem.robust_optimum
    gained = problem.expected(nominal.design.unsqueeze(0)).item()
    x, best = nominal.design.item(), robust.design.item()
    ax.plot([x, x], [gained, nominal.value], color=DATA, lw=1, ls=":")
    for at, value, marker, colour, label in (
        (x, nominal.value, "^", DATA, "nominal optimum: x = {:.3f}, f = {:.3f}"),
        (x, gained, "v", DATA, "what it gives on average: {1:.3f}"),
        (best, robust.value, "o", MODEL, "robust optimum: x = {:.3f}, E f = {:.3f}"),
    ):
        look = {"color": colour, "ms": 9, "mec": "white", "label": label.format(at, value)}
        ax.plot(at, value, marker, zorder=3, **look)
    ax.set(ylabel="value (maximize)", xlim=(-0.01, 1.01))
    ax.set_title(title)
    ax.tick_params(bottom=False)
    draw_density(strip, problem.uncertainty)
    strip.set(xlabel="design x", ylabel="x' - x")
    figure.align_ylabels()
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(figure, folder / f"problem_{problem.name}.png")


def draw_bowl(folder: Path) -> None:
    """Draw the first two dimensions of the bowl, as it is and on average."""
    problem = BumpedBowl()
    axis = torch.linspace(-2, 2, 161, dtype=torch.float64)
    X = torch.zeros(161, 161, problem.d, dtype=torch.float64)
    X[..., 1], X[..., 0] = torch.meshgrid(axis, axis, indexing="ij")
    values = {"f(x)": problem(X), "E f(x')": problem.expected(X)}

    figure, axes = plt.subplots(1, 2, figsize=(9, 4.3), sharey=True, layout="constrained")
    levels = np.linspace(0, 5, 21)
    for ax, (label, value) in zip(axes, values.items(), strict=True):
        shades = ax.contourf(axis, axis, value, levels, cmap="viridis_r", extend="max")
        ax.contour(axis, axis, value, levels[::2], colors="white", linewidths=0.4, alpha=0.6)
        ax.set_title(f"{label}, all other coordinates 0")
        ax.set(aspect="equal", xlabel="x₁", xticks=range(-2, 3), yticks=range(-2, 3))
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("x₂")
    radius = problem.nominal_optimum.design.norm().item()
    axes[0].add_patch(Circle((0, 0), radius, fill=False, ec=DATA, lw=1.8))
    label_of(
        axes[0],
        f"the floor: a circle of radius {radius:.3f},\nf = {problem.nominal_optimum.value:.4f}",
        DATA,
    )
    best = problem.robust_optimum
    axes[1].add_patch(Circle((0, 0), 0.5, fill=False, ec="white", lw=1.5, ls="--"))
    axes[1].plot(*best.design[:2], "o", color=MODEL, ms=10, mec="white")
    label_of(axes[1], f"robust optimum: E f = {best.value:.4f};\ndashed: where it lands", MODEL)
    figure.colorbar(shades, ax=axes, label="value (minimize)", ticks=range(6), shrink=0.9)
    save(figure, folder / f"problem_{problem.name}.png")


def draw_plane(
    folder: Path,
    problem: Problem,
    title: str,
    levels: np.ndarray,
    twins: Sequence[Sequence[float]] = (),
) -> None:
    """Draw a problem of two variables: where designs land, and what they give on average.

    ``twins`` are points as good as the nominal optimum.
    """
    low, high = problem.bounds
    margin = MARGIN * (high - low)
    shown = torch.stack([low - margin, high + margin])
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 5.1), sharex=True, sharey=True, layout="constrained"
    )
    draw_contours(axes[0], problem, shown, problem, levels)
    shades = draw_contours(axes[1], rough(problem), problem.bounds, problem, levels)
    box = Rectangle(low.tolist(), *(high - low).tolist(), fill=False, ec="white", lw=1, ls="--")
    axes[0].add_patch(box)

    best = problem.nominal_optimum.design
    nominal = torch.stack([best, *(best.new_tensor(twin) for twin in twins)])
    robust = problem.robust_optimum.design.unsqueeze(0)
    mark_optima(axes, problem, nominal, "nominal", "^", DATA)
    mark_optima(axes, problem, robust, "robust", "o", MODEL)

    axes[0].set_title("f, at the point that is hit")
    axes[1].set_title("E f, what a design gives on average")
    (left, bottom), (right, top) = shown.tolist()
    axes[0].set(ylabel="x₂", xlim=(left, right), ylim=(bottom, top))
    axes[1].tick_params(left=False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    ticks = levels[:: 2 if len(levels) > 10 else 1]
    figure.colorbar(shades, ax=axes, label=f"value ({problem.direction})", ticks=ticks, shrink=0.9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    save(figure, folder / f"problem_{problem.name}.png")


def mark_optima(
    axes: np.ndarray, problem: Problem, X: Tensor, kind: str, marker: str, colour: str
) -> None:
    """Mark equally good designs, left with where they land and right with what they give."""
    draws = base_draws(N_LANDINGS, problem.uncertainty.n_base(2), seed=1)
    label = f"{kind} optimum, f = {problem(X[:1]).item():#.3g}"
    for ax in axes:
        ax.plot(*X.T, marker, color=colour, ms=10, mec="white", ls="", label=label, zorder=4)
    axes[0].plot(
        *problem.uncertainty.perturb(X, draws).flatten(0, 1).T, "o", color=colour, ms=3.5,
        mec="white", mew=0.4, label=f"where it lands, {N_LANDINGS} times",
    )  # fmt: skip
    side = 1 if kind == "robust" else -1  # above or below
    for x, value in zip(X.tolist(), problem.expected(X).tolist(), strict=True):
        axes[1].annotate(
            f"E f = {value:#.3g}".replace("-", "−"), x, (0, 17 * side), textcoords="offset points",
            ha="center", va="center", color=colour, zorder=5, bbox=LABEL_BOX,
        )  # fmt: skip


def draw_contours(
    ax: Axes, f: Function, bounds: Tensor, problem: Problem, levels: np.ndarray
) -> ContourSet:
    """Fill a box with the values of a function, the better the brighter."""
    x, y = (
        torch.linspace(low, high, N_GRID, dtype=torch.float64) for low, high in bounds.T.tolist()
    )
    values = f(torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1))
    extend: Literal["max", "neither"] = "max" if values.max() > levels[-1] else "neither"
    colours = "viridis" if problem.direction == "maximize" else "viridis_r"
    norm = BoundaryNorm(levels, 256, extend=extend)
    ax.set(aspect="equal", xlabel="x₁")
    ax.spines[:].set_visible(False)
    return ax.contourf(x, y, values, levels, cmap=colours, norm=norm, extend=extend)


def rough(problem: Problem) -> Function:
    """Return E f as a function: exact if that is possible, otherwise good enough for the eye."""

    def f(X: Tensor) -> Tensor:
        exact = problem.exact(X)
        if exact is not None:
            return exact
        return estimate(problem.quick, problem.uncertainty, X, N_ROUGH).mean

    return f


def label_of(ax: Axes, text: str, colour: str) -> None:
    """Write into the lower part of a landscape."""
    ax.text(0.5, 0.05, text, transform=ax.transAxes, ha="center", color=colour, bbox=LABEL_BOX)
