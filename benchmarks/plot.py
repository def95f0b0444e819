"""Error against cost, one point per estimator."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt

COLOURS = {"Quadrature": "#0072B2", "Empirical": "#E69F00", "Nystrom": "#009E73"}
LABELS = {  # where the name stands, so that none covers another
    "Nystrom(100, 10)": ((-8, 6), "right"),
    "Nystrom(160, 10)": ((8, -14), "left"),
    "Empirical(100)": ((-8, -4), "right"),
}


def error_against_cost(
    errors: Mapping[str, float], costs: Mapping[str, float], path: Path, subtitle: str
) -> None:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, error in errors.items():
        colour = next(c for kind, c in COLOURS.items() if name.startswith(kind))
        offset, side = LABELS.get(name, ((8, 5), "left"))
        axes.plot(costs[name], error, "o", color=colour, ms=8, mec="white")
        axes.annotate(
            name, (costs[name], error), offset, textcoords="offset points", ha=side, fontsize=9
        )
    axes.axhline(1e-3, color="0.6", lw=1, ls="--")
    axes.text(1.05, 1.15e-3, "error 10⁻³", color="0.4", fontsize=9)
    axes.axvline(1, color="0.6", lw=1, ls="--")
    axes.set(xscale="log", yscale="log", xlim=(0.7, max(costs.values()) * 12), ylim=(2e-5, 0.5))
    axes.set_xlabel("time of a posterior, SingleTaskGP = 1")
    axes.set_ylabel("largest kernel error")
    axes.set_title(subtitle, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
