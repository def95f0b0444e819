"""Kernels between distributions: covariances of E f, and functions of distances.

Notation: P and Q distributions of executed inputs, by their features; ψ_P their embeddings; μ, Σ
the mean and the covariance of P where only these are looked at; all in the unit cube.
"""

from typing import Any

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, RBFKernel
from gpytorch.priors import Prior
from jaxtyping import Float
from linear_operator import to_dense
from torch import Tensor

from airbo.embeddings import Embedding
from airbo.embeddings.base_kernels import get_scale, register_scale, set_scale
from airbo.embeddings.features import Moments


def positive() -> GreaterThan:
    """Keep a scale above 0 in every step of a fit: at 0 its prior has no density."""
    return GreaterThan(1e-12)


class IntegralKernel(Kernel):
    r"""Covariance of expected values under a Gaussian process prior (Oliveira 2019).

    .. math:: \hat k(P, Q) = \langle\psi_P, \psi_Q\rangle = \mathbb E_{u \sim P, v \sim Q}\, k(u, v)

    If f ~ GP(0, k), this is the covariance of E_P[f] and E_Q[f].
    """

    def __init__(self, embedding: Embedding) -> None:
        """Integrate the base kernel of ``embedding``."""
        super().__init__()
        self.embedding = embedding

    @property
    def at_a_point(self) -> Float[Tensor, ""]:
        """The kernel of an exactly set input with itself, k(x, x).

        For a base kernel that is not stationary, x is the middle of the box.
        """
        # k(x, x) at x = ½
        middle = torch.full_like(self.embedding.low, 0.5).unsqueeze(0)
        return to_dense(self.embedding.base_kernel(middle, diag=True)).squeeze()

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Compare features, all pairs or matching ones."""
        # ⟨ψ_P, ψ_Q⟩
        return self.embedding.inner(x1, x2, diag)


class MMDKernel(Kernel):
    r"""Squared-exponential kernel on the MMD between two uncertain inputs.

    .. math:: \hat k(P, Q) = \exp(-\alpha \, \mathrm{MMD}^2(P, Q))

    Its inputs are the features that its embedding computes for designs.
    """

    def __init__(
        self, embedding: Embedding, alpha: float = 1.0, alpha_prior: Prior | None = None
    ) -> None:
        """Start from ``alpha``; it is learnable, like the base kernel's hyper-parameters."""
        super().__init__()
        self.embedding = embedding
        register_scale(self, "alpha", 1, alpha, alpha_prior, positive())

    @property
    def alpha(self) -> Float[Tensor, "1"]:
        """How fast the covariance falls with MMD²."""
        return get_scale(self, "alpha")

    @alpha.setter
    def alpha(self, value: Tensor | float) -> None:
        set_scale(self, value, "alpha")

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Compare features, all pairs or matching ones."""
        # exp(-α ‖ψ_P - ψ_Q‖²)
        return torch.exp(-self.alpha * self.embedding.mmd2(x1, x2, diag))


SKL_FLOOR = 1e-6
"""Variance, in the unit cube, added to every Gaussian: between exact inputs the
Kullback-Leibler divergence is infinite."""


class ERBFKernel(Kernel):
    r"""Expected squared-exponential kernel between Gaussians (Dallaire 2011).

    .. math:: |I + W^{-1} (\Sigma_1 + \Sigma_2)|^{-1/2}
              \exp(-\tfrac12 (\mu_1 - \mu_2)^\top (W + \Sigma_1 + \Sigma_2)^{-1} (\mu_1 - \mu_2))

    with :math:`W = \operatorname{diag} \ell^2`.
    """

    has_lengthscale = True

    def __init__(self, moments: Moments, **kwargs: Any) -> None:
        """Compare the moments of P_x; ``kwargs`` go to the GPyTorch kernel."""
        super().__init__(**kwargs)
        self.moments = moments

    @property
    def at_a_point(self) -> float:
        """The kernel of an exactly set input with itself."""
        return 1.0

    @property
    def at_points(self) -> RBFKernel:
        """The kernel between inputs that are set exactly."""
        kernel = RBFKernel(ard_num_dims=self.moments.d).to(self.lengthscale)
        kernel.lengthscale = self.lengthscale.detach().expand(1, self.moments.d)
        return kernel

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Compare features, all pairs or matching ones."""
        # W + Σ₁ + Σ₂ = L Lᵀ for all pairs
        mean1, mean2, cov1, cov2 = _pairs(self.moments, x1, x2, diag)
        W = self.lengthscale.square().squeeze(-2).expand(self.moments.d).diag_embed()
        L = torch.linalg.cholesky(W + cov1 + cov2)
        # log |I + W⁻¹ (Σ₁ + Σ₂)| = log |L Lᵀ| - log |W|
        log_det = 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1) - W.diagonal().log().sum()
        # δᵀ (L Lᵀ)⁻¹ δ = ‖L⁻¹ δ‖² with δ = μ₁ - μ₂
        solved = torch.linalg.solve_triangular(L, (mean1 - mean2).unsqueeze(-1), upper=False)
        return torch.exp(-0.5 * (solved.square().sum(dim=(-2, -1)) + log_det))


