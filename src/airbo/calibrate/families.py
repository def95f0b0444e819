r"""Candidates for a log: about ten families of uncertainties, each fitted to some rows.

Notation for one parameter, of which n rows are given:

    x      asked values (n)
    d      deviations, actual - asked (n), known up to ± w/2
    w      width: the step of a log that was rounded
    v, c   numbers that a shape is fitted to, sorted (m), and how often each came (m):
           deviations d, shares d/x, or logarithms log(1 + d/x)

For k parameters that are missed together, D are their deviations or shares (n k). A candidate is an
uncertainty. How likely a row is follows from its own distribution function:

.. math:: P(d \pm w/2) = F_x(x + d + w/2) - F_x(x + d - w/2)

Only *the log itself* is not its own proposal: it is compared as a sum of narrow normals, one per
logged number, and proposed as ``Empirical``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np
import scipy.stats
import torch
from numpy.typing import NDArray

from airbo.calibrate.logs import Array, Sample, evenly, has_bias, spread
from airbo.uncertainty import (
    ChiSquared,
    Empirical,
    Exact,
    GaussianMixture,
    InputUncertainty,
    LogNormal,
    Normal,
    Piecewise,
    Product,
    Relative,
    SciPy,
    Uniform,
)

FEWEST_FOR_SHAPE = 20
"""With fewer rows only normals are compared."""
_FEWEST_PER_PIECE, _MOST_PIECES, _MOST_EDGES = 20, 6, 40
_FEW = 5
"""A mixture of more normals than these is a log."""
N_LOGGED, N_LOGGED_ROWS = 100, 300
"""Quantiles that stand for a log of one parameter, and rows that stand for one of several."""
_AT_ENDS, _INSIDE = 25, 450
"""Numbers kept one by one at either end, and groups of neighbours between them."""
_FIRST_ROUNDS, _ROUNDS = 8, 60
"""Rounds for every start of a mixture, and for the best of them."""
_SKEWS = np.array([0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0])

Fit = Callable[["FittedNumbers"], InputUncertainty]


@dataclass(frozen=True)
class Family:
    """Uncertainties of one kind, before they are fitted."""

    name: str
    fit: Callable[[Any], InputUncertainty]
    """Takes rows of one parameter, or deviations or shares (n k) of several."""


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
        # the outermost 25 stay single, since limits and tails hang on them; 450 groups between
        unique, n_each = np.unique(values, return_counts=True)
        counts, n = n_each.astype(np.float64), len(unique)
        if n <= 2 * _AT_ENDS + _INSIDE:
            return cls(unique, counts, width)
        between = np.linspace(_AT_ENDS, n - _AT_ENDS, _INSIDE + 1).astype(int)
        first = np.unique([*range(_AT_ENDS), *between, *range(n - _AT_ENDS, n)])
        total = np.add.reduceat(counts, first)
        return cls(np.add.reduceat(counts * unique, first) / total, total, width)

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
        # rounding to steps of w adds w²/12; nothing narrower than w/6 can be told
        variance = float(self.counts @ (self.values - centre) ** 2 / self.n)
        return math.sqrt(max(variance - self.width**2 / 12, (self.width / 6) ** 2))


# -- shapes of one number


def centred_normal(v: FittedNumbers) -> InputUncertainty:
    """Fit a normal without bias."""
    # σ² = Σ c v² / n
    return Normal(few_digits(v.std(0.0)))


def one_normal(v: FittedNumbers) -> InputUncertainty:
    """Fit a normal."""
    # μ = Σ c v / n, σ² = Σ c (v - μ)² / n
    return _mixture(np.ones(1), np.array([[v.mean]]), np.array([[[v.std(v.mean) ** 2]]]))


def uniform(v: FittedNumbers) -> InputUncertainty:
    """Fit limits: a little beyond the outermost numbers."""
    # of n numbers between l and h, the outermost are on average (h - l) / (n + 1) from the ends
    low, high = float(v.values[0]), float(v.values[-1])
    beyond = (high - low) / max(v.n - 1, 1) + v.width / 2
    return Uniform(few_digits(low - beyond), few_digits(high + beyond))


def skewed(v: FittedNumbers) -> InputUncertainty:
    """Fit a gamma distribution: an end at one side, a tail at the other.

    Its parameters are skewness γ, mean μ and standard deviation σ. The likeliest of some γ is
    taken, or the gamma distribution that begins at the outermost number.
    """
    mean, std = v.mean, v.std(v.mean)
    sign = 1.0 if v.counts @ (v.values - mean) ** 3 >= 0 else -1.0
    options = [(sign * skew, mean, std) for skew in _SKEWS] + [_with_end(v, sign)]
    # Σ_i c_i log P(v_i ± w/2): numbers are known up to their rounding
    half = max(v.width, 0.02 * std) / 2
    F = scipy.stats.pearson3.cdf
    likely = [
        v.counts @ np.log(F(v.values + half, *o) - F(v.values - half, *o) + 1e-6) for o in options
    ]
    gamma, mu, sigma = options[int(np.argmax(likely))]
    if gamma < 0:
        kwds = {"skew": gamma, "loc": mu, "scale": sigma}
        return SciPy.from_fields(
            "pearson3", kwds={k: few_digits(value) for k, value in kwds.items()}
        )
    # the same as a chi-squared number: df = 8/γ², loc = μ - 2σ/γ, scale = σγ/4
    loc, scale = few_digits(mu - 2 * sigma / gamma), few_digits(sigma * gamma / 4)
    return ChiSquared(few_digits(8 / gamma**2), loc=loc, scale=scale)


def _with_end(v: FittedNumbers, sign: float) -> tuple[float, float, float]:
    """Fit a gamma distribution from its end: the shape k solves log k - ψ(k) = s."""
    beyond = float(np.ptp(v.values)) / max(v.n, 1) / 10 + v.width / 2 + 1e-300
    end = float((sign * v.values).min()) - beyond
    away = sign * v.values - end
    mean = float(v.counts @ away / v.n)
    # s = log mean - mean log, and Minka's approximation of k(s), right to 1.5%
    s = max(math.log(mean) - float(v.counts @ np.log(away) / v.n), 1e-6)
    k = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    return sign * 2 / math.sqrt(k), sign * (end + mean), mean / math.sqrt(k)


def two_normals(v: FittedNumbers) -> InputUncertainty:
    """Fit two normals: two modes, or a narrow and a wide one."""
    mean, std = v.mean, v.std(v.mean)
    starts = [
        (np.array(w), mean + std * np.array(places), (std * np.array(widths)) ** 2)
        for places, widths, w in _STARTS
    ]
    best = max((_em(v, start, _FIRST_ROUNDS) for start in starts), key=lambda found: found[0])
    weights, means, variances = _em(v, best[1], _ROUNDS)[1]
    return _mixture(weights, means[:, None], variances[:, None, None])


def kernel_density(v: FittedNumbers) -> InputUncertainty:
    """Blur each number by Silverman's width, less where many are close."""
    # Silverman's width: 0.9 min(s, IQR / 1.34) n^(-1/5)
    cumulative = v.counts.cumsum() / v.n
    low, high = (v.values[np.searchsorted(cumulative, p)] for p in (0.25, 0.75))
    scale = min(v.std(v.mean), (high - low) / 1.34 or np.inf)
    blur = np.maximum(np.minimum(0.9 * scale * v.n**-0.2, _to_many(v)), v.width / 6)
    return GaussianMixture(v.values[:, None], (blur**2)[:, None, None], v.counts / v.n)


