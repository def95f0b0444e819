"""P_x in the unit cube as a few weighted Gaussians, block by block of dependent columns."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from airbo.embeddings.mixture import Mixture, by_column, choose, coarsest, joined, moved, split
from airbo.embeddings.rules import bisect, compress, gauss_rule
from airbo.in_cube import InCube
from airbo.space.cube import Axes
from airbo.uncertainty import (
    Beta,
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
    Ring,
    Rounded,
    Uniform,
    Varying,
    base_draws,
)
from airbo.uncertainty.columns import some_columns
from airbo.uncertainty.parameters import per_design

N_FINE = 2048
"""Draws that stand for P_x before they are compressed."""
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
    def pieces(self) -> int:
        """Gaussians that one Gaussian is cut into before it is bent."""
        return 3 * self.n_atoms

    @property
    def fine_nodes(self) -> int:
        """Points of one column where it does not: they are worked with once, not per design."""
        return 4 * self.n_atoms

    @property
    def cells(self) -> int:
        """Gaussians of several dependent columns: all pairs of two designs' have to be compared."""
        return math.ceil(4 * self.n_atoms / 3)

    @property
    def coarser(self) -> "Resolution":
        """Half as many."""
        return Resolution(max(1, self.n_atoms // 2))

    @property
    def finer(self) -> "Resolution":
        """Three times as many."""
        return Resolution(3 * self.n_atoms)

    @property
    def angles(self) -> int:
        """Points of a ring."""
        return 2 * self.n_atoms


def blocks_of(
    uncertainty: InputUncertainty, columns: tuple[int, ...]
) -> list[tuple[InputUncertainty, tuple[int, ...]]]:
    """Return the independent blocks of an uncertainty, each with the columns that it acts on."""
    if not isinstance(uncertainty, Product):
        alone = [some_columns(uncertainty, [c]) for c in range(len(columns))]
        if len(columns) == 1 or None in alone:
            return [(uncertainty, columns)]
        return [(u, (c,)) for u, c in zip(alone, columns, strict=True) if u is not None]
    return [
        part
        for block, own in zip(uncertainty.blocks, uncertainty.layout(len(columns)), strict=True)
        for part in blocks_of(block, tuple(columns[c] for c in own))
    ]


def mixtures(
    uncertainty: InputUncertainty, Z: Float[Tensor, "*batch n d"], resolution: Resolution
) -> list[Mixture]:
    """Write P_x as independent sums of weighted Gaussians whose columns partition ``range(d)``.

    Gaussians stay as they are. One-column distributions become the nodes of their own Gauss
    quadrature. Whatever else can be sampled is cut into cells, and each cell becomes the Gaussian
    with its mean and its covariance. An additive P_x has one row, that of the deviation.
    """
    if uncertainty.is_additive:
        return [part.to(Z) for part in _deviations(uncertainty, Z.shape[-1], resolution)]
    return [part for whole in _mixtures(uncertainty, Z, resolution) for part in by_column(whole)]


@lru_cache(maxsize=256)
def _deviations(u: InputUncertainty, d: int, r: Resolution) -> tuple[Mixture, ...]:
    """Write x' - x, which is the same for all designs; a search predicts at hundreds of them."""
    wholes = _mixtures(u, torch.zeros(1, d, dtype=torch.float64), r)
    return tuple(part for whole in wholes for part in by_column(replace(whole, additive=True)))


@singledispatch
def _mixtures(u: InputUncertainty, X: Tensor, r: Resolution) -> list[Mixture]:
    columns_stand_alone = u.independent_columns or (X.shape[-1] == 1 and u.n_base(1) <= 1)
    if not columns_stand_alone:
        return [_cells(u, X, r)]
    return _quadratures(u, X, r.fine_nodes) if u.is_additive else _strata(u, X, r.fine_nodes)


@_mixtures.register
def _(u: Exact, X: Tensor, r: Resolution) -> list[Mixture]:
    return [_around(X, X.new_ones(1), X.new_zeros(1, X.shape[-1]))]


@_mixtures.register
def _(u: Normal, X: Tensor, r: Resolution) -> list[Mixture]:
    covariances = u.covariance(X).unsqueeze(-3)  # (..., n, 1, d, d)
    spread = covariances if u.std is None else covariances.diagonal(dim1=-2, dim2=-1)
    return [replace(_around(X, X.new_ones(1), X.new_zeros(1, X.shape[-1])), spread=spread)]


@_mixtures.register(Uniform)
@_mixtures.register(Beta)
@_mixtures.register(ChiSquared)
def _(u: Uniform | Beta | ChiSquared, X: Tensor, r: Resolution) -> list[Mixture]:
    standard = _standardized(u)
    if standard is None:
        return _quadratures(u, X, r.fine_nodes) if u.is_additive else _strata(u, X, r.fine_nodes)
    shape, loc, scale = standard
    nodes, weights = _gauss_rule(shape, r.fine_nodes if u.is_additive else r.nodes)
    loc, scale = (
        per_design(p, X, name, 1).expand_as(X) for name, p in (("loc", loc), ("scale", scale))
    )
    means = (X + loc).unsqueeze(-2) + scale.unsqueeze(-2) * X.new_tensor(nodes).unsqueeze(-1)
    return [_mixture((c,), X.new_tensor(weights), m) for c, m in enumerate(means.split(1, -1))]


@_mixtures.register
def _(u: GaussianMixture, X: Tensor, r: Resolution) -> list[Mixture]:
    if not u.is_additive:
        return [_cells(u, X, r)]
    means, weights = X.new_tensor(u.means), X.new_tensor(u.weights)
    covs = X.new_tensor(u.covs).expand(len(means), -1, -1)
    diagonals = covs.diagonal(dim1=-2, dim2=-1)
    spread = diagonals if torch.equal(diagonals.diag_embed(), covs) else covs
    whole = _around(X, weights, means)
    return [replace(whole, spread=spread.expand(*X.shape[:-1], *spread.shape))]


@_mixtures.register
def _(u: Ring, X: Tensor, r: Resolution) -> list[Mixture]:
    circle = u.perturb(X, _midpoints(1, r.angles).to(X))  # equal angles
    return [_mixture(_all_columns(X), X.new_full((r.angles,), 1 / r.angles), circle)]


@_mixtures.register
def _(u: Empirical, X: Tensor, r: Resolution) -> list[Mixture]:
    deviations = X.new_tensor(u.deviations).reshape(-1, X.shape[-1])
    if len(deviations) <= r.cells:
        return [_around(X, X.new_full((len(deviations),), 1 / len(deviations)), deviations)]
    if X.shape[-1] == 1:
        nodes, weights = gauss_rule(deviations.squeeze(-1).cpu().numpy(), r.fine_nodes)
        return [_around(X, X.new_tensor(weights), X.new_tensor(nodes).unsqueeze(-1))]
    return [_compressed(deviations, X, r)]


@_mixtures.register
def _(u: Product, X: Tensor, r: Resolution) -> list[Mixture]:
    return [
        replace(part, columns=tuple(columns[c] for c in part.columns))
        for block, columns in blocks_of(u, _all_columns(X))
        for part in _landing(block, X[..., list(columns)], r)
    ]


@_mixtures.register
def _(u: Varying, X: Tensor, r: Resolution) -> list[Mixture]:
    return _mixtures(u.at(X), X, r)


@_mixtures.register
def _(u: Piecewise, X: Tensor, r: Resolution) -> list[Mixture]:
    options = [_landing(piece, X, r) for piece in u.pieces]
    groups = coarsest([part.columns for option in options for part in option])
    return [choose(u.select(X), [_within(option, g) for option in options]) for g in groups]


@_mixtures.register
def _(u: Relative, X: Tensor, r: Resolution) -> list[Mixture]:
    landed = []
    for share in mixtures(u.share, X, r.coarser):
        x = X[..., list(share.columns)].unsqueeze(-2)  # (..., n, 1, b)
        means = x * (1 + share.means)
        weights = share.weights.expand(means.shape[:-1])
        spread = share.spread
        if spread is not None:
            spread = spread * (x.square() if share.kind == 1 else x.unsqueeze(-1) * x.unsqueeze(-2))
        landed.append(Mixture(share.columns, weights, means, spread))
    return landed


@_mixtures.register
def _(u: LogNormal, X: Tensor, r: Resolution) -> list[Mixture]:
    std = u.log_std(X).expand(X.shape[-1])
    landed = []
    for c, s in enumerate(std):
        own = split(_normal(s), r.pieces)
        factors = moved(own, torch.exp).to(X)  # x' / x
        x = X[..., [c]].unsqueeze(-2)
        assert factors.spread is not None
        landed.append(
            _mixture((c,), factors.weights, x * factors.means, x.square() * factors.spread)
        )
    return landed


@_mixtures.register
def _(u: Rounded, X: Tensor, r: Resolution) -> list[Mixture]:
    found = u.landings(X)
    if found is not None:
        values, likely = found
        return [Mixture((0,), likely, values.unsqueeze(-1))]
    alone = u.columns is None and (u.independent_columns or X.shape[-1] == 1)
    return _mixtures(u.unrounded, X, r) if alone else [_cells(u, X, r)]


@_mixtures.register
def _(u: InCube, X: Tensor, r: Resolution) -> list[Mixture]:
    axes = u.axes
    if axes.is_linear:
        parts = _landing(u.uncertainty, axes.to_columns(X), r)
        return [_scaled(part, axes.of(part.columns)) for part in parts]
    if u.is_additive and isinstance(u.uncertainty, LogNormal):
        # log x' = log x + δ: normal on the log scale
        width = X.new_tensor([math.log(h / w) for w, h in zip(axes.low, axes.high, strict=True)])
        return _mixtures(Normal((u.uncertainty.log_std(X) / width).expand_as(width)), X, r)
    if u.independent_columns and u.is_additive:
        return _quadratures(u, X, r.fine_nodes)
    if X.shape[-1] == 1 and u.independent_columns:
        [part] = _landing(u.uncertainty, axes.to_columns(X), r)
        if part.kind == 0 or part.n_components == 1:
            # the outermost points, which hardly count, must have a logarithm, too
            least = torch.tensor(axes.low, dtype=torch.float64).to(X) * 1e-6
            place = lambda x: axes.from_columns(torch.maximum(x, least))  # noqa: E731
            return [moved(split(part, r.pieces), place)]
    # cells are cut on the log scale, where a Gaussian stands for each of them
    return _strata(u, X, r.fine_nodes) if u.independent_columns else [_cells(u, X, r)]


def _normal(std: Float[Tensor, ""]) -> Mixture:
    one = torch.ones(1, 1, dtype=torch.float64)
    zero = torch.zeros(1, 1, 1, dtype=torch.float64)
    return Mixture((0,), one, zero, zero + std.double().square())


def _scaled(part: Mixture, axes: Axes) -> Mixture:
    """Translate from user units to linear axes of the unit cube."""
    means, spread = axes.from_columns(part.means), part.spread
    if spread is not None:
        widths = means.new_tensor(axes.widths)
        spread = spread / (widths.square() if part.kind == 1 else widths.outer(widths))
    return Mixture(part.columns, part.weights, means, spread)


def _landing(u: InputUncertainty, X: Tensor, r: Resolution) -> list[Mixture]:
    """Return where designs land, also where the block is additive."""
    return [part.around(X[..., list(part.columns)]) for part in mixtures(u, X, r)]


def _within(option: list[Mixture], columns: tuple[int, ...]) -> Mixture:
    parts = [part for part in option if set(part.columns) <= set(columns)]
    return joined(parts, columns)


def _standardized(u: Uniform | Beta | ChiSquared) -> tuple[InputUncertainty, object, object] | None:
    """Split a location-scale family into its shape, location and scale."""
    if isinstance(u, Uniform):
        low, high = (torch.as_tensor(v, dtype=torch.float64) for v in (u.low, u.high))
        return Uniform(0.0, 1.0), low, high - low
    shape = Beta(u.a, u.b) if isinstance(u, Beta) else ChiSquared(u.df)
    return (shape, u.loc, u.scale) if shape.is_additive and shape.dim is None else None


@lru_cache(maxsize=256)
def _gauss_rule(u: InputUncertainty, n: int) -> tuple[NDArray[np.float64], ...]:
    origin = torch.zeros(1, 1, dtype=torch.float64)
    return gauss_rule(u.perturb(origin, _midpoints(1)).numpy().ravel(), n)


def _midpoints(d: int, n: int = N_FINE) -> Tensor:
    u = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    return u.unsqueeze(-1).expand(-1, d)


def _quadratures(u: InputUncertainty, X: Tensor, n: int) -> list[Mixture]:
    """Give every column the Gauss rule of its own deviation."""
    d = X.shape[-1]
    deviations = u.perturb(torch.zeros(1, d, dtype=torch.float64), _midpoints(d))[0].numpy()
    rules = [gauss_rule(column, n) for column in deviations.T]
    return [
        replace(_around(X[..., [c]], X.new_tensor(w), X.new_tensor(t).unsqueeze(-1)), columns=(c,))
        for c, (t, w) in enumerate(rules)
    ]


def _strata(u: InputUncertainty, X: Tensor, n: int) -> list[Mixture]:
    """Cut every column into strata, the less probable the farther out, smoothly in X."""
    edges = 0.5 - 0.5 * torch.cos(math.pi * torch.arange(n + 1, dtype=torch.float64) / n)
    weights = edges.diff()
    within = (torch.arange(PER_CELL, dtype=torch.float64) + 0.5) / PER_CELL
    draws = (edges[:-1, None] + weights[:, None] * within).reshape(-1, 1).expand(-1, X.shape[-1])
    cells = u.perturb(X, draws.to(X)).unflatten(-2, (n, -1))  # (..., n, j, draws, d)
    means, variances = cells.mean(dim=-2), cells.var(dim=-2, correction=0)
    return [
        _mixture((c,), weights.to(X), m, v)
        for c, (m, v) in enumerate(zip(means.split(1, -1), variances.split(1, -1), strict=True))
    ]


def _cells(u: InputUncertainty, X: Tensor, r: Resolution) -> Mixture:
    """Cut the base draws into cells and give each the moments of its samples."""
    d = X.shape[-1]
    if u.is_additive:
        draws = base_draws(N_FINE, u.n_base(d), dtype=X.dtype, device=X.device)
        return _compressed(u.perturb(X.new_zeros(1, d), draws)[0], X, r)
    n = 2 ** math.ceil(math.log2(r.cells))
    draws = base_draws(PER_CELL * n, u.n_base(d), dtype=X.dtype, device=X.device)
    cells = u.perturb(X, draws)[..., bisect(draws, n), :]  # (..., n, j, draws, d)
    means = cells.mean(dim=-2)
    centred = cells - means.unsqueeze(-2)
    covariances = centred.mT @ centred / cells.shape[-2]
    return replace(_mixture(_all_columns(X), X.new_full((n,), 1 / n), means), spread=covariances)


def _compressed(deviations: Float[Tensor, "s d"], X: Tensor, r: Resolution) -> Mixture:
    """Put the cells of deviations around every design."""
    weights, means, covariances = compress(deviations, r.cells)
    whole = _around(X, weights, means)
    return replace(whole, spread=covariances.expand(*X.shape[:-1], *covariances.shape))


def _all_columns(X: Tensor) -> tuple[int, ...]:
    return tuple(range(X.shape[-1]))


def _mixture(
    columns: tuple[int, ...], weights: Tensor, means: Tensor, variances: Tensor | None = None
) -> Mixture:
    return Mixture(columns, weights.expand(means.shape[:-1]), means, variances)


def _around(X: Tensor, weights: Tensor, deviations: Tensor) -> Mixture:
    """Put weighted points around every design."""
    return _mixture(_all_columns(X), weights, X.unsqueeze(-2) + deviations)
