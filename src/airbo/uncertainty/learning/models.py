"""How a deviation depends on the asked value: not at all, in proportion, or in steps."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.columns import LogNormal
from airbo.uncertainty.composed import Relative
from airbo.uncertainty.learning import fitting
from airbo.uncertainty.learning.fitting import Fit, FittedNumbers
from airbo.uncertainty.learning.sample import Array, Sample, spread
from airbo.uncertainty.learning.shapes import Normals, Point, Shape, rounded
from airbo.uncertainty.varying import Piecewise

_FEWEST_FOR_SHAPE, _FEWEST_PER_PIECE = 20, 20
_MOST_EDGES = 40
"""Edges that are tried for a step."""


class Model(ABC):
    """The distribution of a deviation, given the asked value."""

    @abstractmethod
    def probability(self, x: Array, low: Array, high: Array) -> Array:
        """Return how likely a deviation between two limits is, row by row."""

    @abstractmethod
    def uncertainty(self) -> InputUncertainty:
        """Return it for one column."""


@dataclass(frozen=True)
class Same(Model):
    """The same everywhere."""

    shape: Shape

    def probability(self, x: Array, low: Array, high: Array) -> Array:
        """F(high) - F(low)."""
        return self.shape.cdf(high) - self.shape.cdf(low)

    def uncertainty(self) -> InputUncertainty:
        """Return the shape's."""
        return self.shape.uncertainty()


@dataclass(frozen=True)
class Proportional(Model):
    """A share of the asked value."""

    shape: Shape

    def probability(self, x: Array, low: Array, high: Array) -> Array:
        """F(high / x) - F(low / x); the deviation is 0 at x = 0."""
        safe = np.where(x == 0, 1.0, x)
        p = np.abs(self.shape.cdf(high / safe) - self.shape.cdf(low / safe))
        return np.where(x == 0, ((low <= 0) & (high >= 0)).astype(np.float64), p)

    def uncertainty(self) -> InputUncertainty:
        """Wrap the shape's."""
        return Relative(self.shape.uncertainty())


@dataclass(frozen=True)
class ShareFactor(Model):
    """The logarithm of actual / asked is normal with mean 0."""

    shape: Normals

    def probability(self, x: Array, low: Array, high: Array) -> Array:
        """F(log(1 + high / x)) - F(log(1 + low / x))."""
        lower, upper = (np.log(np.maximum(1 + d / x, 1e-12)) for d in (low, high))
        return np.abs(self.shape.cdf(upper) - self.shape.cdf(lower))

    def uncertainty(self) -> InputUncertainty:
        """Make a LogNormal."""
        return LogNormal(rounded(float(self.shape.stds[0])))


@dataclass(frozen=True)
class Steps(Model):
    """Another shape in every part of the range."""

    edges: tuple[float, ...]
    shapes: tuple[Shape, ...]

    def probability(self, x: Array, low: Array, high: Array) -> Array:
        """Ask the shape that holds at each asked value."""
        piece = np.searchsorted(self.edges, x, side="right")
        p = np.zeros_like(x)
        for i, shape in enumerate(self.shapes):
            own = piece == i
            p[own] = shape.cdf(high[own]) - shape.cdf(low[own])
        return p

    def uncertainty(self) -> InputUncertainty:
        """Make a Piecewise, unless there is only one piece."""
        pieces = [shape.uncertainty() for shape in self.shapes]
        return Piecewise(self.edges, pieces) if self.edges else pieces[0]


@dataclass(frozen=True)
class Family:
    """Models of one kind, before they are fitted."""

    name: str
    n_numbers: int
    """How many numbers are fitted: the fewer, the simpler."""
    fit: Callable[[Sample], Model]


def _same(fit: Fit) -> Callable[[Sample], Model]:
    return lambda sample: Same(fit(FittedNumbers.of(sample.d, sample.width)))


def _proportional(fit: Fit) -> Callable[[Sample], Model]:
    def fitted(sample: Sample) -> Model:
        away = sample.x != 0
        x = sample.x[away]
        return Proportional(
            fit(FittedNumbers.of(sample.d[away] / x, sample.width / float(np.median(np.abs(x)))))
        )

    return fitted


def _factor(sample: Sample) -> Model:
    logs = np.log(np.maximum(1 + sample.d / sample.x, 1e-12))
    width = sample.width / float(np.median(np.abs(sample.x)))
    return ShareFactor(fitting.centred_normal(FittedNumbers.of(logs, width)))


def _steps(fit: Fit, n_pieces: int) -> Callable[[Sample], Model]:
    def fitted(sample: Sample) -> Model:
        edges = _edges(sample, n_pieces)
        piece = np.searchsorted(edges, sample.x, side="right")
        own = [sample.d[piece == i] for i in range(len(edges) + 1)]
        return Steps(tuple(edges), tuple(fit(FittedNumbers.of(d, sample.width)) for d in own))

    return fitted


