"""Variants of the expectation GP that were tried as the default and rejected."""

import math

from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import Likelihood

from airbo.embeddings import Embedding, RationalQuadraticSum
from airbo.models import ExpectationGP
from experiments.subjects.internals import (
    Given,
    UnseenInputLikelihood,
    lengthscale_prior,
    log_normal,
    observation_noise,
)

MODE, SPREAD = 0.15 / math.e, math.sqrt(1 / 8)
"""Mode of the default's length scale in one dimension."""


def variant(
    mode: float = MODE,
    power: float = 1.0,
    spread: float = SPREAD,
    shared: bool = True,
    outputscale: float = math.sqrt(0.5),
    noise: tuple[float, float] = (0.01, 2.0),
    unseen: bool = True,
) -> type[ExpectationGP]:
    """Build a surrogate with other priors.

    Args:
        mode: Mode of the length scales in one dimension.
        power: How they grow with the number of dimensions.
        spread: Standard deviation of their logarithm.
        shared: Whether there is one for all rational quadratics.
        outputscale: Spread of the logarithm of the output scale.
        noise: Median and spread of the noise.
        unseen: Whether the noise includes the variance due to unseen executed inputs.
    """

    class Variant(ExpectationGP):
        outputscale_spread = outputscale

        @staticmethod
        def default_base_kernel(d: int) -> Kernel:
            here = mode * d**power
            return RationalQuadraticSum(math.e * here, log_normal(here, spread), shared)

        @staticmethod
        def default_likelihood(
            given: Given, embedding: Embedding, kernel: ScaleKernel
        ) -> Likelihood:
            typical, spread = noise
            constant = observation_noise(given.known_noise, typical, spread)
            return UnseenInputLikelihood(constant, embedding, kernel) if unseen else constant

    return Variant


class SquaredExponential(ExpectationGP):
    """Has one length scale per column, as a plain GP in BoTorch."""

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build BoTorch's kernel with its prior, narrower."""
        kernel = get_covar_module_with_dim_scaled_prior(d)
        narrower = lengthscale_prior(d, spread=math.sqrt(3 / 8))
        kernel.register_prior("lengthscale_prior", narrower, "lengthscale")
        return kernel


CANDIDATES: dict[str, type[ExpectationGP]] = {
    "squared exponential": SquaredExponential,
    "five length scales": variant(shared=False),
    "half as long": variant(MODE / 2),
    "twice as long": variant(2 * MODE),
    "grows with sqrt(d)": variant(power=0.5),
    "twice, grows with sqrt(d)": variant(2 * MODE, power=0.5),
    "spread 0.7": variant(spread=0.7),
    "spread 1.4": variant(spread=1.4),
    "output scale, spread 1": variant(outputscale=1.0),
    "noise 5%": variant(noise=(0.05, 1.5)),
    "noise 0.1%": variant(noise=(0.001, 2.0)),
    "constant noise": variant(spread=0.5, outputscale=1.0, noise=(0.05, 1.5), unseen=False),
}
"""By what is different in them."""
WIDER: dict[str, type[ExpectationGP]] = {
    "spread 1": variant(spread=1.0),
    "twice as long, spread 0.7": variant(2 * MODE, spread=0.7),
}
"""Priors that let the data say more, tried in the second round."""
