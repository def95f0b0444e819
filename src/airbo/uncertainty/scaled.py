"""The same uncertainty with larger or smaller deviations: a more, or less, precise machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from airbo.uncertainty.additive import Beta, ChiSquared, Exact, Ring, Uniform
from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.clipped import Clipped
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.gaussian import Normal
from airbo.uncertainty.mixture import GaussianMixture
from airbo.uncertainty.parameters import Numbers, check_at_least, parameter
from airbo.uncertainty.product import Product
from airbo.uncertainty.relative import Relative
from airbo.uncertainty.rounded import Rounded
from airbo.uncertainty.varying import Piecewise, Varying


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(InputUncertainty):
    """Another uncertainty, with every deviation x' - x times a factor.

    ``scale`` makes one only where the kind inside has no parameter that says the same.
    """

    uncertainty: InputUncertainty
    """Where inputs would land with the factor 1."""

    factor: float | int
    """What deviations are multiplied with: 0.5 is twice as precise, 0 is exact."""

    def __post_init__(self) -> None:
        """Refuse factors that are negative or not one number."""
        if not isinstance(self.uncertainty, InputUncertainty):
            raise TypeError(f"Scaled needs an uncertainty, got {self.uncertainty!r}.")
        object.__setattr__(self, "factor", _checked(self.factor))

    @property
    def dim(self) -> int | None:
        """That of the uncertainty inside."""
        return self.uncertainty.dim

    @property
    def is_additive(self) -> bool:
        """As for the uncertainty inside."""
        return self.uncertainty.is_additive

    @property
    def independent_columns(self) -> bool:
        """As for the uncertainty inside."""
        return self.uncertainty.independent_columns

    def n_base(self, d: int) -> int:
        """Return the number that the uncertainty inside takes."""
        return self.uncertainty.n_base(d)

    def check_dim(self, d: int) -> None:
        """Refuse what the uncertainty inside cannot act on."""
        self.uncertainty.check_dim(d)

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        x = X.unsqueeze(-2)
        return x + self.factor * (self.uncertainty.perturb(X, base) - x)

    def _mean(self, X: Tensor) -> Tensor:
        return X + self.factor * (self.uncertainty.mean(X) - X)

    def _covariance(self, X: Tensor) -> Tensor:
        return self.factor**2 * self.uncertainty.covariance(X)


def scale(uncertainty: InputUncertainty, factor: float | int) -> InputUncertainty:
    """Return the uncertainty with every deviation x' - x times ``factor``.

    The kind stays what it is wherever it can say so. The limits of ``Clipped`` stay where they are,
    since a stop does not move when a machine gets more precise.

    >>> from airbo import uncertainty as unc
    >>> unc.scale(unc.Product([unc.Normal(2.0), unc.Beta(0.4, 0.2, scale=0.1)]), 0.5)
    Product(blocks=(Normal(std=1.0), Beta(a=0.4, b=0.2, scale=0.05)))
    """
    if not isinstance(uncertainty, InputUncertainty):
        raise TypeError(f"uncertainty must be an airbo.uncertainty, got {uncertainty!r}.")
    return _scale(uncertainty, _checked(factor))


def stretch(uncertainty: InputUncertainty, factors: Sequence[float]) -> InputUncertainty | None:
    """Return the uncertainty with the deviation in every column times a factor of its own.

    None: its kind cannot say that, or its parameters were made from designs.
    """
    one_for_all = len(set(factors)) == 1
    kinds = (*_STRETCHABLE, Ring) if one_for_all else _STRETCHABLE
    if not isinstance(uncertainty, kinds) or not uncertainty.is_additive:
        return None
    return _scale(uncertainty, factors[0] if one_for_all else np.asarray(factors))


Factor = float | NDArray[np.float64]
"""One for all columns, or one per column."""

_STRETCHABLE = (Exact, Normal, Uniform, Beta, ChiSquared, GaussianMixture, Empirical)


@singledispatch
def _scale(u: InputUncertainty, factor: Any) -> InputUncertainty:
    return Scaled(u, factor)


@_scale.register
def _(u: Scaled, factor: float) -> InputUncertainty:
    return Scaled(u.uncertainty, u.factor * factor)


@_scale.register
def _(u: Exact, factor: Factor) -> InputUncertainty:
    return u


@_scale.register
def _(u: Normal, factor: Factor) -> InputUncertainty:
    if u.cov is not None:
        return Normal(cov=_times(u.cov, np.multiply.outer(factor, factor)))
    return Normal(_times(u.std, factor))


@_scale.register
def _(u: Uniform, factor: Factor) -> InputUncertainty:
    return Uniform(_times(u.low, factor), _times(u.high, factor))


@_scale.register(Beta)
@_scale.register(ChiSquared)
def _(u: Beta | ChiSquared, factor: Factor) -> InputUncertainty:
    return replace(u, loc=_times(u.loc, factor), scale=_times(u.scale, factor))


@_scale.register
def _(u: Ring, factor: float) -> InputUncertainty:
    return Ring(_times(u.radius, factor))


@_scale.register
def _(u: GaussianMixture, factor: Factor) -> InputUncertainty:
    covs = _times(u.covs, np.multiply.outer(factor, factor))
    return replace(u, means=_times(u.means, factor), covs=covs)


@_scale.register
def _(u: Empirical, factor: Factor) -> InputUncertainty:
    return Empirical(_times(u.deviations, factor))


@_scale.register
def _(u: Relative, factor: float) -> InputUncertainty:
    return Relative(_scale(u.share, factor))


@_scale.register
def _(u: Product, factor: float) -> InputUncertainty:
    return replace(u, blocks=tuple(_scale(block, factor) for block in u.blocks))


@_scale.register
def _(u: Piecewise, factor: float) -> InputUncertainty:
    return replace(u, pieces=tuple(_scale(piece, factor) for piece in u.pieces))


@_scale.register(Clipped)
@_scale.register(Rounded)
def _(u: Clipped | Rounded, factor: float) -> InputUncertainty:
    return replace(u, uncertainty=_scale(u.uncertainty, factor))


@_scale.register
def _(u: Varying, factor: float) -> InputUncertainty:
    return replace(u, fn=_ScaledFunction(u.fn, factor))


@dataclass(frozen=True)
class _ScaledFunction:
    """The function of a ``Varying``, followed by ``scale``."""

    fn: Callable[[Tensor], InputUncertainty]
    factor: float

    def __call__(self, X: Tensor) -> InputUncertainty:
        return scale(self.fn(X), self.factor)


def _checked(factor: float | int) -> float:
    number = parameter(factor, "factor", 0)
    check_at_least(number, "factor")
    return float(number)


def _times(p: Numbers, factor: Any) -> Numbers:
    return p * float(factor) if isinstance(p, Tensor) else (np.asarray(p) * factor).tolist()
