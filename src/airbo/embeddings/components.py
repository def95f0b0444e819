"""P_x as a few weighted Gaussians, independent from block to block of columns."""

import math
from dataclasses import replace
from functools import lru_cache, singledispatch

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from airbo.cube import Axes
from airbo.embeddings.blocks import Block, by_column, choose, in_unit_cube, n_nodes, to_atoms
from airbo.embeddings.compression import bisect, compress, gauss_rule, moments
from airbo.in_cube import InCube
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


def components(
    uncertainty: InputUncertainty, X: Float[Tensor, "*batch n d"], n_atoms: int
) -> list[Block]:
    """Write P_x as independent blocks of weighted Gaussians.

    Gaussians stay as they are. One-dimensional distributions become the nodes of their own Gauss
    quadrature, two for three of ``n_atoms``, because it is that much sharper. Whatever else can be
    sampled is cut into cells, and each cell becomes the Gaussian with its mean and its covariance:
    four cells for three of ``n_atoms`` where x' = x + δ, else cells of equal probability.

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
        return _quadratures(u, X, n_nodes(n_atoms))
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
    nodes, weights = _gauss_rule(shape, n_nodes(n_atoms))
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
    block = _block(_all_columns(X), X.new_full((n_atoms,), 1 / n_atoms), circle)
    return [replace(block, isotropic=True)]


@_components.register
def _(u: Empirical, X: Tensor, n_atoms: int) -> list[Block]:
    deviations = X.new_tensor(u.deviations).reshape(-1, X.shape[-1])
    if len(deviations) <= n_atoms:
        return [_shifted(X, X.new_full((len(deviations),), 1 / len(deviations)), deviations)]
    if X.shape[-1] == 1:
        nodes, weights = gauss_rule(deviations.squeeze(-1).cpu().numpy(), n_nodes(n_atoms))
        return [_shifted(X, X.new_tensor(weights), X.new_tensor(nodes).unsqueeze(-1))]
    return [_compressed(deviations, X, n_atoms)]


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
def _(u: InCube, X: Tensor, n_atoms: int) -> list[Block]:
    straight = []
    for block in _components(u.uncertainty, u.axes.to_columns(X), n_atoms):
        axes = u.axes.of(block.columns)
        straight += [block] if axes.is_linear else _single_columns(block, n_atoms)
    if any(b.kind == 2 and not u.axes.of(b.columns).is_linear for b in straight):
        return [_cells(u, X, n_atoms)]
    return [_block_in_cube(block, u.axes.of(block.columns)) for block in straight]


def _block_in_cube(block: Block, axes: Axes) -> Block:
    means = axes.from_columns(block.means)
    low, high = (means.new_tensor(ends) for ends in (axes.low, axes.high))
    if axes.is_linear:
        [scaled] = in_unit_cube([replace(block, columns=_all_columns(means))], low, high - low)
        return replace(scaled, columns=block.columns)
    spread = block.spread
    if spread is not None:
        # a cell on a log scale is narrow: its deviation there is that of its tangent
        bent = torch.tensor(axes.log, device=means.device)
        ratio = torch.where(bent, high / low, 1.0).log()
        spread = spread / torch.where(bent, block.means * ratio, high - low).square()
    return Block(block.columns, block.weights, means, spread)


def _single_columns(block: Block, n_atoms: int) -> list[Block]:
    """Split a block that is one axis-parallel Gaussian, or one point, into atoms per column."""
    if block.weights.shape[-1] > 1 or block.kind == 2:
        return [block]
    return [to_atoms(part, n_atoms) for part in by_column(block)]


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
        for c, (m, v) in enumerate(zip(*(s.split(1, -1) for s in moments(cells)), strict=True))
    ]


def _cells(u: InputUncertainty, X: Tensor, n: int) -> Block:
    """Cut the base draws into cells and give each the moments of its samples."""
    d = X.shape[-1]
    if u.is_additive:
        draws = base_draws(N_FINE, u.n_base(d), dtype=X.dtype, device=X.device)
        return _compressed(u.perturb(X.new_zeros(1, d), draws)[0], X, n)
    n = 2 ** math.ceil(math.log2(n))
    draws = base_draws(16 * n, u.n_base(d), dtype=X.dtype, device=X.device)
    cells = u.perturb(X, draws)[..., bisect(draws, n), :]  # (..., n, j, s/j, d)
    return _block(_all_columns(X), X.new_full((n,), 1 / n), *moments(cells))


def _compressed(deviations: Float[Tensor, "s d"], X: Tensor, n: int) -> Block:
    """Put the cells of deviations around every design, four for three of ``n``."""
    weights, means, covariances = compress(deviations, math.ceil(4 * n / 3))
    block = _block(_all_columns(X), weights, X.unsqueeze(-2) + means)
    return replace(block, spread=covariances.expand(*X.shape[:-1], *covariances.shape))


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
