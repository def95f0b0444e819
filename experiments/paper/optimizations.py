"""The paper's five optimizations: regrets of all methods, and which of its claims hold.

The protocol is the paper's: ten uniform random first designs, UCB with β = 2, and the outcome is
the observed design with the highest posterior mean. The paper's own estimator is run as printed
(``subjects/literal.py``): equation 9 with its mixed term, or the U-statistic, drawn anew.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from airbo.acquisition import UCB
from airbo.embeddings import Empirical, Nystrom
from airbo.seeds import stream_seed
from airbo.uncertainty import base_draws
from experiments.harness import pages, table
from experiments.harness.draw import picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.palette import colour, shown, style
from experiments.harness.statistics import interval_of_mean, with_interval
from experiments.subjects.cases import CASES, Case
from experiments.subjects.literal import LiteralLoop
from experiments.subjects.loops import AirboLoop, Loop
from experiments.subjects.methods import DEFAULT, ERBF, GP, NYSTROM, SKL, UGP_40, Method, surrogate
from experiments.subjects.push import QUADRANTS

N_INITIAL, BETA = 10, 2.0
PROTOCOL = {"n_initial": N_INITIAL, "initial": "uniform", "beta": BETA, "every": 5}
REPEATS, REPEATS_OF_EI = 12, 3
REPEATS_OF_SLOW = 6
"""Of the paper's own estimator on the bumped bowl and the push: a run takes ten minutes there, and
less than two in one dimension. Verdicts on these two say so."""
SLOW = ("bumped-bowl", "push")
EVERY = 5
"""Evaluations from one look at the outcome to the next."""


def repeats_of(case: str, method: str) -> int:
    """Return how many repeats a method has on a problem."""
    if method.endswith(EI):
        return REPEATS_OF_EI
    return REPEATS_OF_SLOW if case in SLOW and method.startswith(PAPERS) else REPEATS


def held(method: Method, case: Case, repeat: int) -> Loop:
    """Start one of the library's surrogates, whose draws are held."""
    seed = stream_seed(case.seed(repeat), "draws") % 2**31
    model = surrogate(method.config(), seed)
    return AirboLoop(case, repeat, model, UCB(BETA), policy="observed")


PAPERS = "the paper's MMDGP-nystrom"
"""Labels of methods that are run as in the paper begin like this."""
EI = ", expected improvement"
NYSTROM_16 = Method("MMDGP-nystrom(16/9)", "mmd", Nystrom(16, 9))
MAIN: Mapping[str, Any] = {
    f"{PAPERS}(160/10)": partial(LiteralLoop, estimator=Nystrom(160, 10)),
    **{m.label: partial(held, m) for m in (NYSTROM, UGP_40, GP, SKL, ERBF, DEFAULT)},
    f"{PAPERS}(160/10){EI}": partial(LiteralLoop, estimator=Nystrom(160, 10), acquisition="ei"),
}
ABLATION: Mapping[str, Any] = {
    f"{PAPERS}(16/9)": partial(LiteralLoop, estimator=Nystrom(16, 9)),
    "the paper's MMDGP-raw-S(12)": partial(LiteralLoop, estimator=Empirical(12)),
    "the paper's MMDGP-raw-L(16)": partial(LiteralLoop, estimator=Empirical(16)),
    **{m.label: partial(held, m) for m in (NYSTROM_16, GP, DEFAULT)},
    f"{PAPERS}(16/9){EI}": partial(LiteralLoop, estimator=Nystrom(16, 9), acquisition="ei"),
}


@dataclass(frozen=True)
class Optimization:
    """One of the five: where it stands in the paper, and how long it runs."""

    figure: str
    title: str
    n_steps: int
    """Evaluations after the first designs."""
    methods: Mapping[str, Any]


FIVE = {
    "rkhs": Optimization("figure 4 (b)", "RKHS function under N(0, 0.01²)", 50, MAIN),
    "double-peak": Optimization("figure 4 (d)", "Double peak under beta(0.4, 0.2, 0.1)", 50, MAIN),
    "bumped-bowl": Optimization("figure 9", "Bumped bowl in 10 dimensions", 100, MAIN),
    "push": Optimization("figures 5, 6 and 11", "Robot push under a mixture", 100, MAIN),
    "rkhs-beta": Optimization(
        "figure 8", "Ablation: RKHS function under beta(0.4, 0.2, 0.1)", 50, ABLATION
    ),
}


@dataclass(frozen=True)
class Claim:
    """What the paper says of one method: it ends better than others."""

    case: str
    words: str
    better: str
    than: tuple[str, ...]


