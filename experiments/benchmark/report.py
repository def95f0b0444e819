"""Tables, sentences and pictures of comparisons; every sentence is made from the results.

Notation
    r         regret at the end of one run, as a share of the achievable gain
    r̄        its mean over the repeats of a method on a case
    ratio     r̄ of airbo relative to r̄ of another method on the same case
    lead      r of another method less r of airbo in the same repeat
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.benchmark import plan
from experiments.benchmark.plan import AIRBO, FLOOR, MARGIN, NOTHING, PUBLISHED, STANDARD
from experiments.harness import draw, table
from experiments.harness.experiment import Results
from experiments.harness.palette import shown, style
from experiments.harness.statistics import interval_of_mean, with_interval
from experiments.subjects.cases import find_case, slip_case

Repeats = Mapping[int, float]
Finals = Mapping[str, Mapping[str, Repeats]]
"""r by case, method and repeat."""


def finals(results: Results, policy: str | None = None) -> Finals:
    """Return the regrets at the end: of the answer as shipped, or by another policy."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for task, result in results:
        case, method = task.config["case"], task.config["method"]
        regret = result["regret"][-1] if policy is None else result[policy]
        found[case][method][task.seed] = regret / find_case(case).gain
    return found


def as_others_recommend(results: Results) -> Mapping[str, Repeats]:
    """Return r of airbo by case, if it may only recommend what the others may.

    They use designs that were tried, except where experiments and use differ.
    """
    own = Results([(t, r) for t, r in results if t.config["method"] == AIRBO])
    shipped, tried = finals(own), finals(own, "observed")
    return {c: (tried if find_case(c).same_use else shipped)[c][AIRBO] for c in shipped}


def methods_of(results: Results) -> list[str]:
    return list(dict.fromkeys(task.config["method"] for task, _ in results))


def floored(values: Iterable[float]) -> float:
    """Return the mean regret, which counts as at least the floor."""
    return max(float(np.mean(list(values))), FLOOR)


def leads(airbo: Repeats, other: Repeats) -> np.ndarray:
    """Return the lead over another method, in the repeats that both have."""
    return np.array([other[r] - airbo[r] for r in sorted(airbo.keys() & other.keys())])


