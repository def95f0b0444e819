"""Pictures in one style."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from experiments.harness.places import DOCS

STYLE = DOCS / "airbo.mplstyle"
COLOURS = ("#0072B2", "#D55E00", "#555555", "#CC79A7", "#E69F00", "#009E73")  # colour-blind safe
TRUTH, FUNCTION, MODEL, DATA = "#000000", "#A8A8A8", "#0072B2", "#D55E00"
"""Colours of the objective, of f itself, of a model and of the observations."""


@contextmanager
def picture(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Draw on a figure and save it."""
    with plt.style.context(STYLE):
        figure = plt.figure(figsize=(width, height), layout="constrained")
        try:
            yield figure
            save(figure, path)
        finally:
            plt.close(figure)


def save(figure: Figure, path: Path) -> None:
    """Write a picture to a file and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
