"""The paper's kernel between distributions."""

from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings import Embedding
from airbo.kernels.constraints import positive


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
        self.register_parameter("raw_alpha", torch.nn.Parameter(torch.zeros(1)))
        self.register_constraint("raw_alpha", positive())
        if alpha_prior is not None:
            self.register_prior("alpha_prior", alpha_prior, MMDKernel._alpha, MMDKernel._set_alpha)
        self._set_alpha(alpha)

    @property
    def alpha(self) -> Float[Tensor, "1"]:
        """How fast the covariance falls with MMD²."""
        return self._alpha()

    @alpha.setter
    def alpha(self, value: Tensor | float) -> None:
        self._set_alpha(value)

    def _alpha(self) -> Tensor:
        alpha: Tensor = self.raw_alpha_constraint.transform(self.raw_alpha)
        return alpha

    def _set_alpha(self, value: Tensor | float) -> None:
        value = torch.as_tensor(value).to(self.raw_alpha).expand_as(self.raw_alpha)
        self.initialize(raw_alpha=self.raw_alpha_constraint.inverse_transform(value))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Compare features, all pairs or matching ones."""
        return torch.exp(-self.alpha * self.embedding.mmd2(x1, x2, diag))
