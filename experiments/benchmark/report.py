"""Tables, sentences and pictures of comparisons; every sentence is made from the results."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from experiments.benchmark.plan import AIRBO, FLOOR, MARGIN, PUBLISHED
from experiments.harness import draw, table
from experiments.harness.experiment import Results
from experiments.harness.palette import style
from experiments.harness.statistics import interval_of_mean
from experiments.subjects.cases import CASES, slip_case

Finals = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Regret at the end by case, method and repeat, as a share of the achievable gain."""


def finals(results: Results) -> Finals:
    """Return the regrets at the end."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for task, result in results:
        case, method = task.config["case"], task.config["method"]
        found[case][method][task.seed] = result["regret"][-1] / CASES[case].gain
    return found


def floored(values: Iterable[float]) -> float:
    return max(float(np.mean(list(values))), FLOOR)


def paired(one: Mapping[int, float], other: Mapping[int, float]) -> np.ndarray:
    """Return the lead of one method over another, in the repeats that both have."""
    both = sorted(one.keys() & other.keys())
    return np.array([other[r] - one[r] for r in both])


def ratios(found: Finals, method: str, other: str) -> np.ndarray:
    """Return the regret of a method relative to another, one number per case."""
    cases = [c for c in found.values() if method in c and other in c]
    return np.array([floored(c[method].values()) / floored(c[other].values()) for c in cases])


def mean_ratio(values: np.ndarray) -> str:
    """Write a geometric mean over cases with its 95% interval."""
    low, high = interval_of_mean(np.log(values))
    return f"{np.exp(np.log(values).mean()):.2f} ({np.exp(low):.2f} to {np.exp(high):.2f})"


def comparison(results: Results) -> str:
    """Tabulate all cases, who is ahead where, and how well intervals hold."""
    found = finals(results)
    methods = list(dict.fromkeys(task.config["method"] for task, _ in results))
    seconds = sum(result["seconds"] for _, result in results)
    return "\n\n".join(
        part
        for part in (
            "Regret of the recommended design at the end, in percent of the achievable gain (the "
            "best design in use less an average one): mean (95% interval over repeats), median, "
            "worst repeat.",
            _regrets(found, methods),
            _against(found, methods),
            ahead(found),
            _calibration(results),
            f"{len(results.each)} runs, {seconds / 3600:.1f} processor hours.",
        )
        if part
    )


def _regrets(found: Finals, methods: list[str]) -> str:
    rows = []
    for case, by_method in found.items():
        cells = []
        for method in methods:
            values = 100 * np.array(list(by_method.get(method, {}).values()))
            if not len(values):
                cells.append("–")
                continue
            low, high = interval_of_mean(values)
            cells.append(
                f"{values.mean():.1f} ({low:.1f} to {high:.1f}), "
                f"{np.median(values):.1f}, {values.max():.1f}"
            )
        rows.append([f"{case} ({CASES[case].kind})", *cells])
    return table.markdown(["case", *methods], rows)


def _against(found: Finals, methods: list[str]) -> str:
    if AIRBO not in methods:
        return ""
    rows = []
    for other in methods:
        if other == AIRBO:
            continue
        leads = [paired(c[AIRBO], c[other]) for c in found.values() if AIRBO in c and other in c]
        if not leads:
            continue
        lead = np.concatenate(leads)
        values = ratios(found, AIRBO, other)
        rows.append(
            [other, mean_ratio(values), f"{np.median(values):.2f}", f"{values.max():.2f}",
             f"{(lead > 0).sum()} : {(lead < 0).sum()}"]
        )  # fmt: skip
    header = [
        "airbo against",
        "regret ratio over cases",
        "median",
        "worst case",
        "repeats won : lost",
    ]
    return table.markdown(header, rows)


def ahead(found: Finals) -> str:
    """Name the cases on which another method is ahead, and whether beyond chance."""
    surely: list[str] = []
    perhaps: list[str] = []
    for case, by_method in found.items():
        if AIRBO not in by_method:
            continue
        for other, values in by_method.items():
            lead = paired(by_method[AIRBO], values)
            if other == AIRBO or len(lead) < 2 or lead.mean() >= -FLOOR:
                continue
            _, high = interval_of_mean(lead)
            (surely if high < 0 else perhaps).append(f"{case} ({other})")
    return (
        f"Another method is ahead beyond chance on {_listed(surely)}. "
        f"Another is ahead, within chance, on {_listed(perhaps)}."
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "no case"


def _calibration(results: Results) -> str:
    held: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for task, result in results:
        if task.config["method"] == AIRBO and "covered" in result:
            held[task.config["case"]].append((result["covered"], result["covered_near"]))
    if not held:
        return ""
    rows = []
    for case, pairs in held.items():
        here, near = np.array(pairs, dtype=float).T
        rows.append([case, f"{here.sum():.0f} of {len(here)}", f"{near.mean():.0%}"])
    text = "How often airbo's 90% intervals of E f hold the truth, at the answer and near it:"
    return f"{text}\n\n{table.markdown(['case', 'recommended', 'near it'], rows)}"


def choice(results: Results, candidates: tuple[str, ...]) -> str:
    """Apply the rule: the simplest candidate within the margin of the best one wins."""
    found = finals(results)
    complete = {n: c for n, c in found.items() if all(m in c for m in candidates)}
    if not complete:
        return "No case has runs of all candidates yet."
    scores = {
        m: float(np.exp(np.mean([np.log(floored(c[m].values())) for c in complete.values()])))
        for m in candidates
    }
    best = min(scores.values())
    winner = next(m for m in candidates if scores[m] <= MARGIN * best)
    repeats = min(len(c[m]) for c in complete.values() for m in candidates)
    rows = [[m, f"{100 * scores[m]:.2f}", f"{scores[m] / best:.3f}"] for m in candidates]
    header = [
        "candidate, the simplest first",
        "geometric mean regret, % of the gain",
        "to the best",
    ]
    return (
        f"**{winner}** is the simplest candidate within {MARGIN - 1:.0%} of the best, on "
        f"{len(complete)} cases with at least {repeats} repeats.\n\n{table.markdown(header, rows)}"
    )


def slips(results: Results) -> str:
    """Tabulate what slips cost each method, beside what the study published."""
    lost: dict[tuple[str, float, bool], dict[str, list[tuple[float, float]]]] = {}
    for task, result in results:
        config = task.config
        gain = slip_case(config["case"], 0.0).gain
        key = (config["method"], config["slip"], config["logged"])
        pair = (result["along"] / gain, result["regret"][-1] / gain)
        lost.setdefault(key, {}).setdefault(config["case"], []).append(pair)
    rows = []
    for (method, slip, logged), by_case in lost.items():
        clean = lost.get((method, 0.0, False), {})
        both = [c for c in by_case if c in clean]
        if not slip or not both:
            continue
        excess = np.array([np.mean(by_case[c], 0) - np.mean(clean[c], 0) for c in both])
        here = np.array([np.mean(by_case[c], 0) for c in both])
        word = "logged" if logged else "unseen"
        published = [PUBLISHED.get(f"{what}, {word}", {}).get(slip) for what in
                     ("along the way", "deployed")]  # fmt: skip
        rows.append(
            [method, f"{slip:.0%}, {word}",
             *(f"{100 * e:.1f}" for e in excess.mean(0)),
             *("–" if p is None else f"{100 * p:.1f}" for p in published),
             f"{100 * here.mean(0)[1]:.1f}"]
        )  # fmt: skip
    header = ["method", "slips", "lost along the way", "lost by the deployed design",
              "published: along the way", "published: deployed", "regret, deployed"]  # fmt: skip
    return (
        "Percent of the achievable gain. *Lost*: more than the same method loses without slips. "
        "*Along the way*: the best executed value so far, averaged over the evaluations. The "
        "published numbers are those of the study's standard process on all twenty landscapes.\n\n"
        f"{table.markdown(header, rows)}"
    )


def draw_regrets(results: Results, path: Path) -> Path:
    """Draw the mean regret of every method on every case, on one scale."""
    found = finals(results)
    methods = list(dict.fromkeys(task.config["method"] for task, _ in results))
    with draw.picture(path, 8, 1.2 + 0.3 * len(found)) as figure:
        ax = figure.subplots()
        for method in methods:
            shade, marker = style(method)
            points = [
                (floored(c[method].values()), -i)
                for i, c in enumerate(found.values())
                if method in c
            ]
            ax.plot(*zip(*points, strict=True), marker, color=shade, ms=6, label=method)
        ax.set_xscale("log")
        ax.set_yticks(-np.arange(len(found)), [f"{c} ({CASES[c].kind})" for c in found], fontsize=8)
        ax.set_xlabel("regret in use, as a share of the achievable gain")
        ax.grid(axis="y", lw=0.3)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return path
