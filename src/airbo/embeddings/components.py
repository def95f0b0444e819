"""P_x as a few weighted Gaussians, independent from block to block of columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce, singledispatch

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from airbo.coordinates import InModelCoordinates, number_columns, to_user
from airbo.uncertainty import (
    Beta,
    ChiSquared,
    Empirical,
    Exact,
    GaussianMixture,
    InputUncertainty,
    Normal,
    Piecewise,
    Product,
    Ring,
    Uniform,
    Varying,
    base_draws,
)
from airbo.uncertainty.parameters import per_design

N_FINE = 2048
"""Draws that stand for P_x before they are compressed."""


@dataclass(frozen=True)
class Block:
    r"""A weighted sum of Gaussians over some columns of the executed input.

    .. math:: \sum_j w_j \, \mathcal N(m_j, C_j)

    """

    columns: tuple[int, ...]
    weights: Float[Tensor, "*batch n j"]
    means: Float[Tensor, "*batch n j b"]
    spread: Float[Tensor, "..."] | None = None
    """Covariances; their diagonals where there is nothing else; None where all are 0: atoms."""

    @property
    def kind(self) -> int:
        """0 for atoms, 1 for axis-parallel Gaussians, 2 for Gaussians of any direction."""
        return 0 if self.spread is None else self.spread.dim() - self.weights.dim()

    def of_kind(self, kind: int) -> "Block":
        """Write the same sum as a more general kind."""
        spread = torch.zeros_like(self.means) if self.spread is None else self.spread
        if kind == 2 and self.kind < 2:
            spread = spread.diag_embed()
        return replace(self, spread=spread if kind else None)


def components(
    uncertainty: InputUncertainty, X: Float[Tensor, "*batch n d"], n_atoms: int
) -> list[Block]:
    """Write P_x as independent blocks of weighted Gaussians.

    Gaussians stay as they are. One-dimensional distributions become the nodes of their own Gauss
    quadrature, two for three of ``n_atoms``, because it is that much sharper. Whatever else can be
    sampled is cut into ``n_atoms`` cells of equal probability, and each cell becomes the Gaussian
    with its mean and its variances.

    Args:
        uncertainty: The distribution of the executed input.
        X: The designs.
        n_atoms: Resolution, per block.

    Returns:
        Blocks whose columns partition ``range(d)``.
    """
    return _components(uncertainty, X, n_atoms)


@singledispatch
def _components(u: InputUncertainty, X: Tensor, n_atoms: int) -> list[Block]:
    columns_stand_alone = u.independent_columns or (X.shape[-1] == 1 and u.n_base(1) == 1)
    if columns_stand_alone and u.is_additive:
        return _quadratures(u, X, _n_nodes(n_atoms))
    if columns_stand_alone:
        return _strata(u, X, n_atoms)
    return [_cells(u, X, n_atoms)]


@_components.register
def _(u: Exact, X: Tensor, n_atoms: int) -> list[Block]:
    return [_shifted(X, X.new_ones(1), X.new_zeros(1, X.shape[-1]))]


@_components.register
def _(u: Normal, X: Tensor, n_atoms: int) -> list[Block]:
    if u.std is None and u.is_additive:
        return _components(GaussianMixture([[0.0] * X.shape[-1]], u.cov), X, n_atoms)
    covariances = u.covariance(X).unsqueeze(-3)  # (..., n, 1, d, d)
    diagonals = covariances.diagonal(dim1=-2, dim2=-1)
    block = _block(_all_columns(X), X.new_ones(1), X.unsqueeze(-2), diagonals)
    return [block if u.std is not None else replace(block, spread=covariances)]


@_components.register(Uniform)
@_components.register(Beta)
@_components.register(ChiSquared)
def _(u: Uniform | Beta | ChiSquared, X: Tensor, n_atoms: int) -> list[Block]:
    standard = _standardized(u)
    if standard is None:
        return _strata(u, X, n_atoms)
    shape, loc, scale = standard
    nodes, weights = _gauss_rule(shape, _n_nodes(n_atoms))
    loc, scale = (
        per_design(p, X, name, 1).expand_as(X) for name, p in (("loc", loc), ("scale", scale))
    )
    means = (X + loc).unsqueeze(-2) + scale.unsqueeze(-2) * X.new_tensor(nodes).unsqueeze(-1)
    return [_block((c,), X.new_tensor(weights), m) for c, m in enumerate(means.split(1, -1))]


@_components.register
def _(u: GaussianMixture, X: Tensor, n_atoms: int) -> list[Block]:
    if not u.is_additive:
        return [_cells(u, X, n_atoms)]
    means, weights = X.new_tensor(u.means), X.new_tensor(u.weights)
    covs = X.new_tensor(u.covs).expand(len(means), -1, -1)
    diagonals = covs.diagonal(dim1=-2, dim2=-1)
    block = _block(_all_columns(X), weights, X.unsqueeze(-2) + means, diagonals)
    if torch.equal(diagonals.diag_embed(), covs):
        return [block]
    return [replace(block, spread=covs.expand(*X.shape[:-1], *covs.shape))]


@_components.register
def _(u: Ring, X: Tensor, n_atoms: int) -> list[Block]:
    circle = u.perturb(X, _midpoints(1, n_atoms).to(X))  # equal angles
    return [_block(_all_columns(X), X.new_full((n_atoms,), 1 / n_atoms), circle)]


@_components.register
def _(u: Empirical, X: Tensor, n_atoms: int) -> list[Block]:
    deviations = X.new_tensor(u.deviations).reshape(-1, X.shape[-1])
    if len(deviations) <= n_atoms:
        return [_shifted(X, X.new_full((len(deviations),), 1 / len(deviations)), deviations)]
    if X.shape[-1] == 1:
        nodes, weights = gauss_rule(deviations.squeeze(-1).cpu().numpy(), _n_nodes(n_atoms))
        return [_shifted(X, X.new_tensor(weights), X.new_tensor(nodes).unsqueeze(-1))]
    w, m, v = _compress(deviations, n_atoms)
    return [_block(_all_columns(X), w, X.unsqueeze(-2) + m, v)]


@_components.register
def _(u: Product, X: Tensor, n_atoms: int) -> list[Block]:
    return [
        replace(block, columns=tuple(columns[c] for c in block.columns))
        for part, columns in zip(u.blocks, u.layout(X.shape[-1]), strict=True)
        for block in _components(part, X[..., list(columns)], n_atoms)
    ]


@_components.register
def _(u: Varying, X: Tensor, n_atoms: int) -> list[Block]:
    return _components(u.at(X), X, n_atoms)


@_components.register
def _(u: Piecewise, X: Tensor, n_atoms: int) -> list[Block]:
    return choose(u.select(X), [_components(p, X, n_atoms) for p in u.pieces])


@_components.register
def _(u: InModelCoordinates, X: Tensor, n_atoms: int) -> list[Block]:
    space, position = u.space, number_columns(u.space)
    straight, log = [], set(space.log_columns)
    for block in _components(u.uncertainty, to_user(space, X), n_atoms):
        straight += _single_columns(block, n_atoms) if log & set(block.columns) else [block]
    if any(b.kind == 2 and log & set(b.columns) for b in straight):
        return [_cells(u, X, n_atoms)]

    blocks = []
    bounds = space.bounds.to(X)
    for block in straight:
        own = [i for i, c in enumerate(block.columns) if c in position]
        if not own:
            continue
        columns = [block.columns[i] for i in own]
        full = to_user(space, X).unsqueeze(-2).expand(*block.means.shape[:-1], space.d).clone()
        full[..., list(block.columns)] = block.means
        means = space.to_model(full)[..., columns]
        spread = block.spread
        if spread is not None:
            # a cell on a log scale is narrow: its deviation there is that of its tangent
            low, high = bounds[:, list(block.columns)]
            bent = torch.tensor([c in log for c in block.columns], device=X.device)
            width = torch.where(
                bent, block.means * torch.where(bent, high / low, 1.0).log(), high - low
            )
            areas = width.square() if block.kind == 1 else (high - low).outer(high - low)
            spread = spread / areas
            spread = spread[..., own] if block.kind == 1 else spread[..., own, :][..., own]
        blocks.append(Block(tuple(position[c] for c in columns), block.weights, means, spread))
    choices = sorted(set(range(X.shape[-1])) - set(position.values()))
    if choices:
        exact = _shifted(X[..., choices], X.new_ones(1), X.new_zeros(1, len(choices)))
        blocks.append(replace(exact, columns=tuple(choices)))
    return blocks


def choose(choice: Int64[Tensor, "*batch n"], options: Sequence[list[Block]]) -> list[Block]:
    """Take the blocks of option ``choice[i]`` for design ``i``, on a common set of columns."""
    if len(options) == 1:
        return options[0]
    partition = _coarsest([block.columns for option in options for block in option])
    chosen = []
    for columns in partition:
        alternatives = [_merge(option, columns) for option in options]
        n = max(a.weights.shape[-1] for a in alternatives)
        kind = max(a.kind for a in alternatives)
        result, *others = (_pad(a, n).of_kind(kind) for a in alternatives)
        for number, other in enumerate(others, start=1):
            result = _where(choice == number, other, result)
        chosen.append(result)
    return chosen


def to_atoms(block: Block, n_atoms: int) -> Block:
    """Replace every Gaussian on a line by the nodes of its Gauss-Hermite rule."""
    if block.spread is None:
        return block
    n = max(3, _n_nodes(n_atoms) // block.weights.shape[-1])
    nodes, weights = (block.means.new_tensor(v) for v in np.polynomial.hermite_e.hermegauss(n))
    std = block.spread.flatten(-block.kind).clamp_min(1e-24).sqrt()  # (..., j, 1)
    means = (block.means + std * nodes).flatten(-2).unsqueeze(-1)
    weights = (block.weights.unsqueeze(-1) * weights / weights.sum()).flatten(-2)
    return Block(block.columns, weights, means)


def _n_nodes(n_atoms: int) -> int:
    return math.ceil(2 * n_atoms / 3)


def _single_columns(block: Block, n_atoms: int) -> list[Block]:
    """Split a block that is one axis-parallel Gaussian, or one point, into atoms per column."""
    if block.weights.shape[-1] > 1 or block.kind == 2:
        return [block]
    return [
        to_atoms(
            replace(
                block,
                columns=(c,),
                means=block.means[..., [i]],
                spread=None if block.spread is None else block.spread[..., [i]],
            ),
            n_atoms,
        )
        for i, c in enumerate(block.columns)
    ]


def gauss_rule(samples: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], ...]:
    """Compress one-dimensional samples into the ``n`` nodes and weights of their Gauss rule.

    Polynomials up to degree ``2 n - 1`` have the same mean under the rule as over the samples
    (Lanczos tridiagonalization); fewer distinct samples than ``n`` are returned as they are.
    """
    values, counts = np.unique(samples, return_counts=True)
    if len(values) <= n:
        return values, counts / counts.sum()
    center, width = values.mean(), np.ptp(values) / 2
    t = (values - center) / width
    basis = [np.sqrt(counts / counts.sum())]
    alpha, beta = [], []
    for _ in range(n):
        q = t * basis[-1]
        alpha.append(q @ basis[-1])
        for _twice in range(2):
            q = q - np.stack(basis).T @ (np.stack(basis) @ q)
        beta.append(np.linalg.norm(q))
        basis.append(q / beta[-1])
    nodes, vectors = np.linalg.eigh(np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1))
    return center + width * nodes, vectors[0] ** 2


def _standardized(u: Uniform | Beta | ChiSquared) -> tuple[InputUncertainty, object, object] | None:
    """Split a location-scale family into its shape, location and scale."""
    if isinstance(u, Uniform):
        low, high = (torch.as_tensor(v, dtype=torch.float64) for v in (u.low, u.high))
        return Uniform(0.0, 1.0), low, high - low
    shape = Beta(u.a, u.b) if isinstance(u, Beta) else ChiSquared(u.df)
    return (shape, u.loc, u.scale) if shape.is_additive and shape.dim is None else None


@lru_cache(maxsize=256)
def _gauss_rule(u: InputUncertainty, n: int) -> tuple[NDArray[np.float64], ...]:
    return gauss_rule(
        u.perturb(torch.zeros(1, 1, dtype=torch.float64), _midpoints(1)).numpy().ravel(), n
    )


def _midpoints(d: int, n: int = N_FINE) -> Tensor:
    u = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    return u.unsqueeze(-1).expand(-1, d)


def _quadratures(u: InputUncertainty, X: Tensor, n: int) -> list[Block]:
    """Give every column the Gauss rule of its own deviation."""
    d = X.shape[-1]
    deviations = u.perturb(torch.zeros(1, d, dtype=torch.float64), _midpoints(d))[0].numpy()
    rules = [gauss_rule(column, n) for column in deviations.T]
    return [
        replace(_shifted(X[..., [c]], X.new_tensor(w), X.new_tensor(t).unsqueeze(-1)), columns=(c,))
        for c, (t, w) in enumerate(rules)
    ]


def _strata(u: InputUncertainty, X: Tensor, n: int) -> list[Block]:
    """Cut every column into strata of equal probability, smoothly in X."""
    d = X.shape[-1]
    cells = u.perturb(X, _midpoints(d, 16 * n).to(X)).unflatten(-2, (n, -1))  # (..., n, j, 16, d)
    weights = X.new_full((n,), 1 / n)
    return [
        _block((c,), weights, m, v)
        for c, (m, v) in enumerate(zip(*(s.split(1, -1) for s in _moments(cells)), strict=True))
    ]


def _cells(u: InputUncertainty, X: Tensor, n: int) -> Block:
    """Cut the base draws into cells and give each the moments of its samples."""
    n, d = 2 ** math.ceil(math.log2(n)), X.shape[-1]
    if u.is_additive:
        draws = base_draws(N_FINE, u.n_base(d), dtype=X.dtype, device=X.device)
        w, m, v = _compress(u.perturb(X.new_zeros(1, d), draws)[0], n)
        return _block(_all_columns(X), w, X.unsqueeze(-2) + m, v)
    draws = base_draws(16 * n, u.n_base(d), dtype=X.dtype, device=X.device)
    cells = u.perturb(X, draws)[..., _bisect(draws, n), :]  # (..., n, j, s/j, d)
    return _block(_all_columns(X), X.new_full((n,), 1 / n), *_moments(cells))


def _compress(samples: Float[Tensor, "s d"], n: int) -> tuple[Tensor, Tensor, Tensor]:
    n = 2 ** math.ceil(math.log2(n))
    usable = len(samples) - len(samples) % n
    if usable == 0:
        return samples.new_full((len(samples),), 1 / len(samples)), samples, 0 * samples
    order = _bisect(samples[:usable], n)
    return samples.new_full((n,), 1 / n), *_moments(samples[order])


def _bisect(points: Float[Tensor, "s r"], n: int) -> Int64[Tensor, "j c"]:
    """Split points into ``n`` cells of equal size, each time across the widest column."""
    cells = [torch.arange(len(points), device=points.device)]
    while len(cells) < n:
        halves: list[Tensor] = []
        for cell in cells:
            column = points[cell].var(dim=0).argmax()
            halves += cell[points[cell, column].argsort(stable=True)].chunk(2)
        cells = halves
    return torch.stack(cells)


def _moments(cells: Float[Tensor, "*cells s d"]) -> tuple[Tensor, Tensor]:
    return cells.mean(dim=-2), cells.var(dim=-2, correction=0)


def _coarsest(parts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Join all column sets that overlap."""
    groups: list[set[int]] = []
    for part in map(set, parts):
        touching = [g for g in groups if g & part]
        groups = [g for g in groups if not g & part] + [part.union(*touching)]
    return sorted(tuple(sorted(g)) for g in groups)


