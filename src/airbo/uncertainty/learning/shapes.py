"""Shapes that deviations can have: each is fitted to numbers, and says how likely others are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import scipy.signal
import scipy.special
import scipy.stats

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.columns import ChiSquared, Exact, Uniform
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.external import SciPy
from airbo.uncertainty.learning.sample import Array
from airbo.uncertainty.normal import GaussianMixture, Normal

_MOST_POINTS = 400
N_LOGGED = 100
"""Quantiles that stand for a log."""


def rounded(value: float, digits: int = 4) -> float:
    """Return a number with a few significant digits: what a file should hold."""
    return float(f"{value:.{digits}g}")


def beside(value: float, spread: float) -> float:
    """Return a number without the digits that nobody sees beside a spread."""
    if not spread > 0:
        return rounded(value)
    return rounded(round(value, 3 - int(np.floor(np.log10(spread))))) + 0.0  # never -0.0


class Shape(ABC):
    """The distribution of one number."""

    @abstractmethod
    def cdf(self, values: Array) -> Array:
        """Return the probability of a smaller number."""

    @abstractmethod
    def uncertainty(self) -> InputUncertainty:
        """Return it as a deviation in one column."""


@dataclass(frozen=True)
class Normals(Shape):
    """One normal, or a mixture of several."""

    weights: Array
    means: Array
    stds: Array

    def cdf(self, values: Array) -> Array:
        """Sum over the components."""
        z = (values[:, None] - self.means) / np.maximum(self.stds, 1e-300)
        return np.asarray(scipy.special.ndtr(z) @ self.weights)

    def density(self, values: Array) -> Array:
        """Return the density, to count its modes."""
        z = (values[:, None] - self.means) / np.maximum(self.stds, 1e-300)
        return np.asarray(np.exp(-(z**2) / 2) @ (self.weights / np.maximum(self.stds, 1e-300)))

    @property
    def mean(self) -> float:
        """Mean of the mixture."""
        return float(self.weights @ self.means)

    @property
    def std(self) -> float:
        """Standard deviation of the mixture."""
        return float(np.sqrt(self.weights @ (self.stds**2 + (self.means - self.mean) ** 2)))

    @property
    def modes(self) -> Array:
        """Return where the density has clear maxima."""
        near = (self.means[:, None] + self.stds[:, None] * np.linspace(-4, 4, 401)).ravel()
        grid = np.unique(near)
        p = self.density(grid)
        peaks, _ = scipy.signal.find_peaks(np.pad(p, 1), prominence=0.05 * float(p.max()))
        return grid[peaks - 1]

    def uncertainty(self) -> InputUncertainty:
        """Make a Normal where the mean is 0, a mixture elsewhere."""
        if len(self.means) == 1 and self.means[0] == 0:
            return Normal(rounded(self.stds[0]))
        weights = np.array([rounded(w) for w in self.weights])
        weights[weights.argmax()] += 1 - weights.sum()
        means = [[beside(m, s)] for m, s in zip(self.means, self.stds, strict=True)]
        covs = [[[rounded(s**2)]] for s in self.stds]
        return GaussianMixture(means, covs, [round(w, 8) for w in weights])


@dataclass(frozen=True)
class Point(Shape):
    """Always the same number."""

    value: float

    def cdf(self, values: Array) -> Array:
        """Jump from 0 to 1."""
        return (values >= self.value).astype(np.float64)

    def uncertainty(self) -> InputUncertainty:
        """Make an Exact, or a bias without a spread."""
        return Exact() if self.value == 0 else GaussianMixture([[rounded(self.value)]], [[0.0]])


@dataclass(frozen=True)
class Flat(Shape):
    """Anywhere between two limits."""

    low: float
    high: float

    def cdf(self, values: Array) -> Array:
        """Rise from 0 to 1 between the limits."""
        return np.clip((values - self.low) / max(self.high - self.low, 1e-300), 0.0, 1.0)

    def uncertainty(self) -> InputUncertainty:
        """Make a Uniform."""
        return Uniform(rounded(self.low), rounded(self.high))


@dataclass(frozen=True)
class Skewed(Shape):
    """A gamma distribution with an end at one side and a tail at the other (Pearson III)."""

    skew: float
    mean: float
    std: float

    def cdf(self, values: Array) -> Array:
        """Use SciPy's."""
        return np.asarray(scipy.stats.pearson3.cdf(values, self.skew, self.mean, self.std))

    def uncertainty(self) -> InputUncertainty:
        """Make a ChiSquared for a tail to the right, SciPy's distribution for one to the left."""
        if self.skew < 0:
            kwds = {"skew": self.skew, "loc": self.mean, "scale": self.std}
            return SciPy.from_fields("pearson3", kwds={k: rounded(v) for k, v in kwds.items()})
        # df = 8/γ², loc = μ - 2σ/γ, scale = σγ/4
        return ChiSquared(
            rounded(8 / self.skew**2),
            loc=rounded(self.mean - 2 * self.std / self.skew),
            scale=rounded(self.std * self.skew / 4),
        )


@dataclass(frozen=True)
class Logged(Shape):
    """The numbers themselves, each blurred by its distance to the next."""

    values: Array
    counts: Array
    blur: Array
    smooth: Normals = field(init=False)

    def __post_init__(self) -> None:
        """Blur with normals."""
        weights = self.counts / self.counts.sum()
        object.__setattr__(self, "smooth", Normals(weights, self.values, self.blur))

    def cdf(self, values: Array) -> Array:
        """Return that of the blurred numbers, between close points where there are many."""
        points, where = np.unique(values, return_inverse=True)
        if len(points) <= _MOST_POINTS:
            return self.smooth.cdf(points)[where]
        ends = _MOST_POINTS // 10
        inner = np.linspace(ends, len(points) - ends - 1, _MOST_POINTS).astype(int)
        grid = np.concatenate([points[:ends], points[inner], points[-ends:]])
        return np.interp(values, grid, self.smooth.cdf(grid))

    def uncertainty(self) -> InputUncertainty:
        """Make an Empirical of evenly spaced quantiles."""
        n = min(N_LOGGED, int(self.counts.sum()))
        at = np.searchsorted(
            self.counts.cumsum(), (np.arange(n) + 0.5) / n * self.counts.sum(), side="right"
        )
        picked = self.values[np.minimum(at, len(self.values) - 1)]
        return Empirical([beside(v, self.smooth.std) for v in picked])
