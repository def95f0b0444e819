"""Base kernels: covariances between points, the ground on which the MMD stands."""

import math
from collections.abc import Callable
from typing import Any

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, RBFKernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from airbo.embeddings.scales import GaussianScales

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

    .. math:: k(x, x') = \sum_i \left(1 + \frac{\|x - x'\|^2}{2 a_i l_i^2}\right)^{-a_i}

    Its long tail keeps distant distributions comparable; the small ``a_i`` see far, the large
    ones see detail. Every ``l_i`` is learnable, or one that all share.
    """

    is_stationary = True
    has_lengthscale = False

    def __init__(
        self, lengthscale: float = 0.5, prior: LogNormalPrior | None = None, shared: bool = False
    ) -> None:
        """Start all length scales at ``lengthscale``, in model coordinates.

        Args:
            lengthscale: Where fitting starts.
            prior: Of every length scale that is learned.
            shared: Whether there is one for all five.
        """
        super().__init__()
        n = 1 if shared else len(RATIONAL_QUADRATIC_EXPONENTS)
        self.register_parameter("raw_lengthscales", torch.nn.Parameter(torch.zeros(n)))
        self.register_constraint("raw_lengthscales", GreaterThan(1e-3))
        self.register_buffer("exponents", torch.tensor(RATIONAL_QUADRATIC_EXPONENTS))
        if prior is not None:
            self.register_prior(
                "lengthscales_prior",
                prior,
                RationalQuadraticSum._learned,
                RationalQuadraticSum._set_lengthscales,
            )
        self._set_lengthscales(torch.full((n,), lengthscale))

    @property
    def lengthscales(self) -> Float[Tensor, "5"]:
        """One length scale per rational quadratic, in model coordinates."""
        return self._learned().expand(len(RATIONAL_QUADRATIC_EXPONENTS))

    @lengthscales.setter
    def lengthscales(self, value: Tensor | float) -> None:
        self._set_lengthscales(value)

    def _learned(self) -> Tensor:
        learned: Tensor = self.raw_lengthscales_constraint.transform(self.raw_lengthscales)
        return learned

    def _set_lengthscales(self, value: Tensor | float) -> None:
        value = torch.as_tensor(value).to(self.raw_lengthscales).expand_as(self.raw_lengthscales)
        raw = self.raw_lengthscales_constraint.inverse_transform(value)
        self.initialize(raw_lengthscales=raw)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate the sum at all pairs of points, or at matching ones with ``diag``."""
        r2 = self.covar_dist(x1, x2, square_dist=True, diag=diag, **params)
        inverse_widths = 0.5 / (self.exponents * self.lengthscales**2)  # 1 / (2 a l²)
        summed: Tensor = _SumOfRationalQuadratics.apply(r2, inverse_widths)
        return summed

    def gaussian_scales(self) -> GaussianScales:
        r"""Write the kernel as a sum of Gaussians whose widths do not depend on the l_i.

        A rational quadratic is a Gamma mixture of Gaussians; with :math:`s = \log\lambda`

        .. math:: (1 + r^2 / 2 a l^2)^{-a} = \int g(s) \exp(-\tfrac12 e^s r^2)\, ds, \quad
                  g(s) = \exp(a (s + \log a l^2) - e^s a l^2) / \Gamma(a)

        and the trapezoidal rule with step 0.5 is exact to 6e-5 for every ``a`` up to 5. What lies
        below the grid is flat over the unit cube: it becomes the constant.
        """
        a, scale = self.exponents.unsqueeze(-1), self.lengthscales.unsqueeze(-1).square()
        s = torch.arange(_LOG_MIN, _LOG_MAX, _LOG_STEP, dtype=scale.dtype, device=scale.device)
        al2 = a * scale
        g = torch.exp(a * (s + al2.log()) - s.exp() * al2 - torch.lgamma(a)) * _LOG_STEP

        # each rational quadratic is 1 at distance 0: the constant takes what the grid leaves
        below = (1 - g.sum(-1)).clamp_min(0)
        return GaussianScales(below.sum(), g.sum(0), s.exp())


_LOG_MIN, _LOG_MAX, _LOG_STEP = -9.5, 15.1, 0.5


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


def gaussian_scales(kernel: Kernel) -> GaussianScales | None:
    """Return the kernel as a sum of Gaussians, or None where that is not known."""
    if isinstance(kernel, RationalQuadraticSum):
        return kernel.gaussian_scales()
    if isinstance(kernel, RBFKernel):
        precision = kernel.lengthscale.square().reciprocal()[0]  # (1,) or (d,)
        one = precision.new_ones(1)
        return GaussianScales(one.new_zeros(()), one, precision.unsqueeze(0).squeeze(-1))
    return None


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
