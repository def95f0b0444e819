r"""The log density of observations, and its gradient, from one Cholesky factorization.

Notation: ``K`` (n, n) the covariance of n observations, noise included; ``y`` (n, 1) observed
values minus the prior mean; L Lᵀ = K; ``a`` (n, 1) = K⁻¹ y.
"""

import math
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor


class Observed(MultivariateNormal):
    """The distribution of observations during a fit.

    Its log density is that of any normal distribution. Only the gradient is worked out in another
    way: automatic differentiation of a Cholesky factorization takes several times as long.
    """

    def log_prob(self, value: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*batch"]:
        """Return the log density of values."""
        K = self.lazy_covariance_matrix.to_dense()
        difference = value - self.loc
        batch = torch.broadcast_shapes(K.shape[:-2], difference.shape[:-1])
        y = difference.expand(*batch, -1).unsqueeze(-1)
        log_density: Tensor = _LogDensity.apply(K.expand(*batch, -1, -1), y)
        return log_density


class _LogDensity(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, K: Float[Tensor, "*batch n n"], y: Float[Tensor, "*batch n 1"]
    ) -> Float[Tensor, "*batch"]:
        L = psd_safe_cholesky(K)
        whitened = torch.linalg.solve_triangular(L, y, upper=False)
        ctx.save_for_backward(K, y, L, torch.linalg.solve_triangular(L.mT, whitened, upper=True))
        # -½ (yᵀ K⁻¹ y + log |K| + n log 2π), where yᵀ K⁻¹ y = |L⁻¹ y|²
        half_log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = 0.5 * y.shape[-2] * math.log(2 * math.pi)
        return -0.5 * whitened.square().sum((-1, -2)) - half_log_det - constant

    @staticmethod
    def backward(ctx: Any, outer: Float[Tensor, "*batch"]) -> tuple[Tensor, Tensor]:
        K, y, L, a = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants second derivatives
            L = psd_safe_cholesky(K)
            a = torch.cholesky_solve(y, L)  # K⁻¹ y
        outer = outer[..., None, None]
        # ∂/∂K = ½ (a aᵀ - K⁻¹),  ∂/∂y = -a
        return 0.5 * outer * (a * a.mT - torch.cholesky_inverse(L)), -outer * a
