"""How far the default is from the best of all others, case by case."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from experiments.choosing.confirming import Confirming, unit
from experiments.choosing.fourth import FOURTH, FOURTH_LONG
from experiments.harness.draw import MODEL, save
from experiments.harness.palette import shown
from experiments.harness.statistics import interval_of_mean
from experiments.harness.store import Store

LEAST = 3
"""Repeats that a method needs to be shown."""
SHOWN = (-1.0, 1.0)
"""Range of the axis; longer intervals are cut."""


@dataclass(frozen=True)
class Gap:
    """How much worse the default is than the best other method, repeat by repeat."""

    best: str
    each: np.ndarray

    @classmethod
    def of(cls, finals: Mapping[str, Mapping[int, float]], ours: str) -> "Gap":
        """Compare on the repeats that all methods have.

        Args:
            finals: The final regret of every repeat, by method and number of the repeat.
            ours: The method to compare with the best of the others.
        """
        seeds = sorted(set.intersection(*(set(f) for f in finals.values())))
        known = {label: np.array([f[s] for s in seeds]) for label, f in finals.items()}
        others = [label for label in known if label != ours]
        best = min(others, key=lambda label: float(known[label].mean()))
        return cls(best, known[ours] - known[best])


def gaps_of(experiment: Confirming, store: Store) -> dict[str, Gap]:
    """Return the gap of every case, in units of the case, by its title."""
    results = store.results(experiment.tasks(experiment.repeats))
    methods = {method.label: method for method in experiment.methods}
    found = {}
    for case in experiment.cases:
        finals: dict[str, dict[int, float]] = {}
        scale = unit(case)
        for task, result in results:
            if task.experiment == case.name:
                regret = experiment.final(case, methods[task.label], result) / scale
                finals.setdefault(task.label, {})[task.seed] = regret
        often = {label: of for label, of in finals.items() if len(of) >= LEAST}
        found[case.title] = Gap.of(often, experiment.candidate.label)
    return found


def draw_choosing(folder: Path) -> None:
    """Draw one row per case: the gap, its 95% interval, and which method is the best other."""
    store = Store()
    rows = [*gaps_of(FOURTH_LONG, store).items(), *gaps_of(FOURTH, store).items()]
    figure, ax = plt.subplots(figsize=(9, 0.32 * len(rows) + 1.2), layout="constrained")
    for y, (_, gap) in enumerate(rows):
        low, high = interval_of_mean(gap.each)
        ax.plot(np.clip([low, high], *SHOWN), [y, y], color=MODEL, lw=1.5)
        ax.plot(np.clip(gap.each.mean(), *SHOWN), y, "o", color=MODEL)
        ax.text(1.01, y, f"{shown(gap.best)} ({len(gap.each)})", va="center", fontsize=7,
                transform=ax.get_yaxis_transform())  # fmt: skip
    ax.axvline(0, color="black", lw=0.8)
    ax.axhline(len(FOURTH_LONG.cases) - 0.5, color="black", lw=0.5, ls=":")
    ax.set_yticks(range(len(rows)), [title for title, _ in rows], fontsize=8)
    ax.set_xscale("symlog", linthresh=0.01)
    ax.set_xlim(*SHOWN)
    ax.set_xticks(
        [-1, -0.1, -0.01, 0, 0.01, 0.1, 1], ["-1", "-0.1", "-0.01", "0", "0.01", "0.1", "1"]
    )
    ax.set_xlabel(
        "← default better      mean regret of the default minus that of the best other method "
        "     default worse →\nin units of the median regret of random designs",
        fontsize=8,
    )
    ax.invert_yaxis()
    save(figure, folder / "choosing.png")
