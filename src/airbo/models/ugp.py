"""The surrogate of expected values."""

from typing import ClassVar

from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import Likelihood

from airbo.embeddings import Embedding, default_base_kernel
from airbo.kernels import IntegralKernel
from airbo.models.base import UncertainInputGP
from airbo.models.data import Given, Parts
from airbo.models.priors import observation_noise, scaled


class UGP(UncertainInputGP):
    """Gaussian process with the integral kernel E k(u, v) (Oliveira 2019)."""

    outputscale_spread: ClassVar[float] = 1.0
    """Standard deviation of the logarithm of the output scale, in its prior."""

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Integrate the base kernel over both uncertainties."""
        embedding = given.embedding(cls.default_base_kernel)
        integral = IntegralKernel(embedding)
        kernel = scaled(integral, 1 / integral.at_a_point.item(), cls.outputscale_spread)
        likelihood = given.likelihood or cls.default_likelihood(given, embedding, kernel)
        return Parts(embedding, kernel, likelihood)

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the base kernel for ``d`` columns: the paper's."""
        return default_base_kernel(d)

    @staticmethod
    def default_likelihood(given: Given, embedding: Embedding, kernel: ScaleKernel) -> Likelihood:
        """Build the likelihood of an observation: constant noise."""
        return observation_noise(given.known_noise)
