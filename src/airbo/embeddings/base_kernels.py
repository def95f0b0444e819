r"""A base kernel as a sum of Gaussians of different widths.

.. math:: k(x, x') = c_0 + \sum_q c_q \exp\Big(-\tfrac12 \lambda_q
          \sum_c \rho_c (x_c - x'_c)^2\Big), \qquad \rho_c = 1 / \ell_c^2

An expected value of a Gaussian is a Gaussian integral, so this form is what embeddings work with.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from gpytorch.priors import LogNormalPrior, Prior
from jaxtyping import Float
from torch import Tensor

MATERN_TOLERANCE = 2e-5
"""How far the Gaussians that stand for a Matérn kernel are from it, where its value at 0 is 1."""

# A Matérn kernel is a Gamma mixture of Gaussians. The trapezoidal rule for it, in the logarithm of
# the width, needs about 60 Gaussians; these fewer ones are its projection on a Krylov space of the
# precisions, which keeps all weights positive. (weight, precision) for length scale 1.
# fmt: off
_MATERN: dict[float, tuple[tuple[float, float], ...]] = {
    1.5: (
        (1.66262e-06, 0.0913418), (7.47868e-05, 0.123299), (0.00111627, 0.166436),
        (0.00735881, 0.224665), (0.0264828, 0.303271), (0.0608937, 0.40941), (0.100666, 0.552906),
        (0.131095, 0.747937), (0.144564, 1.01734), (0.141508, 1.40193), (0.124784, 1.97569),
        (0.0989167, 2.87089), (0.0704307, 4.33268), (0.0451305, 6.85262), (0.0259863, 11.5296),
        (0.0132635, 21.2336), (0.00573381, 45.5529), (0.00180547, 134.894), (0.000188851, 1217.4),
    ),
    2.5: (
        (0.000443259, 0.189744), (0.0191235, 0.30553), (0.144619, 0.499109), (0.346103, 0.861271),
        (0.32901, 1.62569), (0.136025, 3.52284), (0.0235824, 9.63118), (0.00109416, 45.0334),
    ),
}
# fmt: on


@dataclass(frozen=True)
class GaussianSum:
    """Constant, weights and widths of a sum of Gaussians; the equation is above.

    Hyper-parameters that all columns share may be in the weights; those of single columns are in
    the relevances.
    """

    constant: Float[Tensor, ""]
    """c₀"""
    weights: Float[Tensor, " q"]
    """c_q"""
    precisions: Float[Tensor, " q"]
    """λ_q"""
    relevances: Float[Tensor, " d"]
    """ρ_c, one per column of the unit cube, or one for all."""

    @property
    def at_zero(self) -> Float[Tensor, ""]:
        """The value at distance 0."""
        return self.constant + self.weights.sum()

    @property
    def moves(self) -> bool:
        """Whether a fit changes the widths of the Gaussians, and not only their weights."""
        return self.precisions.requires_grad or self.relevances.requires_grad

    def by_column(self, d: int) -> Float[Tensor, "q d"]:
        """Return λ_qc = λ_q ρ_c, the precision of every Gaussian in every column."""
        return self.precisions.unsqueeze(-1) * self.relevances.expand(d)


def gaussian_sum(kernel: Kernel) -> GaussianSum | None:
    """Return a kernel as a sum of Gaussians, or None where that is not known.

    Known are airbo's own base kernels, the squared exponential, and Matérn kernels with ν = 3/2 and
    5/2, with one length scale or one per column.
    """
    # airbo's own kernels know c₀, c_q and λ_q; others by their family
    own = getattr(kernel, "gaussian_sum", None)
    if own is not None:
        result: GaussianSum | None = own()
        return result
    if kernel.batch_shape or kernel.active_dims is not None:
        return None
    if isinstance(kernel, RBFKernel):
        parts: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    elif isinstance(kernel, MaternKernel) and kernel.nu in _MATERN:
        parts = _MATERN[kernel.nu]
    else:
        return None
    # ρ_c = 1 / ℓ_c²
    relevances = kernel.lengthscale.reshape(-1).square().reciprocal()
    weights, precisions = relevances.new_tensor(parts).unbind(-1)
    return GaussianSum(relevances.new_zeros(()), weights / weights.sum(), precisions, relevances)


RATIONAL_QUADRATIC_EXPONENTS = (0.2, 0.5, 1.0, 2.0, 5.0)


class RationalQuadraticSum(Kernel):
    r"""The base kernel of the paper: a sum of rational quadratic kernels.

    .. math:: k(x, x') = \sum_i \left(1 + \frac{\|x - x'\|^2}{2 a_i l_i^2}\right)^{-a_i}

    Its long tail keeps distant distributions comparable; the small ``a_i`` see far, the large
    ones see detail. Every ``l_i`` is learnable.
    """

    is_stationary = True
    has_lengthscale = False

    def __init__(
        self, lengthscale: float = 0.5, prior: LogNormalPrior | None = None, **kwargs: Any
    ) -> None:
        """Start all length scales at ``lengthscale``, in the unit cube.

        Args:
            lengthscale: Where fitting starts.
            prior: Of every length scale.
            **kwargs: Go to GPyTorch's kernel.
        """
        super().__init__(**kwargs)
        n = len(RATIONAL_QUADRATIC_EXPONENTS)
        register_scale(self, "lengthscales", n, lengthscale, prior)

    @property
    def exponents(self) -> Float[Tensor, " 5"]:
        """The ``a_i``: constants, not a buffer, because GPyTorch takes buffers for batches."""
        return self.raw_lengthscales.new_tensor(RATIONAL_QUADRATIC_EXPONENTS)

    @property
    def lengthscales(self) -> Float[Tensor, "*batch 5"]:
        """One length scale per rational quadratic, in the unit cube."""
        return get_scale(self, "lengthscales")

    @lengthscales.setter
    def lengthscales(self, value: Tensor | float) -> None:
        set_scale(self, value, "lengthscales")

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate the sum at all pairs of points, or at matching ones with ``diag``."""
        # r² = |x - x'|², and (1 + r² / 2 a l²)^-a for each of the five
        r2 = self.covar_dist(x1, x2, square_dist=True, diag=diag, **params)
        inverse_widths = 0.5 / (self.exponents * self.lengthscales**2)  # 1 / (2 a l²)
        trailing = 1 + (not diag) + params.get("last_dim_is_batch", False)
        widths = inverse_widths.reshape(*self.batch_shape, *[1] * trailing, -1)
        return (1 + r2.unsqueeze(-1) * widths).pow(-self.exponents).sum(-1)

    def gaussian_sum(self) -> GaussianSum | None:
        r"""Write the kernel as a sum of Gaussians, to 6e-5 of its value at distance 0.

        A rational quadratic is a Gamma mixture of Gaussians; with :math:`s = \log\lambda`

        .. math:: (1 + r^2 / 2 a l^2)^{-a} = \int g(s) \exp(-\tfrac12 e^s r^2)\, ds, \quad
                  g(s) = \exp(a (s + \log a l^2) - e^s a l^2) / \Gamma(a)

        and the trapezoidal rule with step 0.5 is exact to 6e-5 for every ``a`` up to 5. What lies
        below the grid is flat over the unit cube: it becomes the constant. Only the weights depend
        on the ``l_i``, so that a fit works out the Gaussians once.
        """
        if self.batch_shape or self.active_dims is not None:
            return None
        a, scale = self.exponents.unsqueeze(-1), self.lengthscales.unsqueeze(-1).square()
        s = torch.arange(_LOG_MIN, _LOG_MAX, _LOG_STEP, dtype=scale.dtype, device=scale.device)
        # log g(s) = a (s + log a l²) - e^s a l² - log Γ(a)
        al2 = a * scale
        g = torch.exp(a * (s + al2.log()) - s.exp() * al2 - torch.lgamma(a)) * _LOG_STEP

        # each rational quadratic is 1 at distance 0: the constant takes what the grid leaves
        below = (1 - g.sum(-1)).clamp_min(0)
        return GaussianSum(below.sum(), g.sum(0), s.exp(), s.new_ones(1))


