"""Variants of the expectation GP that were tried as the default, and are not."""

import math

from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import Likelihood
from gpytorch.priors import LogNormalPrior

from airbo.embeddings import Embedding, RationalQuadraticSum
from airbo.models import ExpectationGP
from airbo.models.likelihoods import UnseenInputLikelihood
from airbo.models.priors import observation_noise


def variant(
    lengthscale: float = 0.15,
    power: float = 1.0,
    spread: float = 1.0,
    shared: bool = True,
    noise: tuple[float, float] = (0.01, 2.0),
    unseen: bool = True,
) -> type[ExpectationGP]:
    """Build a surrogate with other priors.

    Args:
        lengthscale: Median of the length scales on a line.
        power: How they grow with the number of columns.
        spread: Of their logarithm.
        shared: Whether there is one for all rational quadratics.
        noise: Median and spread of the noise.
        unseen: Whether the noise knows what unseen executed inputs do.
    """

    class Variant(ExpectationGP):
        @staticmethod
        def default_base_kernel(d: int) -> Kernel:
            typical = lengthscale * d**power
            prior = LogNormalPrior(math.log(typical), spread)
            return RationalQuadraticSum(typical, prior, shared)

        @staticmethod
        def default_likelihood(embedding: Embedding, kernel: ScaleKernel) -> Likelihood:
            constant = observation_noise(*noise)
            return UnseenInputLikelihood(constant, embedding, kernel) if unseen else constant

    return Variant


class SquaredExponential(ExpectationGP):
    """Has one length scale per column, as a plain GP in BoTorch."""

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build BoTorch's kernel with its priors."""
        return get_covar_module_with_dim_scaled_prior(d)


CANDIDATES: dict[str, type[ExpectationGP]] = {
    "squared exponential": SquaredExponential,
    "five length scales, short": variant(0.1, 0.5, shared=False),
    "five length scales, long": variant(0.3, 0.5, shared=False),
    "0.1 sqrt(d)": variant(0.1, 0.5),
    "0.2 sqrt(d)": variant(0.2, 0.5),
    "0.3 sqrt(d)": variant(0.3, 0.5),
    "0.15 d^0.75": variant(0.15, 0.75),
    "spread 0.5": variant(spread=0.5),
    "spread 2": variant(spread=2.0),
    "noise 5%": variant(noise=(0.05, 1.5)),
    "noise 0.1%": variant(noise=(0.001, 2.0)),
    "constant noise": variant(noise=(0.05, 1.5), unseen=False),
}
"""By what is different in them."""
