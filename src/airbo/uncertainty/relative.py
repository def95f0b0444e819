"""Errors in percent: the deviation grows with the value that was asked for."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.parameters import (
    Numbers,
    check_at_least,
    common_dim,
    is_varying,
    parameter,
    per_design,
)


@dataclass(frozen=True, eq=False, repr=False)
class Relative(InputUncertainty):
    r"""The deviation is a share of the design.

    .. math:: x' = x \, (1 + \delta)

    ``Relative(Normal(0.05))`` is an error of 5%, ``Relative(Uniform(-0.1, 0.1))`` one of at most
    10%. Near x = 0 there is hardly any deviation.
    """

    share: InputUncertainty
    """Distribution of the share δ: any uncertainty that does not change with the design."""

    def __post_init__(self) -> None:
        """Refuse a share that depends on the design."""
        if not isinstance(self.share, InputUncertainty):
            raise TypeError(f"Relative needs an uncertainty, got {self.share!r}.")
        if not self.share.is_additive:
            raise ValueError(
                f"The share in Relative must be the same for all designs, got {self.share}."
            )

    @property
    def dim(self) -> int | None:
        """That of the share."""
        return self.share.dim

    @property
    def is_additive(self) -> bool:
        """False: the deviation grows with the design."""
        return False

    @property
    def is_multiplicative(self) -> bool:
        """True: x' / x = 1 + δ does not depend on x."""
        return True

    @property
    def independent_columns(self) -> bool:
        """As for the share."""
        return self.share.independent_columns

    def n_base(self, d: int) -> int:
        """Return the number that the share takes."""
        return self.share.n_base(d)

    def check_dim(self, d: int) -> None:
        """Refuse what the share cannot act on."""
        self.share.check_dim(d)

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        share = self.share.perturb(torch.zeros_like(X[..., :1, :]), base)  # (..., 1, s, d)
        return X.unsqueeze(-2) * (1 + share)

    def _mean(self, X: Tensor) -> Tensor:
        return X * (1 + self.share.mean(torch.zeros_like(X)))

    def _covariance(self, X: Tensor) -> Tensor:
        return X.unsqueeze(-1) * X.unsqueeze(-2) * self.share.covariance(torch.zeros_like(X))


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(InputUncertainty):
    r"""The logarithm of the design has a normal deviation with mean 0.

    .. math:: x' = x \, e^\delta, \quad \delta \sim \mathcal N(0, \sigma^2)

    For small :math:`\sigma` this is an error of :math:`100\,\sigma` percent that never changes the
    sign of x'.
    """

    sigma: Numbers
    """Standard deviation of the logarithm, one for all columns or one per column."""

    def __post_init__(self) -> None:
        """Refuse negative deviations."""
        object.__setattr__(self, "sigma", parameter(self.sigma, "sigma", 1))
        check_at_least(self.sigma, "sigma")
        if is_varying(self.sigma, 1):
            raise ValueError("sigma must be the same for all designs, got one per design.")

    @property
    def dim(self) -> int | None:
        """Length of the vector, if it is one."""
        return common_dim({"sigma": self.sigma})

    @property
    def is_additive(self) -> bool:
        """False."""
        return False

    @property
    def is_multiplicative(self) -> bool:
        """True: x' / x does not depend on x."""
        return True

    @property
    def independent_columns(self) -> bool:
        """True."""
        return True

    def n_base(self, d: int) -> int:
        """Return d: one number per column."""
        return d

    def log_std(self, X: Tensor) -> Float[Tensor, "..."]:
        """Return the standard deviation of the logarithm for designs like ``X``."""
        return per_design(self.sigma, X, "sigma", 1)

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s d"]
    ) -> Float[Tensor, "*batch n s d"]:
        return X.unsqueeze(-2) * torch.exp(self.log_std(X) * torch.special.ndtri(base))

    def _mean(self, X: Tensor) -> Tensor:
        return X * torch.exp(self.log_std(X).square() / 2)

    def _covariance(self, X: Tensor) -> Tensor:
        # Var e^δ = (e^σ² - 1) e^σ²
        v = self.log_std(X).square()
        return torch.diag_embed(X.square() * torch.expm1(v) * torch.exp(v))
