"""The picture of docs/default-model.md: what an observation says, and when settings are alike."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from experiments.harness.draw import DATA, FUNCTION, MODEL, TRUTH, save

SIGMA, LENGTH = 0.05, 0.1
GRID = np.linspace(0, 1, 501)


def density(x: float) -> np.ndarray:
    """Return a normal density around a setting, scaled to 1."""
    return np.exp(-0.5 * ((GRID - x) / SIGMA) ** 2)


def likeness(distance: float) -> float:
    """Return the correlation of the averages of two settings under a squared exponential."""
    return float(np.exp(-0.5 * distance**2 / (LENGTH**2 + 2 * SIGMA**2)))


def draw_default_model(folder: Path) -> None:
    """Draw both halves."""
    figure, (right, left) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
    _observation(left)
    _overlap(right)
    save(figure, folder / "default-model.png")


def _observation(ax: Axes) -> None:
    f = 1.6 + 0.8 * np.sin(9 * GRID) + 0.25 * np.sin(31 * GRID)
    average = np.array([np.average(f, weights=density(x)) for x in GRID])
    ax.plot(GRID, f, color=FUNCTION, lw=1.5)
    ax.plot(GRID, average, color=TRUTH, ls="--", lw=1.5)
    ax.text(0.24, 2.62, "f", color="#707070")
    ax.text(0.66, 0.7, "F, the average in use")
    x, landed = 0.28, 0.37
    ax.fill_between(GRID, 0, 0.45 * density(x), color=MODEL, alpha=0.3, lw=0)
    ax.text(x, 0.1, "$P_x$", color=MODEL, ha="center")
    y, expected = np.interp(landed, GRID, f), np.interp(x, GRID, average)
    ax.plot(landed, y, "o", color=DATA, ms=8, mec="white", zorder=3)
    ax.plot(x, y, "o", mfc="none", mec=DATA, ms=8, zorder=3)
    ax.annotate("", (x, expected), (x, y), arrowprops={"arrowstyle": "<->", "color": DATA})
    ax.text(landed + 0.02, y + 0.05, "seen here ...", color=DATA)
    ax.text(x - 0.02, y - 0.08, "... told for x", color=DATA, ha="right")
    ax.set(xlim=(0, 1), ylim=(0, 2.9), xlabel="setting", yticks=[])
    ax.set_title("2. One point of P, not its average: extra noise")


def _overlap(ax: Axes) -> None:
    for row, (a, b) in enumerate(((0.4, 0.48), (0.33, 0.6), (0.1, 0.6))):
        y = 2.2 - 1.1 * row
        for x, shade in ((a, MODEL), (b, "#E69F00")):
            ax.fill_between(GRID, y, y + 0.85 * density(x), color=shade, alpha=0.45, lw=0)
        ax.axhline(y, color="0.8", lw=0.8)
        ax.text(0.99, y + 0.35, f"correlation {likeness(b - a):.2f}", ha="right")
    ax.set(xlim=(0, 1), ylim=(-0.1, 3.2), xlabel="setting", yticks=[])
    ax.set_title("1. Settings are alike as far as they land alike")