def _to_many(v: FittedNumbers) -> Array:
    """Return how far each number is from 0.3 n⁰·⁸ others, at the side where they are closer."""
    # number i stands for the places c_1 + ... + c_i of n; look 0.3 n⁰·⁸ places up and down
    end = v.counts.cumsum()
    middle, many = end - v.counts / 2, 0.3 * v.n**0.8
    above = np.searchsorted(end, middle + many)
    below = np.searchsorted(end, middle - many)
    up = np.append(v.values, np.inf)[np.minimum(above, len(v.values))] - v.values
    down = np.where(middle < many, np.inf, v.values - v.values[below])
    return np.minimum(up, down)


# -- two normals: expectation and maximization

_STARTS = (
    ((0.0, 0.0), (0.5, 2.5), (0.8, 0.2)),  # a narrow and a wide one
    ((-1.0, 1.0), (0.4, 0.4), (0.5, 0.5)),  # two modes
    ((-0.3, 2.0), (0.5, 1.0), (0.85, 0.15)),  # a tail to either side
    ((0.3, -2.0), (0.5, 1.0), (0.85, 0.15)),
)
"""Two normals to begin with: places and widths in standard deviations, and weights."""

_Normals = tuple[Array, Array, Array]
"""Weights (2), means (2) and variances (2)."""


