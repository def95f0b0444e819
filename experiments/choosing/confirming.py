"""Whether a candidate becomes the default: the rule, and the comparison that it needs.

The rule. The unit of a case is the median regret of random designs. A mean regret below a
thousandth of the unit counts as a thousandth. A candidate becomes the default if, on the cases for
confirming and against the present default,

- the mean over cases of log(mean regret / mean regret of the present default) is below 0, and the
  95% interval of that mean (repeats resampled, paired, within every case) is, too;
- on no case its mean regret is more than 1.5 times as large, unless both are below a hundredth of
  the unit.

A method is "not worse" than another on a case if its mean regret is within 10%, or if the 95%
interval of the paired difference contains 0.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airbo.uncertainty import base_draws
from experiments.choosing.comparison import Choosing
from experiments.harness import draw, table
from experiments.harness.experiment import Results
from experiments.harness.palette import shown, style
from experiments.harness.statistics import interval_of_mean
from experiments.paper.optimization import Optimization
from experiments.subjects.methods import EXPECTATION_RANDOM, Method

N_STEPS = 22
"""Evaluations after the 10 initial ones: 32 in all."""
SMALLEST = 1e-3
"""Mean regrets below this share of the unit of a case count as this share."""
N_RANDOM, N_BOOTSTRAP = 256, 10_000


def case(round_: str, name: str, title: str) -> Optimization:
    """Return a case of a round of choosing."""
    return Optimization(f"{round_}-{name}", "beyond the paper", title, name, N_STEPS)


@dataclass(frozen=True)
class Confirming(Choosing):
    """The candidate against the present default and all others, by the rule above."""

    present: Method = EXPECTATION_RANDOM
    from_anywhere: bool = False
    """Whether the candidate recommends designs from anywhere, not only those tried."""

    def summary(self, results: Results) -> str:
        """Say first whether the rule is met, then write all tables."""
        return f"{self._rule(results)}\n\n{super().summary(results)}"

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw how far every method is from the best, in units of the case."""
        path = folder / f"{self.name}.png"
        labels = [m.label for m in self.methods if m.label in results.labels]
        with draw.picture(path, 9, 1.0 + 0.62 * len(self.cases)) as figure:
            ax = figure.subplots()
            for row, case in enumerate(self.cases):
                mine, scale = self._of(case, results), unit(case)
                for label in mine.labels:
                    finals = self._finals(case, mine, label) / scale
                    low, high = interval_of_mean(finals)
                    y = row + 0.72 * ((labels.index(label) + 0.5) / len(labels) - 0.5)
                    colour, marker = style(label)
                    ax.plot([low, high], [y, y], color=colour, lw=1)
                    ax.plot(finals.mean(), y, marker, color=colour, mfc=_filling(label), ms=5)
            ax.set_yticks(range(len(self.cases)), [c.title for c in self.cases], fontsize=8)
            ax.set_xscale("symlog", linthresh=0.01)
            ax.set_xlabel("mean regret at the end / median regret of random designs")
            ax.invert_yaxis()
            for label in labels:
                colour, marker = style(label)
                mfc = _filling(label)
                ax.plot([], [], marker, color=colour, mfc=mfc, ms=5, label=shown(label))
            figure.legend(fontsize=6, ncol=4, loc="outside upper center")
        return [path]

    def _rule(self, results: Results) -> str:
        """Compare the candidate with the present default, case by case and in all."""
        rows, pairs, scales = [], [], []
        for case in self.cases:
            ours, theirs = self._paired(case, self._of(case, results))
            if not len(ours):
                continue
            pairs.append((ours, theirs))
            scales.append(unit(case))
            low, high = interval_of_mean(ours - theirs)
            rows.append(
                [
                    case.title,
                    str(len(ours)),
                    f"{theirs.mean():.3g}",
                    f"{ours.mean():.3g}",
                    f"{ours.mean() / theirs.mean():.2f}",
                    f"{(ours - theirs).mean():.3g} ({low:.3g} to {high:.3g})",
                    f"{(ours < theirs).sum()} : {(ours > theirs).sum()}",
                ]
            )
        if not rows:
            return ""
        middle, low, high = ratio_of_all(pairs, scales)
        header = ["case", "repeats", "present", "candidate", "ratio", "difference", "wins : loses"]
        return (
            f"{shown(self.candidate.label)} against {shown(self.present.label)}: the geometric "
            f"mean of the ratios is {middle:.2f} (95%: {low:.2f} to {high:.2f}).\n\n"
            f"{table.markdown(header, rows)}"
        )

    def _paired(self, case: Optimization, results: Results) -> tuple[np.ndarray, np.ndarray]:
        """Return the final regrets of candidate and present default, repeat by repeat."""
        of = {
            m: {t.seed: self.final(case, m, r) for t, r in results if t.label == m.label}
            for m in (self.candidate, self.present)
        }
        seeds = sorted(of[self.candidate].keys() & of[self.present].keys())
        ours, theirs = (np.array([of[m][s] for s in seeds]) for m in (self.candidate, self.present))
        return ours, theirs

    def final(self, case: Optimization, method: Method, result: dict[str, Any]) -> float:
        """Return the regret of what a method recommends at the end."""
        if self.from_anywhere and method == self.candidate:
            return case.regret_of(result["anywhere"])
        return case.regret_after(result, 1.0)


def _filling(label: str) -> str:
    """Return the colour inside a marker: full for a random β, grey for balanced, white for UCB."""
    if "randomized" in label:
        return style(label)[0]
    return "lightgrey" if "balanced" in label else "white"


def unit(case: Optimization) -> float:
    """Return the median regret of random designs."""
    Z = base_draws(N_RANDOM, case.case.space.d)
    return float(case.problem.regret(case.case.designs(Z)).median())


def ratio_of_all(
    pairs: list[tuple[np.ndarray, np.ndarray]], scales: list[float]
) -> tuple[float, float, float]:
    """Return the geometric mean over cases of the ratio of mean regrets, and its 95% interval.

    Args:
        pairs: Of every case, regrets of the candidate and of the present default.
        scales: The units of the cases.
    """
    random = np.random.default_rng(0)
    logs, middles = np.zeros(N_BOOTSTRAP), []
    for (ours, theirs), scale in zip(pairs, scales, strict=True):
        picks = random.integers(0, len(ours), (N_BOOTSTRAP, len(ours)))
        least = SMALLEST * scale
        means = [np.maximum(of[picks].mean(1), least) for of in (ours, theirs)]
        logs += np.log(means[0] / means[1]) / len(pairs)
        middles.append(np.log(max(ours.mean(), least) / max(theirs.mean(), least)))
    low, high = np.exp(np.quantile(logs, [0.025, 0.975]))
    return float(np.exp(np.mean(middles))), float(low), float(high)
