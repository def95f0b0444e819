"""Time against samples, designs and observations."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

COLOURS = {
    "SingleTaskGP": "0.45",
    "Quadrature": "#0072B2",
    "Empirical": "#E69F00",
    "Nystrom": "#009E73",
}
AXES = {"m": "samples of P, m", "N": "designs, N", "n": "observations, n"}

Curves = Mapping[str, Mapping[int, float]]


def colour(name: str) -> str:
    return next(c for kind, c in COLOURS.items() if name.startswith(kind))


def time_against_size(panels: Mapping[str, Curves], path: Path) -> None:
    """Draw one panel per size, one line per method, on log axes."""
    figure, axes = plt.subplots(1, len(panels), figsize=(11, 4), sharey=True, layout="constrained")
    for ax, (size, curves) in zip(axes, panels.items(), strict=True):
        for name, curve in curves.items():
            _line(ax, name, curve)
        ax.set(xscale="log", yscale="log", xlabel=AXES[size])
        ax.margins(x=0.05)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    low, high = axes[0].get_ylim()
    axes[0].set_ylim(low, 12 * high)  # room for the legends
    axes[0].set_ylabel("posterior mean and variance, seconds")
    figure.suptitle(
        "On a line, t-batch; 512 designs and 10 observations where not varied; "
        "P: m logged deviations on the left, a beta elsewhere",
        fontsize=10,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _line(ax: Axes, name: str, curve: Mapping[int, float]) -> None:
    places = sorted(curve, key=int)
    heights = [curve[p] for p in places]
    style = "--" if name == "SingleTaskGP" else "-"
    ax.plot(
        [int(p) for p in places], heights, style, marker="o", ms=4, color=colour(name), label=name
    )
