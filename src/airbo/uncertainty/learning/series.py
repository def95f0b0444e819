"""What the order of the rows tells: lag, settling, values far off, drift."""

from dataclasses import dataclass, replace

import numpy as np

from airbo.uncertainty.learning.sample import Array, Rows, Sample, mean_and_error, spread

_LONGEST_LAG = 50
_WORTH = 0.8
"""A lag has to shrink the mean deviation to this share."""
_FAR = 5.0
"""Far off: this many times as far as the farthest of the usual rows."""
_RARE = 0.01
_STILL_MOVING = 4.0
_SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Lag:
    """Actual values follow the asked ones some rows later."""

    rows: int
    before: float
    """Mean size of the deviation with the rows as they are."""
    after: float
    """The same with the rows shifted."""


def find_lag(sample: Sample) -> Lag | None:
    """Look for the shift that makes deviations smallest, if one is clearly better than none."""
    asked, actual = sample.x, sample.x + sample.d
    longest = min(_LONGEST_LAG, len(sample) // 10)
    if longest < 1 or np.ptp(asked) == 0:
        return None
    n = len(sample) - longest
    sizes = [_sizes(actual[lag : lag + n] - asked[:n]) for lag in range(longest + 1)]
    means = [float(size.mean()) for size in sizes]
    best = int(np.argmin(means))
    gain, error = mean_and_error(sizes[0] - sizes[best])
    if best == 0 or means[best] > _WORTH * means[0] or gain < _SIGNIFICANT * error:
        return None
    return Lag(best, means[0], means[best])


def _sizes(deviations: Array) -> Array:
    return np.abs(deviations - np.median(deviations))


def shifted(sample: Sample, lag: int) -> Sample:
    """Compare every asked value with the actual value some rows later."""
    if lag == 0:
        return sample
    actual = sample.x + sample.d
    early = sample.at(np.arange(len(sample) - lag))
    return replace(early, d=actual[lag:] - early.x)


@dataclass(frozen=True)
class Settling:
    """After a change of the asked value the machine is on its way for some rows."""

    rows: int
    moving: float
    """Mean size of the deviation on the way."""
    settled: float
    """The same afterwards."""
    n_moving: int


def find_settling(sample: Sample) -> Settling | None:
    """Compare deviations right after a change of the asked value with later ones."""
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
    return Settling(rows, float(size[moving].mean()), settled, int(moving.sum()))


def since_change(x: Array) -> Rows:
    """Return how many rows ago the asked value changed; -1 before the first change."""
    changed = np.abs(np.diff(x, prepend=x[0])) > 0.01 * np.ptp(x)
    last = np.maximum.accumulate(np.where(changed, np.arange(len(x)), -1))
    return np.where(last < 0, -1, np.arange(len(x)) - last).astype(np.int64)


def far_off(sample: Sample) -> Rows:
    """Return the places of values far off: a few, much farther than all others."""
    size = _sizes(sample.d)
    few = max(int(np.ceil(_RARE * len(sample))), 2)
    usual = float(np.sort(size)[-few - 1]) if len(sample) > 2 * few else 0.0
    limit = _FAR * max(usual, sample.width)
    return np.flatnonzero(size > limit) if usual > 0 or limit > 0 else np.array([], dtype=np.int64)


@dataclass(frozen=True)
class Drift:
    """Deviations move over time."""

    first: float
    """Their median in the first tenth of the rows."""
    last: float
    """The same in the last tenth."""


def find_drift(sample: Sample, normal_scores: Array) -> Drift | None:
    """Look for a trend in what the asked values do not explain.

    Args:
        sample: The rows, for the numbers in the message.
        normal_scores: The deviations as the model sees them: standard normal without a drift.
    """
    n = len(sample)
    if n < 40:
        return None
    time = np.linspace(-1, 1, n)
    slope, _ = mean_and_error(3 * time * (normal_scores - normal_scores.mean()))
    centred = normal_scores - normal_scores.mean() - slope * time
    _, noise = mean_and_error(3 * time * centred)
    # 2 · slope: how far the scores move over the log, in standard deviations
    if abs(2 * slope) < 0.5 or abs(slope) < _SIGNIFICANT * noise:
        return None
    tenth = n // 10
    return Drift(float(np.median(sample.d[:tenth])), float(np.median(sample.d[-tenth:])))


def autocorrelation(normal_scores: Array) -> float:
    """Return the correlation of each score with the next one."""
    z = normal_scores - normal_scores.mean()
    power = float(z @ z)
    return float(z[1:] @ z[:-1]) / power if power > 0 else 0.0
