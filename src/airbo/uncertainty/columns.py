"""Kinds that deviate column by column: exact, uniform, beta, chi-squared, log-normal.

Notation: u uniform base draws (s d); δ = Q(u) the deviation, where Q is the quantile function of a
kind; its parameters are numbers, vectors (d), or inside Varying tensors (*batch n d).
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from scipy import special
from torch import Tensor
from torch.autograd.function import once_differentiable

from airbo.uncertainty.base import InputUncertainty, with_columns
from airbo.uncertainty.gaussians import (
    Mixture,
    Resolution,
    around,
    bend,
    gauss_rule,
    midpoints,
    split,
    with_same_weights,
)
from airbo.uncertainty.kinds import LENGTHS
from airbo.uncertainty.parameters import (
    Numbers,
    as_step,
    as_tensor,
    is_varying,
    normal_cdf,
    per_design,
)


@dataclass(frozen=True, eq=False, repr=False)
class Exact(InputUncertainty):
    """The executed input is the design."""

    is_exact: ClassVar[bool] = True
    has_bounds: ClassVar[bool] = True
    is_additive: ClassVar[bool] = True  # with δ = 0
    independent_columns: ClassVar[bool] = True  # constants are independent

    def n_base(self, d: int) -> int:
        """Return 0: nothing is drawn."""
        return 0

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        # x' = x
        return X.unsqueeze(-2).expand(*X.shape[:-1], base.shape[0], X.shape[-1])

    def _mean(self, X: Tensor) -> Tensor:
        return X

    def _covariance(self, X: Tensor) -> Tensor:
        return torch.diag_embed(torch.zeros_like(X))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x < t) is 1 above x and 0 elsewhere
        return as_step(t - X)

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty:
        """Return itself."""
        return self

    def _scaled(self, factor: float) -> InputUncertainty:
        return self

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # one point, with weight 1
        return [around(X, X.new_ones(1), X.new_zeros(1, X.shape[-1]))]


class ColumnUncertainty(InputUncertainty):
    """A deviation per column, δ_j = Q_j(u_j), with scalar or vector parameters.

    The fields of a kind are its parameters. It implements ``_deviation``, which turns uniform
    numbers into deviations, ``_moments`` and ``_below``; all get the parameters in the order of the
    fields.
    """

    independent_columns: ClassVar[bool] = True

    @abstractmethod
    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Return the u-quantile of the deviation."""

    @abstractmethod
    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the deviation."""

    @abstractmethod
    def _below(self, deviation: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Return the probability of a smaller deviation."""

    def _parameters(self) -> dict[str, Numbers]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @property
    def is_additive(self) -> bool:
        """True for constant parameters."""
        return not any(is_varying(p, 1) for p in self._parameters().values())

    def _per_design(self, X: Tensor) -> list[Tensor]:
        return [per_design(p, X, name, 1) for name, p in self._parameters().items()]

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s d"]
    ) -> Float[Tensor, "*batch n s d"]:
        # a varying parameter (*batch n d) meets the samples as (*batch n 1 d)
        parameters = [p.unsqueeze(-2) if p.ndim > 1 else p for p in self._per_design(X)]
        return X.unsqueeze(-2) + self._deviation(base, parameters)

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = x + E δ
        return X + self._moments(self._per_design(X))[0]

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = diag(Var δ_j): columns are independent
        return torch.diag_embed(self._moments(self._per_design(X))[1].expand(X.shape))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = P(δ < t - x)
        return self._below(t - X, self._per_design(X))

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty:
        """Choose the parameters of these columns."""
        chosen: InputUncertainty = with_columns(self, columns)
        return chosen

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        place = [name for name in self._parameters() if name in LENGTHS]
        shape = [p for name, p in self._parameters().items() if name not in LENGTHS]
        if self.is_additive or any(as_tensor(p).ndim for p in shape):
            return super()._gaussians(X, r)
        # δ = loc + scale · B with B of a fixed shape, whose Gauss rule has nodes b_j, weights w_j:
        # P_x = Σ_j w_j at the points x + loc + scale · b_j
        this: Any = self
        standard = replace(this, **dict(zip(place, (0.0, 1.0), strict=True)))
        nodes, weights = (X.new_tensor(v) for v in _gauss_rule(standard, r.nodes))
        loc, scale = (per_design(getattr(self, n), X, n, 1).expand_as(X) for n in place)
        scale = scale - loc if place == ["low", "high"] else scale
        means = (X + loc).unsqueeze(-2) + scale.unsqueeze(-2) * nodes.unsqueeze(-1)
        return [with_same_weights((c,), weights, m) for c, m in enumerate(means.split(1, -1))]


