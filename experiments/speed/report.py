"""Everything that was measured, as one page."""

from collections.abc import Mapping
from typing import Any

from experiments.harness import record, table
from experiments.speed import growth
from experiments.speed.accuracy import DOUBT, WHILE_FITTING
from experiments.speed.asking import OPTIMIZER
from experiments.speed.measured_ask import MEAN
from experiments.speed.memory import LIMIT_MB, MANY
from experiments.speed.methods import DEFAULT, METHODS, PER_PARAMETER, YARDSTICK
from experiments.speed.targets import (
    PUBLISHED,
    PUBLISHED_SETTING,
    Numbers,
    median_ratio,
    ratios,
    targets,
)

OURS, PLAIN = DEFAULT.name, YARDSTICK.name
HOW = (
    "Times are processor times of one thread, warmed up; medians of rounds in which all take "
    "turns. Ratios are to BoTorch's SingleTaskGP on the same data, at designs that no model has "
    "seen. A job gets no further turn once it has taken 4 s in all; – was not measured."
)


QUICK = (
    "A quick run: few settings and rounds, and a coarse truth that is off by up to 1e-3 at "
    "l = 0.05. It shows trends; targets are judged by the full run."
)


def page(results: Numbers, where: Mapping[str, Any], quick: bool = False) -> str:
    """Write all tables below each other, the targets first."""
    header = ["what", "target", "median", "worst", "reached?"]
    parts = [
        "# Speed, memory and accuracy",
        HOW,
        *([QUICK] if quick else []),
        "## Targets",
        table.markdown(header, [t.row for t in targets(results)]),
        "## Plain Gaussian process, default, estimators",
        _methods(results),
        "## Posterior at 512 designs, additive P: ratio to SingleTaskGP",
        _by_n(results["additive"]),
        "## The same with a length scale per parameter",
        _by_n(results["per parameter"], PER_PARAMETER.name),
        "## Posterior at 512 designs, errors in percent: ratio to SingleTaskGP",
        _by_n(results["relative"]),
        "## Posterior at 512 designs, P varies with x otherwise: ratio to SingleTaskGP",
        _by_n(results["varying"]),
        "## Logged deviations: time relative to m = 100",
        _samples(results),
        "## Kernel error",
        _errors(results),
        "## Fit with 50 observations",
        _fits(results),
        "## A whole ask with 30 observations",
        _asks(results),
        "## An ask after 60 observations, by what decides: ratio to one by the mean",
        _measures(results),
        "## The paper's estimators against the published code",
        _published(results),
        "## Memory",
        _memory(results),
        "## Growth with the number of observations",
        _growth(results),
        record.describe(where),
    ]
    return "\n\n".join(parts) + "\n"


def _methods(results: Numbers) -> str:
    settings = {label: ratios(times) for label, times in results["estimators"].items()}
    megabytes = {
        (m["method"], m["n_designs"]): m["megabytes"]
        for m in reversed(results["memory"])
        if not m["joint"] and m["n"] == 10
    }
    errors = {
        "error, 1-D": ("normal", "beta", "varying beta", "step chi²"),
        "error, 3-D and 10-D": ("push mixture", "ring + normal"),
    }
    rows = []
    for name in (m.name for m in METHODS):
        worst = [
            max(
                (e[name] for label, e in results["errors"].items() if _case(label) in cases
                 and name in e), default=None,
            )
            for cases in errors.values()
        ]  # fmt: skip
        rows.append(
            [name]
            + [table.ratio(r.get(name)) for r in settings.values()]
            + [table.whole(megabytes.get((name, n))) for n in (512, MANY)]
            + [table.error(w) for w in worst]
        )
    header = ["", *(f"time, {s}" for s in settings), "MB, 512 designs", "MB, 100,000", *errors]
    note = (
        "Memory above the imports: t-batch, n = 10, on a line. Errors: the largest of "
        "|exp(-α MMD²) - truth| over uncertainties and length scales of the table below."
    )
    return f"{table.markdown(header, rows)}\n\n{note}"


def _by_n(times: Mapping[str, Mapping[str, float]], name: str = OURS) -> str:
    """Put the numbers of observations side by side."""
    rows: dict[str, dict[str, float]] = {}
    for label, by_method in times.items():
        place, n = label.split(", n = ")
        rows.setdefault(place, {})[n] = ratios(by_method)[name]
    columns = list(dict.fromkeys(n for row in rows.values() for n in row))
    lines = [[place, *(table.ratio(row.get(n)) for n in columns)] for place, row in rows.items()]
    return table.markdown(["", *(f"n = {n}" for n in columns)], lines)


