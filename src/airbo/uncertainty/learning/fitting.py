"""Fits of shapes: quick ones, made of a few hundred weighted numbers that stand for the log."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airbo.uncertainty.learning.sample import Array
from airbo.uncertainty.learning.shapes import Flat, Logged, Normals, Shape, Skewed

_AT_ENDS, _INSIDE = 25, 150
"""Numbers kept one by one at either end, and groups of neighbours between them."""
_FIRST_ROUNDS, _ROUNDS = 8, 60
"""Rounds for every start of a mixture, and for the best of them."""
_SKEWS = np.array([0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0])

Fit = Callable[["FittedNumbers"], Shape]


@dataclass(frozen=True)
class FittedNumbers:
    """Sorted numbers with their counts."""

    values: Array
    counts: Array
    width: float
    """Numbers are known up to this much."""

    @classmethod
    def of(cls, values: Array, width: float) -> "FittedNumbers":
        """Sort numbers, and put neighbours together where there are many."""
        unique, n_each = np.unique(values, return_counts=True)
        counts = n_each.astype(np.float64)
        if len(unique) <= 2 * _AT_ENDS + _INSIDE:
            return cls(unique, counts, width)
        place = np.arange(len(unique))
        inner = ((counts.cumsum() - counts / 2) / counts.sum() * _INSIDE).astype(int)
        last = len(unique) - _AT_ENDS
        single = (place < _AT_ENDS) | (place >= last)
        key = np.where(single, place, _AT_ENDS + inner) + np.where(place >= last, _INSIDE, 0)
        _, of = np.unique(key, return_inverse=True)
        total = np.bincount(of, counts).astype(np.float64)
        return cls(np.bincount(of, counts * unique) / total, total, width)

    @property
    def n(self) -> float:
        """How many numbers there are."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self.counts @ self.values / self.n)

    def std(self, centre: float) -> float:
        """Return the root mean square distance from a centre, without what rounding adds."""
        return self.narrowest(float(self.counts @ (self.values - centre) ** 2 / self.n))

    def narrowest(self, variance: float) -> float:
        """Take the variance w²/12 of the rounding away, down to what a step can tell."""
        return float(np.sqrt(max(variance - self.width**2 / 12, (self.width / 6) ** 2)))


def one_normal(v: FittedNumbers, centre: float | None = None) -> Normals:
    """Fit a normal, around a centre that is given or the mean."""
    mean = v.mean if centre is None else centre
    return Normals(np.ones(1), np.array([mean]), np.array([v.std(mean)]))


def centred_normal(v: FittedNumbers) -> Normals:
    """Fit a normal without bias."""
    return one_normal(v, 0.0)


def flat(v: FittedNumbers) -> Flat:
    """Fit limits: a little beyond the outermost numbers."""
    low, high = float(v.values[0]), float(v.values[-1])
    beyond = (high - low) / max(v.n - 1, 1) + v.width / 2
    return Flat(low - beyond, high + beyond)


def skewed(v: FittedNumbers) -> Skewed:
    """Pick the likeliest of some skewnesses, or of a gamma that begins at the outermost number."""
    mean, std = v.mean, v.std(v.mean)
    sign = 1.0 if v.counts @ (v.values - mean) ** 3 >= 0 else -1.0
    shapes = [Skewed(sign * skew, mean, std) for skew in _SKEWS] + [_with_end(v, sign)]
    # Σ_i n_i log P(v_i ± w/2): numbers are known up to their rounding
    half = max(v.width, 0.02 * std) / 2
    likely = [
        v.counts @ np.log(s.cdf(v.values + half) - s.cdf(v.values - half) + 1e-6) for s in shapes
    ]
    return shapes[int(np.argmax(likely))]