@lru_cache(maxsize=256)
def _gauss_rule(shape: InputUncertainty, n: int) -> tuple[np.ndarray, ...]:
    # the shape at 2048 equally likely levels u, and the Gauss rule of these values
    origin = torch.zeros(1, 1, dtype=torch.float64)
    return gauss_rule(shape.perturb(origin, midpoints(1)).numpy().ravel(), n)


def _in_units(
    deviation: Tensor, loc: Tensor, scale: Tensor, F: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return F((δ - loc) / scale), a step where the scale is 0."""
    # z = (δ - loc) / scale
    z = (deviation - loc) / torch.where(scale > 0, scale, 1.0)
    return torch.where(scale > 0, F(z), as_step(deviation - loc))


def _from_scipy(function: Callable[..., Any], *arguments: Tensor) -> Tensor:
    arrays = [t.detach().double().cpu().numpy() for t in arguments]
    return torch.from_numpy(np.asarray(function(*arrays))).to(arguments[-1])


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(ColumnUncertainty):
    """The deviation lies anywhere between ``low`` and ``high``."""

    low: Numbers
    """Smallest deviation, in the units of the input."""

    high: Numbers
    """Largest deviation."""

    has_bounds: ClassVar[bool] = True

    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        # Q(u) = l + (h - l) u
        low, high = parameters
        return low + (high - low) * u

    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        # E δ = (l + h) / 2, Var δ = (h - l)² / 12
        low, high = parameters
        return (low + high) / 2, (high - low) ** 2 / 12

    def _below(self, deviation: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        # P(δ < t) = (t - l) / (h - l), between 0 and 1
        low, high = parameters
        return _in_units(deviation, low, high - low, lambda z: z.clamp(0, 1))


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

    has_bounds: ClassVar[bool] = True

    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        # Q(u) = loc + scale · I⁻¹(u; a, b), I the regularized incomplete beta function
        a, b, loc, scale = parameters
        return loc + scale * beta_quantile(u, a, b)

    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        # E B = a / (a + b), Var B = ab / ((a + b)² (a + b + 1))
        a, b, loc, scale = parameters
        mean = a / (a + b)
        variance = mean * (1 - mean) / (a + b + 1)
        return loc + scale * mean, scale**2 * variance

    def _below(self, deviation: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        # P(B < z) = I(z; a, b)
        a, b, loc, scale = parameters
        inside = lambda a, b, z: special.betainc(a, b, np.clip(z, 0, 1))  # noqa: E731
        return _in_units(deviation, loc, scale, lambda z: _from_scipy(inside, a, b, z))


@dataclass(frozen=True, eq=False, repr=False)
class ChiSquared(ColumnUncertainty):
    """The deviation is ``loc + scale * C`` with C chi-squared with ``df`` degrees of freedom."""

    df: Numbers
    """Degrees of freedom, > 0, not necessarily whole."""

    loc: Numbers = 0.0
    """Smallest deviation."""

    scale: Numbers = 1.0
    """Factor of the chi-squared number."""

    def _deviation(self, u: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        # Q(u) = loc + scale · 2 P⁻¹(df/2, u), P the regularized incomplete gamma function
        df, loc, scale = parameters
        return loc + scale * chi_squared_quantile(u, df)

    def _moments(self, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        # E C = df, Var C = 2 df
        df, loc, scale = parameters
        return loc + scale * df, 2 * scale**2 * df

    def _below(self, deviation: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        # P(C < z) = P(df/2, z/2)
        df, loc, scale = parameters
        above = lambda df, z: special.chdtr(df, np.maximum(z, 0))  # noqa: E731
        return _in_units(deviation, loc, scale, lambda z: _from_scipy(above, df, z))


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(InputUncertainty):
    r"""The logarithm of the design has a normal deviation with mean 0.

    .. math:: x' = x \, e^\delta, \quad \delta \sim \mathcal N(0, \sigma^2)

    For small :math:`\sigma` this is an error of :math:`100\,\sigma` percent that never changes the
    sign of x'.
    """

    sigma: Numbers
    """Standard deviation of the logarithm, one for all columns or one per column."""

    is_additive: ClassVar[bool] = False
    is_multiplicative: ClassVar[bool] = True  # x' / x does not depend on x
    independent_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a deviation that changes with the design."""
        super().__post_init__()
        if is_varying(self.sigma, 1):
            raise ValueError("sigma must be the same for all designs, got one per design.")

    def log_std(self, X: Tensor) -> Float[Tensor, "..."]:
        """Return the standard deviation of the logarithm for designs like ``X``."""
        return per_design(self.sigma, X, "sigma", 1)

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s d"]
    ) -> Float[Tensor, "*batch n s d"]:
        # x' = x exp(σ z)
        return X.unsqueeze(-2) * torch.exp(self.log_std(X) * torch.special.ndtri(base))

    def _mean(self, X: Tensor) -> Tensor:
        # E e^δ = e^(σ²/2)
        return X * torch.exp(self.log_std(X).square() / 2)

    def _covariance(self, X: Tensor) -> Tensor:
        # Var e^δ = (e^σ² - 1) e^σ²
        v = self.log_std(X).square()
        return torch.diag_embed(X.square() * torch.expm1(v) * torch.exp(v))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x e^δ < t) = Φ(log(t / x) / σ) for x > 0, and the rest of it for x < 0
        ratio = t / torch.where(X == 0, 1.0, X)
        F = normal_cdf(ratio.clamp_min(1e-300).log(), self.log_std(X).expand_as(X))
        F = torch.where(ratio > 0, F, 0.0)
        return torch.where(X == 0, as_step(t), torch.where(X > 0, F, 1 - F))

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty:
        """Choose the parameters of these columns."""
        chosen: InputUncertainty = with_columns(self, columns)
        return chosen

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        landed = []
        one, zero = torch.ones(1, 1).double(), torch.zeros(1, 1, 1).double()
        for c, std in enumerate(self.log_std(X).double().expand(X.shape[-1])):
            # e^δ: δ is cut into narrow normals, and each is moved along the exponential
            log_factors = split(Mixture((0,), one, zero, zero + std.square()), r.pieces)
            factors = bend(log_factors, torch.exp).to(X)  # x' / x
            x = X[..., [c]].unsqueeze(-2)
            assert factors.spread is not None
            spread = x.square() * factors.spread
            landed.append(with_same_weights((c,), factors.weights, x * factors.means, spread))
        return landed


