"""The second round of choosing a default: cases and rule, written before any of them was run.

Every case of the first round has been seen, so all of them count as choosing now. A candidate is
chosen by predictions and regrets on the cases for choosing. It is then run once on the cases for
confirming, beside every surrogate with every acquisition that matters.

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

import numpy as np

from airbo.uncertainty import base_draws
from experiments.choosing.comparison import Choosing
from experiments.choosing.predicting import Predicting
from experiments.harness import draw, table
from experiments.harness.experiment import Results
from experiments.harness.palette import shown, style
from experiments.harness.statistics import interval_of_mean
from experiments.paper.optimization import Optimization
from experiments.subjects.methods import (
    BOTORCH,
    ERBF,
    EXPECTATION,
    EXPECTATION_RANDOM,
    GP,
    NYSTROM,
    RELEVANCE,
    RELEVANCE_RANDOM,
    Method,
)

N_STEPS = 22
"""Evaluations after the 10 initial ones: 32 in all."""


def _case(name: str, title: str) -> Optimization:
    return Optimization(f"second-{name}", "beyond the paper", title, name, N_STEPS)


CHOOSE_NEW = (
    _case("chirp-exact", "Chirp, exact now and normal later"),
    _case("hartmann-3-exact", "Hartmann in 3 dimensions, exact now and normal later"),
    _case("circuit", "Circuit (6), 5 V wanted"),
    _case("reactor", "Reactor (4), large yield"),
    _case("spring", "Spring (4), 10 N/mm wanted"),
    _case("borehole", "Borehole (8), 60 m³ a year wanted"),
)
"""New cases for choosing."""
CHOOSE_OLD = (
    _case("rkhs", "RKHS function under N(0, 0.01²)"),
    _case("double-peak", "Double peak under beta(0.4, 0.2, 0.1)"),
    _case("cliff", "Cliff under a skewed overshoot"),
    _case("hills", "Hills, hit less precisely on the right"),
    _case("branin", "Branin under a correlated error"),
    _case("push", "Robot push, two modes"),
    _case("hartmann-6", "Hartmann in 6 dimensions under Student's t"),
)
"""Cases of the first round that are run again, with 32 evaluations."""
CONFIRM_NEW = (
    _case("three-bumps-exact", "Three bumps, exact now and normal later"),
    _case("three-bumps", "Three bumps under N(0, 0.1²)"),
    _case("polynomial-exact", "Polynomial, exact now and normal later"),
    _case("piston", "Piston (7), 0.4 s wanted"),
    _case("controller", "Controller (6), 3 kΩ wanted"),
    _case("absorber", "Absorber (5), little vibration"),
    _case("arm", "Robot arm (8), a place wanted"),
)
"""The cases on which the choice is confirmed."""

UGP = Method("uGP", "ugp, the library's prior")
CONTENDERS = (EXPECTATION_RANDOM, RELEVANCE_RANDOM, RELEVANCE, ERBF)
METHODS = (
    *CONTENDERS,
    EXPECTATION,
    GP,
    UGP,
    NYSTROM,
    BOTORCH,
    Method("ERBF, randomized UCB", "erbf", acquisition="ucb-random"),
    Method("GP, randomized UCB", "nominal", acquisition="ucb-random"),
    Method("uGP, randomized UCB", "ugp, the library's prior", acquisition="ucb-random"),
)
"""Surrogates with acquisitions; a name without one means μ + 2σ."""

SMALLEST = 1e-3
"""Mean regrets below this share of the unit of a case count as this share."""
N_RANDOM, N_BOOTSTRAP = 256, 10_000


@dataclass(frozen=True)
class SecondRound(Choosing):
    """The candidate against the present default and all others, by the rule above."""

    present: Method = EXPECTATION_RANDOM

    def summary(self, results: Results) -> str:
        """Say first whether the rule is met, then write all tables."""
        return f"{self._rule(results)}\n\n{super().summary(results)}"

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw how far every method is from the best, in units of the case."""
        path = folder / f"{self.name}.png"
        with draw.picture(path, 9, 1.0 + 0.62 * len(self.cases)) as figure:
            ax = figure.subplots()
            for row, case in enumerate(self.cases):
                mine, scale = self._of(case, results), unit(case)
                for k, label in enumerate(mine.labels):
                    finals = self._finals(case, mine, label) / scale
                    low, high = interval_of_mean(finals)
                    y = row - 0.36 + 0.72 * k / max(1, len(mine.labels) - 1)
                    colour, marker = style(label)
                    hollow = "white" if "randomized" not in label else colour
                    ax.plot([low, high], [y, y], color=colour, lw=1)
                    ax.plot(finals.mean(), y, marker, color=colour, mfc=hollow, ms=5)
            ax.set_yticks(range(len(self.cases)), [c.title for c in self.cases], fontsize=8)
            ax.set_xscale("symlog", linthresh=0.01)
            ax.set_xlabel("mean regret at the end / median regret of random designs")
            ax.invert_yaxis()
            handles = [
                ax.plot([], [], style(m.label)[1], color=style(m.label)[0], label=shown(m.label))[0]
                for m in self.methods
            ]
            for handle, method in zip(handles, self.methods, strict=True):
                if "randomized" not in method.label:
                    handle.set_markerfacecolor("white")
            figure.legend(handles=handles, fontsize=6, ncol=4, loc="outside upper center")
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
            m: {t.seed: case.regret_after(r, 1.0) for t, r in results if t.label == m.label}
            for m in (self.candidate, self.present)
        }
        seeds = sorted(of[self.candidate].keys() & of[self.present].keys())
        ours, theirs = (np.array([of[m][s] for s in seeds]) for m in (self.candidate, self.present))
        return ours, theirs


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


SECOND = SecondRound(
    "second",
    "A new default against the present one, on the cases for confirming",
    CONFIRM_NEW,
    METHODS,
    candidate=RELEVANCE_RANDOM,
    repeats=10,
)
PREDICTED = (
    "rkhs",
    "double-peak",
    "cliff",
    "hills",
    "branin",
    "push",
    "hartmann-6",
    "circuit",
    "reactor",
    "spring",
    "borehole",
)
SECOND_PREDICTING = Predicting(
    "second-predicting",
    "Predicted expected values, with candidates of the second round",
    (
        EXPECTATION,
        Method("spread 1", "spread 1"),
        Method("twice as long, spread 0.7", "twice as long, spread 0.7"),
        Method("averaged over length scales", "hedged"),
        Method("a length scale per parameter", "relevance"),
        ERBF,
        GP,
    ),
    PREDICTED,
    repeats=3,
)
