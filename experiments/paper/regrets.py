"""Pictures of regrets: against the evaluations, and where every repeat ended."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments.harness.draw import picture
from experiments.harness.palette import colour, shown, style
from experiments.harness.statistics import interval_of_mean


def draw_regrets(
    title: str, curves: Mapping[str, np.ndarray], evaluations: Sequence[int], path: Path
) -> Path:
    """Draw the mean regret of every method, and where every repeat ended.

    Bands of six methods would cover each other: the intervals stand at the right.
    """
    with picture(path, 9.5, 4.0) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
        for i, (label, rows) in enumerate(curves.items()):
            shade, marker = style(label)
            every = max(1, rows.shape[1] // 8)
            left.plot(
                evaluations,
                rows.mean(axis=0),
                color=shade,
                marker=marker,
                markevery=(i % every, every),
                markersize=5,
                label=shown(label),
            )
        left.set(xlabel="evaluations", ylabel="robust regret of the outcome", title=title)
        left.set_ylim(bottom=0)
        left.legend(fontsize=8)
        draw_final_regrets(right, curves)
    return path


def draw_final_regrets(ax: Axes, curves: Mapping[str, np.ndarray]) -> None:
    """Show where every repeat ended, their mean, and its 95% interval."""
    spread = np.random.default_rng(0)
    for i, (label, rows) in enumerate(curves.items()):
        final, shade = rows[:, -1], colour(label)
        y = -i + spread.uniform(-0.2, 0.2, len(final))
        ax.scatter(final, y, s=16, color=shade, alpha=0.6, linewidths=0)
        ax.plot([final.mean()] * 2, [-i - 0.35, -i + 0.35], color=shade, linewidth=2)
        if len(final) > 1:
            ax.plot(interval_of_mean(final, 1000), [-i - 0.35] * 2, color=shade, linewidth=1.2)
    ax.set_yticks(-np.arange(len(curves)), [shown(label) for label in curves], fontsize=8)
    ax.set_xlim(left=0)
    ax.set(xlabel="robust regret at the end", title="Repeats, mean, 95% interval")
