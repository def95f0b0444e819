"""Starting values and priors of hyper-parameters; docs/models.md says why."""

import math

from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from airbo.embeddings.base_kernels import log_normal
from airbo.kernels.constraints import positive


def scaled(kernel: Kernel, start: float = 1.0, spread: float = 1.0) -> ScaleKernel:
    """Give a kernel a learnable output scale, fitted from ``start`` on.

    Where all that values vary by is the output scale's, without a noise that could take it over,
    ``spread`` may be smaller.
    """
    prior = log_normal(start / math.e, spread)
    scale = ScaleKernel(kernel, outputscale_prior=prior, outputscale_constraint=positive())
    scale.outputscale = start
    return scale


def lengthscale_prior(d: int, spread: float = math.sqrt(3)) -> LogNormalPrior:
    """Expect length scales that grow with √d, as BoTorch does on the unit cube."""
    return log_normal(math.exp(math.sqrt(2) - 3) * math.sqrt(d), spread)


def observation_noise(
    known: Tensor | None = None, typical: float = 0.05, spread: float = 1.5
) -> GaussianLikelihood | FixedNoiseGaussianLikelihood:
    """Expect noise: unseen executed inputs scatter the values even of a noiseless experiment.

    A model that knows what these do expects less, and leaves more to the data. Where variances are
    ``known``, these are taken.
    """
    if known is not None:
        return FixedNoiseGaussianLikelihood(noise=known)
    prior = LogNormalPrior(math.log(typical), spread)
    likelihood = GaussianLikelihood(noise_prior=prior, noise_constraint=GreaterThan(1e-6))
    likelihood.noise = typical
    return likelihood