OURS = ERBF.label
"""Not the paper's: it adds the variance of the unseen input to the noise, design by design."""
NYSTROM_160, RIVALS = f"{PAPERS}(160/10)", (UGP_40.label, GP.label, SKL.label, ERBF.label)
SMALL, LARGE = "the paper's MMDGP-raw-S(12)", "the paper's MMDGP-raw-L(16)"
CLAIMS = (
    Claim("rkhs", "GP-UCB stagnates at a local optimum, MMDGP does not", NYSTROM_160, (GP.label,)),
    Claim("double-peak", "our method outperforms the others", NYSTROM_160, RIVALS),
    Claim("double-peak", "SKL and ERBF are sub-optimal", NYSTROM_160, (SKL.label, ERBF.label)),
    Claim("bumped-bowl", "our method outperforms the others", NYSTROM_160, RIVALS),
    Claim("push", "our method obviously outperforms the others", NYSTROM_160, RIVALS),
    Claim("rkhs-beta", "MMDGP-raw-L is the best", LARGE, (f"{PAPERS}(16/9)", SMALL, GP.label)),
    Claim("rkhs-beta", "MMDGP-nystrom is much better than raw-S", f"{PAPERS}(16/9)", (SMALL,)),
    Claim("rkhs-beta", "MMDGP-nystrom is better than GP-UCB", f"{PAPERS}(16/9)", (GP.label,)),
)


