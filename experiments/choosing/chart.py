"""Mean regrets of several methods on several cases, against one of the methods."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.harness.draw import picture
from experiments.harness.palette import shown, style

SMALLEST = 0.005
"""Shares below this are drawn at it, with an arrow."""


def draw_relative(
    cases: Sequence[str], means: Mapping[str, Sequence[float]], reference: str, path: Path
) -> Path:
    """Draw a row per case and a mark per method: its mean regret over that of the reference.

    The first method stands out. A case on which a method has no results has no mark.
    """
    rows = -np.arange(len(cases))
    with picture(path, 9.5, 1.6 + 0.33 * len(cases)) as figure:
        ax = figure.subplots()
        ax.axvline(1, color=style(reference)[0], lw=1.5)
        for y in rows.tolist():
            ax.axhline(y, color="0.92", lw=0.8, zorder=0)
        for i, (label, mean) in enumerate(means.items()):
            if label == reference:
                continue
            share = np.array(mean) / np.array(means[reference])
            shade, marker = style(label)
            low = share < SMALLEST
            ax.plot(
                np.maximum(share, SMALLEST), rows, marker, color=shade, ls="", mec="white",
                ms=10 if i == 0 else 7, zorder=4 if i == 0 else 3, label=shown(label),
            )  # fmt: skip
            arrow = {"arrowstyle": "->", "color": shade, "lw": 1.5}
            for y in rows[low].tolist():
                ax.annotate("", (SMALLEST * 0.7, y), (SMALLEST, y), arrowprops=arrow)
        ax.set_xscale("log")
        ax.set_yticks(rows, list(cases), fontsize=9)
        ax.set_xlabel(f"mean regret at the end, as a multiple of the {shown(reference)}'s")
        ax.set_title(f"Left of the line: better than a {shown(reference)}")
        figure.legend(loc="outside lower center", ncols=4, fontsize=9)
    return path
