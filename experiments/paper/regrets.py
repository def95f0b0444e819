"""Pictures of regrets: against the evaluations, and where every repeat ended."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments.harness.draw import picture
from experiments.harness.statistics import interval_of_mean
from experiments.subjects.palette import colour, style


def draw_regrets(
    title: str, curves: Mapping[str, np.ndarray], evaluations: Sequence[int], path: Path
) -> Path:
    """Draw the mean regret of every method, with its 95% interval, and all final regrets."""
    with picture(path, 9.5, 4.0) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
        for i, (label, rows) in enumerate(curves.items()):
            low, high = np.array([interval_of_mean(c, 1000) for c in rows.T]).T
            shade, marker = style(label)
            every = max(1, rows.shape[1] // 8)
            left.plot(
                evaluations,
                rows.mean(axis=0),
                color=shade,
                marker=marker,
                markevery=(i % every, every),
                markersize=5,
                label=label,
            )
            left.fill_between(evaluations, low, high, color=shade, alpha=0.1, linewidth=0)
        left.set(xlabel="evaluations", ylabel="robust regret of the outcome", title=title)
        left.set_ylim(bottom=0)
        left.legend(fontsize=8)
        draw_final_regrets(right, curves)
    return path


def draw_final_regrets(ax: Axes, curves: Mapping[str, np.ndarray]) -> None:
    """Show where every repeat ended, and the mean."""
    spread = np.random.default_rng(0)
    for i, (label, rows) in enumerate(curves.items()):
        final, shade = rows[:, -1], colour(label)
        y = -i + spread.uniform(-0.2, 0.2, len(final))
        ax.scatter(final, y, s=16, color=shade, alpha=0.6, linewidths=0)
        ax.plot([final.mean()] * 2, [-i - 0.35, -i + 0.35], color=shade, linewidth=2)
    ax.set_yticks(-np.arange(len(curves)), list(curves), fontsize=8)
    ax.set_xlim(left=0)
    ax.set(xlabel="robust regret at the end", title="Every repeat, and the mean")