# -- quantile functions that PyTorch lacks, with finite gradients for their shape parameters

_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # best relative step of a central difference


def beta_quantile(
    u: Float[Tensor, "*#shape"], a: Float[Tensor, "*#shape"], b: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*shape"]:
    """Return the u-quantile of Beta(a, b)."""
    return _Quantile.apply(_beta, u, a, b)


def chi_squared_quantile(
    u: Float[Tensor, "*#shape"], df: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*shape"]:
    """Return the u-quantile of the chi-squared distribution with df degrees of freedom."""
    return _Quantile.apply(_chi_squared, u, df)


def _beta(u: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(special.betaincinv(a, b, u))


def _chi_squared(u: np.ndarray, df: np.ndarray) -> np.ndarray:
    return np.asarray(2 * special.gammaincinv(df / 2, u))


class _Quantile(torch.autograd.Function):
    """A quantile function from SciPy; shape parameters get central differences as gradients.

    The uniform numbers ``u`` are constants and get no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, quantile: Callable[..., np.ndarray], u: Tensor, *shapes: Tensor
    ) -> Tensor:
        ctx.quantile = quantile
        ctx.save_for_backward(u, *shapes)
        return _call(quantile, u, shapes)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, *shapes = ctx.saved_tensors
        grads: list[Tensor | None] = [None, None]
        for i, shape in enumerate(shapes):
            if not ctx.needs_input_grad[i + 2]:
                grads.append(None)
                continue
            # ∂q/∂a = (q(a + h) - q(a - h)) / 2h
            h = _STEP * shape.double()
            up, down = (
                _call(ctx.quantile, u.double(), [*shapes[:i], moved, *shapes[i + 1 :]])
                for moved in (shape.double() + h, shape.double() - h)
            )
            slope = torch.nan_to_num((up - down) / (2 * h), nan=0.0, posinf=0.0, neginf=0.0)
            grads.append((grad * slope.to(grad)).sum_to_size(shape.shape))
        return tuple(grads)


def _call(quantile: Callable[..., np.ndarray], u: Tensor, shapes: Any) -> Tensor:
    arrays = [t.detach().double().cpu().numpy() for t in (u, *shapes)]
    return torch.from_numpy(quantile(*arrays)).to(u)
