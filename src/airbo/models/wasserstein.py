"""A surrogate on the sliced Wasserstein distance."""

import math
from collections.abc import Sequence

import torch
from gpytorch.kernels import RBFKernel
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.features import Features
from airbo.embeddings.sampled import draw
from airbo.kernels.constraints import positive
from airbo.models.base import UncertainInputGP
from airbo.models.data import Given, Parts
from airbo.models.priors import lengthscale_prior, observation_noise, scaled
from airbo.uncertainty import InputUncertainty

N_BASES, N_QUANTILES = 4, 32
"""Bases of lines, and quantiles along every line."""


class SlicedQuantiles(Features):
    """Quantiles of P_x along lines: squared distances are sliced Wasserstein distances, times d.

    The lines are orthonormal bases, so that the distance of a pure shift of P_x is its length.
    """

    def __init__(
        self,
        uncertainties: Sequence[InputUncertainty],
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> None:
        """Draw the lines."""
        super().__init__(uncertainties, bounds)
        self.seed = seed
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(N_BASES, self.d, self.d, generator=generator, dtype=bounds.dtype)
        bases = torch.linalg.qr(drawn).Q
        self.register_buffer("lines", bases.transpose(0, 1).flatten(1))  # (d, N_BASES d)

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Sort samples along every line."""
        each = []
        for u in self.uncertainties:
            samples = (draw(X, u, N_QUANTILES, self.seed) - self.low) / self.width
            each.append((samples @ self.lines).sort(dim=-2).values.flatten(-2))
        chosen = torch.stack(each).take_along_dim(choice[None, ..., None], dim=0).squeeze(0)
        return chosen / math.sqrt(N_BASES * N_QUANTILES)


class SlicedWassersteinGP(UncertainInputGP):
    r"""Gaussian process with the kernel :math:`\exp(-W^2 / 2\ell^2)` of the Wasserstein distance.

    W is the distance of the quantile functions of P and Q along lines, averaged over four bases of
    lines. Where P only shifts with the design it is the distance of the designs: the surrogate is
    then a plain Gaussian process with one length scale. ``estimator`` is not used.
    """

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare quantiles by a squared exponential kernel."""
        if given.base_kernel is not None:
            raise TypeError(f"{cls.__name__} has a kernel of its own and takes no base_kernel.")
        prior = lengthscale_prior(given.d)
        kernel = RBFKernel(lengthscale_prior=prior, lengthscale_constraint=positive())
        kernel.lengthscale = prior.mode
        quantiles = SlicedQuantiles(given.uncertainties, given.bounds, given.seed)
        return Parts(quantiles, scaled(kernel), observation_noise(given.known_noise))
