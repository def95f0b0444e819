"""Kinds whose columns may depend on each other: normal, mixture of normals, ring, logged rows.

Notation: C a covariance matrix (d d), R a root of it, R Rᵀ = C; z standard normal (s d), made from
base draws; w, m, C the weights (k), means (k d) and covariances (k d d) of a mixture; δ_i row i of
a log (N d), each with the probability 1/N.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from airbo.uncertainty.base import (
    InputUncertainty,
    Numbers,
    as_tensor,
    beside_samples,
    is_varying,
    normal_cdf,
    per_design,
    with_columns,
)
from airbo.uncertainty.gaussians import (
    Mixture,
    Resolution,
    around,
    by_column,
    by_gauss_rules,
    compress,
    midpoints,
    with_same_weights,
)
from airbo.uncertainty.kinds import read_deviations


@dataclass(frozen=True, eq=False, repr=False)
class Normal(InputUncertainty):
    """A normal deviation with mean 0: ``Normal(std)`` or ``Normal(cov=matrix)``."""

    std: Numbers = None
    """Standard deviation, one for all columns or one per column, in the units of the input."""

    cov: Numbers = None
    """Covariance matrix (d d) of the deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cov is not None:
            check_covariance(self.cov, "cov")

    @property
    def independent_columns(self) -> bool:
        return self.cov is None

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x + σ z, or x + R z with R Rᵀ = C
        z = torch.special.ndtri(base)
        if self.cov is None:
            return X.unsqueeze(-2) + beside_samples(self._get("std", X)) * z
        self._get("cov", X)  # refuses a shape that does not fit
        return X.unsqueeze(-2) + torch.einsum("...ij,sj->...si", square_root(self.cov).to(X), z)

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = C, or diag(σ²)
        if self.cov is not None:
            return self._get("cov", X).expand(*X.shape, X.shape[-1])
        return torch.diag_embed(self._get("std", X).square().expand(X.shape))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = Φ((t - x) / σ)
        return normal_cdf(t - X, self.covariance(X).squeeze(-1).sqrt())

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty | None:
        return with_columns(self, columns) if self.cov is None else None

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # P_x = N(x, C): one Gaussian with weight 1
        C = self.covariance(X).unsqueeze(-3)  # (..., n, 1, d, d)
        whole = replace(around(X, X.new_ones(1), X.new_zeros(1, X.shape[-1])), spread=C)
        return [whole] if self.cov is not None else by_column(whole)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixture(InputUncertainty):
    """The deviation comes from one of k normals, chosen with the given weights.

    Inside Varying, ``means`` is (*batch n k d), ``covs`` (*batch n k d d) and ``weights``
    (*batch n k); samples jump between components as weights change, so weights get no gradient.
    """

    means: Numbers
    """Means of the components (k d)."""

    covs: Numbers
    """Covariance matrices (k d d), or one (d d) for all components."""

    weights: Numbers = None
    """Probabilities of the components (k); equal by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_covariance(self.covs, "covs")
        # k components: m (k d), C (k d d) and w (k), which sum to 1
        means, covs, weights = map(as_tensor, (self.means, self.covs, self.weights))
        k, d = means.shape[-2:]
        if covs.shape[-3:] != (k, d, d) or weights.shape[-1:] != (k,):
            raise ValueError(
                f"means are {k} rows of {d} columns, so covs must be {(k, d, d)} or {(d, d)} and "
                f"weights {(k,)}, got {tuple(covs.shape)} and {tuple(weights.shape)}."
            )
        total = weights.detach().sum(dim=-1)
        if (total - 1).abs().max() > 1e-6:
            raise ValueError(f"weights must sum to 1, but they sum to {total.max().item():.6g}.")

    def n_base(self, d: int) -> int:
        """Return 1 + d: the first number picks the component."""
        return 1 + d

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        means, weights = self._get("means", X), self._get("weights", X)
        self._get("covs", X)

        # which component each sample belongs to, as 0 and 1
        cumulative = weights.cumsum(dim=-1)[..., None, :-1].detach()
        picked = (base[:, :1] >= cumulative).sum(dim=-1)  # (..., s)
        chosen = one_hot(picked, weights.shape[-1]).to(X)  # (..., s, k)

        # δ = m_c + R_c z
        z = torch.special.ndtri(base[:, 1:])
        spread = torch.einsum("...kij,sj->...ski", square_root(self.covs).to(X), z)
        return X.unsqueeze(-2) + (chosen.unsqueeze(-1) * (means.unsqueeze(-3) + spread)).sum(-2)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = Σ_k w_k Φ((t - x - m_k) / s_k)
        w = self._get("weights", X).unsqueeze(-2)  # (..., 1, k)
        m = self._get("means", X).squeeze(-1).unsqueeze(-2)
        s = self._get("covs", X)[..., 0, 0].unsqueeze(-2)
        away = (t - X).unsqueeze(-1) - m  # (..., n, limits, k)
        return (w * normal_cdf(away, s.sqrt())).sum(dim=-1)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # P_x = Σ_k w_k N(x + m_k, C_k), as it is
        means, covs, weights = (self._get(name, X) for name in ("means", "covs", "weights"))
        landed = X.unsqueeze(-2) + means  # (..., n, k, d)
        spread = covs.expand(*landed.shape, X.shape[-1])
        return [with_same_weights(range(X.shape[-1]), weights, landed, spread)]


@dataclass(frozen=True, eq=False, repr=False)
class Ring(InputUncertainty):
    """The executed input lies on a circle around the design, at any angle: two columns."""

    radius: Numbers
    """Distance from the design; inside Varying a tensor (*batch n 1)."""

    has_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_varying(self.radius, 0) and (self.radius.ndim < 2 or self.radius.shape[-1] != 1):
            raise ValueError(
                "radius must be a number, or inside Varying a tensor of shape (*batch, n, 1), "
                f"got shape {tuple(self.radius.shape)}."
            )

    def n_base(self, d: int) -> int:
        """Return 1: the angle."""
        return 1

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x + ϱ (cos 2πu, sin 2πu)
        angle = 2 * math.pi * base
        unit = torch.cat([angle.cos(), angle.sin()], dim=-1)  # (s, 2)
        return X.unsqueeze(-2) + beside_samples(per_design(self.radius, X, "radius", 1)) * unit

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # equal weights at equal angles: exact for all polynomials of a degree below their number
        circle = self.perturb(X, midpoints(1, r.angles).to(X))  # equal angles
        return [with_same_weights((0, 1), X.new_full((r.angles,), 1 / r.angles), circle)]


@dataclass(frozen=True, eq=False, repr=False)
class Empirical(InputUncertainty):
    """The deviation is one of those that were logged, x' - x, each as likely as the others."""

    deviations: Numbers
    """Logged deviations (N d); (N) for one column."""

    has_bounds: ClassVar[bool] = True

    @classmethod
    def from_csv(cls, path: str | Path, columns: Sequence[str | int] | None = None) -> "Empirical":
        """Read logged deviations from a CSV file, one row per experiment, with or without header.

        Args:
            path: The file.
            columns: Names from the header or positions from 0, in the order of the design;
                all columns by default.
        """
        return cls(read_deviations(Path(path), columns))

    @property
    def independent_columns(self) -> bool:
        return self.dim == 1

    def n_base(self, d: int) -> int:
        """Return 1: it picks the row."""
        return 1

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x + δ_i with i = ⌊u N⌋
        rows = self._rows.to(X)
        picked = (base[:, 0] * len(rows)).long().clamp_max(len(rows) - 1)
        return X.unsqueeze(-2) + rows[picked]

    @cached_property
    def _rows(self) -> Tensor:
        # in order where that is possible: u picks the u-quantile
        rows = as_tensor(self.deviations)
        return rows.sort(dim=0).values if self.dim == 1 else rows

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t): the share of δ_i < t - x
        ordered = self._rows.to(X).flatten().sort().values
        return torch.searchsorted(ordered, (t - X).detach().contiguous()).to(X) / len(ordered)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # few rows are points; many are a Gauss rule in one column, and cells in several
        rows = self._rows.to(X)
        if len(rows) <= r.cells:
            return [around(X, X.new_full((len(rows),), 1 / len(rows)), rows)]
        if X.shape[-1] == 1:
            return by_gauss_rules(X, rows, r.fine_nodes)
        return [around(X, *compress(rows, r.cells))]


