"""The surrogate of expected values that knows how far an observation can lie from them."""

import math

from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import Likelihood

from airbo.embeddings import Embedding, RationalQuadraticSum
from airbo.embeddings.base_kernels import log_normal
from airbo.models.data import Given
from airbo.models.likelihoods import UnseenInputLikelihood
from airbo.models.priors import observation_noise
from airbo.models.ugp import UGP


class ExpectationGP(UGP):
    r"""Gaussian process over f, seen through P_x: expectations, and observations at one point.

    If f ~ GP(0, k), expected values have the covariance :math:`\langle\psi_P, \psi_Q\rangle`, as
    in ``UGP``. An observation was made at one unknown point of P_x and varies by k(x', x'); the
    difference, :math:`k(x', x') - \|\psi_P\|^2`, depends on the design and goes to its noise.
    A ``base_kernel`` has to be stationary.
    """

    outputscale_spread = math.sqrt(0.5)

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the paper's base kernel with one length scale, longer in more columns."""
        start = 0.15 * d
        return RationalQuadraticSum(
            start, log_normal(start / math.e, math.sqrt(1 / 8)), shared=True
        )

    @staticmethod
    def default_likelihood(given: Given, embedding: Embedding, kernel: ScaleKernel) -> Likelihood:
        """Add the variance that the unseen executed input causes to the noise."""
        if not embedding.base_kernel.is_stationary:
            name = type(embedding.base_kernel).__name__
            raise ValueError(f"ExpectationGP needs a stationary base kernel, got {name}.")
        noise = observation_noise(given.known_noise, typical=0.01, spread=2.0)
        return UnseenInputLikelihood(noise, embedding, kernel)
