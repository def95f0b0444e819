"""Kinds that deviate column by column: exact, uniform, beta, chi-squared, log-normal.

Notation: u uniform base draws (s d); δ the deviation; parameters are numbers, vectors (d), or
inside ``Varying`` tensors (*batch n d). Uniform, beta and chi-squared have a place and a scale:

    δ = loc + scale · B,  B = Q(u) of a standard shape, with the distribution function F,
                          the mean m and the variance v
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import special
from torch import Tensor
from torch.autograd.function import once_differentiable

from airbo.uncertainty.base import (
    InputUncertainty,
    Numbers,
    as_step,
    beside_samples,
    is_varying,
    normal_cdf,
    with_columns,
)
from airbo.uncertainty.gaussians import (
    Mixture,
    Resolution,
    around,
    by_column,
    gauss_rule,
    midpoints,
    with_same_weights,
)


@dataclass(frozen=True, eq=False, repr=False)
class Exact(InputUncertainty):
    """The executed input is the design."""

    is_exact: ClassVar[bool] = True
    has_bounds: ClassVar[bool] = True
    independent_columns: ClassVar[bool] = True  # constants are independent

    def n_base(self, d: int) -> int:
        return 0

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x
        return X.unsqueeze(-2).expand(*X.shape[:-1], base.shape[0], X.shape[-1])

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x < t) is 1 above x and 0 elsewhere
        return as_step(t - X)

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty:
        return self

    def _scaled(self, factor: float) -> InputUncertainty:
        return self

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # one point, with weight 1
        return by_column(around(X, X.new_ones(1), X.new_zeros(1, X.shape[-1])))


class LocationScale(InputUncertainty):
    """δ = loc + scale · B per column, B of a standard shape: see the notation above."""

    independent_columns: ClassVar[bool] = True
    shapes: ClassVar[tuple[str, ...]] = ()
    """Fields with the parameters of the standard shape."""

    def _place(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return loc and scale."""
        return self._get("loc", X), self._get("scale", X)

    @staticmethod
    @abstractmethod
    def _quantile(u: Tensor, *shape: Tensor) -> Tensor:
        """Return Q(u)."""

    @staticmethod
    @abstractmethod
    def _below(z: Tensor, *shape: Tensor) -> Tensor:
        """Return F(z)."""

    @staticmethod
    @abstractmethod
    def _moments(*shape: Tensor) -> tuple[Any, Any]:
        """Return m and v."""

    def _shape(self, X: Tensor) -> list[Tensor]:
        return [self._get(name, X) for name in self.shapes]

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        loc, scale, *shape = map(beside_samples, [*self._place(X), *self._shape(X)])
        return X.unsqueeze(-2) + loc + scale * self._quantile(base, *shape)

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = x + loc + scale m
        loc, scale = self._place(X)
        return X + loc + scale * self._moments(*self._shape(X))[0]

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = diag(scale² v): columns are independent
        variance = self._place(X)[1].square() * self._moments(*self._shape(X))[1]
        return torch.diag_embed(variance.expand(X.shape))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = F((t - x - loc) / scale), from above where the scale is negative, and a step
        # where it is 0
        loc, scale = self._place(X)
        F = self._below((t - X - loc) / torch.where(scale == 0, 1.0, scale), *self._shape(X))
        F = torch.where(scale > 0, F, 1 - F)
        return torch.where(scale == 0, as_step(t - X - loc), F)

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty:
        chosen: InputUncertainty = with_columns(self, columns)
        return chosen

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        varies = not (self.is_additive or self.is_multiplicative)
        if not varies or not all(isinstance(getattr(self, n), float) for n in self.shapes):
            return super()._gaussians(X, r)
        # B has one shape for all designs, whose Gauss rule has nodes b_j, weights w_j:
        # P_x = Σ_j w_j at the points x + loc + scale · b_j
        shape = tuple(getattr(self, name) for name in self.shapes)
        nodes, weights = (X.new_tensor(v) for v in _gauss_rule(type(self), shape, r.nodes))
        loc, scale = (p.expand_as(X) for p in self._place(X))
        means = (X + loc).unsqueeze(-2) + scale.unsqueeze(-2) * nodes.unsqueeze(-1)
        return [with_same_weights((c,), weights, m) for c, m in enumerate(means.split(1, -1))]


@lru_cache(maxsize=256)
def _gauss_rule(
    kind: type[LocationScale], shape: tuple[float, ...], n: int
) -> tuple[np.ndarray, ...]:
    # the standard shape at 2048 equally likely levels u, and the Gauss rule of these values
    u = midpoints(1)
    return gauss_rule(kind._quantile(u, *map(u.new_tensor, shape)).numpy().ravel(), n)


def _from_scipy(function: Callable[..., Any], *arguments: Tensor) -> Tensor:
    arrays = [t.detach().double().cpu().numpy() for t in arguments]
    return torch.from_numpy(np.asarray(function(*arrays))).to(arguments[0])


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(LocationScale):
    """The deviation lies anywhere between ``low`` and ``high``."""

    low: Numbers
    """Smallest deviation, in the units of the input."""

    high: Numbers
    """Largest deviation."""

    has_bounds: ClassVar[bool] = True

    def _place(self, X: Tensor) -> tuple[Tensor, Tensor]:
        low, high = self._get("low", X), self._get("high", X)
        return low, high - low

    @staticmethod
    def _quantile(u: Tensor, *shape: Tensor) -> Tensor:
        return u

    @staticmethod
    def _below(z: Tensor, *shape: Tensor) -> Tensor:
        return z.clamp(0, 1)

    @staticmethod
    def _moments(*shape: Tensor) -> tuple[Any, Any]:
        return 1 / 2, 1 / 12


