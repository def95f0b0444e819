"""Parameters that are missed together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.composed import Product, Relative
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.learning.compare import Candidate, Scored, Verdict, choice, folds, ranked
from airbo.uncertainty.learning.models import Proportional, ShareFactor
from airbo.uncertainty.learning.sample import Array, mean_and_error
from airbo.uncertainty.learning.shapes import beside, rounded
from airbo.uncertainty.normal import GaussianMixture, Normal

_TOGETHER, _SIGNIFICANT = 0.2, 4.0
_MOST_ROWS = 3000
"""Rows that joint candidates are compared on; they are picked evenly along the log."""
_N_POINTS, _N_LOGGED = 300, 200
_ROUNDS = 40


@dataclass(frozen=True)
class Dependence:
    """Two parameters whose deviations belong together."""

    names: tuple[str, str]
    correlation: float
    of_sizes: float
    """Correlation of the sizes of the deviations, whatever their signs."""


@dataclass(frozen=True)
class Together:
    """Parameters that depend on each other, and what describes them."""

    names: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        """Return the proposal."""
        return next(c for c in self.candidates if c.chosen)


def dependences(verdicts: Sequence[Verdict]) -> list[Dependence]:
    """Compare the normal scores of all pairs of parameters, over the rows that both have."""
    found = []
    for i, one in enumerate(verdicts):
        for other in verdicts[i + 1 :]:
            a, b = _common(one, other)
            if len(a) < 20:
                continue
            signed, size = _correlation(a, b), _correlation(np.abs(a), np.abs(b))
            if signed or size:
                names = (one.sample.name, other.sample.name)
                found.append(Dependence(names, signed, size))
    return found


def _common(one: Verdict, other: Verdict) -> tuple[Array, Array]:
    _, i, j = np.intersect1d(one.sample.rows, other.sample.rows, return_indices=True)
    return one.normal_scores()[i], other.normal_scores()[j]


def _correlation(a: Array, b: Array) -> float:
    """Return a correlation, 0 where it is small or could be chance."""
    # r is the mean of a b / (s_a s_b), so it has the standard error of a mean
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b))) / len(a)
    if scale == 0:
        return 0.0
    r, error = mean_and_error(a * b / scale)
    return r if abs(r) > max(_TOGETHER, _SIGNIFICANT * error) else 0.0


def groups(names: Sequence[str], pairs: Sequence[Dependence]) -> list[tuple[str, ...]]:
    """Put parameters together that depend on each other, directly or through others."""
    group = {name: {name} for name in names}
    for pair in pairs:
        merged = group[pair.names[0]] | group[pair.names[1]]
        group |= dict.fromkeys(merged, merged)
    found = {tuple(name for name in names if name in own) for own in group.values()}
    return sorted((own for own in found if len(own) > 1), key=lambda own: names.index(own[0]))


def describe(verdicts: Sequence[Verdict], seed: int) -> Together:
    """Compare joint candidates for some parameters with independent ones."""
    rows = verdicts[0].sample.rows
    for v in verdicts[1:]:
        rows = np.intersect1d(rows, v.sample.rows)
    rows = _evenly(rows, _MOST_ROWS)
    own = [np.searchsorted(v.sample.rows, rows) for v in verdicts]
    X, D = (
        np.column_stack([getattr(v.sample, k)[i] for v, i in zip(verdicts, own, strict=True)])
        for k in ("x", "d")
    )
    # rounded values are spread over their step, so that they have a density
    rng = np.random.default_rng(seed)
    D = D + rng.uniform(-0.5, 0.5, D.shape) * [v.sample.width for v in verdicts]

    d = len(verdicts)
    each = [v.scores[i] for v, i in zip(verdicts, own, strict=True)]
    alone = np.mean(each, axis=0)
    scored = [Scored("independent", sum(v.chosen.n_numbers for v in verdicts), alone)]
    made: list[InputUncertainty] = [
        Product([v.chosen.uncertainty for v in verdicts], [[j] for j in range(d)])
    ]
    percent = any(isinstance(v.model, Proportional | ShareFactor) for v in verdicts)
    for relative in [False, True] if percent and bool((X != 0).all()) else [False]:
        scales = X if relative else np.ones_like(X)
        for kind in _KINDS:
            scored.append(
                Scored(kind.called(relative), kind.n_numbers(d), kind.held_out(D, scales))
            )
            u = kind.fit(D / scales).uncertainty()
            made.append(Relative(u) if relative else u)
    names = tuple(v.sample.name for v in verdicts)
    return Together(names, ranked(names, scored, made, choice(scored)))


@dataclass(frozen=True)
class _Normals:
    """A mixture of normals in several columns."""

    weights: Array
    means: Array
    covs: Array
    log: Array | None = None
    """The rows that stand for it, where it is a log that was blurred."""

    def log_parts(self, D: Array) -> Array:
        """Return log w_k N(D; m_k, C_k), (n k)."""
        L = np.linalg.cholesky(self.covs)
        away = D[None] - self.means[:, None]  # (k, n, d)
        z = np.linalg.solve(L, np.swapaxes(away, 1, 2))
        log_det = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        constant = np.log(self.weights) - log_det - D.shape[1] / 2 * np.log(2 * np.pi)
        return np.asarray((constant[:, None] - (z**2).sum(axis=1) / 2).T)

    def uncertainty(self) -> InputUncertainty:
        """Make a Normal, a mixture, or a log."""
        if self.log is not None:
            return Empirical([[rounded(v) for v in row] for row in self.log])
        covs = [[[rounded(v, 6) for v in row] for row in cov] for cov in self.covs]
        if len(covs) == 1 and not self.means.any():
            return Normal(cov=covs[0])
        stds = np.sqrt(np.diagonal(self.covs, axis1=1, axis2=2))
        means = [
            [beside(v, s) for v, s in zip(m, own, strict=True)]
            for m, own in zip(self.means, stds, strict=True)
        ]
        weights = np.array([rounded(w) for w in self.weights])
        weights[weights.argmax()] += 1 - weights.sum()
        return GaussianMixture(means, covs, [round(w, 8) for w in weights])


@dataclass(frozen=True)
class _Kind:
    """One kind of joint candidate; 0 components stand for the log."""

    name: str
    k: int
    has_bias: bool = True

    def called(self, relative: bool) -> str:
        """Return the name in the list."""
        return f"joint, relative: {self.name}" if relative else f"joint: {self.name}"

    def n_numbers(self, d: int) -> int:
        """Count what is fitted."""
        per_component = d * (d + 1) // 2 + self.has_bias * d
        return self.k * per_component + self.k - 1 if self.k else 100 * d

    def fit(self, D: Array) -> _Normals:
        """Fit to deviations, or shares, (n d)."""
        if self.k == 0:
            return _blurred(D)
        mean = D.mean(axis=0) if self.has_bias else np.zeros(D.shape[1])
        cov = (D - mean).T @ (D - mean) / len(D)
        cov = cov + 1e-9 * np.diag(np.diag(cov) + 1e-300)
        one = _Normals(np.ones(1), mean[None], cov[None])
        return one if self.k == 1 else _em(D, one, self.k)

    def held_out(self, D: Array, scales: Array) -> Array:
        """Return the held-out log density per value; see ``compare.log_density`` for ε."""
        n, of = len(D), folds(len(D))
        shares, scores = D / scales, np.empty(len(D))
        wide = float(np.log(3 * np.ptp(D, axis=0) + 1e-300).sum())
        for fold in np.unique(of):
            test = of == fold
            log_p = np.logaddexp.reduce(self.fit(shares[~test]).log_parts(shares[test]), axis=1)
            log_p = log_p - np.log(np.abs(scales[test])).sum(axis=1)
            scores[test] = np.logaddexp(log_p + np.log1p(-1 / n), -np.log(n) - wide)
        return scores / D.shape[1]


_KINDS = (
    _Kind("normal, no bias", 1, has_bias=False),
    _Kind("normal", 1),
    _Kind("two normals", 2),
    _Kind("three normals", 3),
    _Kind("the log itself", 0),
)


def _evenly(D: NDArray[Any], n: int) -> NDArray[Any]:
    """Pick rows evenly along the log."""
    return D[np.linspace(0, len(D) - 1, min(n, len(D))).astype(int)]


def _blurred(D: Array) -> _Normals:
    """Blur logged rows by Scott's rule, in units in which they are uncorrelated."""
    points, d = _evenly(D, _N_POINTS), D.shape[1]
    cov = np.cov(D.T) + 1e-9 * np.diag(D.var(axis=0) + 1e-300)
    blur = cov * len(points) ** (-2 / (d + 4)) / 2
    k = len(points)
    return _Normals(np.full(k, 1 / k), points, np.repeat(blur[None], k, 0), _evenly(D, _N_LOGGED))


