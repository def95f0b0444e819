"""Error against cost, one point per estimator."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt

COLOURS = {"Quadrature": "#0072B2", "Empirical": "#E69F00", "Nystrom": "#009E73"}


def error_against_cost(
    errors: Mapping[str, float], costs: Mapping[str, float], path: Path, subtitle: str
) -> None:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, error in errors.items():
        colour = next(c for kind, c in COLOURS.items() if name.startswith(kind))
        axes.plot(costs[name], error, "o", color=colour, ms=8)
        axes.annotate(name, (costs[name], error), (7, 5), textcoords="offset points", fontsize=9)
    axes.axhline(1e-3, color="0.6", lw=1, ls="--")
    axes.text(1.05, 1.15e-3, "error 10⁻³", color="0.4", fontsize=9)
    axes.axvline(1, color="0.6", lw=1, ls="--")
    axes.set(xscale="log", yscale="log", xlim=(0.7, max(costs.values()) * 12))
    axes.set_xlabel("time of a posterior, SingleTaskGP = 1")
    axes.set_ylabel("largest kernel error")
    axes.set_title(subtitle, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
