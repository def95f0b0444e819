"""Time against samples, designs and observations; error against time."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes

from experiments.harness.draw import picture
from experiments.harness.palette import colour

AXES = {"m": "samples of P, m", "N": "designs, N", "n": "observations, n"}
LABELS = {  # where the name stands, so that none covers another
    "Nystrom(100, 10)": ((-4, 10), "center"),
    "Nystrom(160, 10)": ((0, -16), "center"),
    "Empirical(100)": ((-9, -4), "right"),
    "Nystrom(1000, 100)": ((8, -16), "right"),
    "Quadrature (default)": ((8, 6), "left"),
}

Curves = Mapping[str, Mapping[int, float]]
Numbers = Mapping[str, float]


def time_against_size(panels: Mapping[str, Curves], path: Path) -> None:
    """Draw one panel per size, one line per method, on log axes."""
    with picture(path, 11, 4) as figure:
        axes = figure.subplots(1, len(panels), sharey=True)
        for ax, (size, curves) in zip(axes, panels.items(), strict=True):
            for name, curve in curves.items():
                _line(ax, name, curve)
            ax.set(xscale="log", yscale="log", xlabel=AXES[size])
            ax.margins(x=0.05)
            ax.grid(alpha=0.25)
            ax.legend(fontsize=8, loc="upper left")
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(low, 12 * high)  # room for the legends
        axes[0].set_ylabel("posterior mean and variance, seconds")
        figure.suptitle(
            "On a line, t-batch; 512 designs and 10 observations where not varied; "
            "P: m logged deviations on the left, a beta elsewhere",
            fontsize=10,
        )


def error_against_cost(panels: Mapping[str, tuple[Numbers, Numbers]], path: Path) -> None:
    """Draw panels of errors and costs by estimator."""
    with picture(path, 9, 3.8) as figure:
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
        for ax, (title, (errors, costs)) in zip(axes, panels.items(), strict=True):
            _points(ax, errors, costs)
            ax.set_title(title, fontsize=10)
            ax.set_xlabel("time of a posterior, SingleTaskGP = 1")
        axes[0].set_ylabel("largest kernel error")


def _line(ax: Axes, name: str, curve: Mapping[int, float]) -> None:
    places = sorted(curve, key=int)
    heights = [curve[p] for p in places]
    style = "--" if name == "SingleTaskGP" else "-"
    ax.plot(
        [int(p) for p in places], heights, style, marker="o", ms=4, color=colour(name), label=name
    )


def _points(ax: Axes, errors: Numbers, costs: Numbers) -> None:
    for name, error in errors.items():
        offset, side = LABELS.get(name, ((8, 5), "left"))
        ax.plot(costs[name], error, "o", color=colour(name), ms=8, mec="white")
        ax.annotate(
            name, (costs[name], error), offset, textcoords="offset points", ha=side, fontsize=8
        )
    ax.axhline(1e-3, color="0.7", lw=1, ls="--")
    ax.axvline(1, color="0.7", lw=1, ls="--")
    ax.set(xscale="log", yscale="log", xlim=(0.5, 2e4), ylim=(1e-6, 0.5))