def _merge(blocks: list[Block], columns: tuple[int, ...]) -> Block:
    """Join the blocks within ``columns`` into one: the product of independent Gaussian sums."""
    joined = reduce(_times, [b for b in blocks if set(b.columns) <= set(columns)])
    order = [joined.columns.index(c) for c in columns]
    spread = joined.spread
    if spread is not None:
        spread = spread[..., order]
        spread = spread[..., order, :] if joined.kind == 2 else spread
    return replace(joined, columns=columns, means=joined.means[..., order], spread=spread)


def _times(a: Block, b: Block) -> Block:
    """Combine every component of one block with every component of the other."""
    n, m = a.weights.shape[-1], b.weights.shape[-1]
    i, j = (
        index.flatten() for index in torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij")
    )
    kind = max(a.kind, b.kind)
    a, b = a.of_kind(kind), b.of_kind(kind)
    spread = None
    if a.spread is not None and b.spread is not None:
        s, t = (v.movedim(-1 - kind, 0) for v in (a.spread, b.spread))
        joined = torch.cat([s[i], t[j]], dim=-1) if kind == 1 else _block_diagonal(s[i], t[j])
        spread = joined.movedim(0, -1 - kind)
    return Block(
        a.columns + b.columns,
        a.weights[..., i] * b.weights[..., j],
        torch.cat([a.means[..., i, :], b.means[..., j, :]], dim=-1),
        spread,
    )


