"""Expected values, with noise from unseen executed inputs."""

import math

from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import Likelihood

from airbo.embeddings import Embedding, ScaleMixtureKernel
from airbo.embeddings.base_kernels import log_normal
from airbo.models.data import Given
from airbo.models.likelihoods import UnseenInputLikelihood
from airbo.models.priors import observation_noise
from airbo.models.ugp import UGP


class ExpectationGP(UGP):
    r"""Gaussian process over f that models expected values under P_x.

    If f ~ GP(0, k), expected values have the covariance :math:`\langle\psi_P, \psi_Q\rangle`, as
    in ``UGP``. An observation was made at one unknown point x' of P_x, where f has the variance
    k(x', x'). The difference, :math:`k(x', x') - \|\psi_P\|^2`, is added to the noise of the
    observation: the more f varies within P_x, the larger it is.

    A ``base_kernel`` must be stationary.
    """

    outputscale_spread = math.sqrt(0.5)

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the base kernel with one length scale, which starts at 0.15 d."""
        start = 0.15 * d
        return ScaleMixtureKernel(start, log_normal(start / math.e, math.sqrt(1 / 8)))

    @staticmethod
    def default_likelihood(given: Given, embedding: Embedding, kernel: ScaleKernel) -> Likelihood:
        """Add the variance that the unseen executed input causes to the noise."""
        if not embedding.base_kernel.is_stationary:
            name = type(embedding.base_kernel).__name__
            raise ValueError(f"ExpectationGP needs a stationary base kernel, got {name}.")
        noise = observation_noise(given.known_noise, typical=0.01, spread=2.0)
        return UnseenInputLikelihood(noise, embedding, kernel)
