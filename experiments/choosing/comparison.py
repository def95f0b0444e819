"""Which surrogate finds the best designs: all candidates on all cases, from the same data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.choosing.chart import draw_relative
from experiments.choosing.verdicts import Verdict, tabulate
from experiments.harness import draw, table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.harness.palette import shown
from experiments.harness.statistics import interval_of_mean
from experiments.paper.ablation import ABLATION
from experiments.paper.optimization import (
    BUMPED_BOWL,
    DOUBLE_PEAK,
    RKHS_GAUSSIAN,
    SHARES,
    Optimization,
)
from experiments.paper.push import PUSH
from experiments.paper.regrets import draw_final_regrets
from experiments.subjects.methods import (
    BOTORCH,
    BOTORCH_PERTURBED,
    ERBF,
    EXPECTATION,
    EXPECTATION_RANDOM,
    GP,
    NYSTROM,
    SKL,
    UGP_DEFAULT,
    Method,
)

BASELINES = (NYSTROM, UGP_DEFAULT, SKL, ERBF, GP)
"""Baselines that the default must not be worse than."""
PEERS = (BOTORCH, BOTORCH_PERTURBED)


def _case(name: str, title: str, n_steps: int) -> Optimization:
    return Optimization(f"choosing-{name}", "beyond the paper", title, name, n_steps)


CHOOSE = (
    RKHS_GAUSSIAN,
    DOUBLE_PEAK,
    PUSH,
    _case("wave", "Wave, hit ever less precisely", 30),
    _case("double-peak-exact", "Double peak, exact now and beta later", 30),
    _case("cliff", "Cliff under a skewed overshoot", 30),
    _case("hartmann-6", "Hartmann in 6 dimensions under Student's t", 50),
)
"""The cases on which the default is chosen."""
CONFIRM = (
    ABLATION,
    BUMPED_BOWL,
    _case("branin", "Branin under a correlated error", 30),
    _case("hills", "Hills, hit less precisely on the right", 30),
    _case("branin-exact", "Branin, exact now and a correlated error later", 30),
    _case("hills-machines", "Hills, on a good machine now and one with play later", 30),
    _case("hartmann-3-precise", "Hartmann in 3 dimensions, hit almost exactly", 30),
)
"""The cases on which the choice is confirmed; nothing was changed after these runs."""


@dataclass(frozen=True)
class Choosing(Experiment):
    """Several methods on several cases, in one table."""

    name: str
    title: str
    cases: tuple[Optimization, ...]
    methods: tuple[Method, ...]
    candidate: Method = EXPECTATION
    """The method that the others are compared with."""
    relative_to: Method | None = None
    """What one chart compares the means with; None: a panel per case, with every repeat."""
    paper: str = "beyond the paper"
    repeats: int = 20

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all methods on all cases, the repeats one after another."""
        each = [case.tasks(repeats, quick) for case in self._with_methods]
        return sorted((task for tasks in each for task in tasks), key=lambda task: task.seed)

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Optimize once, with the settings of the case."""
        [case] = [case for case in self.cases if case.name == task.experiment]
        return case.run(task, step)

    def summary(self, results: Results) -> str:
        """Tabulate all cases together, and then each of them."""
        parts = [self._overview(results), self._targets(results)]
        for case in self.cases:
            mine = self._of(case, results)
            if mine:
                parts += [f"## {case.title}", self._details(case, mine)]
        return "\n\n".join(filter(None, parts))

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the means in one chart, or where every repeat ended, case by case."""
        path = folder / f"{self.name}.png"
        drawn = [case for case in self.cases if self._of(case, results)]
        if self.relative_to is not None:
            return [self._chart(drawn, results, path)]
        rows = -(-len(drawn) // 2)
        with draw.picture(path, 11, 0.9 + 2.4 * rows) as figure:
            axes = figure.subplots(rows, 2, squeeze=False)
            for ax, case in zip(axes.flat, drawn, strict=False):
                mine = self._of(case, results)
                finals = {m: self._finals(case, mine, m)[:, None] for m in mine.labels}
                draw_final_regrets(ax, finals)
                ax.set_title(case.title, fontsize=9)
            for ax in axes.flat[len(drawn) :]:
                ax.remove()
        return [path]

    def _chart(self, cases: Sequence[Optimization], results: Results, path: Path) -> Path:
        """Draw mean regrets relative to one method; plain BoTorch does what the plain GP does."""
        assert self.relative_to is not None
        means = {
            m.label: [float(self._finals(c, self._of(c, results), m.label).mean()) for c in cases]
            for m in self.methods
            if m != BOTORCH
        }
        titles = [case.title for case in cases]
        return draw_relative(titles, means, self.relative_to.label, path)

    @property
    def _with_methods(self) -> list[Optimization]:
        return [replace(case, methods=self.methods) for case in self.cases]

    def _of(self, case: Optimization, results: Results) -> Results:
        return Results([(t, r) for t, r in results if t.experiment == case.name])

    def _finals(self, case: Optimization, results: Results, label: str) -> np.ndarray:
        return np.array([case.regret_after(r, 1.0) for r in results.of(label)])

    def _overview(self, results: Results) -> str:
        """Tabulate the mean final regret of every method on every case.

        The best is marked among the methods with most repeats; the others say how many they have.
        """
        labels = [method.label for method in self.methods]
        rows = []
        for case in self.cases:
            mine = self._of(case, results)
            finals = {m: self._finals(case, mine, m) for m in labels}
            most = max(map(len, finals.values()))
            complete = [f.mean() for f in finals.values() if len(f) == most and most]
            best = min(complete, default=np.nan)
            rows.append([case.title, *(_mean_of(f, most, best) for f in finals.values())])
        return table.markdown(["mean regret at the end", *labels], rows)

    def _targets(self, results: Results) -> str:
        """List the targets that the candidate reaches, on the complete cases."""
        if not set(BASELINES) < set(self.methods):
            return ""
        judged = []
        for case in self.cases:
            verdict = Verdict.of(case, self._of(case, results), self.candidate, BASELINES)
            if verdict is not None:
                judged.append((verdict, "choosing" if case in CHOOSE else "confirming"))
        return f"## Targets\n\n{tabulate(judged)}" if judged else ""

    def _details(self, case: Optimization, results: Results) -> str:
        """Tabulate regrets over time, their spread, duels, calibration and time."""
        plain = _median(results.of(BOTORCH.label), "seconds")
        rows = []
        for label in results.labels:
            mine = results.of(label)
            after = {share: [case.regret_after(r, share) for r in mine] for share in SHARES}
            final = np.array(after[1.0])
            low, high = interval_of_mean(final)
            seconds = _median(mine, "seconds")
            rows.append(
                [
                    label,
                    str(len(mine)),
                    *(f"{np.mean(after[share]):.3f}" for share in SHARES),
                    f"{low:.3f} to {high:.3f}",
                    f"{np.median(final):.3f}",
                    _mean(mine, "anywhere", lambda value: f"{case.regret_of(value):.3f}"),
                    self._duel(case, results, label),
                    _mean(mine, "covered", "{:.0%}".format),
                    f"{seconds:.2f}",
                    f"{seconds / plain:.1f}" if plain > 0 else "–",
                ]
            )
        header = [
            "method",
            "repeats",
            *(f"mean at {share:.0%}" for share in SHARES),
            "95% interval at the end",
            "median",
            "from anywhere",
            f"{shown(self.candidate.label)} wins : loses",
            "90% covers",
            "seconds per ask",
            "times plain loop",
        ]
        return table.markdown(header, rows)

    def _duel(self, case: Optimization, results: Results, label: str) -> str:
        """Count in how many repeats the candidate ended better, and worse, than another."""
        if label == self.candidate.label:
            return ""
        ours, theirs = (
            {t.seed: case.regret_after(r, 1.0) for t, r in results if t.label == name}
            for name in (self.candidate.label, label)
        )
        gaps = np.array([theirs[seed] - ours[seed] for seed in ours.keys() & theirs.keys()])
        return f"{(gaps > TIE).sum()} : {(gaps < -TIE).sum()}"


TIE = 1e-6
"""Regrets that differ by less than this count as equal."""


def _mean_of(finals: np.ndarray, most: int, best: float) -> str:
    if len(finals) == 0:
        return "–"
    mean = f"{finals.mean():.3f}"
    if len(finals) < most:
        return f"{mean} ({len(finals)} of {most})"
    return f"**{mean}**" if finals.mean() <= best else mean


def _median(results: Sequence[dict[str, Any]], key: str) -> float:
    return float(np.median([r[key] for r in results])) if results else np.nan


def _mean(results: Sequence[dict[str, Any]], key: str, write: Callable[[float], str]) -> str:
    known = [r[key] for r in results if key in r]
    return write(float(np.mean(known))) if known else "–"


SCREENING = Choosing(
    "screening",
    "Candidates for the default, on the cases for choosing",
    CHOOSE,
    (
        EXPECTATION,
        EXPECTATION_RANDOM,
        Method("UCB of the theory", "expectation", acquisition="ucb-theory"),
        Method("expected improvement", "expectation", acquisition="ei"),
        Method("constant noise", "constant noise"),
        Method(
            "squared exponential, randomized UCB", "squared exponential", acquisition="ucb-random"
        ),
        GP,
        Method("GP, randomized UCB", "nominal", acquisition="ucb-random"),
    ),
    repeats=6,
)
"""Their priors were chosen by predictions already: see ``predicting``."""
CHOOSING = Choosing(
    "choosing",
    "The default surrogate against the others",
    CHOOSE + CONFIRM,
    (EXPECTATION_RANDOM, *BASELINES, *PEERS),
    candidate=EXPECTATION_RANDOM,
    relative_to=GP,
)