def _block_diagonal(s: Float[Tensor, "*n a a"], t: Float[Tensor, "*n b b"]) -> Tensor:
    a, b = s.shape[-1], t.shape[-1]
    return F.pad(s, (0, b, 0, b)) + F.pad(t, (a, 0, a, 0))


def _pad(block: Block, n: int) -> Block:
    """Add components of weight 0 (copies of the first, so that gradients stay finite)."""
    missing = n - block.weights.shape[-1]
    if missing == 0:
        return block

    def repeat(v: Tensor, dim: int) -> Tensor:
        first = v.narrow(dim, 0, 1)
        return torch.cat([v, *[first] * missing], dim=dim)

    spread = None if block.spread is None else repeat(block.spread, -1 - block.kind)
    weights = F.pad(block.weights, (0, missing))
    return replace(block, weights=weights, means=repeat(block.means, -2), spread=spread)


def _where(mask: Tensor, a: Block, b: Block) -> Block:
    def pick(s: Tensor, t: Tensor) -> Tensor:
        return torch.where(mask.reshape(*mask.shape, *[1] * (s.dim() - mask.dim())), s, t)

    spread = None
    if a.spread is not None and b.spread is not None:
        spread = pick(a.spread, b.spread)
    return replace(
        a, weights=pick(a.weights, b.weights), means=pick(a.means, b.means), spread=spread
    )


def _all_columns(X: Tensor) -> tuple[int, ...]:
    return tuple(range(X.shape[-1]))


def _block(
    columns: tuple[int, ...], weights: Tensor, means: Tensor, variances: Tensor | None = None
) -> Block:
    spread = None if variances is None else variances.expand_as(means)
    return Block(columns, weights.expand(means.shape[:-1]), means, spread)


def _shifted(X: Tensor, weights: Tensor, deviations: Tensor) -> Block:
    """Put weighted atoms around every design."""
    return _block(_all_columns(X), weights, X.unsqueeze(-2) + deviations)