def _samples(results: Numbers) -> str:
    sizes = [name for name in next(iter(results["samples"].values())) if name != PLAIN]
    rows = [
        [label, *(f"{t[s] / t[sizes[0]]:.2f}" for s in sizes), table.ratio(t[sizes[-1]] / t[PLAIN])]
        for label, t in results["samples"].items()
    ]
    return table.markdown(["", *sizes, "the last, ratio to SingleTaskGP"], rows)


def _errors(results: Numbers) -> str:
    names = [m.name for m in METHODS if m.estimator is not None]
    names = [n for n in names if n in next(iter(results["errors"].values()))]
    names += [WHILE_FITTING, DOUBT]
    rows = [
        [label, *(table.error(errors[n]) for n in names)]
        for label, errors in results["errors"].items()
    ]
    note = (
        "Largest |exp(-α MMD²) - truth| between eight designs, four of them neighbours of the "
        "others. l default is 0.3 √d, in the unit cube; fitted: length scales and α of a model of "
        "30 observations. The last column says how well the truth is known. Predictions use a "
        "shorter sum of Gaussians than fits do."
    )
    return f"{table.markdown(['', *names], rows)}\n\n{note}"


def _fits(results: Numbers) -> str:
    rows = []
    for case, sets in results["fits"].items():
        times, counts = (median_ratio(sets, OURS, key) for key in ("seconds", "evaluations"))
        rows.append([case, _range(times), _range(counts), table.ratio(times[0] / counts[0])])
    note = (
        "Median, least and largest over data sets. SingleTaskGP has one length scale per column, "
        "MMDGP five in all: in ten columns it takes fewer evaluations."
    )
    header = ["", "time, ratio to SingleTaskGP", "likelihood evaluations, ratio", "per evaluation"]
    return f"{table.markdown(header, rows)}\n\n{note}"


def _asks(results: Numbers) -> str:
    rows = [
        [task, *(_range(median_ratio(sets, name)) for name in (OURS, OPTIMIZER))]
        for task, sets in results["asks"].items()
    ]
    note = (
        "Ratio to the plain loop: fit of SingleTaskGP, UCB, the same restarts and raw samples. "
        "Median, least and largest over data sets. `Optimizer.ask` fits the default surrogate, "
        "another one than in the column before; where the use differs, it searches twice."
    )
    return f"{table.markdown(['', 'fit + UCB', '`Optimizer.ask`'], rows)}\n\n{note}"


def _measures(results: Numbers) -> str:
    names = [name for name in next(iter(results["measures"].values()))[0] if name != MEAN]
    rows = [
        [place, *(_range(median_ratio(rounds, name, to=MEAN)) for name in names)]
        for place, rounds in results["measures"].items()
    ]
    note = "All fits included. Median, least and largest over three asks, one after another."
    return f"{table.markdown(['', *names], rows)}\n\n{note}"


def _published(results: Numbers) -> str:
    measured = ratios(results["estimators"][PUBLISHED_SETTING])
    rows = [
        [name, f"{old:,}", table.ratio(measured[name]), f"{old / measured[name]:,.0f}"]
        for name, old in PUBLISHED.items()
        if name in measured
    ]
    return table.markdown(["", "published, ratio", "here, ratio", "times faster"], rows)


def _memory(results: Numbers) -> str:
    rows = [
        [
            f"{m['label']}, {m['method']}",
            f"> {LIMIT_MB:,}" if m["megabytes"] is None else f"{m['megabytes']:.0f}",
            table.error(m["difference"]),
            table.seconds(m["first_seconds"]),
            table.seconds(m["seconds"]),
        ]
        for m in results["memory"]
    ]
    header = ["", "MB", "difference from a portion", "first 8 designs, s", "all, s"]
    note = (
        "Peak above the imports, each in a process of its own. The first designs include what is "
        "worked out once per P and process. Difference: mean and variance of 512 designs, "
        "predicted among all and alone."
    )
    return f"{table.markdown(header, rows)}\n\n{note}"


def _growth(results: Numbers) -> str:
    sizes = list(next(iter(results["growth"].values())))
    rows = [
        [f"{label}, {name}"]
        + [f"{1000 * by_n[n][name]:,.1f}" for n in sizes]
        + [f"{growth.factor(by_n, name):,.1f}"]
        for label, by_n in results["growth"].items()
        for name in (PLAIN, OURS)
    ]
    header = ["milliseconds", *(f"n = {n}" for n in sizes), f"n = {sizes[0]} → {sizes[-1]}"]
    return table.markdown(header, rows)


def _range(values: tuple[float, float, float]) -> str:
    middle, least, largest = map(table.ratio, values)
    return f"{middle} ({least} to {largest})"


def _case(label: str) -> str:
    return label.split(", l ")[0]
