"""The base kernel of the paper: a covariance between points, the ground on which the MMD stands."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from airbo.embeddings.gaussian_sum import GaussianSum

_POWERS: dict[float, Callable[[Tensor], Tensor]] = {
    0.2: lambda x: x.log().mul_(0.2).exp_(),  # much faster than a power
    0.5: torch.sqrt,
    1.0: lambda x: x,
    2.0: torch.square,
    5.0: lambda x: x.square().square_().mul_(x),
}
RATIONAL_QUADRATIC_EXPONENTS = tuple(_POWERS)


class RationalQuadraticSum(Kernel):
    r"""The base kernel of the paper: a sum of rational quadratic kernels.

    .. math:: k(x, x') = \sum_i \left(1 + \frac{\sum_c (x_c - x'_c)^2 / r_c^2}
              {2 a_i l_i^2}\right)^{-a_i}

    Its long tail keeps distant distributions comparable; the small ``a_i`` see far, the large
    ones see detail. Every ``l_i`` is learnable, or one that all share. With ``ard_num_dims`` there
    is also one factor ``r_c`` per column, so that a column has the length scales ``r_c l_i``.
    """

    is_stationary = True
    has_lengthscale = False

    def __init__(
        self,
        lengthscale: float = 0.5,
        prior: LogNormalPrior | None = None,
        shared: bool = False,
        factor_prior: LogNormalPrior | None = None,
        **kwargs: Any,
    ) -> None:
        """Start all length scales at ``lengthscale``, in the unit cube, and all factors at 1.

        Args:
            lengthscale: Where fitting starts.
            prior: Of every length scale that is learned.
            shared: Whether there is one for all five.
            factor_prior: Of the factor of every column; matters with ``ard_num_dims``.
            **kwargs: Go to GPyTorch's kernel.
        """
        super().__init__(**kwargs)
        n = 1 if shared else len(RATIONAL_QUADRATIC_EXPONENTS)
        self._register("lengthscales", n, lengthscale, prior)
        if self.ard_num_dims is not None:
            self._register("factors", self.ard_num_dims, 1.0, factor_prior)

    def _register(self, name: str, n: int, start: float, prior: LogNormalPrior | None) -> None:
        raw = torch.zeros(*self.batch_shape, n)
        self.register_parameter(f"raw_{name}", torch.nn.Parameter(raw))
        self.register_constraint(f"raw_{name}", GreaterThan(1e-3))
        if prior is not None:
            self.register_prior(f"{name}_prior", prior, _Getter(name), _Setter(name))
        self._set(name, torch.full((n,), start))

    def _get(self, name: str) -> Tensor:
        learned: Tensor = getattr(self, f"raw_{name}_constraint").transform(
            getattr(self, f"raw_{name}")
        )
        return learned

    def _set(self, name: str, value: Tensor | float) -> None:
        raw = getattr(self, f"raw_{name}")
        value = torch.as_tensor(value).to(raw).expand_as(raw)
        constraint = getattr(self, f"raw_{name}_constraint")
        self.initialize(**{f"raw_{name}": constraint.inverse_transform(value)})

    @property
    def exponents(self) -> Float[Tensor, " 5"]:
        """The ``a_i``: constants, not a buffer, because GPyTorch takes buffers for batches."""
        return self.raw_lengthscales.new_tensor(RATIONAL_QUADRATIC_EXPONENTS)

    @property
    def lengthscales(self) -> Float[Tensor, "*batch 5"]:
        """One length scale per rational quadratic, in the unit cube."""
        return self._get("lengthscales").expand(
            *self.batch_shape, len(RATIONAL_QUADRATIC_EXPONENTS)
        )

    @lengthscales.setter
    def lengthscales(self, value: Tensor | float) -> None:
        self._set("lengthscales", value)

    @property
    def factors(self) -> Float[Tensor, "*batch d"]:
        """What the length scales of each column are multiplied with."""
        if self.ard_num_dims is None:
            return torch.ones_like(self.raw_lengthscales[..., :1])
        return self._get("factors")

    @factors.setter
    def factors(self, value: Tensor | float) -> None:
        self._set("factors", value)

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Evaluate the sum at all pairs of points, or at matching ones with ``diag``."""
        if self.ard_num_dims is not None:
            scale = self.factors.unsqueeze(-2)
            x1, x2 = x1 / scale, x2 / scale
        if last_dim_is_batch:
            x1, x2 = x1.mT.unsqueeze(-1), x2.mT.unsqueeze(-1)
        r2 = self.covar_dist(x1, x2, square_dist=True, diag=diag, **params)
        inverse_widths = 0.5 / (self.exponents * self.lengthscales**2)  # 1 / (2 a l²)
        if not self.batch_shape:
            summed: Tensor = _SumOfRationalQuadratics.apply(r2, inverse_widths)
            return summed
        trailing = 1 + (not diag) + last_dim_is_batch
        widths = inverse_widths.reshape(*self.batch_shape, *[1] * trailing, -1)
        return (1 + r2.unsqueeze(-1) * widths).pow(-self.exponents).sum(-1)

    def gaussian_sum(self) -> GaussianSum | None:
        r"""Write the kernel as a sum of Gaussians.

        A rational quadratic is a Gamma mixture of Gaussians; with :math:`s = \log\lambda`

        .. math:: (1 + r^2 / 2 a l^2)^{-a} = \int g(s) \exp(-\tfrac12 e^s r^2)\, ds, \quad
                  g(s) = \exp(a (s + \log a l^2) - e^s a l^2) / \Gamma(a)

        and the trapezoidal rule with step 0.5 is exact to 6e-5 for every ``a`` up to 5. What lies
        below the grid is flat over the unit cube: it becomes the constant. Here only the weights
        depend on the ``l_i``, so that a fit works out the Gaussians once.

        With a factor per column the Gaussians move anyway. If the ``l_i`` are shared as well, the
        whole kernel has one shape, and few Gaussians do.
        """
        if self.batch_shape or self.active_dims is not None:
            return None
        relevances = self.factors.square().reciprocal()
        if self.ard_num_dims is not None and self.raw_lengthscales.numel() == 1:
            constant, weights, precisions = (relevances.new_tensor(v) for v in _shared_shape())
            relevances = relevances / self.lengthscales[0].square()
            return GaussianSum(constant, weights, precisions, relevances)
        return GaussianSum(*_trapezoidal(self.exponents, self.lengthscales), relevances)


