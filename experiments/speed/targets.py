"""The targets, the measured numbers, and whether they reach the targets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from experiments.speed import growth, measured_ask
from experiments.speed.accuracy import DOUBT, WHILE_FITTING
from experiments.speed.asking import OPTIMIZER
from experiments.speed.memory import MANY
from experiments.speed.methods import DEFAULT, PER_PARAMETER, YARDSTICK

PUBLISHED = {"Empirical(100)": 42_000, "Nystrom(100, 10)": 940, "Nystrom(1000, 100)": 174_000}
"""Ratios to SingleTaskGP of the authors' code: 512 designs, n = 10, 1-D, t-batch."""
PUBLISHED_SETTING = "beta, t-batch, n = 10"
RIVAL = "Nystrom(160, 10)"
OURS = DEFAULT.name

Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    what: str
    aim: str
    limit: float
    measured: dict[str, float]
    """By place."""
    larger_is_better: bool = False
    digits: str = ".2f"

    @property
    def worst(self) -> tuple[str, float]:
        choose = min if self.larger_is_better else max
        return choose(self.measured.items(), key=lambda item: item[1])

    @property
    def n_reached(self) -> int:
        return sum(self._reaches(value) for value in self.measured.values())

    @property
    def verdict(self) -> str:
        if self.n_reached == len(self.measured):
            return "yes"
        missed = len(self.measured) - self.n_reached
        return f"no: {missed} of {len(self.measured)} missed, by up to × {self._miss():.3g}"

    @property
    def row(self) -> list[str]:
        place, value = self.worst
        middle = format(median(self.measured.values()), self.digits)
        worst = f"{value:{self.digits}} ({place})"
        return [self.what, self.aim, middle, worst, self.verdict]

    def _reaches(self, value: float) -> bool:
        return value >= self.limit if self.larger_is_better else value <= self.limit

    def _miss(self) -> float:
        value = self.worst[1]
        return self.limit / value if self.larger_is_better else value / self.limit


def ratios(times: Mapping[str, float]) -> dict[str, float]:
    """Divide by the time of the plain Gaussian process."""
    return {name: value / times[YARDSTICK.name] for name, value in times.items()}


def median_ratio(
    data_sets: list[dict[str, Any]],
    name: str,
    key: str | None = None,
    to: str = YARDSTICK.name,
) -> tuple[float, float, float]:
    """Return the median, the least and the largest ratio over data sets."""
    values = [s[name] / s[to] if key is None else s[name][key] / s[to][key] for s in data_sets]
    return median(values), min(values), max(values)


def targets(results: Numbers) -> list[Target]:
    """Judge all targets."""
    parts = (_posteriors, _errors, _loops, _everyday, _measures, _published, _memory, _growth)
    return [target for part in parts for target in part(results)]


def _posteriors(results: Numbers) -> Iterator[Target]:
    additive = {label: ratios(times)[OURS] for label, times in results["additive"].items()} | {
        f"1,000 logged {label}": times["m = 1,000"] / times[YARDSTICK.name]
        for label, times in results["samples"].items()
    }
    what = "posterior at 512 designs"
    yield Target(f"{what}, additive P: ratio to SingleTaskGP", "≤ 2", 2, additive)
    middle = {"median": median(additive.values())}
    yield Target("the same, the median of all settings", "≤ 1.2", 1.2, middle)
    for section, name, where in (
        ("per parameter", PER_PARAMETER.name, "additive P, a length scale per parameter"),
        ("relative", OURS, "errors in percent (uniform ±10%, normal 5%)"),
        ("varying", OURS, "P varies with x otherwise"),
    ):
        limit = {"per parameter": 2, "relative": 3, "varying": 30}[section]
        found = {label: ratios(times)[name] for label, times in results[section].items()}
        yield Target(f"{what}, {where}: ratio to SingleTaskGP", f"≤ {limit}", limit, found)
    for name in ("f", "E f afterwards"):
        yield Target(
            f"{what}, {name}: ratio to E f",
            "≤ 2",
            2,
            {label: times[name] / times["E f"] for label, times in results["itself"].items()},
        )
    yield Target(
        f"{what}, 100 → 10,000 logged deviations: change of the time",
        "< 1.2",
        1.2,
        {label: t["m = 10,000"] / t["m = 100"] for label, t in results["samples"].items()},
    )


def _errors(results: Numbers) -> Iterator[Target]:
    errors = results["errors"]
    yield Target(
        "kernel error at the default settings",
        "≤ 1e-3",
        1e-3,
        {label: max(e[OURS], e[WHILE_FITTING]) for label, e in errors.items()},
        digits=".0e",
    )
    yield Target(
        f"kernel error less the doubt about the truth, as a multiple of that of {RIVAL}",
        "≤ 1",
        1,
        {label: max(e[OURS] - e[DOUBT], 0) / e[RIVAL] for label, e in errors.items()},
    )