def geometric(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


# -- the comparison with others


def comparison(results: Results) -> str:
    """Tabulate all cases, who is ahead where, and how well intervals hold."""
    found, methods = finals(results), methods_of(results)
    seconds = sum(result["seconds"] for _, result in results)
    parts = [
        "Regret of the recommended design at the end, in percent of the achievable gain (the best "
        "design in use less an average one): mean (95% interval over repeats); median; worst.",
        _regrets(found, methods),
    ]
    if AIRBO in methods:
        tried = as_others_recommend(results)
        parts += [_against_each(found, methods, tried), _against_best(found), sentences(found)]
        parts += [calibration(results)]
    parts += [_costs(results), f"{len(results.each)} runs, {seconds / 3600:.1f} processor hours."]
    return "\n\n".join(part for part in parts if part)


def benchmark_excerpt(results: Results) -> str:
    """Return what the docs show: pictures, sentences, and airbo against the others."""
    found, methods = finals(results), methods_of(results)
    n = min(len(repeats) for by_method in found.values() for repeats in by_method.values())
    parts = [
        "![Regret by kind of case](images/paper/benchmark-kinds.png)",
        f"{len(found)} cases, {n} repeats. {sentences(found)}",
        _against_each(found, methods, as_others_recommend(results)),
        "*Tried only*: the same ratio if airbo, like the others, recommends a design it has tried.",
        _against_best(found),
        "[All regrets](../experiments/results/benchmark.md)",
    ]
    return "\n\n".join(parts)


def _regrets(found: Finals, methods: list[str]) -> str:
    rows = []
    for case, by_method in found.items():
        cells = [_cell(by_method.get(method, {})) for method in methods]
        rows.append([f"{case} ({find_case(case).kind})", *cells])
    return table.markdown(["case", *methods], rows)


def _cell(regrets: Repeats) -> str:
    values = 100 * np.array(list(regrets.values()))
    if not len(values):
        return "–"
    return f"{with_interval(values, '.1f')}; {np.median(values):.1f}; {values.max():.1f}"


def _against_each(found: Finals, methods: list[str], tried: Mapping[str, Repeats]) -> str:
    rows = []
    for other in methods:
        cases = {n: c for n, c in found.items() if other != AIRBO and AIRBO in c and other in c}
        if not cases:
            continue
        lead = np.concatenate([leads(c[AIRBO], c[other]) for c in cases.values()])
        others = [floored(c[other].values()) for c in cases.values()]
        ratios = np.array([floored(c[AIRBO].values()) for c in cases.values()]) / others
        restricted = np.array([floored(tried[name].values()) for name in cases]) / others
        rows.append(
            [other, _geometric_mean(ratios), f"{np.median(ratios):.2f}", f"{max(ratios):.2f}",
             _geometric_mean(restricted), f"{(lead > 0).sum()} : {(lead < 0).sum()}"]
        )  # fmt: skip
    header = ["airbo against", "ratio: geometric mean over cases", "median case", "worst case",
              "tried only", "repeats won : lost"]  # fmt: skip
    return table.markdown(header, rows)


def _geometric_mean(ratios: np.ndarray) -> str:
    low, high = np.exp(interval_of_mean(np.log(ratios)))
    return f"{geometric(ratios):.2f} ({low:.2f} to {high:.2f})"


def best_other(by_method: Mapping[str, Repeats]) -> str | None:
    """Return the method with the lowest mean regret that is not airbo with its knowledge."""
    others = {m: floored(v.values()) for m, v in by_method.items() if m not in (AIRBO, NOTHING)}
    return min(others, key=lambda m: others[m]) if AIRBO in by_method and others else None


def _against_best(found: Finals) -> str:
    rows = []
    for case, by_method in found.items():
        other = best_other(by_method)
        if other is None:
            continue
        lead = 100 * leads(by_method[AIRBO], by_method[other])
        ratio = floored(by_method[AIRBO].values()) / floored(by_method[other].values())
        rows.append(
            [f"{case} ({find_case(case).kind})", other, f"{ratio:.2f}",
             with_interval(lead, ".1f"),
             f"{(lead > 0).sum()} : {(lead < 0).sum()}"]
        )  # fmt: skip
    header = ["case", "best other", "ratio", "lead, % of the gain", "repeats won : lost"]
    return table.markdown(header, rows)


def sentences(found: Finals) -> str:
    """Say by name where another method is ahead, and how often the aim is reached."""
    surely: dict[str, list[str]] = defaultdict(list)
    perhaps: dict[str, list[str]] = defaultdict(list)
    n_few = n_enough = 0
    for case, by_method in found.items():
        for other, values in by_method.items():
            if other == AIRBO or AIRBO not in by_method:
                continue
            lead = leads(by_method[AIRBO], values)
            n_few += len(lead) < plan.FEWEST
            n_enough += len(lead) >= plan.FEWEST
            if len(lead) >= plan.FEWEST and lead.mean() < -FLOOR:
                _, high = interval_of_mean(lead)
                (surely if high < 0 else perhaps)[case].append(shown(other))
    pays = [c for c in found if find_case(c).kind in plan.KNOWING_PAYS and best_other(found[c])]
    halved = [c for c in pays if _ratio_to_best(found[c]) < 0.5]
    small = [c for c in found if find_case(c).kind == "negligible" and best_other(found[c])]
    ratios = " and ".join(f"{_ratio_to_best(found[c]):.2f}" for c in small)
    few = (
        f"{n_few} comparisons have fewer than {plan.FEWEST} repeats, too few to say who is ahead. "
    )
    chance = (
        f" If all were equally good, {0.025 * n_enough:.0f} of {n_enough} comparisons would be so "
        "by chance."
    )
    return (
        f"{few if n_few else ''}Another method is ahead beyond chance (95%) on {_by_case(surely)}."
        f"{chance if n_enough else ''} "
        f"Another is ahead, within chance, on {_by_case(perhaps)}. Where the error varies, is wide "
        f"or differs between experiments and use, airbo has less than half of the best other "
        f"regret on {len(halved)} of {len(pays)} cases: {_listed(halved)}."
        + (f" Where it is negligible, airbo has {ratios} of that regret." if small else "")
    )


def _ratio_to_best(by_method: Mapping[str, Repeats]) -> float:
    other = best_other(by_method)
    assert other is not None
    return floored(by_method[AIRBO].values()) / floored(by_method[other].values())


def _by_case(methods: Mapping[str, list[str]]) -> str:
    return _listed([f"{case} ({', '.join(names)})" for case, names in methods.items()])


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "no case"


def calibration(results: Results) -> str:
    """Tabulate how often intervals hold the truth, case by case."""
    held: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for task, result in results:
        if task.config["method"] == AIRBO and "covered" in result:
            held[task.config["case"]].append((result["covered"], result["covered_near"]))
    if not held:
        return ""
    rows, low, high = [], *plan.CALIBRATED
    for case, pairs in held.items():
        here, near = np.array(pairs, dtype=float).T
        rows.append([case, f"{here.sum():.0f} of {len(here)}", f"{near.mean():.0%}"])
    here, near = np.array([pair for pairs in held.values() for pair in pairs], dtype=float).T
    rows.append(["**all**", f"{here.mean():.0%}", f"{near.mean():.0%}"])
    inside = [np.mean([near for _, near in pairs]) for pairs in held.values()]
    count = sum(low <= share <= high for share in inside)
    return (
        "How often airbo's 90% intervals of E f contain the true value, at the recommended design "
        f"and at designs near it. Near it, {count} of {len(inside)} cases are within {low:.0%} to "
        f"{high:.0%}.\n\n{table.markdown(['case', 'recommended', 'near it'], rows)}"
    )


def _costs(results: Results) -> str:
    spent: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for task, result in results:
        spent[task.config["method"]].append((result["ask_seconds"], result["seconds"]))
    rows = [
        [method, f"{np.median(pairs, 0)[0]:.2g}", f"{np.mean(pairs, 0)[1]:.3g}"]
        for method, pairs in spent.items()
    ]
    return table.markdown(["processor seconds", "an ask, median", "a run, mean"], rows)


# -- the choice of the default


def logs(found: Finals, candidates: Sequence[str]) -> dict[str, np.ndarray]:
    """Return log r̄ of candidates, one number per case that all of them have run."""
    complete = [c for c in found.values() if all(m in c for m in candidates)]
    return {m: np.log([floored(c[m].values()) for c in complete]) for m in candidates}


def choice(results: Results, candidates: Sequence[str]) -> str:
    """Apply the rule: the simplest candidate within the margin of the best one wins."""
    found = finals(results)
    n_runs = {m: sum(len(c.get(m, ())) for c in found.values()) for m in candidates}
    fast = [m for m in candidates if m not in plan.TOO_SLOW]
    plain = {name: c for name, c in found.items() if find_case(name).kind != "slips"}
    ran = [m for m in candidates if n_runs[m]]
    everywhere, without_slips = logs(found, fast), logs(plain, ran)
    if not len(everywhere[fast[0]]) or not len(without_slips[ran[0]]):
        return "No case has runs of all candidates yet."
    best = min(fast, key=lambda m: everywhere[m].mean())
    limit = np.log(MARGIN) + everywhere[best].mean()
    winner = next(m for m in fast if everywhere[m].mean() <= limit)
    policies = [logs(finals(results, policy), fast) for policy in ("observed", "anywhere")]
    rows = [
        [m, str(n_runs[m]), *_score(everywhere, m, best), *_score(without_slips, m, best),
         *(_score(each, m, best)[0] for each in policies)]
        for m in ran
    ]  # fmt: skip
    header = ["candidate, the simplest first", "runs", "score, % of the gain", "to the best",
              "without slips", "to the best", "score if the best design tried is used",
              "if any design may be used"]  # fmt: skip
    return (
        f"**{winner}** is the simplest candidate within {MARGIN - 1:.0%} of the best. The score is "
        "the geometric mean of the mean regrets over all cases; the intervals are of 95%, over "
        f"cases.\n\n{table.markdown(header, rows)}"
    )


def _score(scores: Mapping[str, np.ndarray], method: str, best: str) -> list[str]:
    """Return the score of a method and its ratio to that of the best one."""
    if method not in scores:
        return ["–", "–"]
    apart = scores[method] - scores[best]
    low, high = np.exp(interval_of_mean(apart))
    ratio = f"{np.exp(apart.mean()):.2f} ({low:.2f} to {high:.2f})"
    return [f"{100 * np.exp(scores[method].mean()):.2f}", ratio]


# -- slips

Lost = dict[tuple[str, float, bool], dict[tuple[str, int], np.ndarray]]
"""Regret along the way and of the deployed design, as shares of the gain: by method, slip and
whether it is logged, and then by landscape and repeat."""


def slips(results: Results) -> str:
    """Tabulate what slips cost each method, beside what the study published."""
    lost, rows = _lost(results), []
    for method, slip, logged in lost:
        if not slip:
            continue
        word = "logged" if logged else "unseen"
        own, standard = (excess(lost, (method, slip, logged), m) for m in (method, STANDARD))
        published = [PUBLISHED.get((what, word), {}).get(slip) for what in WHAT]
        rows.append(
            [method, f"{slip:.0%}, {word}", str(len(own[0])),
             *map(_percent, own), *map(_percent, standard),
             *("–" if p is None else f"{100 * p:.1f}" for p in published)]
        )  # fmt: skip
    header = ["method", "slips", "landscapes", *(f"lost {w}" for w in WHAT),
              *(f"to the standard process without slips: {w}" for w in WHAT),
              *(f"published: {w}" for w in WHAT)]  # fmt: skip
    return (
        "Percent of the achievable gain, with 95% intervals over landscapes. *Lost*: the regret "
        "less that of the same method without slips, as the study defines it. *Along the way*: the "
        "best executed value so far, averaged over all evaluations. *Deployed*: the design that is "
        "used, exactly. A method that is worse without slips would lose less: the next columns "
        "compare with the standard process without slips. *Published*: the study's standard "
        f"process, on all twenty landscapes.\n\n{table.markdown(header, rows)}"
    )


WHAT = ("along the way", "deployed")


def _lost(results: Results) -> Lost:
    lost: Lost = {}
    for task, result in results:
        config = task.config
        gain = slip_case(config["case"], 0.0).gain
        pair = np.array([result["along"], result["regret"][-1]]) / gain
        key = (config["method"], config["slip"], config["logged"])
        lost.setdefault(key, {})[config["case"], task.seed] = pair
    return lost


def excess(lost: Lost, key: tuple[str, float, bool], reference: str) -> list[np.ndarray]:
    """Return what slips cost, along the way and deployed, one number per landscape.

    As in the study, a run is compared with the run without slips of the same repeat.
    """
    clean = lost.get((reference, 0.0, False), {})
    apart: dict[str, list[np.ndarray]] = defaultdict(list)
    for run, pair in lost[key].items():
        if run in clean:
            apart[run[0]].append(pair - clean[run])
    return list(np.array([np.mean(each, axis=0) for each in apart.values()]).reshape(-1, 2).T)


def _percent(values: np.ndarray) -> str:
    if not len(values):
        return "–"
    if len(values) == 1:
        return f"{100 * values[0]:.1f}"
    return with_interval(100 * values, ".1f")


# -- pictures


def draw_kinds(results: Results, path: Path) -> Path:
    """Draw the geometric mean over the cases of one kind; readable on a small screen."""
    found, methods = finals(results), methods_of(results)
    kinds: dict[str, list[Mapping[str, Repeats]]] = defaultdict(list)
    for case, by_method in found.items():
        kinds[find_case(case).kind].append(by_method)
    points = {
        f"{kind} ({len(cases)})": {
            m: geometric(floored(c[m].values()) for c in cases)
            for m in methods
            if all(m in c for c in cases)
        }
        for kind, cases in kinds.items()
    }
    with draw.picture(path, 5.5, 1.6 + 0.32 * len(points)) as figure:
        ax = figure.subplots()
        for method in reversed(methods):  # airbo on top
            shade, marker = style(method)
            at = [
                (values[method], -i) for i, values in enumerate(points.values()) if method in values
            ]
            x, y = zip(*at, strict=True)
            size = 9 if method == AIRBO else 6
            ax.plot(x, y, marker, color=shade, ms=size, label=shown(method))
        ax.set_xscale("log")
        ax.margins(y=0.5 / max(len(points), 2))
        ax.set_yticks(-np.arange(len(points)), list(points))
        ax.set_xlabel("regret in use, as a share of the achievable gain")
        ax.grid(axis="y", lw=0.3)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8, reverse=True)
    return path


