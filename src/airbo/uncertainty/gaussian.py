"""Normal deviations, and the covariance matrices that normals and mixtures share."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.parameters import (
    Numbers,
    as_tensor,
    check_at_least,
    common_dim,
    is_varying,
    parameter,
    per_design,
)


@dataclass(frozen=True, eq=False, repr=False)
class Normal(InputUncertainty):
    """A normal deviation with mean 0: ``Normal(std)`` or ``Normal(cov=matrix)``."""

    std: Numbers = None
    """Standard deviation, one for all columns or one per column, in the units of the input."""

    cov: Numbers = None
    """Covariance matrix (d d) of the deviation."""

    def __post_init__(self) -> None:
        """Refuse negative deviations and matrices that are no covariance."""
        if (self.std is None) == (self.cov is None):
            raise ValueError(
                "Normal takes exactly one of std and cov, got "
                + ("neither." if self.std is None else "both.")
            )
        if self.std is not None:
            object.__setattr__(self, "std", parameter(self.std, "std", 1))
            check_at_least(self.std, "std")
        else:
            object.__setattr__(self, "cov", parameter(self.cov, "cov", 2))
            check_covariance(self.cov, "cov")

    @property
    def dim(self) -> int | None:
        """Length of the vector, or size of the matrix."""
        return common_dim({"std": self.std} if self.cov is None else {"cov": self.cov})

    @property
    def is_additive(self) -> bool:
        """True for constant parameters."""
        return not (is_varying(self.std, 1) or is_varying(self.cov, 2))

    @property
    def independent_columns(self) -> bool:
        """True for standard deviations, False for a matrix."""
        return self.cov is None

    def n_base(self, d: int) -> int:
        """Return d: one number per column."""
        return d

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s d"]
    ) -> Float[Tensor, "*batch n s d"]:
        z = torch.special.ndtri(base)
        if self.cov is None:
            std = per_design(self.std, X, "std", 1)
            return X.unsqueeze(-2) + (std.unsqueeze(-2) if std.ndim > 1 else std) * z
        per_design(self.cov, X, "cov", 2)  # refuses a shape that does not fit
        return X.unsqueeze(-2) + torch.einsum("...ij,sj->...si", square_root(self.cov).to(X), z)

    def _mean(self, X: Tensor) -> Tensor:
        return X

    def _covariance(self, X: Tensor) -> Tensor:
        if self.cov is not None:
            return per_design(self.cov, X, "cov", 2).expand(*X.shape, X.shape[-1])
        return torch.diag_embed((per_design(self.std, X, "std", 1) ** 2).expand(X.shape))


def check_covariance(cov: Numbers, name: str) -> None:
    """Refuse matrices that are not square, symmetric and positive semi-definite."""
    C = as_tensor(cov).detach()
    if C.ndim < 2 or C.shape[-1] != C.shape[-2]:
        raise ValueError(f"{name} must be a square matrix, got shape {tuple(C.shape)}.")
    tolerance = max(1e-8, 100 * torch.finfo(C.dtype).eps)

    asymmetry = (C - C.mT).abs().amax().item()
    if asymmetry > tolerance * C.abs().amax().item():
        raise ValueError(
            f"{name} must be symmetric, got entries that differ from their mirror image "
            f"by up to {asymmetry:g}."
        )

    # columns may have units of different size: their correlations tell
    correlations, _ = _standardized(C)
    eigenvalues = torch.linalg.eigvalsh(correlations)  # ascending
    smallest, largest = eigenvalues[..., 0], eigenvalues[..., -1]
    if (smallest < -tolerance * largest.abs()).any():
        raise ValueError(
            f"{name} must be positive semi-definite, but its smallest eigenvalue is "
            f"{torch.linalg.eigvalsh(C)[..., 0].min().item():.6g}, and "
            f"{smallest.min().item():.6g} once all variances are scaled to 1."
        )


def _standardized(C: Tensor) -> tuple[Tensor, Tensor]:
    """Return correlations and deviations; a variance that is not positive stays as it is."""
    variances = C.diagonal(dim1=-2, dim2=-1)
    std = torch.where(variances > 0, variances, torch.ones_like(variances)).sqrt()
    return C / std.unsqueeze(-1) / std.unsqueeze(-2), std


def square_root(cov: Numbers) -> Tensor:
    """Return R with R Rᵀ = cov, also for singular constants.

    Constants get the symmetric root of their correlations, times the deviations: it is diagonal
    where the matrix is, and exact for units of different size. Tensors made from
    designs get the Cholesky factor, which has useful gradients.
    """
    return _cholesky(cov) if isinstance(cov, Tensor) else _root(cov)


def _cholesky(C: Tensor) -> Tensor:
    scale = C.detach().diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None]
    jitter = 100 * torch.finfo(C.dtype).eps * scale + 1e-30  # so that singular ones pass
    return torch.linalg.cholesky(C + jitter * torch.eye(C.shape[-1]).to(C))


@lru_cache(maxsize=64)
def _root(cov: Numbers) -> Tensor:
    correlations, std = _standardized(as_tensor(cov))
    eigenvalues, V = torch.linalg.eigh(correlations)
    root = V @ torch.diag_embed(eigenvalues.clamp_min(0).sqrt()) @ V.mT
    return std.unsqueeze(-1) * root