def _loops(results: Numbers) -> Iterator[Target]:
    yield Target(
        "fit with 50 observations: ratio to SingleTaskGP",
        "≤ 3",
        3,
        {case: median_ratio(sets, OURS, "seconds")[0] for case, sets in results["fits"].items()},
    )
    yield Target(
        "the same with a length scale per parameter, ten parameters",
        "≤ 1.5",
        1.5,
        {
            case: median_ratio(sets, PER_PARAMETER.name, "seconds")[0]
            for case, sets in results["fits per parameter"].items()
        },
    )
    for name, what in ((OURS, "fit + UCB"), (OPTIMIZER, "`Optimizer.ask`")):
        asks = {task: median_ratio(sets, name)[0] for task, sets in results["asks"].items()}
        percent = {task: asks.pop(task) for task in [*asks] if task.startswith("relative ")}
        yield Target(f"a whole ask, n = 30, {what}: ratio to the plain loop", "≤ 2", 2, asks)
        if percent:
            yield Target("the same, errors in percent", "≤ 1.5", 1.5, percent)


def _everyday(results: Numbers) -> Iterator[Target]:
    found = results["everyday"]
    yield Target(
        "a whole ask, one percent error, one log parameter, one category: ratio to the plain model",
        "≤ 1.5",
        1.5,
        {"n = 30": median_ratio(found["mixed"], OPTIMIZER)[0]},
    )
    yield Target(
        "a whole ask after 1,000 observations: ratio to the plain loop",
        "≤ 1.3",
        1.3,
        {case: ratios(times)[OPTIMIZER] for case, times in found["long"].items()},
    )
    replicates = found["replicates"]
    yield Target(
        "an ask after 1,000 observations of 50 designs: ratio to one after 50 observations",
        "≤ 1.2",
        1.2,
        {"normal 3-D": replicates["all"] / replicates["distinct"]},
    )
    yield Target(
        "first use of a log of three dependent parameters, in seconds",
        "≤ 0.5",
        0.5,
        {"1,000 logged 3-D": found["first use"]},
    )
    yield Target(
        "an ask under a black box in NumPy, one or two parameters, in seconds",
        "≤ 1",
        1.0,
        {
            f"{n} parameters, data set {i}": spent
            for n, times in found["sampler"].items()
            for i, spent in enumerate(times)
        },
    )
    yield Target("10,000 identical designs, in seconds", "≤ 5", 5.0, found["alike"])


def _measures(results: Numbers) -> Iterator[Target]:
    what = "an ask after 60 observations"
    kinds = {
        "by a measure": [name for name in measured_ask.MEASURES if name != measured_ask.MEAN],
        "with one limit or two objectives": list(measured_ask.TWO),
        "with three outcomes": list(measured_ask.THREE),
    }
    for kind, names in kinds.items():
        found = {
            f"{place}, {name}": median_ratio(rounds, name, to=measured_ask.MEAN)[0]
            for place, rounds in results["measures"].items()
            for name in names
        }
        yield Target(f"{what}, {kind}: ratio to one by the mean", "≤ 3", 3, found, digits=".1f")


def _published(results: Numbers) -> Iterator[Target]:
    published = ratios(results["estimators"][PUBLISHED_SETTING])
    yield Target(
        "the paper's estimators: times faster than the published code",
        "≥ 20",
        20,
        {name: old / published[name] for name, old in PUBLISHED.items() if name in published},
        larger_is_better=True,
        digits=".0f",
    )


def _memory(results: Numbers) -> Iterator[Target]:
    many = [m for m in results["memory"] if m["n_designs"] == MANY and m["method"] == OURS]
    yield Target(
        "memory of 100,000 designs, m = 1,000, in MB above the imports",
        "< 500",
        500,
        {m["label"]: _or_infinite(m["megabytes"]) for m in many},
        digits=".0f",
    )
    yield Target(
        "the same, largest difference from a small portion",
        "equal (1e-9)",
        1e-9,
        {m["label"]: _or_infinite(m["difference"]) for m in many},
        digits=".0e",
    )


def _growth(results: Numbers) -> Iterator[Target]:
    grown = {
        label: growth.factor(by_n, OURS) / growth.factor(by_n, YARDSTICK.name)
        for label, by_n in results["growth"].items()
    }
    steps = {label: grown.pop(label) for label in [*grown] if label.endswith("gradient")}
    what = "growth from 100 to 2,000 observations, as a multiple of SingleTaskGP's"
    yield Target(f"{what}: likelihood and gradient", "≤ 1.2", 1.2, steps)
    yield Target(f"{what}: posterior", "≤ 1", 1, grown)


def _or_infinite(value: float | None) -> float:
    return float("inf") if value is None else value