def draw_slips(results: Results, path: Path) -> Path:
    """Draw what slips cost along the way and deployed, beside the published numbers."""
    lost = _lost(results)
    sizes = sorted({slip for _, slip, _ in lost if slip})
    with draw.picture(path, 8, 3.8) as figure:
        for ax, what in zip(figure.subplots(1, 2), WHAT, strict=True):
            for method in methods_of(results):
                shade, marker = style(method)
                for logged, line in ((False, "-"), (True, "--")):
                    keys = [(method, s, logged) for s in sizes if (method, s, logged) in lost]
                    y = [100 * excess(lost, key, method)[WHAT.index(what)].mean() for key in keys]
                    word = "logged" if logged else "unseen"
                    x = [100 * s for _, s, _ in keys]
                    ax.plot(x, y, line, color=shade, marker=marker, label=f"{method}, {word}")
            for word, line in (("unseen", "-"), ("logged", "--")):
                told = PUBLISHED.get((what, word), {})
                x, y = [100 * s for s in told], [100 * v for v in told.values()]
                if told:
                    ax.plot(x, y, line, color="0.6", marker=".", label=f"published, {word}")
            ax.set(
                xlabel="slip, % of the range", ylabel="lost, % of the achievable gain", title=what
            )
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
            fontsize=8,
        )  # fmt: skip
    return path