class Paper(Experiment):
    """All methods on the five problems, from the same first designs and values."""

    name = "paper"
    paper = "figures 4, 5, 6, 8, 9 and 11"
    title = "The paper's five optimizations"
    repeats = REPEATS

    def tasks(self, repeats: int) -> list[Task]:
        """List the repeats one after another; expected improvement has few of them."""
        return [
            Task(
                self.name,
                f"{case}: {method}",
                seed,
                {"case": case, "method": method, "budget": n, "protocol": PROTOCOL},
            )
            for seed in range(repeats)
            for case, problem in FIVE.items()
            for method in problem.methods
            for n in [N_INITIAL + problem.n_steps]
            if seed < repeats_of(case, method)
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize once; judge the outcome after every fifth evaluation."""
        case, repeat, n = CASES[task.config["case"]], task.seed, task.config["budget"]
        loop = FIVE[case.name].methods[task.config["method"]](case, repeat)
        first = case.first_designs(repeat, N_INITIAL, uniform=True)
        values, outcomes, seconds = [], [], []
        for i in range(n):
            begun = time.process_time()
            design = first[i] if i < N_INITIAL else loop.ask()
            values.append(case.value(case.executed(design, repeat, i), repeat, i))
            loop.tell(design, values[-1])
            seconds.append(time.process_time() - begun)
            if i + 1 >= N_INITIAL and (i + 1 == n or (i + 1 - N_INITIAL) % EVERY == 0):
                outcomes.append(tuple(loop.recommend()))
        return {
            "regret": _regrets(case, outcomes),
            "outcome": [float(f"{x:.6g}") for x in outcomes[-1]],
            "best_value": float(f"{case.sign * max(case.sign * v for v in values):.5g}"),
            "seconds": round(float(np.mean(seconds[N_INITIAL:])), 3),
        }

    # -- results

    def summary(self, results: Results) -> str:
        """Tabulate claims and verdicts, then the regrets, problem by problem."""
        parts = ["## Claims", _verdicts(results)]
        for case, problem in FIVE.items():
            rows = [_row(case, method, results) for method in problem.methods]
            header = ["method", "repeats", "first outcome", "half way", "at the end: mean",
                      "95% interval", "median", "best so far", "seconds a step"]  # fmt: skip
            parts += [f"## {problem.title} ({problem.figure})"]
            parts += [table.markdown(header, [row for row in rows if row])]
        parts += ["Into which quadrant the ball is pushed (figures 6 and 11):", _quadrants(results)]
        return "\n\n".join([*parts, "## Expected improvement", _improvement(results)])

    def excerpts(self, results: Results) -> dict[str, tuple[Path, str]]:
        """Return the claims with their verdicts, and expected improvement."""
        link = "[All regrets](../experiments/results/paper.md)"
        cases = {task.config["case"]: FIVE[task.config["case"]] for task, _ in results}
        pictures = [f"![{p.title}](images/paper/paper-{name}.png)" for name, p in cases.items()]
        ei = ["Expected improvement:", _improvement(results)]
        parts = [_verdicts(results), *pictures, *ei, link]
        return {"paper": (pages.PAPER, "\n\n".join(parts))}

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw regrets over evaluations."""
        paths = []
        for case, problem in FIVE.items():
            curves = {
                method: np.array([r["regret"] for r in results.of(f"{case}: {method}")])
                for method in problem.methods
                if results.of(f"{case}: {method}") and not method.endswith(EI)
            }
            if curves:
                n = len(next(iter(curves.values()))[0])
                path, evaluations = folder / f"paper-{case}.png", range(N_INITIAL, 999, EVERY)
                paths.append(draw_regrets(problem.title, curves, evaluations[:n], path))
        return paths


def _regrets(case: Case, outcomes: list[tuple[float, ...]]) -> list[float]:
    different = list(dict.fromkeys(outcomes))
    known = dict(zip(different, case.regrets(torch.tensor(different).double()), strict=True))
    return [float(f"{known[design]:.5g}") for design in outcomes]


def finals(results: Results, case: str, method: str) -> dict[int, float]:
    """Return the regret at the end by repeat."""
    label = f"{case}: {method}"
    return {task.seed: r["regret"][-1] for task, r in results if task.label == label}


def verdict(results: Results, claim: Claim) -> tuple[str, list[np.ndarray]]:
    """Judge a claim by its leads, paired by repeats: regret of the other less that of the better.

    "no" needs all planned repeats of the paper's own estimator, and another method, run as in the
    paper, that is ahead of it beyond chance (95%).
    """
    ours = finals(results, claim.case, claim.better)
    leads = []
    for other in claim.than:
        theirs = finals(results, claim.case, other)
        leads.append(np.array([theirs[r] - ours[r] for r in sorted(ours.keys() & theirs.keys())]))
    n, planned = min(map(len, leads)), repeats_of(claim.case, claim.better)
    if n < planned:
        return "not tested as in the paper", leads
    intervals = [interval_of_mean(lead) for lead in leads]
    fewer = f" ({planned} repeats)" if planned < REPEATS else ""
    if all(low > 0 for low, _ in intervals):
        return f"yes{fewer}", leads
    ahead = [other for other, (_, high) in zip(claim.than, intervals, strict=True) if high < 0]
    if ahead and set(ahead) <= {OURS}:
        return "not tested as in the paper", leads
    return ("no" if ahead else "no difference shown") + fewer, leads


def _verdicts(results: Results) -> str:
    rows = []
    for claim in CLAIMS:
        word, leads = verdict(results, claim)
        led = [with_interval(lead, ".3g") if len(lead) else "–" for lead in leads]
        over = "; ".join(f"{other}: {by}" for other, by in zip(claim.than, led, strict=True))
        rows.append([claim.case, claim.words, over, word])
    header = ["problem", "the paper", "lead at the end over: mean (95% interval)", "holds?"]
    return table.markdown(header, rows)


def _row(case: str, method: str, results: Results) -> list[str]:
    each = results.of(f"{case}: {method}")
    if not each or method.endswith(EI):
        return []
    curves = np.array([r["regret"] for r in each])
    final = curves[:, -1]
    low, high = interval_of_mean(final)
    numbers = (curves[:, 0].mean(), curves[:, curves.shape[1] // 2].mean(), final.mean())
    return [
        method, str(len(final)), *(f"{v:.3f}" for v in numbers), f"{low:.3f} to {high:.3f}",
        f"{np.median(final):.3f}", f"{curves.min(1).mean():.3f}",
        f"{np.median([r['seconds'] for r in each]):.2f}",
    ]  # fmt: skip


def _improvement(results: Results) -> str:
    rows = []
    for case, problem in FIVE.items():
        for method in problem.methods:
            if method.endswith(EI):
                plain, ei = (finals(results, case, m) for m in (method.removesuffix(EI), method))
                both = sorted(plain.keys() & ei.keys())
                cells = [", ".join(f"{each[r]:.3g}" for r in both) or "–" for each in (plain, ei)]
                rows.append([f"{case}, {method.removesuffix(EI)}", *cells])
    header = ["regret at the end, repeat by repeat", "UCB", "expected improvement"]
    return table.markdown(header, rows)


def _quadrants(results: Results) -> str:
    """Count the repeats of each method by where their outcomes take the ball, on average."""
    problem: Any = CASES["push"].problem
    base, rows = base_draws(256, problem.uncertainty.n_base(3)), []
    for method in MAIN:
        outcomes = [r["outcome"] for r in results.of(f"push: {method}")]
        if outcomes:
            X = torch.tensor(outcomes, dtype=torch.float64)
            balls = problem.ball(problem.uncertainty.perturb(X, base)).mean(1)  # (repeats, 2)
            signs = [(1 if x >= 0 else -1, 1 if y >= 0 else -1) for x, y in balls.tolist()]
            rows.append([method, *(str(signs.count(q)) for q in QUADRANTS.values())])
    return table.markdown(["ball ends in quadrant", *QUADRANTS], rows)


# -- pictures


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
            look: dict[str, Any] = {"marker": marker, "markevery": (i % every, every), "ms": 5}
            left.plot(evaluations, rows.mean(axis=0), color=shade, label=shown(label), **look)
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


PAPER = Paper()