_LOG_MIN, _LOG_MAX, _LOG_STEP = -9.5, 15.1, 0.5


class ScaleMixtureKernel(Kernel):
    r"""The base kernel of the default surrogate: six Gaussians and a constant.

    .. math:: k(x, x') = c_0 + \sum_q c_q \exp\Big(-\frac{1}{2 s_q^2 \ell^2}
              \sum_c \frac{(x_c - x'_c)^2}{r_c^2}\Big)

    It is 1 at distance 0. Most of it is a Gaussian of the length scale :math:`\ell`; narrower ones
    see detail, and wide ones keep distant distributions comparable. With ``ard_num_dims`` there is
    one factor :math:`r_c` per column, so that a column has the length scale :math:`r_c \ell`.

    The widths :math:`s_q` and weights :math:`c_q` are constants. They were fitted once, by
    non-negative least squares, to the paper's sum of rational quadratics with all :math:`l_i = 1`
    at distances up to 60, and rounded. The largest difference is 0.3% of the value at 0.
    """

    WIDTHS: ClassVar[tuple[float, ...]] = (0.47, 1.0, 2.1, 4.5, 9.5, 20.0)
    WEIGHTS: ClassVar[tuple[float, ...]] = (0.093, 0.531, 0.208, 0.066, 0.031, 0.033)
    CONSTANT: ClassVar[float] = 0.038

    is_stationary = True
    has_lengthscale = False

    def __init__(
        self,
        lengthscale: float = 0.5,
        prior: LogNormalPrior | None = None,
        factor_prior: LogNormalPrior | None = None,
        **kwargs: Any,
    ) -> None:
        """Start at ``lengthscale``, in the unit cube, with all factors at 1.

        Args:
            lengthscale: Where fitting starts.
            prior: Of the length scale.
            factor_prior: Of the factor of every column; matters with ``ard_num_dims``.
            **kwargs: Go to GPyTorch's kernel.
        """
        super().__init__(**kwargs)
        register_scale(self, "common", 1, lengthscale, prior)
        if self.ard_num_dims is not None:
            register_scale(self, "factors", self.ard_num_dims, 1.0, factor_prior)

    @property
    def common(self) -> Float[Tensor, "*batch 1"]:
        """The length scale ℓ that all columns share."""
        return get_scale(self, "common")

    @common.setter
    def common(self, value: Tensor | float) -> None:
        set_scale(self, value, "common")

    @property
    def factors(self) -> Float[Tensor, "*batch d"]:
        """The factors r_c, one per column, or a single 1."""
        if self.ard_num_dims is None:
            return torch.ones_like(self.raw_common)
        return get_scale(self, "factors")

    @factors.setter
    def factors(self, value: Tensor | float) -> None:
        set_scale(self, value, "factors")

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate the sum at all pairs of points, or at matching ones with ``diag``."""
        # r² = Σ_c (x_c - x'_c)² / (r_c ℓ)²
        scale = (self.common * self.factors).unsqueeze(-2)
        x1, x2 = x1 / scale, x2 / scale
        r2 = self.covar_dist(x1, x2, square_dist=True, diag=diag, **params)
        total = torch.full_like(r2, self.CONSTANT)
        for width, weight in zip(self.WIDTHS, self.WEIGHTS, strict=True):
            total = total + weight * torch.exp(-0.5 / width**2 * r2)
        return total

    def gaussian_sum(self) -> GaussianSum | None:
        """Return the Gaussians that the kernel is defined by."""
        if self.batch_shape or self.active_dims is not None:
            return None
        # λ_q ρ_c = 1 / (s_q r_c ℓ)²
        relevances = (self.common * self.factors).square().reciprocal()
        weights, widths = (relevances.new_tensor(v) for v in (self.WEIGHTS, self.WIDTHS))
        constant = relevances.new_tensor(self.CONSTANT)
        return GaussianSum(constant, weights, widths.square().reciprocal(), relevances)


# -- positive hyper-parameters, of base kernels and of kernels


def register_scale(
    kernel: Kernel,
    name: str,
    n: int,
    start: float,
    prior: Prior | None,
    constraint: GreaterThan | None = None,
) -> None:
    """Give a kernel ``n`` positive hyper-parameters."""
    raw = torch.zeros(*kernel.batch_shape, n)
    kernel.register_parameter(f"raw_{name}", torch.nn.Parameter(raw))
    kernel.register_constraint(f"raw_{name}", constraint or GreaterThan(1e-3))
    if prior is not None:  # partial, and no closure, because a model has to be copied
        read, write = partial(get_scale, name=name), partial(set_scale, name=name)
        kernel.register_prior(f"{name}_prior", prior, read, write)
    set_scale(kernel, torch.full((n,), start), name)


def get_scale(kernel: Kernel, name: str) -> Tensor:
    """Return positive hyper-parameters."""
    # θ = softplus(raw) + its lower bound
    constraint = getattr(kernel, f"raw_{name}_constraint")
    learned: Tensor = constraint.transform(getattr(kernel, f"raw_{name}"))
    return learned


def set_scale(kernel: Kernel, value: Tensor | float, name: str) -> None:
    """Set positive hyper-parameters, all of them or each its own."""
    raw = getattr(kernel, f"raw_{name}")
    value = torch.as_tensor(value).to(raw).expand_as(raw)
    constraint = getattr(kernel, f"raw_{name}_constraint")
    kernel.initialize(**{f"raw_{name}": constraint.inverse_transform(value)})


def default_base_kernel(d: int, spread: float = math.sqrt(0.5)) -> RationalQuadraticSum:
    """Build the paper's base kernel with a prior that suits ``d`` columns in the unit cube.

    Args:
        d: Number of columns.
        spread: Of the logarithm of the length scales, in their prior.
    """
    # the mode of a log-normal prior, start / e, is where a fit without data would end
    start = 0.3 * math.sqrt(d)  # distances in the unit cube grow with √d
    return RationalQuadraticSum(start, log_normal(start / math.e, spread))


def log_normal(mode: float, spread: float) -> LogNormalPrior:
    """Build a prior by its mode, where a fit without data ends, and the spread of the logarithm."""
    return LogNormalPrior(math.log(mode) + spread**2, spread)
