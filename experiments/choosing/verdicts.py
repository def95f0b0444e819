"""The targets of the default surrogate, and whether it reaches them, case by case."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.harness import table
from experiments.harness.experiment import Results
from experiments.harness.statistics import interval_of_mean
from experiments.paper.optimization import Optimization
from experiments.subjects.methods import BOTORCH, GP, NYSTROM, Method

COVERAGE = (0.85, 0.95)
"""How often a 90% interval should contain the expected value."""
TIMES_PLAIN = 3.0
"""How long an ask may take, relative to an ask of a plain BoTorch loop."""


@dataclass(frozen=True)
class Verdict:
    """One case: the default against the baselines, over the repeats that all of them have."""

    case: Optimization
    n_repeats: int
    best: str
    """The baseline with the smallest mean regret."""
    gaps: np.ndarray
    """How much worse the default is than the best baseline, repeat by repeat."""
    of_nystrom: float
    """Mean regret of the default divided by that of MMDGP-nystrom."""
    of_plain: float
    """Mean regret of the default divided by that of a plain GP."""
    covered: float
    times_plain: float
    """Seconds per ask divided by those of a plain BoTorch loop; NaN if there is no such run."""

    @classmethod
    def of(
        cls, case: Optimization, results: Results, default: Method, baselines: Sequence[Method]
    ) -> "Verdict | None":
        """Judge a case; None if a method has no repeat in common with the others."""
        labels = [default.label, *(b.label for b in baselines)]
        found = {label: {t.seed: r for t, r in results if t.label == label} for label in labels}
        seeds = sorted(set.intersection(*(set(of_label) for of_label in found.values())))
        if not seeds:
            return None
        final = {
            label: np.array([case.regret_after(of_label[seed], 1.0) for seed in seeds])
            for label, of_label in found.items()
        }
        best = min((b.label for b in baselines), key=lambda label: final[label].mean())
        ours = final[default.label]
        covered = [found[default.label][seed]["covered"] for seed in seeds]
        plain = {t.seed: r["seconds"] for t, r in results if t.label == BOTORCH.label}
        timed = [(found[default.label][s]["seconds"], plain[s]) for s in seeds if s in plain]
        own, yardstick = np.median(timed, axis=0) if timed else (np.nan, np.nan)
        return cls(
            case,
            len(seeds),
            best,
            ours - final[best],
            float(ours.mean() / final[NYSTROM.label].mean()),
            float(ours.mean() / final[GP.label].mean()),
            float(np.mean(covered)),
            float(own / yardstick),
        )

    @property
    def is_not_worse(self) -> bool:
        """Whether the 95% interval of the gap to the best baseline reaches 0."""
        return interval_of_mean(self.gaps)[0] <= 0

    def row(self, purpose: str) -> list[str]:
        low, high = interval_of_mean(self.gaps)
        return [
            self.case.title,
            purpose,
            self.case.case.kind,
            str(self.n_repeats),
            self.best,
            f"{self.gaps.mean():.3f} ({low:.3f} to {high:.3f})",
            f"{self.of_nystrom:.2f}",
            f"{self.of_plain:.2f}",
            f"{self.covered:.0%}",
            f"{self.times_plain:.1f}",
        ]


HEADER = [
    "case",
    "for",
    "P",
    "repeats",
    "best baseline",
    "default's regret less its (95% interval)",
    "over MMDGP-nystrom's",
    "over the plain GP's",
    "90% covers",
    "times plain loop",
]


REACHED: dict[str, Callable[[Verdict], bool]] = {
    "not worse than the best baseline": lambda v: v.is_not_worse,
    "less than half of MMDGP-nystrom's regret": lambda v: v.of_nystrom < 0.5,
    "90% interval covers {:.0%} to {:.0%}".format(*COVERAGE): (
        lambda v: COVERAGE[0] <= v.covered <= COVERAGE[1]
    ),
    f"at most {TIMES_PLAIN:.0f} times the plain loop": lambda v: v.times_plain <= TIMES_PLAIN,
}
"""The targets of a case."""


def tabulate(verdicts: Sequence[tuple[Verdict, str]]) -> str:
    """Write verdicts, each with what its case is for, and count the targets that are reached.

    They are counted over all cases, over those with the same purpose, and over those in which P
    behaves alike.
    """
    groups: dict[str, list[Verdict]] = {"all": [verdict for verdict, _ in verdicts]}
    for verdict, purpose in verdicts:
        groups.setdefault(purpose, []).append(verdict)
    for verdict, _ in verdicts:
        groups.setdefault(f"P {verdict.case.case.kind}", []).append(verdict)
    counts = [
        [target, *(f"{sum(map(reaches, of))} of {len(of)}" for of in groups.values())]
        for target, reaches in REACHED.items()
    ]
    together = [f"{np.mean([v.covered for v in of]):.0%}" for of in groups.values()]
    counts.append(["the 90% intervals of all these cases cover", *together])
    rows = [verdict.row(purpose) for verdict, purpose in verdicts]
    return f"{table.markdown(HEADER, rows)}\n\n{table.markdown(['cases', *groups], counts)}"
