"""Mixtures of normal deviations."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.gaussian import check_covariance, square_root
from airbo.uncertainty.parameters import (
    Numbers,
    as_tensor,
    check_at_least,
    is_varying,
    ndim,
    parameter,
    per_design,
)

_MAX_NDIM = {"means": 2, "covs": 3, "weights": 1}


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
        """Refuse weights that are no probabilities, bad matrices and sizes that disagree."""
        means = parameter(self.means, "means", 2)
        if ndim(means) < 2:
            raise ValueError("means must have one row per component: shape (k, d).")
        k, d = as_tensor(means).shape[-2:]
        covs = parameter(self.covs, "covs", 3)
        check_covariance(covs, "covs")
        if ndim(covs) == 2:
            covs = covs.expand(k, d, d) if isinstance(covs, Tensor) else (covs,) * k
        weights = parameter([1 / k] * k if self.weights is None else self.weights, "weights", 1)
        for name, value in {"means": means, "covs": covs, "weights": weights}.items():
            object.__setattr__(self, name, value)
        self._check_sizes(k, d)
        self._check_weights()

    def _check_sizes(self, k: int, d: int) -> None:
        covs, weights = as_tensor(self.covs).shape[-3:], as_tensor(self.weights).shape[-1:]
        if covs != (k, d, d):
            raise ValueError(
                f"means are {k} rows of {d} columns, so covs must be {(k, d, d)} or {(d, d)}, "
                f"got {tuple(covs)}."
            )
        if weights != (k,):
            raise ValueError(f"means has {k} components, but weights is for {tuple(weights)}.")

    def _check_weights(self) -> None:
        check_at_least(self.weights, "weights")
        total = as_tensor(self.weights).detach().sum(dim=-1)
        worst = total.flatten()[(total - 1).abs().argmax()].item()
        if abs(worst - 1) > 1e-6:
            raise ValueError(f"weights must sum to 1, but they sum to {worst:.6g}.")

    @property
    def dim(self) -> int:
        """Number of columns of the means."""
        return int(as_tensor(self.means).shape[-1])

    @property
    def is_additive(self) -> bool:
        """True for constant parameters."""
        return not any(is_varying(getattr(self, n), k) for n, k in _MAX_NDIM.items())

    def n_base(self, d: int) -> int:
        """Return 1 + d: the first number picks the component."""
        return 1 + d

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
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

    def _get(self, name: str, X: Tensor) -> Tensor:
        return per_design(getattr(self, name), X, name, _MAX_NDIM[name])

    def _mean(self, X: Tensor) -> Tensor:
        return X + self._centre(X)

    def _centre(self, X: Tensor) -> Tensor:
        return torch.einsum("...k,...kd->...d", self._get("weights", X), self._get("means", X))

    def _covariance(self, X: Tensor) -> Tensor:
        # Σ w (C + m mᵀ) - m̄ m̄ᵀ, with m measured from m̄
        away = self._get("means", X) - self._centre(X).unsqueeze(-2)
        second = self._get("covs", X) + away.unsqueeze(-1) * away.unsqueeze(-2)
        total = torch.einsum("...k,...kij->...ij", self._get("weights", X), second)
        return total.expand(*X.shape, X.shape[-1])
