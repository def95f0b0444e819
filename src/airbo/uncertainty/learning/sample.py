"""What is learned from: asked values and deviations of one parameter, in the order of the rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

N_BLOCKS = 20
"""Neighbouring rows stay together in this many blocks, of which folds are made."""
_FEWEST = 3


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
    return (np.arange(n) * min(N_BLOCKS, n)) // max(n, 1)


def mean_and_error(values: Array) -> tuple[float, float]:
    """Return the mean of a series and its standard error, from the means of blocks."""
    of = blocks(len(values))
    means = np.bincount(of, values) / np.bincount(of)
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.inf
    return float(values.mean()), float(error)


def spread(values: Array) -> float:
    """Return a standard deviation that single values far off hardly change; 0 only for ties."""
    low, high = np.quantile(values, [0.1, 0.9])
    return float((high - low) / 2.563) or float(np.abs(values - np.median(values)).mean())


def samples(asked: Any, actual: Any, names: Sequence[str] | None) -> list[Sample]:
    """Pair asked and actual values, whatever they come in."""
    table, other = _columns(asked, "asked"), _columns(actual, "actual")
    if len(table) != len(other):
        raise ValueError(
            f"asked has {len(table)} columns and actual has {len(other)}; each needs its partner."
        )
    if set(table) != set(other):
        other = dict(zip(table, other.values(), strict=True))
    if not table:
        raise ValueError("asked has no columns.")
    called = list(table) if names is None else list(names)
    if len(called) != len(table):
        raise ValueError(f"There are {len(table)} columns, but {len(called)} names.")
    has_index = isinstance(asked, pd.DataFrame | pd.Series)
    labels = np.asarray(asked.index) if has_index else np.arange(len(next(iter(table.values()))))
    return [
        _sample(str(name), table[key], other[key], labels)
        for name, key in zip(called, table, strict=True)
    ]


def _sample(name: str, asked: Array, actual: Array, labels: NDArray[Any]) -> Sample:
    if len(asked) != len(actual):
        raise ValueError(f"{name}: {len(asked)} values were asked, but {len(actual)} are actual.")
    for what, values in (("asked", asked), ("actual", actual)):
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
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


def _columns(values: Any, what: str) -> dict[Any, Array]:
    if isinstance(values, pd.DataFrame):
        return {name: _numbers(values[name], f"{what}[{name!r}]") for name in values.columns}
    if isinstance(values, pd.Series):
        return {values.name or "x": _numbers(values, what)}
    if isinstance(values, Mapping):
        return {name: _numbers(column, f"{what}[{name!r}]") for name, column in values.items()}
    array = _numbers(values, what, 2)
    if array.ndim == 1:
        return {"x": array}
    return {f"x{j + 1}": array[:, j] for j in range(array.shape[1])}


def _numbers(values: Any, what: str, max_ndim: int = 1) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must hold numbers: {error}.") from None
    if not 1 <= array.ndim <= max_ndim:
        raise ValueError(f"{what} must have 1 or {max_ndim} dimensions, got {array.ndim}.")
    return array
