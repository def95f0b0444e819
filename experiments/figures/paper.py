"""Pictures of the paper that show a problem or a distribution and no result."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from torch import Tensor

from airbo import uncertainty as unc
from experiments.harness.draw import DATA, FUNCTION, MODEL, TRUTH, save
from experiments.subjects.push import two_modes

WIND = unc.Product([unc.ChiSquared(2.0, scale=0.03), unc.Normal(0.03)])
"""A gust carries the drone to the right, now and then far."""
SPOTS = ((0.7, 0.72, 0.04, 1.0), (0.36, 0.34, 0.2, 0.75))
"""Centre, width and height of the two regions of high values."""
N_LANDINGS = 150


def field(X: Tensor) -> Tensor:
    """Return what the drone would measure at points of the plane."""
    x, y = X.unbind(-1)
    return torch.stack(
        [h * torch.exp(-0.5 * ((x - a) ** 2 + (y - b) ** 2) / w**2) for a, b, w, h in SPOTS]
    ).sum(0)


def draw_drone(folder: Path) -> None:
    """Draw figure 1: a drone that the wind carries off, and what is known of a measurement."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    line = torch.linspace(0, 1, 121, dtype=torch.float64)
    X = torch.cartesian_prod(line, line).reshape(121, 121, 2).transpose(0, 1)
    base = unc.base_draws(1024, WIND.n_base(2), seed=0)
    expected = field(WIND.perturb(X, base)).mean(-1)
    shades = left.contourf(line, line, field(X), np.linspace(0, 1.05, 15), cmap="Greys", alpha=0.7)
    left.contour(line, line, expected, 8, colors=MODEL, linewidths=0.7)
    highest, best = (X.reshape(-1, 2)[v.argmax()] for v in (field(X), expected))
    for target, colour, offset in ((highest, DATA, 28), (best, MODEL, -34)):
        landings = WIND.perturb(target.unsqueeze(0), base[:N_LANDINGS])[0]
        left.scatter(*landings.T, s=5, color=colour, alpha=0.6, linewidths=0)
        _draw_drone_at(left, target[0].item(), target[1].item(), colour)
        average = expected.reshape(-1)[(X.reshape(-1, 2) == target).all(-1)].item()
        left.annotate(
            f"f = {field(target).item():.2f}, E f = {average:.2f}", target.tolist(), (0, offset),
            textcoords="offset points", ha="center", color=colour,
            bbox={"facecolor": "white", "alpha": 0.9, "edgecolor": "none"},
        )  # fmt: skip
    left.annotate(
        "", (0.3, 0.94), (0.06, 0.94), arrowprops={"arrowstyle": "-|>", "color": "0.3", "lw": 2}
    )
    left.text(0.07, 0.955, "wind", color="0.3")
    left.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xlabel="x₁", ylabel="x₂")
    left.set_title("(a) A drone measures where the wind lets it")
    figure.colorbar(shades, ax=left, label="measured value f", shrink=0.75)
    _draw_formulation(right)
    save(figure, folder / "drone.png")


def _draw_drone_at(ax: Axes, x: float, y: float, colour: str) -> None:
    for dx, dy in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        ax.plot([x, x + 0.022 * dx], [y, y + 0.022 * dy], color=colour, lw=2.5, zorder=4)
        ax.add_patch(Circle((x + 0.022 * dx, y + 0.022 * dy), 0.014, color=colour, zorder=4))


def _draw_formulation(ax: Axes) -> None:
    """Draw one experiment along a line: asked for, executed, measured."""
    x = torch.linspace(0, 1, 400, dtype=torch.float64)
    values = field(torch.stack([x, torch.full_like(x, SPOTS[1][1])], dim=-1))
    ax.plot(x, values, color=FUNCTION, lw=2)
    asked, executed, noise, floor = 0.3, 0.42, 0.06, -0.35
    value = float(np.interp(executed, x, values))
    ax.plot([asked, asked], [floor, 1.0], color=MODEL, lw=1, ls=":")
    landings = np.linspace(0, 0.35, 200)
    density = np.exp(-landings / 0.06)
    ax.fill_between(asked + landings, floor, floor + 0.25 * density, color="#FDBE85", lw=0)
    ax.plot([executed, executed], [floor, value], color=DATA, lw=1, ls=":")
    ax.plot(executed, value + noise, "o", color=DATA, ms=9, mec="white", zorder=3)
    ax.plot(asked, floor, "^", color=MODEL, ms=9, clip_on=False, zorder=3)
    ax.plot(executed, floor, "x", color=DATA, ms=9, mew=2, clip_on=False, zorder=3)
    handles = [
        Line2D([], [], color=FUNCTION, lw=2, label="f, unknown"),
        Line2D([], [], marker="^", ls="", color=MODEL, label="design x: known"),
        Line2D([], [], color="#FDBE85", lw=6, label="P_x, where it may land: known"),
        Line2D([], [], marker="x", ls="", mew=2, color=DATA, label="executed input x': not seen"),
        Line2D([], [], marker="o", ls="", color=DATA, label="value y = f(x') + ζ: known"),
    ]
    ax.legend(handles=handles, loc="upper right", fontsize=8)
    ax.set(xlim=(0, 1), ylim=(floor, 1.25), xlabel="input", ylabel="value")
    ax.set_title("(b) What is known of one experiment")


def draw_mixture(folder: Path) -> None:
    """Draw figure 10: the mixture of the robot push, and the Gaussian that replaces it."""
    mixture = two_modes()
    origin = torch.zeros(1, 3, dtype=torch.float64)
    samples = mixture.perturb(origin, unc.base_draws(1500, mixture.n_base(3), seed=0))[0]
    mean, covariance = mixture.mean(origin)[0], mixture.covariance(origin)[0]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    for ax, (i, j), names in zip(axes, ((0, 1), (0, 2)), ("xy", "xt"), strict=True):
        ax.scatter(samples[:, i], samples[:, j], s=4, color=DATA, alpha=0.4, linewidths=0)
        for level in (1.0, 2.0):
            _draw_ellipse(ax, mean[[i, j]], covariance[[i, j]][:, [i, j]], level)
        ax.set(
            xlabel=f"deviation of $r_{names[0]}$",
            ylabel=f"deviation of $r_{names[1]}$",
            aspect="equal" if names == "xy" else "auto",
        )
    handles = [
        Line2D([], [], marker="o", ls="", color=DATA, label="the mixture: samples"),
        Line2D([], [], color=TRUTH, label="Gaussian of the same moments: 1 and 2 deviations"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    figure.suptitle("The uncertainty of the robot push, and what SKL and ERBF take it for")
    save(figure, folder / "mixture.png")


def _draw_ellipse(ax: Axes, mean: Tensor, covariance: Tensor, level: float) -> None:
    angle = torch.linspace(0, 2 * np.pi, 200, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()])
    x, y = mean.unsqueeze(-1) + level * torch.linalg.cholesky(covariance) @ circle
    ax.plot(x, y, color=TRUTH, lw=1.5)