def _em(D: Array, one: _Normals, k: int) -> _Normals:
    """Fit k normals, beginning with parts along the widest direction, and with nested ones."""
    _, V = np.linalg.eigh(one.covs[0])
    along = V[:, -1] * np.sqrt(one.covs[0].diagonal().sum())
    places = np.linspace(-1, 1, k)[:, None]
    parts = _Normals(np.full(k, 1 / k), one.means + places * along, np.repeat(one.covs / 4, k, 0))
    factors = np.geomspace(0.1, 4, k)[:, None, None]
    nested = _Normals(np.full(k, 1 / k), np.repeat(one.means, k, 0), factors * one.covs)
    fits = [_improved(D, start, one.covs[0]) for start in (parts, nested)]
    return max(fits, key=lambda m: float(np.logaddexp.reduce(m.log_parts(D), axis=1).sum()))


def _improved(D: Array, m: _Normals, whole: Array) -> _Normals:
    least = 1e-4 * np.diag(np.diag(whole))
    before = -np.inf
    for _ in range(_ROUNDS):
        log_p = m.log_parts(D)
        total = np.logaddexp.reduce(log_p, axis=1)
        if total.mean() - before < 1e-4:
            break
        before = float(total.mean())
        r = np.exp(log_p - total[:, None])  # (n k)
        n_k = r.sum(axis=0) + 1e-6
        means = (r.T @ D) / n_k[:, None]
        away = D[None] - means[:, None]
        covs = np.swapaxes(away * r.T[..., None], 1, 2) @ away / n_k[:, None, None] + least
        m = _Normals(n_k / n_k.sum(), means, covs)
    return m