def _em(v: FittedNumbers, normals: _Normals, rounds: int) -> tuple[float, _Normals]:
    """Improve two normals; return also their log likelihood."""
    least = max(v.width / 6, 1e-3 * v.std(v.mean)) ** 2  # so that none holds a single number
    before = -np.inf
    for _ in range(rounds):
        # r_ij ∝ w_j N(v_i; m_j, s_j²)
        w, m, var = normals
        away = v.values[:, None] - m  # (n, 2)
        log_p = np.log(w) - (np.log(2 * np.pi * var) + away**2 / var) / 2
        log_total = np.logaddexp.reduce(log_p, axis=1)
        likelihood = float(v.counts @ log_total)
        if likelihood - before < 1e-5 * v.n:
            break
        before = likelihood

        # n_j = Σ_i r_ij, m_j = Σ_i r_ij v_i / n_j, s_j² = Σ_i r_ij (v_i - m_j)² / n_j - w²/12
        r = np.exp(log_p - log_total[:, None]) * v.counts[:, None]
        n_j = r.sum(axis=0) + 1e-9
        m = r.T @ v.values / n_j
        var = (r * (v.values[:, None] - m) ** 2).sum(axis=0) / n_j - v.width**2 / 12
        normals = (n_j / n_j.sum(), m, np.maximum(var, least))
    return before, normals


# -- how deviations depend on the asked value


def families(sample: Sample) -> list[Family]:
    """Return the normals among the candidates: the same everywhere, or in percent."""
    # all deviations are the same number: hit exactly, or always off by as much
    largest = float(np.abs(sample.x).max())
    if np.ptp(sample.d) <= 1e-9 * largest:
        middle = float(np.median(sample.d))
        shift = GaussianMixture([[few_digits(middle)]], [[0.0]])
        hit = Exact() if abs(middle) <= 1e-9 * largest else shift
        return [Family("always the same", lambda _: hit)]
    found = [Family(name, _same(fit)) for name, fit in _normals(sample.d)]
    away = sample.x != 0
    if len(np.unique(sample.x)) > 1 and bool(np.mean(away) > 0.5):
        normals = _normals(sample.d[away] / sample.x[away])
        found += [Family(f"relative, {name}", _relative(fit)) for name, fit in normals]
    return found


def _normals(values: Array) -> list[tuple[str, Fit]]:
    """Return the normals to compare; a bias that is there is never dropped."""
    centred = [] if has_bias(values) else [("normal, no bias", centred_normal)]
    return [*centred, ("normal", one_normal)]


def shaped_families(sample: Sample, scales: Sequence[bool]) -> list[Family]:
    """Return the other candidates: the same everywhere (False), in percent (True), or both."""
    if len(sample) < FEWEST_FOR_SHAPE:
        return []
    shapes: list[tuple[str, Fit]] = [
        ("uniform", uniform), ("skewed", skewed), ("two normals", two_normals),
        ("the log itself", kernel_density),
    ]  # fmt: skip
    found = [Family(name, _same(fit)) for name, fit in shapes if False in scales]
    found += [Family(f"relative, {name}", _relative(fit)) for name, fit in shapes if True in scales]
    varies = len(np.unique(sample.x)) > 1
    is_positive = bool((np.minimum(sample.x, sample.x + sample.d) > 0).all())
    if varies and is_positive and not has_bias(np.log1p(sample.d / sample.x)):
        found.append(Family("log-normal", _log_normal))
    if varies and len(sample) >= 4 * _FEWEST_PER_PIECE:
        found.append(Family("steps", _steps))
    return found


def _same(fit: Fit) -> Callable[[Sample], InputUncertainty]:
    return lambda sample: fit(FittedNumbers.of(sample.d, sample.width))


def _relative(fit: Fit) -> Callable[[Sample], InputUncertainty]:
    def fitted(sample: Sample) -> InputUncertainty:
        # shares d/x of the rows with x ≠ 0, known up to w / median |x|
        away = sample.x != 0
        width = sample.width / float(np.median(np.abs(sample.x[away])))
        return Relative(fit(FittedNumbers.of(sample.d[away] / sample.x[away], width)))

    return fitted