class SKLKernel(Kernel):
    r"""Kernel on the symmetric Kullback-Leibler divergence of Gaussians (Moreno 2003).

    .. math:: \hat k(P, Q) = \exp\left(
              -\frac{v}{2 \ell^2} (\mathrm{KL}(P\|Q) + \mathrm{KL}(Q\|P))\right)

    ``v`` is a typical variance of P. If both covariances are :math:`v I`, this is the
    squared-exponential kernel of length scale :math:`\ell`. If covariances differ, it need not be
    positive semi-definite.
    """

    has_lengthscale = True

    def __init__(self, moments: Moments, **kwargs: Any) -> None:
        """Compare the moments of P_x; ``kwargs`` go to the GPyTorch kernel."""
        super().__init__(**kwargs)
        self.moments = moments
        with torch.no_grad():
            # v = mean of the diagonal of Cov P_x, for x in the middle of the box
            center = (moments.low + 0.5 * moments.width).unsqueeze(0)
            _, covariance = moments.unpack(moments(center))
        variance = covariance.diagonal(dim1=-2, dim2=-1).mean() + SKL_FLOOR
        self.register_buffer("typical_variance", variance)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Compare features, all pairs or matching ones."""
        # A = C⁻¹; the floor keeps exact inputs at a finite distance
        mean1, mean2, C1, C2 = _pairs(self.moments, x1, x2, diag, SKL_FLOOR)
        A1, A2 = torch.linalg.inv(C1), torch.linalg.inv(C2)

        # KL(P|Q) + KL(Q|P) = ½ [tr(C₁A₂ + C₂A₁) - 2d + δᵀ(A₁ + A₂)δ] with δ = μ₁ - μ₂
        difference = (mean1 - mean2).unsqueeze(-1)  # (..., d, 1)
        traces = (C1 * A2).sum(dim=(-2, -1)) + (C2 * A1).sum(dim=(-2, -1)) - 2 * self.moments.d
        quadratic = (difference * ((A1 + A2) @ difference)).sum(dim=(-2, -1))
        skl = 0.5 * (traces + quadratic)
        return torch.exp(-0.5 * self.typical_variance * skl / self.lengthscale.square().squeeze())


def _pairs(
    moments: Moments, x1: Tensor, x2: Tensor, diag: bool, floor: float = 0.0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return both means and both covariances, plus a floor, for all pairs or matching ones."""
    (mean1, cov1), (mean2, cov2) = moments.unpack(x1), moments.unpack(x2)
    least = floor * torch.eye(moments.d).to(x1)
    cov1, cov2 = _if_constant(cov1) + least, _if_constant(cov2) + least
    if diag:
        return mean1, mean2, cov1, cov2
    return mean1.unsqueeze(-2), mean2.unsqueeze(-3), cov1.unsqueeze(-3), cov2.unsqueeze(-4)


def _if_constant(cov: Float[Tensor, "*batch n d d"]) -> Float[Tensor, "... d d"]:
    """Keep one row where all designs have the same covariance, as under additive uncertainty."""
    # one Cholesky factorization instead of n k
    rows = cov.flatten(0, -3)
    return cov if bool((rows != rows[:1]).any()) else rows[0].expand(*[1] * (cov.dim() - 2), -1, -1)
