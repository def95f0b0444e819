"""The kernel of expected values."""

from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from linear_operator import to_dense
from torch import Tensor

from airbo.embeddings import Embedding


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
        middle = torch.full_like(self.embedding.low, 0.5).unsqueeze(0)
        return to_dense(self.embedding.base_kernel(middle, diag=True)).squeeze()

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Compare features, all pairs or matching ones."""
        return self.embedding.inner(x1, x2, diag)