def _log_normal(sample: Sample) -> InputUncertainty:
    # log(1 + d/x) = log(actual / asked) has the standard deviation σ
    logs = np.log(np.maximum(1 + sample.d / sample.x, 1e-12))
    width = sample.width / float(np.median(np.abs(sample.x)))
    return LogNormal(few_digits(FittedNumbers.of(logs, width).std(0.0)))


def _steps(sample: Sample) -> InputUncertainty:
    """Fit a normal, or two, to every part of the range."""
    edges = _edges(sample)
    piece = np.searchsorted(edges, sample.x, side="right")
    own = [sample.at(piece == i) for i in range(len(edges) + 1)]
    pieces = [_one_or_two_normals(part) for part in own]
    return Piecewise(edges, pieces) if edges else pieces[0]


def _one_or_two_normals(sample: Sample) -> InputUncertainty:
    v = FittedNumbers.of(sample.d, sample.width)
    one, two = one_normal(v), two_normals(v)
    gain = log_density(two, sample, sample).sum() - log_density(one, sample, sample).sum()
    # three more numbers have to pay: the Bayesian information criterion
    return two if gain > 1.5 * math.log(len(sample)) else one


def _edges(sample: Sample) -> list[float]:
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
    for _ in range(_MOST_PIECES - 1):
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
    # an edge lies between two asked values that differ
    changes = np.flatnonzero(np.diff(x) > 0) + 1
    if len(changes) > _MOST_EDGES:
        wanted = np.linspace(least, len(x) - least, _MOST_EDGES)
        changes = np.unique(changes[np.minimum(np.searchsorted(changes, wanted), len(changes) - 1)])
    return [int(k) for k in changes]


def _between(low: float, high: float) -> float:
    """Return the number with the fewest digits in (low, high]."""
    for digits in range(1, 17):
        middle = few_digits((low + high) / 2, digits)
        if low < middle <= high:
            return middle
    return high


# -- how likely rows are


def probability(u: InputUncertainty, x: Array, low: Array, high: Array) -> Array:
    """Return how likely a deviation between two limits is, row by row."""
    # P(low < δ < high) = F(x + high) - F(x + low)
    X = torch.from_numpy(x).unsqueeze(-1)
    limits = torch.from_numpy(np.stack([x + low, x + high], axis=-1))
    F = u.cdf(X, limits).numpy()  # (n, 2)
    return np.asarray(np.maximum(F[:, 1] - F[:, 0], 0.0))


def log_density(u: InputUncertainty, sample: Sample, rows: Sample) -> Array:
    """Return the log density of deviations, each known up to the width of the log.

    p = (1 - ε) P(d ± w/2) / w + ε / W with ε = 1/n: one row in n may be what no model explains,
    anywhere in W, three times the range. So a single value far off does not decide.
    """
    w, n = sample.width, len(sample)
    p = probability(u, rows.x, rows.d - w / 2, rows.d + w / 2)
    wide = 3 * max(float(np.ptp(sample.d)), w)
    return np.asarray(np.log((1 - 1 / n) * p / w + 1 / (n * wide)))


