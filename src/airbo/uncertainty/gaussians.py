r"""Sums of weighted Gaussians: what every P_x is written as, block by block of dependent columns.

Notation, for n designs of which a block has b columns:

    w    weights of the Gaussians of a design, (*batch n j); they sum to 1
    m    their means, (*batch n j b)
    C    their covariances, (*batch n j b b); None for points
    x    the designs' own columns of the block, (*batch n b)
    δ    the deviation x' - x; where it is the same for all designs, one row (1 j b) holds it

P_x = Σ_j w_j N(m_j, C_j). Some kinds are such a sum already. Of one column of any other shape, the
Gauss rule of its distribution has the same moments up to degree 2 j - 1. Dependent columns are cut
into cells; each cell becomes the Gaussian with its mean and its covariance.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int64
from numpy.typing import NDArray
from torch import Tensor

N_FINE = 2048
"""Equally likely values that stand for one column before its Gauss rule is made of them."""
PER_CELL = 16
"""Draws in each cell of a P_x that changes with the design."""


@dataclass(frozen=True)
class Resolution:
    """How many Gaussians, or points, stand for a P_x that is neither exact nor normal."""

    n_atoms: int

    @property
    def nodes(self) -> int:
        """Points of one column where P_x changes with the design."""
        return 2 * self.n_atoms

    @property
    def fine_nodes(self) -> int:
        """Points of one column where it does not: they are worked with once, not per design."""
        return 4 * self.n_atoms

    @property
    def cells(self) -> int:
        """Gaussians of several dependent columns: all pairs of two designs' have to be compared."""
        return math.ceil(4 * self.n_atoms / 3)

    @property
    def angles(self) -> int:
        """Points of a ring."""
        return 2 * self.n_atoms

    @property
    def coarser(self) -> "Resolution":
        """Half as many."""
        return Resolution(max(1, self.n_atoms // 2))


@dataclass(frozen=True)
class Mixture:
    r"""A weighted sum of Gaussians over some columns of the executed input.

    .. math:: \sum_j w_j \, \mathcal N(m_j, C_j)

    There is one sum per design. Where the block is additive the sum is that of the deviation
    :math:`\delta = x' - x`, the same for all designs, and there is only one row.
    """

    columns: tuple[int, ...]
    weights: Float[Tensor, "*batch n j"]
    means: Float[Tensor, "*batch n j b"]
    spread: Float[Tensor, "*batch n j b b"] | None = None
    """Covariances; None where all are 0: points."""
    additive: bool = False
    """Whether this is the deviation from the design, and not where the design lands."""

    @property
    def n_components(self) -> int:
        """Number of Gaussians."""
        return self.weights.shape[-1]

    @property
    def covariances(self) -> Float[Tensor, "*batch n j b b"]:
        """Covariance matrices, also of points."""
        return torch.zeros_like(self.means).diag_embed() if self.spread is None else self.spread

    @property
    def variances(self) -> Float[Tensor, "*batch n j b"]:
        """Diagonals of the covariances."""
        return self.covariances.diagonal(dim1=-2, dim2=-1)

    def around(self, x: Float[Tensor, "*batch n b"]) -> "Mixture":
        """Return where designs land; ``x`` are their own columns."""
        if not self.additive:
            return self
        # δ ~ Σ w N(m, C), so x + δ ~ Σ w N(x + m, C)
        means = x.unsqueeze(-2) + self.means
        spread = None if self.spread is None else self.spread.expand(*means.shape, x.shape[-1])
        return Mixture(self.columns, self.weights.expand(means.shape[:-1]), means, spread)

    def affine(self, factor: Float[Tensor, "*f #b"], shift: Float[Tensor, "*s b"]) -> "Mixture":
        """Return the sums of ``shift + factor · u``, column by column, for u of these."""
        # N(m, C) becomes N(a + s m, s_i C_ij s_j)
        means, spread = shift + factor * self.means, self.spread
        if spread is not None:
            spread = spread * (factor.unsqueeze(-1) * factor.unsqueeze(-2))
        return Mixture(self.columns, self.weights.expand(means.shape[:-1]), means, spread)

    def clamped(self, low: float, high: float) -> "Mixture":
        """Return the same with all centres between two numbers."""
        return replace(self, means=self.means.clamp(low, high))

    def moments(self) -> tuple[Float[Tensor, "*batch n b"], Float[Tensor, "*batch n b b"]]:
        """Return the mean and the covariance of the whole sum."""
        # m̄ = Σ_j w_j m_j and C̄ = Σ_j w_j (C_j + (m_j - m̄)(m_j - m̄)ᵀ)
        w = self.weights.unsqueeze(-1)  # (..., n, j, 1)
        mean = (w * self.means).sum(-2)
        away = self.means - mean.unsqueeze(-2)
        return mean, (w.unsqueeze(-1) * self.covariances).sum(-3) + (w * away).mT @ away

    def characteristic(self, W: Float[Tensor, "*paths b m"]) -> Complex[Tensor, "..."]:
        """Return E exp(i ωᵀ x') for every design and column ω of W, (*paths n m)."""
        # Σ_j w_j exp(-½ ωᵀ C_j ω) e^{i ωᵀ m_j}
        angle = self.means @ W.unsqueeze(-3)  # (..., n, j, m)
        both = torch.cat([angle.cos(), angle.sin()], dim=-1)
        if self.spread is not None:
            # ωᵀ C ω = Σ_cd C_cd ω_c ω_d, as a product of flattened matrices
            outer = (W.unsqueeze(-2) * W.unsqueeze(-3)).flatten(-3, -2)  # (..., b b, m)
            height = (-0.5 * self.spread.flatten(-2) @ outer.unsqueeze(-3)).exp()
            both = both * torch.cat([height, height], dim=-1)
        return torch.complex(*(self.weights.unsqueeze(-2) @ both).squeeze(-2).chunk(2, dim=-1))

    def to(self, like: Tensor) -> "Mixture":
        """Return the same with the type and on the device of another tensor."""
        spread = None if self.spread is None else self.spread.to(like)
        return replace(
            self, weights=self.weights.to(like), means=self.means.to(like), spread=spread
        )


def choose(choice: Int64[Tensor, "*batch n"], options: Sequence[Mixture]) -> Mixture:
    """Take option ``choice[i]`` for design ``i``; all options have the same columns."""
    if len(options) == 1:
        return options[0]
    # all options get as many Gaussians, of the same kind
    n, points = max(o.n_components for o in options), all(o.spread is None for o in options)
    options = [padded(option, n) for option in options]
    # row i of option o stands at o · N + i, where all options stand below each other
    place = torch.arange(choice.numel(), device=choice.device).reshape(choice.shape)
    rows = choice * choice.numel() + place

    def take(values: Sequence[Tensor], n_own: int) -> Tensor:
        return torch.cat([v.reshape(-1, *v.shape[v.dim() - n_own :]) for v in values])[rows]

    return replace(
        options[0],
        weights=take([option.weights for option in options], 1),
        means=take([option.means for option in options], 2),
        spread=None if points else take([option.covariances for option in options], 3),
    )


def coarsest(parts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Join all column sets that overlap."""
    # each new set swallows the groups that it touches
    groups: list[set[int]] = []
    for part in map(set, parts):
        touching = [g for g in groups if g & part]
        groups = [g for g in groups if not g & part] + [part.union(*touching)]
    return sorted(tuple(sorted(g)) for g in groups)


def parts_within(parts: Sequence[Mixture], columns: tuple[int, ...]) -> list[Mixture]:
    """Return the sums that are about some of the columns."""
    return [part for part in parts if set(part.columns) <= set(columns)]


def joined(mixtures: Sequence[Mixture], columns: tuple[int, ...]) -> Mixture:
    """Join independent sums into one over ``columns``, which are all of theirs."""
    # (Σ_i u_i P_i) × (Σ_j w_j Q_j) = Σ_ij u_i w_j P_i × Q_j
    whole = reduce(_times, mixtures)
    order = [whole.columns.index(c) for c in columns]
    spread = None if whole.spread is None else whole.spread[..., order, :][..., order]
    return replace(whole, columns=columns, means=whole.means[..., order], spread=spread)


def by_column(mixture: Mixture) -> list[Mixture]:
    """Split one point, or one Gaussian whose columns are independent wherever the design is."""
    # N(m, C) with a diagonal C is Π_c N(m_c, C_cc)
    C = mixture.spread
    return [
        replace(
            mixture,
            columns=(c,),
            means=mixture.means[..., [i]],
            spread=None if C is None else C[..., [i], :][..., [i]],
        )
        for i, c in enumerate(mixture.columns)
    ]


def difference(p: Mixture, q: Mixture) -> Mixture:
    """Return the distribution of u - v for independent u ~ p, v ~ q, over the same columns.

    Components that coincide are joined. Both are deviations.
    """
    # Σ_ij u_i w_j N(m_i - m_j, C_i + C_j)
    C_p, C_q = p.covariances[0], q.covariances[0]
    weights = (p.weights[0].unsqueeze(-1) * q.weights[0]).flatten()
    means = (p.means[0].unsqueeze(1) - q.means[0]).flatten(0, 1)
    covs = (C_p.unsqueeze(1) + C_q).flatten(0, 1)

    # equal up to 12 decimals: one Gaussian, with the sum of the weights
    b = means.shape[-1]
    table = torch.cat([means, covs.flatten(1)], dim=-1)
    keys, which = torch.unique((table * 1e12).round(), dim=0, return_inverse=True)
    weights = table.new_zeros(len(keys)).index_add(0, which, weights)
    first = table.new_zeros(len(keys), table.shape[-1]).index_copy(0, which, table)
    covs = first[:, b:].unflatten(-1, (b, b))
    return Mixture(p.columns, weights[None], first[None, :, :b], covs[None], additive=True)


def _times(a: Mixture, b: Mixture) -> Mixture:
    """Combine every component of one sum with every component of the other."""
    if a.additive != b.additive:
        raise ValueError("A deviation and a landing place cannot be joined.")
    n, m = a.n_components, b.n_components
    i, j = (
        index.flatten() for index in torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij")
    )
    spread = None
    if a.spread is not None or b.spread is not None:
        # the covariance of independent columns is block-diagonal
        s, t = a.covariances[..., i, :, :], b.covariances[..., j, :, :]
        n_a, n_b = s.shape[-1], t.shape[-1]
        spread = F.pad(s, (0, n_b, 0, n_b)) + F.pad(t, (n_a, 0, n_a, 0))
    return Mixture(
        a.columns + b.columns,
        a.weights[..., i] * b.weights[..., j],
        torch.cat([a.means[..., i, :], b.means[..., j, :]], dim=-1),
        spread,
        a.additive,
    )


def padded(mixture: Mixture, n: int) -> Mixture:
    """Add components of weight 0: copies of the first, so that gradients stay finite."""
    # w_j = 0 for the copies, so the sum stays what it is
    missing = n - mixture.n_components
    if missing == 0:
        return mixture

    def repeat(v: Tensor, dim: int) -> Tensor:
        copies = v.narrow(dim, 0, 1).repeat_interleave(missing, dim=dim)
        return torch.cat([v, copies], dim=dim)

    spread = None if mixture.spread is None else repeat(mixture.spread, -3)
    weights = F.pad(mixture.weights, (0, missing))
    return replace(mixture, weights=weights, means=repeat(mixture.means, -2), spread=spread)


# -- sums around designs


def with_same_weights(
    columns: Sequence[int], weights: Tensor, means: Tensor, spread: Tensor | None = None
) -> Mixture:
    """Return a sum with the same weights for all designs."""
    return Mixture(tuple(columns), weights.expand(means.shape[:-1]), means, spread)


def around(
    X: Float[Tensor, "*batch n b"],
    weights: Float[Tensor, " j"],
    deviations: Float[Tensor, "j b"],
    spread: Tensor | None = None,
) -> Mixture:
    """Put the same weighted Gaussians around every design."""
    if spread is not None:
        spread = spread.expand(*X.shape[:-1], *spread.shape)
    # x + δ_j ~ N(x + m_j, C_j), with the same w_j, m_j and C_j for every x
    return with_same_weights(range(X.shape[-1]), weights, X.unsqueeze(-2) + deviations, spread)


def midpoints(d: int, n: int = N_FINE) -> Float[Tensor, "{n} {d}"]:
    """Return base draws that are the middles of ``n`` equal parts of (0, 1), in every column."""
    u = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    return u.unsqueeze(-1).expand(-1, d)


def by_gauss_rules(
    X: Float[Tensor, "*batch n d"], deviations: Float[Tensor, "s d"], n: int
) -> list[Mixture]:
    """Give every column the Gauss rule of its own deviation."""
    found = []
    # x'_c = x_c + b_j with the probability w_j, for the nodes b and weights w of the column
    for c, column in enumerate(deviations.detach().double().cpu().numpy().T):
        nodes, weights = gauss_rule(column, n)
        points = X.new_tensor(nodes).unsqueeze(-1)
        found.append(replace(around(X[..., [c]], X.new_tensor(weights), points), columns=(c,)))
    return found


def in_strata(
    perturb: Callable[[Tensor, Tensor], Tensor], X: Float[Tensor, "*batch n d"], n: int
) -> list[Mixture]:
    """Cut every column into ``n`` strata, the less probable the farther out, smoothly in X."""
    # stratum j holds u from ½ - ½ cos(π j / n) to ½ - ½ cos(π (j + 1) / n)
    edges = 0.5 - 0.5 * torch.cos(math.pi * torch.arange(n + 1, dtype=torch.float64) / n)
    weights = edges.diff()
    # a stratum becomes the Gaussian with mean and variance of 16 equally likely values in it; of a
    # clipped normal, φ(ω) is then right to 1.5e-4 with 24 strata, and to 3e-5 with 48, for ω = 2/σ
    within = (torch.arange(PER_CELL, dtype=torch.float64) + 0.5) / PER_CELL
    draws = (edges[:-1, None] + weights[:, None] * within).reshape(-1, 1).expand(-1, X.shape[-1])
    strata = perturb(X, draws.to(X)).unflatten(-2, (n, -1))  # (..., n, j, draws, d)
    means, variances = strata.mean(dim=-2), strata.var(dim=-2, correction=0)
    return [
        with_same_weights((c,), weights.to(X), m, v.unsqueeze(-1))
        for c, (m, v) in enumerate(zip(means.split(1, -1), variances.split(1, -1), strict=True))
    ]


def in_cells(samples: Float[Tensor, "*batch n s d"], cells: Int64[Tensor, "j c"]) -> Mixture:
    """Give every cell of samples its mean and its covariance."""
    # m_j = mean of cell j, C_j = Σ (x' - m_j)(x' - m_j)ᵀ / c, w_j = 1 / number of cells
    own = samples[..., cells, :]  # (..., n, j, c, d)
    means = own.mean(dim=-2)
    away = own - means.unsqueeze(-2)
    covariances = away.mT @ away / own.shape[-2]
    weights = samples.new_full((len(cells),), 1 / len(cells))
    return with_same_weights(range(samples.shape[-1]), weights, means, covariances)


# -- few points, or cells, in place of many samples


def gauss_rule(samples: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], ...]:
    """Compress one-dimensional samples into the ``n`` nodes and weights of their Gauss rule.

    Polynomials up to degree ``2 n - 1`` have the same mean under the rule as over the samples
    (Lanczos tridiagonalization); fewer distinct samples than ``n`` are returned as they are.
    """
    values, counts = np.unique(samples, return_counts=True)
    if len(values) <= n:
        return values, counts / counts.sum()
    # in units in which the samples lie between -1 and 1
    center, width = values.mean(), np.ptp(values) / 2
    t = (values - center) / width

    # orthonormal polynomials p_k of t under the samples: t p_k = β_k p_k+1 + α_k p_k + β_k-1 p_k-1
    Q, alpha, beta = np.empty((n + 1, len(t))), np.empty(n), np.empty(n)
    Q[0] = np.sqrt(counts / counts.sum())
    for k in range(n):
        q = t * Q[k]
        alpha[k] = q @ Q[k]
        for _twice in range(2):  # rounding errors would make them lose their orthogonality
            q -= (Q[: k + 1] @ q) @ Q[: k + 1]
        beta[k] = np.linalg.norm(q)
        Q[k + 1] = q / beta[k]

    # nodes are the eigenvalues of the tridiagonal matrix, weights come from its eigenvectors
    J = np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1)
    nodes, vectors = np.linalg.eigh(J)
    return center + width * nodes, vectors[0] ** 2


def compress(samples: Float[Tensor, "s d"], n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cut samples into ``n`` cells; return their weights, means and covariances.

    The next cell to be cut is the one that matters most, by its share of the samples and by how far
    it reaches; the cut goes through its mean and across the direction in which it reaches furthest.
    """
    # importance: s σ³ for s samples that reach σ in their widest direction
    cells = [_Cell.of(samples)]
    while len(cells) < n and max(cell.importance for cell in cells) > 0:
        cell = cells.pop(max(range(len(cells)), key=lambda i: cells[i].importance))
        above = (cell.samples - cell.mean) @ cell.direction > 0
        cells += [_Cell.of(cell.samples[above]), _Cell.of(cell.samples[~above])]
    weights = samples.new_tensor([len(cell.samples) / len(samples) for cell in cells])
    means, covariances = (torch.stack([getattr(c, k) for c in cells]) for k in ("mean", "cov"))
    return weights, means, covariances


def bisect(points: Float[Tensor, "s r"], n: int) -> Int64[Tensor, "j c"]:
    """Split points into ``n`` cells of equal size, each time across the widest column."""
    # n = 2^k cells of equal weight after k rounds, each cut at a median
    cells = [torch.arange(len(points), device=points.device)]
    while len(cells) < n:
        halves: list[Tensor] = []
        for cell in cells:
            column = points[cell].var(dim=0).argmax()
            halves += cell[points[cell, column].argsort(stable=True)].chunk(2)
        cells = halves
    return torch.stack(cells)


@dataclass(frozen=True)
class _Cell:
    samples: Float[Tensor, "s d"]
    mean: Float[Tensor, " d"]
    cov: Float[Tensor, "d d"]
    direction: Float[Tensor, " d"]
    importance: float

    @classmethod
    def of(cls, samples: Float[Tensor, "s d"]) -> "_Cell":
        # the widest direction is the eigenvector of the largest variance
        mean = samples.mean(0)
        centred = samples - mean
        cov = centred.mT @ centred / len(samples)
        variances, axes = torch.linalg.eigh(cov)
        # below rounding errors all samples are the same
        apart = variances[-1] > 1e-24 * (1 + mean.square().sum())
        importance = len(samples) * variances[-1].item() ** 1.5 if apart else 0.0
        return cls(samples, mean, cov, axes[:, -1], importance)
