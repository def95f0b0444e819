"""Error against cost, one point per estimator and one panel per uncertainty."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.plot import colour

LABELS = {  # where the name stands, so that none covers another
    "Nystrom(100, 10)": ((-4, 10), "center"),
    "Nystrom(160, 10)": ((0, -16), "center"),
    "Empirical(100)": ((-9, -4), "right"),
    "Nystrom(1000, 100)": ((8, -16), "right"),
    "Quadrature (default)": ((8, 6), "left"),
}

Numbers = Mapping[str, float]


def error_against_cost(panels: Mapping[str, tuple[Numbers, Numbers]], path: Path) -> None:
    """Draw panels of errors and costs by estimator."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(9, 3.8), sharex=True, sharey=True, layout="constrained"
    )
    for ax, (title, (errors, costs)) in zip(axes, panels.items(), strict=True):
        _draw(ax, errors, costs)
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_xlabel("time of a posterior, SingleTaskGP = 1")
    axes[0].set_ylabel("largest kernel error")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw(ax: Axes, errors: Numbers, costs: Numbers) -> None:
    for name, error in errors.items():
        offset, side = LABELS.get(name, ((8, 5), "left"))
        ax.plot(costs[name], error, "o", color=colour(name), ms=8, mec="white")
        ax.annotate(
            name, (costs[name], error), offset, textcoords="offset points", ha=side, fontsize=8
        )
    ax.axhline(1e-3, color="0.7", lw=1, ls="--")
    ax.axvline(1, color="0.7", lw=1, ls="--")
    ax.set(xscale="log", yscale="log", xlim=(0.5, 2e4), ylim=(1e-6, 0.5))
    ax.spines[["top", "right"]].set_visible(False)
