"""Pictures of results, in one style."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.statistics import interval_of_mean

STYLE = Path(__file__).parent.parent / "docs" / "airbo.mplstyle"
COLOURS = ("#0072B2", "#D55E00", "#555555", "#CC79A7", "#E69F00", "#009E73")  # colour-blind safe
MARKERS = ("o", "s", "^", "v", "D", "P")


@contextmanager
def picture(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Draw on a figure and save it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with plt.style.context(STYLE):
        figure = plt.figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path)
        plt.close(figure)


def regrets(
    title: str, curves: Mapping[str, np.ndarray], evaluations: Sequence[int], path: Path
) -> Path:
    """Draw the mean regret of every method, with its 95% interval, and all final regrets."""
    with picture(path, 9.5, 4.0) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
        for i, (label, rows) in enumerate(curves.items()):
            low, high = np.array([interval_of_mean(c, 1000) for c in rows.T]).T
            colour = COLOURS[i % len(COLOURS)]
            every = max(1, rows.shape[1] // 8)
            left.plot(
                evaluations,
                rows.mean(axis=0),
                color=colour,
                marker=MARKERS[i % len(MARKERS)],
                markevery=(i % every, every),
                markersize=5,
                label=label,
            )
            left.fill_between(evaluations, low, high, color=colour, alpha=0.1, linewidth=0)
        left.set(xlabel="evaluations", ylabel="robust regret of the outcome", title=title)
        left.set_ylim(bottom=0)
        left.legend(fontsize=8)
        final_regrets(right, curves)
    return path


def final_regrets(ax: Axes, curves: Mapping[str, np.ndarray]) -> None:
    """Show where every repeat ended, and the mean."""
    spread = np.random.default_rng(0)
    for i, rows in enumerate(curves.values()):
        final, colour = rows[:, -1], COLOURS[i % len(COLOURS)]
        y = -i + spread.uniform(-0.2, 0.2, len(final))
        ax.scatter(final, y, s=16, color=colour, alpha=0.6, linewidths=0)
        ax.plot([final.mean()] * 2, [-i - 0.35, -i + 0.35], color=colour, linewidth=2)
    ax.set_yticks(-np.arange(len(curves)), list(curves), fontsize=8)
    ax.set_xlim(left=0)
    ax.set(xlabel="robust regret at the end", title="Every repeat, and the mean")