_LOG_MIN, _LOG_MAX, _LOG_STEP = -9.5, 15.1, 0.5


def _trapezoidal(
    exponents: Tensor, lengthscales: Tensor, log_min: float = _LOG_MIN
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the constant, the weights and the precisions of the sum of Gaussians."""
    a, scale = exponents.unsqueeze(-1), lengthscales.unsqueeze(-1).square()
    s = torch.arange(log_min, _LOG_MAX, _LOG_STEP, dtype=scale.dtype, device=scale.device)
    al2 = a * scale
    g = torch.exp(a * (s + al2.log()) - s.exp() * al2 - torch.lgamma(a)) * _LOG_STEP

    # each rational quadratic is 1 at distance 0: the constant takes what the grid leaves
    below = (1 - g.sum(-1)).clamp_min(0)
    return below.sum(), g.sum(0), s.exp()


@lru_cache(maxsize=1)
def _shared_shape() -> tuple[float, list[float], list[float]]:
    """Return the constant and few Gaussians that stand for the kernel where all l_i are 1."""
    exponents = torch.tensor(RATIONAL_QUADRATIC_EXPONENTS, dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    # in units of a short length scale the cube is wide: only what is far wider is flat
    short = GaussianSum(*_trapezoidal(exponents, one.expand(5), 2 * _LOG_MIN), one).shortened(300.0)
    return short.constant.item(), short.weights.tolist(), short.precisions.tolist()


class _Getter:
    """Reads a hyper-parameter for its prior; a class, because a model has to be copied."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: RationalQuadraticSum) -> Tensor:
        return module._get(self.name)


class _Setter(_Getter):
    """Sets it."""

    def __call__(self, module: RationalQuadraticSum, value: Tensor) -> None:  # type: ignore[override]
        module._set(self.name, value)


class _SumOfRationalQuadratics(torch.autograd.Function):
    r"""Maps squared distances and :math:`w_i` to :math:`\sum_i (1 + w_i r^2)^{-a_i}`.

    Derivatives are worked out on the way. With autograd's own, which keep a dozen matrices, a
    search takes up to twice as long.
    """

    @staticmethod
    def forward(ctx: Any, r2: Tensor, inverse_widths: Float[Tensor, "5"]) -> Tensor:
        wants_r2, wants_widths = ctx.needs_input_grad
        total, slope = torch.zeros_like(r2), torch.zeros_like(r2) if wants_r2 else None
        slopes = []
        for (a, power), w in zip(_POWERS.items(), inverse_widths.tolist(), strict=True):
            base = (r2 * w).add_(1).reciprocal_()
            value = power(base)
            total.add_(value)
            if slope is not None:
                slope.addcmul_(value, base, value=-a * w)
            if wants_widths:
                slopes.append((value * base).mul_(-a))
        ctx.save_for_backward(r2, slope, *slopes)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        r2, slope, *slopes = ctx.saved_tensors
        for_r2 = None if slope is None else gradient * slope
        if not slopes:
            return for_r2, None
        outer = (gradient * r2).flatten()
        return for_r2, torch.stack([outer @ s.flatten() for s in slopes])


def default_base_kernel(d: int, spread: float = math.sqrt(0.5)) -> RationalQuadraticSum:
    """Build the paper's base kernel with a prior that suits ``d`` columns in the unit cube.

    Args:
        d: Number of columns.
        spread: Of the logarithm of the length scales, in their prior.
    """
    start = 0.3 * math.sqrt(d)  # distances in the unit cube grow with √d
    return RationalQuadraticSum(start, log_normal(start / math.e, spread))


def log_normal(mode: float, spread: float) -> LogNormalPrior:
    """Build a prior by its mode, where a fit without data ends, and the spread of the logarithm."""
    return LogNormalPrior(math.log(mode) + spread**2, spread)