def families(sample: Sample) -> list[Family]:
    """Return the candidates that make sense for these rows, simpler ones first."""
    if np.ptp(sample.d) <= 1e-9 * float(np.abs(sample.x).max()):
        middle = float(np.median(sample.d))
        at = middle if abs(middle) > 1e-9 * float(np.abs(sample.x).max()) else 0.0
        return [Family("always the same", 1, lambda _: Same(Point(at)))]
    found = [
        Family("normal, no bias", 1, _same(fitting.centred_normal)),
        Family("normal", 2, _same(fitting.one_normal)),
    ]
    varies = len(np.unique(sample.x)) > 1
    away = bool(np.mean(sample.x != 0) > 0.5)
    if varies and away:
        found += [
            Family("relative, normal, no bias", 1, _proportional(fitting.centred_normal)),
            Family("relative, normal", 2, _proportional(fitting.one_normal)),
        ]
    if len(sample) >= _FEWEST_FOR_SHAPE:
        found += _shaped(sample, varies, away)
    return sorted(found, key=lambda family: family.n_numbers)


_SHAPES: tuple[tuple[str, int, Fit], ...] = (
    ("uniform", 2, fitting.flat),
    ("skewed", 3, fitting.skewed),
    ("narrow and wide normal", 4, fitting.narrow_and_wide),
    ("two normals", 5, fitting.two_normals),
    ("three normals", 8, fitting.three_normals),
    ("the log itself", 100, fitting.logged),
)


def _shaped(sample: Sample, varies: bool, away: bool) -> list[Family]:
    found = [Family(name, n, _same(fit)) for name, n, fit in _SHAPES]
    if varies and away:
        found += [Family(f"relative, {name}", n, _proportional(fit)) for name, n, fit in _SHAPES]
    positive = bool((np.minimum(sample.x, sample.x + sample.d) > 0).all())
    if varies and positive:
        found.append(Family("log-normal", 1, _factor))
    if varies and len(sample) >= 4 * _FEWEST_PER_PIECE:
        for k in (2, 3, 6):
            found.append(Family(f"{k} steps, normal", 3 * k - 1, _steps(fitting.one_normal, k)))
        for k in (2, 4):
            name = f"{k} steps, two normals"
            found.append(Family(name, 6 * k - 1, _steps(fitting.two_normals, k)))
    return found


def _edges(sample: Sample, n_pieces: int) -> list[float]:
    """Cut where two normals describe the rows best, and cut the pieces again."""
    order = np.argsort(sample.x, kind="stable")
    x, d = sample.x[order], sample.d[order]
    middle, reach = np.median(d), 5 * (spread(d) or sample.width)
    d = np.clip(d, middle - reach, middle + reach)  # a few values far off make no step
    sums = np.concatenate([[0.0], d.cumsum()]), np.concatenate([[0.0], (d**2).cumsum()])
    least = max(_FEWEST_PER_PIECE, len(x) // 25)
    floor = (sample.width / 6) ** 2

    def cost(i: int, j: int) -> float:  # n log s, up to constants
        n, s1, s2 = j - i, sums[0][j] - sums[0][i], sums[1][j] - sums[1][i]
        return float(n / 2 * np.log(max(s2 / n - (s1 / n) ** 2, floor, 1e-300)))

    places = _places(x, least)
    cuts = [0, len(x)]
    for _ in range(n_pieces - 1):
        best_gain, best = np.log(len(x)) * 1.5, None
        for i, j in pairwise(cuts):
            for k in places:
                if i + least <= k <= j - least:
                    gain = cost(i, j) - cost(i, k) - cost(k, j)
                    if gain > best_gain:
                        best_gain, best = gain, k
        if best is None:
            break
        cuts = sorted([*cuts, best])
    return sorted({_between(float(x[k - 1]), float(x[k])) for k in cuts[1:-1]})


def _places(x: Array, least: int) -> list[int]:
    """Return where the sorted asked values change, at most some dozens of places."""
    changes = np.flatnonzero(np.diff(x) > 0) + 1
    if len(changes) > _MOST_EDGES:
        wanted = np.linspace(least, len(x) - least, _MOST_EDGES)
        changes = np.unique(changes[np.minimum(np.searchsorted(changes, wanted), len(changes) - 1)])
    return [int(k) for k in changes]


def _between(low: float, high: float) -> float:
    """Return the number with the fewest digits in (low, high]."""
    for digits in range(1, 17):
        middle = rounded((low + high) / 2, digits)
        if low < middle <= high:
            return middle
    return high
