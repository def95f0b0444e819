"""Uncertainties whose columns deviate independently of each other, and the ring."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.parameters import (
    Numbers,
    check_at_least,
    check_order,
    common_dim,
    is_varying,
    parameter,
    per_design,
)
from airbo.uncertainty.quantile import beta_quantile, chi_squared_quantile


@dataclass(frozen=True, eq=False, repr=False)
class Exact(InputUncertainty):
    """The executed input is the design."""

    @property
    def is_additive(self) -> bool:
        """True, with δ = 0."""
        return True

    @property
    def independent_columns(self) -> bool:
        """True: constants are independent."""
        return True

    def n_base(self, d: int) -> int:
        """Return 0: nothing is drawn."""
        return 0

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        return X.unsqueeze(-2).expand(*X.shape[:-1], base.shape[0], X.shape[-1])

    def _mean(self, X: Tensor) -> Tensor:
        return X

    def _covariance(self, X: Tensor) -> Tensor:
        return torch.diag_embed(torch.zeros_like(X))


class ColumnUncertainty(InputUncertainty):
    """A deviation per column, δ_j = Q_j(u_j), with scalar or vector parameters.

    The fields of a kind are its parameters. It implements ``_deviation``, which turns uniform
    numbers into deviations, and ``_moments``; both get the parameters in the order of the fields.
    """

    @abstractmethod
    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Return the u-quantile of the deviation."""

    @abstractmethod
    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the deviation."""

    def __post_init__(self) -> None:
        """Store parameters as scalars, vectors or varying tensors that agree on the columns."""
        for name, value in self._parameters().items():
            object.__setattr__(self, name, parameter(value, name, 1))
        common_dim(self._parameters())

    def _parameters(self) -> dict[str, Numbers]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @property
    def dim(self) -> int | None:
        """Length of the vectors among the parameters."""
        return common_dim(self._parameters())

    @property
    def is_additive(self) -> bool:
        """True for constant parameters."""
        return not any(is_varying(p, 1) for p in self._parameters().values())

    @property
    def independent_columns(self) -> bool:
        """True."""
        return True

    def n_base(self, d: int) -> int:
        """Return d: one number per column."""
        return d

    def _per_design(self, X: Tensor) -> list[Tensor]:
        return [per_design(p, X, name, 1) for name, p in self._parameters().items()]

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s d"]
    ) -> Float[Tensor, "*batch n s d"]:
        # a varying parameter (*batch n d) meets the samples as (*batch n 1 d)
        parameters = [p.unsqueeze(-2) if p.ndim > 1 else p for p in self._per_design(X)]
        return X.unsqueeze(-2) + self._deviation(base, parameters)

    def _mean(self, X: Tensor) -> Tensor:
        return X + self._moments(self._per_design(X))[0]

    def _covariance(self, X: Tensor) -> Tensor:
        return torch.diag_embed(self._moments(self._per_design(X))[1].expand(X.shape))


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(ColumnUncertainty):
    """The deviation lies anywhere between ``low`` and ``high``."""

    low: Numbers
    """Smallest deviation, in the units of the input."""

    high: Numbers
    """Largest deviation."""

    def __post_init__(self) -> None:
        """Refuse bounds that are not finite or in the wrong order."""
        super().__post_init__()
        check_order(self.low, self.high)

    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        low, high = parameters
        return low + (high - low) * u

    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        low, high = parameters
        return (low + high) / 2, (high - low) ** 2 / 12


@dataclass(frozen=True, eq=False, repr=False)
class Beta(ColumnUncertainty):
    """The deviation is ``loc + scale * B`` with B ~ Beta(a, b): support [loc, loc + scale]."""

    a: Numbers
    """First shape parameter, > 0."""

    b: Numbers
    """Second shape parameter, > 0."""

    loc: Numbers = 0.0
    """Smallest deviation."""

    scale: Numbers = 1.0
    """Width of the support."""

    def __post_init__(self) -> None:
        """Refuse shapes that are not positive and negative scales."""
        super().__post_init__()
        check_at_least(self.a, "a", strict=True)
        check_at_least(self.b, "b", strict=True)
        check_at_least(self.scale, "scale")

    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        a, b, loc, scale = parameters
        return loc + scale * beta_quantile(u, a, b)

    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        a, b, loc, scale = parameters
        mean = a / (a + b)
        variance = mean * (1 - mean) / (a + b + 1)
        return loc + scale * mean, scale**2 * variance


@dataclass(frozen=True, eq=False, repr=False)
class ChiSquared(ColumnUncertainty):
    """The deviation is ``loc + scale * C`` with C chi-squared with ``df`` degrees of freedom."""

    df: Numbers
    """Degrees of freedom, > 0, not necessarily whole."""

    loc: Numbers = 0.0
    """Smallest deviation."""

    scale: Numbers = 1.0
    """Factor of the chi-squared number."""

    def __post_init__(self) -> None:
        """Refuse degrees of freedom that are not positive and negative scales."""
        super().__post_init__()
        check_at_least(self.df, "df", strict=True)
        check_at_least(self.scale, "scale")

    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        df, loc, scale = parameters
        return loc + scale * chi_squared_quantile(u, df)

    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        df, loc, scale = parameters
        return loc + scale * df, 2 * scale**2 * df


@dataclass(frozen=True, eq=False, repr=False)
class Ring(InputUncertainty):
    """The executed input lies on a circle around the design, at any angle: two columns."""

    radius: Numbers
    """Distance from the design; inside Varying a tensor (*batch n 1)."""

    def __post_init__(self) -> None:
        """Refuse a radius that is negative or not one number."""
        object.__setattr__(self, "radius", parameter(self.radius, "radius", 0))
        if is_varying(self.radius, 0) and (self.radius.ndim < 2 or self.radius.shape[-1] != 1):
            raise ValueError(
                "radius must be a number, or inside Varying a tensor of shape (*batch, n, 1), "
                f"got shape {tuple(self.radius.shape)}."
            )
        check_at_least(self.radius, "radius")

    @property
    def dim(self) -> int:
        """Two columns."""
        return 2

    @property
    def is_additive(self) -> bool:
        """True for a constant radius."""
        return not is_varying(self.radius, 0)

    def n_base(self, d: int) -> int:
        """Return 1: the angle."""
        return 1

    def _perturb(
        self, X: Float[Tensor, "*batch n 2"], base: Float[Tensor, "s 1"]
    ) -> Float[Tensor, "*batch n s 2"]:
        angle = 2 * math.pi * base
        unit = torch.cat([angle.cos(), angle.sin()], dim=-1)  # (s, 2)
        radius = self._radius(X)
        return X.unsqueeze(-2) + (radius.unsqueeze(-2) if radius.ndim else radius) * unit

    def _mean(self, X: Tensor) -> Tensor:
        return X

    def _covariance(self, X: Tensor) -> Tensor:
        return torch.diag_embed((self._radius(X) ** 2 / 2).expand(X.shape))

    def _radius(self, X: Tensor) -> Tensor:
        return per_design(self.radius, X, "radius", 1)