@dataclass(frozen=True, eq=False, repr=False)
class Beta(LocationScale):
    """The deviation is ``loc + scale * B`` with B ~ Beta(a, b): support [loc, loc + scale]."""

    a: Numbers
    """First shape parameter, > 0."""

    b: Numbers
    """Second shape parameter, > 0."""

    loc: Numbers = 0.0
    """Smallest deviation."""

    scale: Numbers = 1.0
    """Width of the support."""

    has_bounds: ClassVar[bool] = True
    shapes: ClassVar[tuple[str, ...]] = ("a", "b")

    @staticmethod
    def _quantile(u: Tensor, *shape: Tensor) -> Tensor:
        # I⁻¹(u; a, b), I the regularized incomplete beta function
        found: Tensor = _Quantile.apply(special.betaincinv, u, *shape)
        return found

    @staticmethod
    def _below(z: Tensor, *shape: Tensor) -> Tensor:
        # P(B < z) = I(z; a, b)
        return _from_scipy(special.betainc, *shape, z.clamp(0, 1)).to(z)

    @staticmethod
    def _moments(*shape: Tensor) -> tuple[Any, Any]:
        # E B = a / (a + b), Var B = ab / ((a + b)² (a + b + 1))
        a, b = shape
        mean = a / (a + b)
        return mean, mean * (1 - mean) / (a + b + 1)


@dataclass(frozen=True, eq=False, repr=False)
class ChiSquared(LocationScale):
    """The deviation is ``loc + scale * C`` with C chi-squared with ``df`` degrees of freedom."""

    df: Numbers
    """Degrees of freedom, > 0, not necessarily whole."""

    loc: Numbers = 0.0
    """Smallest deviation."""

    scale: Numbers = 1.0
    """Factor of the chi-squared number."""

    shapes: ClassVar[tuple[str, ...]] = ("df",)

    @staticmethod
    def _quantile(u: Tensor, *shape: Tensor) -> Tensor:
        # 2 P⁻¹(df/2, u), P the regularized incomplete gamma function
        half: Tensor = _Quantile.apply(special.gammaincinv, u, shape[0] / 2)
        return 2 * half

    @staticmethod
    def _below(z: Tensor, *shape: Tensor) -> Tensor:
        # P(C < z) = P(df/2, z/2)
        return _from_scipy(special.chdtr, *shape, z.clamp_min(0)).to(z)

    @staticmethod
    def _moments(*shape: Tensor) -> tuple[Any, Any]:
        # E C = df, Var C = 2 df
        return shape[0], 2 * shape[0]


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(LocationScale):
    r"""The logarithm of the design has a normal deviation with mean 0.

    .. math:: x' = x \, e^\delta = x + x \, B, \quad \delta \sim \mathcal N(0, \sigma^2),
              \quad B = e^\delta - 1

    For small :math:`\sigma` this is an error of :math:`100\,\sigma` percent that never changes the
    sign of x'.
    """

    sigma: Numbers
    """Standard deviation of the logarithm, one for all columns or one per column."""

    is_additive: ClassVar[bool] = False
    is_multiplicative: ClassVar[bool] = True  # x' / x does not depend on x
    shapes: ClassVar[tuple[str, ...]] = ("sigma",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_varying(self.sigma, 1):
            raise ValueError("sigma must be the same for all designs, got one per design.")

    def _place(self, X: Tensor) -> tuple[Tensor, Tensor]:
        # the scale of B is the design itself
        return X.new_zeros(()), X

    @staticmethod
    def _quantile(u: Tensor, *shape: Tensor) -> Tensor:
        # e^(σ z) - 1
        return torch.expm1(shape[0] * torch.special.ndtri(u))

    @staticmethod
    def _below(z: Tensor, *shape: Tensor) -> Tensor:
        # P(B < z) = Φ(log(1 + z) / σ)
        return normal_cdf((1 + z).clamp_min(1e-300).log(), shape[0].expand_as(z))

    @staticmethod
    def _moments(*shape: Tensor) -> tuple[Any, Any]:
        # E B = e^(σ²/2) - 1, Var B = (e^σ² - 1) e^σ²
        v = shape[0].square()
        return torch.expm1(v / 2), torch.expm1(v) * torch.exp(v)


# -- quantile functions that PyTorch lacks, with finite gradients for their shape parameters

_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # best relative step of a central difference


class _Quantile(torch.autograd.Function):
    """A quantile function of SciPy, of shape parameters and u, which is a constant.

    Shape parameters get central differences as gradients.
    """

    @staticmethod
    def forward(ctx: Any, quantile: Callable[..., Any], u: Tensor, *shapes: Tensor) -> Tensor:
        ctx.quantile = quantile
        ctx.save_for_backward(u, *shapes)
        return _from_scipy(quantile, *shapes, u)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, *shapes = ctx.saved_tensors
        grads: list[Tensor | None] = [None, None]
        for i, shape in enumerate(shapes):
            # ∂q/∂a = (q(a + h) - q(a - h)) / 2h
            h = _STEP * shape.double()
            up, down = (
                _from_scipy(ctx.quantile, *shapes[:i], moved, *shapes[i + 1 :], u.double())
                for moved in (shape.double() + h, shape.double() - h)
            )
            slope = torch.nan_to_num((up - down) / (2 * h), nan=0.0, posinf=0.0, neginf=0.0)
            grads.append((grad * slope.to(grad)).sum_to_size(shape.shape))
        return tuple(grads)
