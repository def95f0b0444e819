r"""How far observations lie from what all the others say of them, and which of them are near.

With errors :math:`y - m` and :math:`A = K + \Sigma`, an observation left out lies

.. math:: z_j = \frac{[A^{-1} (y - m)]_j}{\sqrt{[A^{-1}]_{jj}}}

standard deviations from its prediction. On a plateau all :math:`z_j` are small, at a cliff some are
large, although the prior is as rough here as there.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Surprises:
    """Sizes of the surprises at the observations, and how much they count elsewhere."""

    sizes: Float[Tensor, " n"]
    """:math:`|z_j|`, so scaled that normal numbers have a mean of 1."""
    scales: Float[Tensor, " n"]
    """Product of the variances of f at a point and of the observed expected value, without data."""

    @classmethod
    def of(
        cls,
        L: Float[Tensor, "n n"],
        errors: Float[Tensor, " n"],
        scales: Float[Tensor, " n"],
    ) -> "Surprises":
        """Leave out one observation at a time.

        Args:
            L: Cholesky factor of the covariance of the observations, noise included.
            errors: Observations minus the prior mean.
            scales: See above.
        """
        inverse = torch.cholesky_inverse(L)
        z = (inverse @ errors) / inverse.diagonal().sqrt()
        # √(π/2) |z_j| / √mean z²: E |z| = √(2/π) for a standard normal z
        rms = z.square().mean().sqrt()
        sizes = math.sqrt(math.pi / 2) * z.abs() / rms if rms > 0 else torch.ones_like(z)
        return cls(sizes, scales)

    def near(self, covariance: Float[Tensor, "k m"]) -> Float[Tensor, "k 2"]:
        r"""Return how many observations are near to points, and the sum of their surprises.

        Observation j counts :math:`w_j = \mathrm{Corr}(f(x'), F_j)^4`.

        Args:
            covariance: Of f at points with the observed expected values, and possibly others.
        """
        w = (covariance[:, : len(self.sizes)].square() / self.scales).square()
        return w @ torch.stack([torch.ones_like(self.sizes), self.sizes], -1)
