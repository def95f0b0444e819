"""What is learned from: logs of asked and actual values, as files and as numbers.

Notation: x asked values (n), d deviations, actual - asked (n). Rows stand in the order of time, and
neighbours often deviate alike. So errors of means come from the means of 20 blocks of neighbours,
and everything that is found here has to exceed four such errors.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from airbo.sheets import Sheet, read_sheet

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

N_BLOCKS = 20
"""Neighbouring rows stay together in this many blocks, of which folds are made."""
_FEWEST = 3
_TIED = 0.05
"""Values of a log without steps are hardly ever equal."""
_ON_GRID = 0.98
_CONTINUOUS = 1e-3
"""Width within which a density is measured, in deviations, where there are no steps."""
_LONGEST_LAG = 50
_WORTH = 0.8
"""A lag has to shrink the mean deviation to this share."""
_FAR = 5.0
"""Far off: this many times as far as the farthest of the usual rows."""
_RARE = 0.01
_STILL_MOVING = 4.0
UNRESOLVED = 2.0
"""A step this many times as large as the standard deviation hides it."""
_CHANCE = 1e-3
"""Below this probability, chance does not put all deviations into one part of the range."""
SIGNIFICANT = 4.0
"""Standard errors that no chance explains."""
_NOTHING = {"", "nan", "na", "n/a", "null", "none", "-", "#n/a"}
_MOST_MISTAKES = 10
ASKED_WORDS = {
    "asked", "set", "setpoint", "sp", "command", "commanded", "cmd", "target", "planned", "plan",
    "desired", "demand", "demanded", "reference", "ref", "nominal", "requested", "request", "soll",
    "sollwert", "design", "input", "goal", "w",
}  # fmt: skip
"""Words for asked values."""
ACTUAL = {
    "actual", "act", "measured", "meas", "measurement", "pv", "executed", "real", "realized",
    "observed", "feedback", "fb", "ist", "istwert", "achieved", "readback", "rb", "true", "got",
    "sensed", "sensor", "effective",
}  # fmt: skip
"""Words for actual values."""
_TWO_WORDS = {("set", "point"): "setpoint", ("process", "value"): "pv", ("read", "back"): "rb"}
_PREFIXES = ("soll", "ist")


@dataclass(frozen=True)
class Sample:
    """Deviations of one parameter."""

    name: str
    rows: Rows
    """Where each value stands in the log, counted from 0."""
    x: Array
    """Asked values."""
    d: Array
    """Deviations: actual minus asked."""
    labels: NDArray[Any]
    """What each row is called in messages: by the index of a table, else counted from 0."""
    width: float = 0.0
    """Deviations are known up to this much: the step of a log that was rounded."""

    def __len__(self) -> int:
        return len(self.d)

    def at(self, chosen: NDArray[Any]) -> "Sample":
        """Return some of the rows."""
        fields = ("rows", "x", "d", "labels")
        return replace(self, **{name: getattr(self, name)[chosen] for name in fields})


def blocks(n: int) -> Rows:
    """Return the number of the block that each of n rows belongs to."""
    # row i of n belongs to block ⌊20 i / n⌋
    return (np.arange(n) * min(N_BLOCKS, n)) // max(n, 1)


def mean_and_error(values: Array) -> tuple[float, float]:
    """Return the mean of a series and its standard error, from the means of blocks."""
    # the standard error of a mean of k block means is their standard deviation / √k
    of = blocks(len(values))
    means = np.bincount(of, values) / np.bincount(of)
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.inf
    return float(values.mean()), float(error)


def spread(values: Array) -> float:
    """Return a standard deviation that single values far off hardly change; 0 only for ties."""
    # the 10% and 90% quantiles of a normal are 2.563 standard deviations apart
    low, high = np.quantile(values, [0.1, 0.9])
    return float((high - low) / 2.563) or float(np.abs(values - np.median(values)).mean())


def evenly(rows: NDArray[Any], n: int) -> NDArray[Any]:
    """Pick rows evenly along the log, n at most."""
    return rows[np.linspace(0, len(rows) - 1, min(n, len(rows))).astype(int)]


def samples(asked: Any, actual: Any) -> list[Sample]:
    """Pair asked and actual values, whatever they come in."""
    table, other = _table(asked, "asked"), _table(actual, "actual")
    if table.shape[1] != other.shape[1]:
        raise ValueError(
            f"asked has {table.shape[1]} columns and actual has {other.shape[1]}; each needs its "
            "partner."
        )
    if len(table) != len(other):
        raise ValueError(f"{len(table)} values were asked, but {len(other)} are actual.")
    if set(table.columns) != set(other.columns):  # paired by position
        other = other.set_axis(table.columns, axis=1)
    if not len(table.columns):
        raise ValueError("There are no columns of asked values.")
    labels = np.asarray(table.index)
    return [
        _sample(str(name), table[name].to_numpy(), other[name].to_numpy(), labels)
        for name in table.columns
    ]


def _table(values: Any, what: str) -> pd.DataFrame:
    """Put an array (n) or (n d), a column, a table or a dict of columns into a table."""
    try:
        if isinstance(values, pd.Series):
            values = values.to_frame(values.name or "x")
        if isinstance(values, pd.DataFrame | Mapping):
            return pd.DataFrame(values, dtype=np.float64)
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must hold numbers: {error}.") from None
    if array.ndim not in (1, 2):
        raise ValueError(f"{what} must have 1 or 2 dimensions, got {array.ndim}.")
    several = array.ndim == 2
    names = [f"x{j + 1}" for j in range(array.shape[1])] if several else ["x"]
    return pd.DataFrame(array if several else array[:, None], columns=names)


def _sample(name: str, asked: Array, actual: Array, labels: NDArray[Any]) -> Sample:
    for what, values in (("asked", asked), ("actual", actual)):
        for row in np.flatnonzero(np.isinf(values)):
            raise ValueError(f"{name}, row {labels[row]}: the {what} value is infinite.")
    there = np.flatnonzero(~np.isnan(asked) & ~np.isnan(actual))
    if len(there) < _FEWEST:
        raise ValueError(
            f"{name}: {len(there)} rows have an asked and an actual value; "
            f"{_FEWEST} are needed, and some dozens to learn a shape."
        )
    x, d = asked[there], actual[there] - asked[there]
    largest = float(np.abs(x).max()) or 1.0
    d = np.round(d, 11 - int(np.ceil(np.log10(largest))))  # digits that subtraction leaves
    return Sample(name, there, x, d, labels[there])


# -- steps in which values were logged or can be set


def step_of(values: Array) -> float:
    """Return the step that almost all values are multiples of, 0 where there is none.

    Where steps differ over the range (a fixed number of digits), it is the step at most rows.
    """
    # a log without steps has hardly any ties; one with steps has values k · step
    unique, counts = np.unique(_rounded(values), return_counts=True)
    if len(unique) < 2 or 1 - len(unique) / len(values) < _TIED:
        return 0.0
    gaps = np.diff(unique)
    for step in _candidates(gaps):
        off = np.abs(unique / step - np.round(unique / step))
        if counts[off < 1e-3].sum() >= _ON_GRID * counts.sum():
            return step
    # the gap beside each value, seen from most rows
    beside = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    order = np.argsort(beside)
    middle = np.searchsorted(counts[order].cumsum(), counts.sum() / 2)
    return float(beside[order][middle])


def bin_width(deviations: Array) -> float:
    """Return the width within which the probability of a deviation is measured."""
    step = step_of(deviations)
    return step or _CONTINUOUS * (spread(deviations) or 1.0)


def _rounded(values: Array) -> Array:
    """Drop digits that are only left by subtraction."""
    largest = float(np.abs(values).max()) or 1.0
    return np.round(values, 10 - int(np.ceil(np.log10(largest))))


def _candidates(gaps: Array) -> list[float]:
    """Return steps to try, the largest first: round numbers, and the usual gap itself."""
    # steps that people set: 1, 2, 2.5 or 5 times a power of ten
    smallest, usual = float(gaps.min()), float(np.median(gaps))
    powers = range(int(np.floor(np.log10(smallest))), int(np.ceil(np.log10(usual))) + 1)
    found = {m * 10.0**p for p in powers for m in (1, 2, 2.5, 5)} | {smallest, usual}
    return sorted((s for s in found if 0.999 * smallest <= s <= 1.001 * usual), reverse=True)


# -- what is true of all rows, or of a part of them


def has_bias(values: Array) -> bool:
    """Say whether deviations are off on average: more than chance explains, and worth a word."""
    # |d̄| > 4 standard errors, and more than a fiftieth of the standard deviation
    mean, error = mean_and_error(values)
    return abs(mean) > SIGNIFICANT * error and abs(mean) >= 0.02 * float(values.std())


def find_part(sample: Sample) -> tuple[float, float, int, int] | None:
    """Look for a part of the range outside of which no row deviates at all.

    Returns the lowest and the highest asked value with a deviation, the number of rows there, and
    that of all others.
    """
    # if k rows deviated anywhere, all of them would lie in a part with a share p of rows by p^k
    moved = np.abs(sample.d) > sample.width / 2
    k = int(moved.sum())
    if k < _FEWEST:
        return None
    low, high = float(sample.x[moved].min()), float(sample.x[moved].max())
    inside = (sample.x >= low) & (sample.x <= high)
    if inside.all() or inside.mean() ** k > _CHANCE:
        return None
    return low, high, int(inside.sum()), int((~inside).sum())


# -- what the order of the rows tells: lag, settling, values far off, drift


def find_lag(sample: Sample) -> tuple[int, float, float] | None:
    """Look for the shift that makes deviations smallest, if one is clearly better than none.

    Returns the rows by which actual values come later, and the mean size of the deviation before
    and after they are shifted.
    """
    # the mean size of actual[i + lag] - asked[i], over the same rows for every lag
    asked, actual = sample.x, sample.x + sample.d
    longest = min(_LONGEST_LAG, len(sample) // 10)
    if longest < 1 or np.ptp(asked) == 0:
        return None
    n = len(sample) - longest
    sizes = [_sizes(actual[lag : lag + n] - asked[:n]) for lag in range(longest + 1)]
    means = [float(size.mean()) for size in sizes]
    best = int(np.argmin(means))
    gain, error = mean_and_error(sizes[0] - sizes[best])
    if best == 0 or means[best] > _WORTH * means[0] or gain < SIGNIFICANT * error:
        return None
    return best, means[0], means[best]


def _sizes(deviations: Array) -> Array:
    # |d - median d|: a constant bias is no size
    return np.abs(deviations - np.median(deviations))


def shift_rows(sample: Sample, lag: int) -> Sample:
    """Compare every asked value with the actual value some rows later."""
    if lag == 0:
        return sample
    actual = sample.x + sample.d
    early = sample.at(np.arange(len(sample) - lag))
    return replace(early, d=actual[lag:] - early.x)


def find_settling(sample: Sample) -> tuple[int, float, float, int] | None:
    """Compare deviations right after a change of the asked value with later ones.

    Returns for how many rows the machine is on its way, the mean size of the deviation there and
    afterwards, and the number of all such rows.
    """
    # the mean size by age, which is the number of rows since the asked value changed
    age = since_change(sample.x)
    changes = int((age == 0).sum())
    if changes < 3 or changes > 0.3 * len(sample):
        return None
    size = _sizes(sample.d)
    late = age > min(np.median(age[age >= 0]), 100) if (age >= 0).any() else age < 0
    if late.sum() < 10:
        return None
    settled = float(size[late].mean())
    level = max(2 * settled, spread(sample.d), sample.width)
    by_age = [float(size[age == k].mean()) for k in range(int(min(age.max(), 100)) + 1)]
    rows = next((k for k, mean in enumerate(by_age) if mean <= level), len(by_age))
    moving = (age >= 0) & (age < rows)
    if rows == 0 or float(size[moving].mean()) < _STILL_MOVING * max(settled, sample.width / 2):
        return None
    return rows, float(size[moving].mean()), settled, int(moving.sum())


def since_change(x: Array) -> Rows:
    """Return how many rows ago the asked value changed; -1 before the first change."""
    # a change is more than 1% of the range of asked values
    changed = np.abs(np.diff(x, prepend=x[0])) > 0.01 * np.ptp(x)
    last = np.maximum.accumulate(np.where(changed, np.arange(len(x)), -1))
    return np.where(last < 0, -1, np.arange(len(x)) - last).astype(np.int64)


def far_off(sample: Sample) -> Rows:
    """Return the places of values far off: a few, much farther than all others."""
    # farther than 5 times the size that 99 of 100 rows keep
    size = _sizes(sample.d)
    few = max(int(np.ceil(_RARE * len(sample))), 2)
    usual = float(np.sort(size)[-few - 1]) if len(sample) > 2 * few else 0.0
    limit = _FAR * max(usual, sample.width)
    return np.flatnonzero(size > limit) if usual > 0 or limit > 0 else np.array([], dtype=np.int64)


def find_drift(sample: Sample, normal_scores: Array) -> tuple[float, float] | None:
    """Look for a trend in what the asked values do not explain.

    ``normal_scores`` are the deviations as the model sees them: standard normal without a drift.
    Returns the median deviation in the first tenth of the rows, and in the last.
    """
    # least squares over time t in [-1, 1]: E t² = 1/3, so the slope is E 3 t z
    n = len(sample)
    if n < 40:
        return None
    time = np.linspace(-1, 1, n)
    slope, _ = mean_and_error(3 * time * (normal_scores - normal_scores.mean()))
    centred = normal_scores - normal_scores.mean() - slope * time
    _, noise = mean_and_error(3 * time * centred)
    # 2 · slope: how far the scores move over the log, in standard deviations
    if abs(2 * slope) < 0.5 or abs(slope) < SIGNIFICANT * noise:
        return None
    tenth = n // 10
    return float(np.median(sample.d[:tenth])), float(np.median(sample.d[-tenth:]))


# -- files


@dataclass(frozen=True)
class Pair:
    """One parameter, and its two columns."""

    name: str
    asked: str
    actual: str


@dataclass(frozen=True)
class Log:
    """A log that was read."""

    asked: pd.DataFrame
    actual: pd.DataFrame
    pairs: list[Pair]
    unused: list[str]
    """Columns that belong to no pair."""


def read_log(path: str | Path, pairs: Sequence[str] = ()) -> Log:
    """Read asked and actual values from a CSV or Excel file.

    Args:
        path: The file.
        pairs: ``asked=actual`` or ``name:asked=actual``; by default they are found by name.

    Raises:
        ValueError: If there are no pairs, or cells that are no numbers: each with row and column.
    """
    sheet = read_sheet(path)
    header = sheet.header
    if any(math.isfinite(_cell(sheet, cell) or 0.0) for cell in header if _cell(sheet, cell)):
        raise ValueError(f"{path}: the first row must name the columns, got {', '.join(header)}.")
    doubles = sorted({name for name in header if name and header.count(name) > 1})
    if doubles:
        raise ValueError(f"{path}: several columns are called {', '.join(doubles)}.")
    found = named_pairs(pairs, header) if pairs else find_pairs(header)
    if not found:
        raise ValueError(
            f"{path}: no columns are called like asked and actual values; it has "
            f"{', '.join(header) or 'none'}. Name them: --pair asked=actual."
        )
    used = [column for p in found for column in (p.asked, p.actual)]
    rows, lines, mistakes = [], [], []
    for line, cells in sheet.rows:
        if any(cells[len(header) :]):
            raise ValueError(f"{path}, row {line}: {len(cells)} cells, but {len(header)} columns.")
        texts = dict(zip(header, cells, strict=False))
        row = {column: _cell(sheet, texts.get(column, "")) for column in used}
        mistakes += [
            f"row {line}, column {column}: expected a number, got {texts[column]!r}."
            for column, value in row.items()
            if value is None or math.isinf(value)
        ]
        rows.append(row)
        lines.append(line)
    if mistakes:
        more = len(mistakes) - _MOST_MISTAKES
        listed = mistakes[:_MOST_MISTAKES] + ([f"and {more} more"] if more > 0 else [])
        raise ValueError(f"{path} has cells that are no numbers:\n  " + "\n  ".join(listed))
    table = pd.DataFrame(rows, columns=used, index=lines, dtype=float)
    asked, actual = (
        pd.DataFrame({p.name: table[getattr(p, side)] for p in found})
        for side in ("asked", "actual")
    )
    return Log(asked, actual, found, [c for c in header if c not in used])


def _cell(sheet: Sheet, text: str) -> float | None:
    """Read a number, nan for nothing; None if it is none, or may be two."""
    try:
        return math.nan if text.lower() in _NOTHING else float(sheet.number(text).replace(",", "."))
    except ValueError:
        return None


# -- pairs of columns


def find_pairs(columns: Iterable[str]) -> list[Pair]:
    """Pair columns by their names, such as ``speed_sp`` and ``speed_pv``.

    A column without such a word pairs with one that has it: ``speed`` and ``speed_actual``.
    """
    # columns by role, under what their name says besides
    asked: dict[tuple[str, ...], str] = {}
    actual: dict[tuple[str, ...], str] = {}
    plain: dict[tuple[str, ...], str] = {}
    for column in columns:
        role, rest = _role(column)
        {"asked": asked, "actual": actual, "": plain}[role].setdefault(rest, column)
    pairs = []
    for rest in dict.fromkeys([*asked, *actual]):
        one = asked.get(rest) or (plain.get(rest) if rest else None)
        other = actual.get(rest) or (plain.get(rest) if rest else None)
        if one is not None and other is not None and one != other:
            pairs.append(Pair(_called(rest, one), one, other))
    return pairs


def named_pairs(texts: Sequence[str], columns: Sequence[str]) -> list[Pair]:
    """Read pairs that were named: ``asked=actual``, or ``name:asked=actual``."""
    pairs = []
    for text in texts:
        one, equals, other = text.partition("=")
        name, colon, rest = one.partition(":")
        if colon and one not in columns:
            one = rest
        else:
            name = ""
        if not equals:
            raise ValueError(f"A pair is written as asked=actual, got {text!r}.")
        for column in (one, other):
            if column not in columns:
                raise ValueError(
                    f"There is no column {column!r}; the log has {', '.join(columns)}."
                )
        pairs.append(Pair(name or _called(_role(one)[1], one), one, other))
    return pairs


def _role(column: str) -> tuple[str, tuple[str, ...]]:
    """Return whether a name speaks of asked or actual values, and what else it says."""
    # the last word first: set_temperature_actual is an actual value
    words = _words(column)
    for role, known in (("actual", ACTUAL), ("asked", ASKED_WORDS)):
        for i in (len(words) - 1, *range(len(words) - 1)):
            if words and words[i] in known:
                return role, tuple(words[:i] + words[i + 1 :])
    return "", tuple(words)


def _words(column: str) -> list[str]:
    """Split a name at signs and capital letters; a unit in brackets does not count."""
    # speed_SP [m/s] -> speed, sp
    bare = re.sub(r"[\[(].*?[\])]", " ", column)
    parts = re.findall(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+|\d+", bare)
    words = [part.lower() for part in parts]
    for two, one in _TWO_WORDS.items():
        for i in range(len(words) - 1):
            if tuple(words[i : i + 2]) == two:
                words[i : i + 2] = [one]
    for prefix in _PREFIXES:
        first = words[0] if words else ""
        longer = first.startswith(prefix) and len(first) > len(prefix) + 3
        if longer and first not in ASKED_WORDS | ACTUAL:
            words[:1] = [prefix, first[len(prefix) :]]
    return words


def _called(rest: tuple[str, ...], column: str) -> str:
    return "_".join(rest) or column
