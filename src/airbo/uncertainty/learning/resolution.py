"""Steps in which values were logged or can be set."""

import numpy as np

from airbo.uncertainty.learning.sample import Array, spread

_TIED = 0.05
"""Values of a log without steps are hardly ever equal."""
_ON_GRID = 0.98
_CONTINUOUS = 1e-3
"""Width within which a density is measured, in deviations, where there are no steps."""


def step_of(values: Array) -> float:
    """Return the step that almost all values are multiples of, 0 where there is none.

    Where steps differ over the range (a fixed number of digits), it is the step at most rows.
    """
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
    smallest, usual = float(gaps.min()), float(np.median(gaps))
    powers = range(int(np.floor(np.log10(smallest))), int(np.ceil(np.log10(usual))) + 1)
    found = {m * 10.0**p for p in powers for m in (1, 2, 2.5, 5)} | {smallest, usual}
    return sorted((s for s in found if 0.999 * smallest <= s <= 1.001 * usual), reverse=True)
