"""The surrogate of the paper."""

from gpytorch.priors import LogNormalPrior

from airbo.embeddings import default_base_kernel
from airbo.kernels import MMDKernel
from airbo.models.base import UncertainInputGP
from airbo.models.data import Given, Parts
from airbo.models.priors import observation_noise, scaled


class MMDGP(UncertainInputGP):
    r"""Gaussian process with the kernel :math:`\exp(-\alpha\,\mathrm{MMD}^2)`."""

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare embeddings by their MMD."""
        embedding = given.embedding(default_base_kernel)
        kernel = MMDKernel(embedding, alpha=1.0, alpha_prior=LogNormalPrior(0.0, 1.0))
        return Parts(embedding, scaled(kernel), observation_noise(given.known_noise))