def _with_end(v: FittedNumbers, sign: float) -> Skewed:
    """Fit a gamma distribution from its end: the shape k solves log k - ψ(k) = s."""
    beyond = float(np.ptp(v.values)) / max(v.n, 1) / 10 + v.width / 2 + 1e-300
    end = float((sign * v.values).min()) - beyond
    away = sign * v.values - end
    mean = float(v.counts @ away / v.n)
    # s = log mean - mean log, and Minka's approximation of k(s), right to 1.5%
    s = max(np.log(mean) - float(v.counts @ np.log(away) / v.n), 1e-6)
    k = (3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    return Skewed(
        float(sign * 2 / np.sqrt(k)), float(sign * (end + mean)), float(mean / np.sqrt(k))
    )


def narrow_and_wide(v: FittedNumbers) -> Normals:
    """Fit two normals with one mean: mostly close, sometimes far off."""
    return _best(v, [_start(v, [0.0, 0.0], [0.5, 2.5], [0.8, 0.2])], one_mean=True)


def two_normals(v: FittedNumbers) -> Normals:
    """Fit two normals."""
    return _best(
        v,
        [
            _start(v, [0.0, 0.0], [0.5, 2.5], [0.8, 0.2]),
            _start(v, [-1.0, 1.0], [0.4, 0.4], [0.5, 0.5]),
            _start(v, [-0.3, 2.0], [0.5, 1.0], [0.85, 0.15]),
            _start(v, [0.3, -2.0], [0.5, 1.0], [0.85, 0.15]),
        ],
    )


def three_normals(v: FittedNumbers) -> Normals:
    """Fit three normals."""
    return _best(
        v,
        [
            _start(v, [0.0, 0.0, 0.0], [0.2, 1.0, 4.0], [0.6, 0.3, 0.1]),
            _start(v, [-1.2, 0.0, 1.2], [0.4, 0.4, 0.4], [0.3, 0.4, 0.3]),
        ],
    )


def logged(v: FittedNumbers) -> Logged:
    """Blur each number by Silverman's width, less where many are close, more where it is alone."""
    # Silverman's width: 0.9 min(s, IQR / 1.34) n^(-1/5)
    cumulative = v.counts.cumsum() / v.n
    low, high = (v.values[np.searchsorted(cumulative, p)] for p in (0.25, 0.75))
    scale = min(v.std(v.mean), (high - low) / 1.34 or np.inf)
    narrow = np.maximum(np.minimum(0.9 * scale * v.n**-0.2, _to_many(v)), v.width / 6)
    gaps = np.diff(v.values, prepend=v.values[0], append=v.values[-1])
    to_next = np.maximum(gaps[1:], gaps[:-1])
    alone = v.counts <= 1  # a value that came often is no accident
    return Logged(v.values, v.counts, np.where(alone, np.maximum(narrow, to_next / 2), narrow))


def _to_many(v: FittedNumbers) -> Array:
    """Return how far each number is from 0.3 n⁰·⁸ others, at the side where they are closer."""
    end = v.counts.cumsum()
    middle, many = end - v.counts / 2, 0.3 * v.n**0.8
    above = np.searchsorted(end, middle + many)
    below = np.searchsorted(end, middle - many)
    up = np.append(v.values, np.inf)[np.minimum(above, len(v.values))] - v.values
    down = np.where(middle < many, np.inf, v.values - v.values[below])
    return np.minimum(up, down)


# -- mixtures: expectation and maximization


def _start(
    v: FittedNumbers, means: list[float], stds: list[float], weights: list[float]
) -> Normals:
    std = v.std(v.mean)
    return Normals(np.array(weights), v.mean + std * np.array(means), std * np.array(stds))


def _best(v: FittedNumbers, starts: list[Normals], one_mean: bool = False) -> Normals:
    short = _FIRST_ROUNDS if len(starts) > 1 else 0
    best = max((_em(v, start, one_mean, short) for start in starts), key=lambda fit: fit[0])
    return _em(v, best[1], one_mean, _ROUNDS)[1]


def _em(v: FittedNumbers, shape: Normals, one_mean: bool, n_rounds: int) -> tuple[float, Normals]:
    before = -np.inf
    least = max(v.width / 6, 1e-3 * v.std(v.mean))  # so that a component holds no single number
    for _ in range(n_rounds):
        # r_ik ∝ w_k N(v_i; m_k, s_k²)
        z = (v.values[:, None] - shape.means) / shape.stds
        log_p = np.log(shape.weights) - np.log(shape.stds) - z**2 / 2
        top = log_p.max(axis=1, keepdims=True)
        p = np.exp(log_p - top)
        total = p.sum(axis=1, keepdims=True)
        likelihood = float(v.counts @ (np.log(total) + top)[:, 0])
        if likelihood - before < 1e-5 * v.n:
            break
        before = likelihood

        # n_k = Σ_i r_ik, m_k = Σ_i r_ik v_i / n_k, s_k² = Σ_i r_ik (v_i - m_k)² / n_k - w²/12
        r = p / total * v.counts[:, None]
        n_k = r.sum(axis=0) + 1e-9
        means = v.values @ r / n_k
        if one_mean:  # m = Σ n_k m_k / s_k² / Σ n_k / s_k²
            share = n_k / shape.stds**2
            means = np.full_like(means, share @ means / share.sum())
        variances = ((v.values[:, None] - means) ** 2 * r).sum(axis=0) / n_k
        stds = np.sqrt(np.maximum(variances - v.width**2 / 12, least**2))
        shape = Normals(n_k / n_k.sum(), means, stds)
    return before, shape