def n_numbers(u: InputUncertainty) -> int:
    """Count what was fitted: the fewer, the simpler."""
    if isinstance(u, Relative):
        # a log counts as 100 numbers per column, a normal of k columns as k (k + 1) / 2
        return n_numbers(u.share)
    if isinstance(u, Piecewise):
        return len(u.edges) + sum(map(n_numbers, u.pieces))
    if isinstance(u, Product):
        return sum(map(n_numbers, u.blocks))
    if isinstance(u, Empirical):
        return 100 * len(u.deviations[0])
    if isinstance(u, GaussianMixture):
        k, d = len(u.weights), len(u.means[0])
        return 100 * d if k > _FEW else k * (d + d * (d + 1) // 2) + k - 1
    if isinstance(u, Normal) and u.cov is not None:
        return len(u.cov) * (len(u.cov) + 1) // 2
    return {Uniform: 2, ChiSquared: 3, SciPy: 3}.get(type(u), 1)


# -- proposals, as a file should hold them


def few_digits(value: float, digits: int = 4) -> float:
    """Return a number with a few significant digits."""
    return float(f"{value:.{digits}g}")


def digits_beside(value: float, spread: float) -> float:
    """Return a number without the digits that nobody sees beside a spread."""
    if not spread > 0:
        return few_digits(value)
    return few_digits(round(value, 3 - int(np.floor(np.log10(spread))))) + 0.0  # never -0.0


def _mixture(weights: Array, means: Array, covs: Array) -> GaussianMixture:
    """Return normals with few digits, whose weights sum to 1."""
    # rounded weights sum to 1 only after the largest takes the rest
    w = np.array([few_digits(v) for v in weights])
    w[w.argmax()] += 1 - w.sum()
    stds = np.sqrt(np.diagonal(covs, axis1=1, axis2=2))
    near = [
        [digits_beside(v, s) for v, s in zip(m, own, strict=True)]
        for m, own in zip(means, stds, strict=True)
    ]
    digits = 4 if means.shape[1] == 1 else 6  # a matrix has to stay positive definite
    few = [[[few_digits(v, digits) for v in row] for row in cov] for cov in covs]
    return GaussianMixture(near, few, [round(v, 8) for v in w])


def is_log(u: InputUncertainty) -> TypeGuard[GaussianMixture]:
    """Say whether a candidate is the log itself."""
    return isinstance(u, GaussianMixture) and len(u.weights) > _FEW


def proposal(u: InputUncertainty) -> InputUncertainty:
    """Return what to propose: logged numbers instead of the narrow normals around them."""
    if isinstance(u, Relative):
        return Relative(proposal(u.share))
    if not is_log(u):
        return u
    means, weights = np.array(u.means), np.array(u.weights)
    if means.shape[1] > 1:
        return Empirical([[few_digits(v) for v in row] for row in means])
    # evenly spaced quantiles
    n = min(N_LOGGED, round(1 / weights.min()))
    at = np.searchsorted(weights.cumsum(), (np.arange(n) + 0.5) / n, side="right")
    picked = means[np.minimum(at, len(means) - 1), 0]
    std = math.sqrt(float(u.covariance(torch.zeros(1, 1, dtype=torch.float64))))
    return Empirical([digits_beside(v, std) for v in picked])


# -- parameters that are missed together


def _joint_normal(D: Array, has_bias: bool) -> InputUncertainty:
    # m̄ = Σ D_i / n, C = Σ (D_i - m̄)(D_i - m̄)ᵀ / n, and a little more on the diagonal
    mean = D.mean(axis=0) if has_bias else np.zeros(D.shape[1])
    C = (D - mean).T @ (D - mean) / len(D)
    C = C + 1e-9 * np.diag(np.diag(C) + 1e-300)
    if not has_bias:
        return Normal(cov=[[few_digits(v, 6) for v in row] for row in C])
    return _mixture(np.ones(1), mean[None], C[None])


def _joint_log(D: Array) -> InputUncertainty:
    """Blur logged rows by Scott's rule, in units in which they are uncorrelated."""
    points: NDArray[Any] = evenly(D, N_LOGGED_ROWS)
    n, k = points.shape
    C = np.cov(D.T) + 1e-9 * np.diag(D.var(axis=0) + 1e-300)
    blur = C * n ** (-2 / (k + 4)) / 2  # Scott's width n^(-1/(k + 4)), narrower by √2
    return GaussianMixture(points, np.repeat(blur[None], n, 0), np.full(n, 1 / n))


JOINT_FAMILIES = (
    Family("normal, no bias", lambda D: _joint_normal(D, has_bias=False)),
    Family("normal", lambda D: _joint_normal(D, has_bias=True)),
    Family("the log itself", _joint_log),
)


def joint_log_density(u: InputUncertainty, D: Array) -> Array:
    """Return the log density of rows (n k) under normals."""
    # log Σ_j w_j N(D; m_j, C_j)
    if isinstance(u, Normal):
        weights, means, covs = np.ones(1), np.zeros((1, D.shape[1])), np.array([u.cov])
    else:
        assert isinstance(u, GaussianMixture)
        weights, means, covs = np.array(u.weights), np.array(u.means), np.array(u.covs)
    away = D[:, None] - means  # (n, j, k)
    distance = np.einsum("nja,jab,njb->nj", away, np.linalg.inv(covs), away)
    log_det = np.linalg.slogdet(2 * np.pi * covs)[1]
    return np.asarray(np.logaddexp.reduce(np.log(weights) - (log_det + distance) / 2, axis=1))