# -- covariance matrices


def check_covariance(cov: Numbers, name: str) -> None:
    """Refuse matrices that are not symmetric and positive semi-definite."""
    C = as_tensor(cov).detach()
    tolerance = max(1e-8, 100 * torch.finfo(C.dtype).eps)

    if (C - C.mT).abs().amax() > tolerance * C.abs().amax():
        raise ValueError(f"{name} must be symmetric.")

    # columns may have units of different size: their correlations tell
    eigenvalues = torch.linalg.eigvalsh(_standardized(C)[0])  # ascending
    smallest, largest = eigenvalues[..., 0], eigenvalues[..., -1]
    if (smallest < -tolerance * largest.abs()).any():
        raise ValueError(
            f"{name} must be positive semi-definite, but with all variances scaled to 1 it has the "
            f"eigenvalue {smallest.min().item():.6g}."
        )


def _standardized(C: Tensor) -> tuple[Tensor, Tensor]:
    """Return correlations and deviations; a variance that is not positive stays as it is."""
    # C_ij / (s_i s_j) with s_i = √C_ii
    variances = C.diagonal(dim1=-2, dim2=-1)
    std = torch.where(variances > 0, variances, torch.ones_like(variances)).sqrt()
    return C / std.unsqueeze(-1) / std.unsqueeze(-2), std


def square_root(cov: Numbers) -> Tensor:
    """Return R with R Rᵀ = cov, also for singular constants.

    Constants get the symmetric root of their correlations, times the deviations: it is diagonal
    where the matrix is, and exact for units of different size. Tensors made from
    designs get the Cholesky factor, which has useful gradients.
    """
    if not isinstance(cov, Tensor):
        return _root(cov)
    # C + ε I = L Lᵀ, so that singular ones pass
    scale = cov.detach().diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None]
    jitter = 100 * torch.finfo(cov.dtype).eps * scale + 1e-30
    return torch.linalg.cholesky(cov + jitter * torch.eye(cov.shape[-1]).to(cov))


@lru_cache(maxsize=64)
def _root(cov: Numbers) -> Tensor:
    # with correlations V Λ Vᵀ: R = diag(s) V √Λ Vᵀ, so that R Rᵀ = C
    correlations, std = _standardized(as_tensor(cov))
    eigenvalues, V = torch.linalg.eigh(correlations)
    root = V @ torch.diag_embed(eigenvalues.clamp_min(0).sqrt()) @ V.mT
    return std.unsqueeze(-1) * root
