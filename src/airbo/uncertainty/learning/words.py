"""What was found, in words."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.stats

from airbo.uncertainty.learning.compare import Verdict
from airbo.uncertainty.learning.joint import Dependence, Together
from airbo.uncertainty.learning.models import Proportional, Same, ShareFactor, Steps
from airbo.uncertainty.learning.sample import Array, Rows, Sample, mean_and_error
from airbo.uncertainty.learning.series import Drift, Lag, Settling
from airbo.uncertainty.learning.shapes import Flat, Logged, Normals, Point, Shape, Skewed

_MOST_ROWS = 8

Shown = Callable[[float], str]


@dataclass(frozen=True)
class Finding:
    """Something that the log shows."""

    kind: str
    """One word, such as ``bias``, ``relative``, ``heavy-tailed``, ``lag`` or ``drift``."""
    parameters: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def short(value: float) -> str:
    """Write a number with three digits."""
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def share(value: float) -> str:
    """Write a share in percent."""
    return f"{short(100 * value)}%"


# -- bias, shape and scale of one parameter


def aspects(judged: Verdict) -> list[Finding]:
    """Say what the chosen model is: its bias, its shape, and how it depends on the asked value."""
    model, names = judged.model, (judged.sample.name,)
    where = f"{short(judged.sample.x.min())} to {short(judged.sample.x.max())}"
    if isinstance(model, Steps) and model.edges:
        return [
            Finding("varying", names, f"the deviation changes over the range: {_pieces(model)}")
        ]
    percent = isinstance(model, Proportional | ShareFactor)
    assert isinstance(model, Same | Proportional | ShareFactor | Steps)
    shape = model.shapes[0] if isinstance(model, Steps) else model.shape
    found = [*_bias(shape, percent, judged.sample, names), _shaped(shape, percent, names)]
    if isinstance(model, ShareFactor):
        std = share(float(model.shape.stds[0]))
        found[-1] = Finding("log-normal", names, f"log-normal, std {std}")
    if percent:
        found.append(Finding("relative", names, f"in percent of the asked value ({where})"))
    elif isinstance(model, Same | Steps):
        found.append(Finding("constant", names, f"the same over the range {where}"))
    return found


def _bias(shape: Shape, percent: bool, sample: Sample, names: tuple[str, ...]) -> list[Finding]:
    show = share if percent else short
    centre = centre_of(shape)
    away = sample.x != 0
    values = sample.d[away] / sample.x[away] if percent else sample.d
    mean, error = mean_and_error(values)
    if abs(mean) <= 4 * error or abs(mean) < 0.02 * float(values.std()):
        return [Finding("no bias", names, "no bias")]
    side = "above" if mean > 0 else "below"
    if centre != 0:
        text = f"on average {show(abs(centre))} {side} the asked value (bias)"
        return [Finding("bias", names, text)]
    text = (
        f"on average {show(abs(mean))} {side} the asked value, "
        "too little beside the spread to count as a bias"
    )
    return [Finding("small bias", names, text)]


def centre_of(shape: Shape) -> float:
    """Return the mean of a shape."""
    if isinstance(shape, Normals | Skewed):
        return shape.mean
    if isinstance(shape, Flat):
        return (shape.low + shape.high) / 2
    if isinstance(shape, Logged):
        return shape.smooth.mean
    return shape.value if isinstance(shape, Point) else 0.0


def _shaped(shape: Shape, percent: bool, names: tuple[str, ...]) -> Finding:
    show = share if percent else short
    if isinstance(shape, Point):
        return Finding("exact", names, "no spread at all")
    if isinstance(shape, Flat):
        text = f"uniform between {show(shape.low)} and {show(shape.high)}"
        return Finding("uniform", names, text)
    if isinstance(shape, Skewed):
        side = "higher" if shape.skew > 0 else "lower"
        text = f"skewed, with a tail to {side} values (std {show(shape.std)})"
        return Finding("skewed", names, text)
    if isinstance(shape, Logged):
        return _log(shape, show, names)
    assert isinstance(shape, Normals)
    return _normals(shape, show, names)


def _normals(shape: Normals, show: Shown, names: tuple[str, ...]) -> Finding:
    if len(shape.means) == 1:
        return Finding("normal", names, f"normal with std {show(shape.std)}")
    modes = shape.modes
    if len(modes) > 1:
        count = {2: "two"}.get(len(modes), str(len(modes)))
        listed = " and ".join(show(m) for m in modes)
        return Finding(
            "two-moded" if len(modes) == 2 else "several modes", names,
            f"{count} modes, at deviations of {listed} (std {show(shape.std)} in all)",
        )  # fmt: skip
    parts = " and ".join(
        f"{share(w)} of std {show(s)}" for w, s in zip(shape.weights, shape.stds, strict=True)
    )
    apart = abs(_skewness(shape)) > 0.5
    kind = "skewed" if apart else "heavy-tailed"
    word = "skewed, a mixture of normals" if apart else "heavy-tailed, a mixture of normals"
    return Finding(kind, names, f"{word}: {parts}")


def _skewness(shape: Normals) -> float:
    away = shape.means - shape.mean
    return float(shape.weights @ (away**3 + 3 * away * shape.stds**2)) / shape.std**3


def _log(shape: Logged, show: Shown, names: tuple[str, ...]) -> Finding:
    values = np.repeat(shape.values, shape.counts.astype(int))
    low, high = np.quantile(values, [0.05, 0.95])
    text = (
        f"{_character(values)}; no simple shape describes it, so the log itself is proposed "
        f"(90% of the deviations lie between {show(low)} and {show(high)})"
    )
    return Finding("log", names, text)


def _character(values: Array) -> str:
    skew, kurtosis = float(scipy.stats.skew(values)), float(scipy.stats.kurtosis(values))
    tails = f"heavy-tailed (excess kurtosis {short(kurtosis)})" if kurtosis > 2 else ""
    side = f"skewed (skewness {short(skew)})" if abs(skew) > 1 else ""
    return " and ".join(word for word in (tails, side) if word) or "irregular"


def _pieces(model: Steps) -> str:
    ends = [None, *model.edges, None]
    said = []
    for (low, high), shape in zip(pairwise(ends), model.shapes, strict=True):
        if low is None:
            where = f"below {short(high or 0.0)}"
        elif high is None:
            where = f"from {short(low)} on"
        else:
            where = f"from {short(low)} to {short(high)}"
        assert isinstance(shape, Normals)
        kind = _normals(shape, short, ()).kind
        said.append(f"{where} {kind}, mean {short(shape.mean)}, std {short(shape.std)}")
    return "; ".join(said)


# -- the rest


def missing(name: str, n: int, n_rows: int) -> Finding:
    """Name rows without a value."""
    return Finding(
        "missing", (name,), f"{n} of {n_rows} rows lack the asked or the actual value; skipped."
    )


def lag(name: str, found: Lag, used: bool) -> Finding:
    """Name a lag."""
    done = (
        "The proposal compares each asked value with the actual value that many rows later."
        if used
        else "The proposal includes it."
    )
    return Finding(
        "lag", (name,),
        f"actual follows asked {_rows(found.rows)} later: so shifted, deviations shrink from "
        f"{short(found.before)} to {short(found.after)} on average. {done}",
    )  # fmt: skip


def settling(name: str, found: Settling, left_out: bool) -> Finding:
    """Name rows on the way to a new value."""
    done = (
        "They are left out."
        if left_out
        else "The proposal includes them; leave them out (settled) if experiments wait that long."
    )
    return Finding(
        "settling", (name,),
        f"for {_rows(found.rows)} after a change of the asked value the machine is on its way: "
        f"deviations of {short(found.moving)} instead of {short(found.settled)} on average, in "
        f"{_rows(found.n_moving)}. {done}",
    )  # fmt: skip


def outliers(sample: Sample, places: Rows, kept: bool) -> Finding:
    """Name values far off, by their rows in the log."""
    rows = [str(label) for label in sample.labels[places]]
    listed = ", ".join(rows[:_MOST_ROWS]) + (", ..." if len(rows) > _MOST_ROWS else "")
    worst = sample.d[places][np.argmax(np.abs(sample.d[places]))]
    rows_called = "row" if len(rows) == 1 else "rows"
    many = f"{len(rows)} of {len(sample)} rows are" if len(rows) > 1 else "1 row is"
    done = "kept in the proposal" if kept else "left out of the proposal"
    return Finding(
        "outliers", (sample.name,),
        f"{many} far off, by up to {short(worst)} ({rows_called} {listed}); {done}.",
    )  # fmt: skip


def quantized(name: str, step: float, ties: float) -> Finding:
    """Name the steps of the log."""
    text = f"actual values come in steps of {short(step)}."
    if ties > 0.01:
        text = f"{text[:-1]}; {share(ties)} of the rows show no deviation."
    return Finding("quantized", (name,), text)


def drift(name: str, found: Drift) -> Finding:
    """Name a trend."""
    return Finding(
        "drift", (name,),
        f"deviations drift: their median moves from {short(found.first)} in the first tenth of "
        f"the rows to {short(found.last)} in the last. The proposal counts this as spread; "
        "a machine that is calibrated more often would be more precise.",
    )  # fmt: skip


def resembling(name: str, correlation: float, n: int) -> Finding:
    """Name rows that are no independent evidence."""
    worth = n * (1 - correlation) / (1 + correlation)
    return Finding(
        "autocorrelation", (name,),
        f"neighbouring rows deviate alike (correlation {correlation:.2f}): {n} rows tell as much "
        f"as about {worth:.0f} independent ones.",
    )  # fmt: skip


def few(name: str, n: int) -> Finding:
    """Say that there is too little to learn a shape from."""
    return Finding(
        "few rows", (name,), f"{n} rows are too few to learn a shape: a normal one is assumed."
    )


def together(pair: Dependence) -> Finding:
    """Name two parameters that depend on each other."""
    one, other = pair.names
    if pair.correlation:
        said = f"deviate together (correlation {pair.correlation:.2f})"
    else:
        said = f"deviate at the same time (correlation of the sizes {pair.of_sizes:.2f})"
    return Finding("dependence", pair.names, f"{one} and {other} {said}.")


def grouped(group: Together) -> Finding:
    """Say what is proposed for parameters that depend on each other."""
    listed = ", ".join(group.names)
    if group.chosen.name == "independent":
        return Finding(
            "independent anyway", group.names,
            f"{listed}: what fits each of them alone describes the log better than any joint "
            "candidate, so they are proposed as independent.",
        )  # fmt: skip
    return Finding("group", group.names, f"{listed}: proposed together ({group.chosen.name}).")


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"
