"""Starting values and priors of hyper-parameters; docs/models.md says why."""

import math

from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior

from airbo.kernels.constraints import positive


def scaled(kernel: Kernel, typical: float = 1.0) -> ScaleKernel:
    """Give a kernel a learnable output scale around ``typical``."""
    prior = LogNormalPrior(math.log(typical), 1.0)
    scale = ScaleKernel(kernel, outputscale_prior=prior, outputscale_constraint=positive())
    scale.outputscale = typical
    return scale


def lengthscale_prior(d: int) -> LogNormalPrior:
    """Expect length scales that grow with √d, as BoTorch does on the unit cube."""
    return LogNormalPrior(math.sqrt(2) + 0.5 * math.log(d), math.sqrt(3))


def observation_noise(typical: float = 0.05, spread: float = 1.5) -> GaussianLikelihood:
    """Expect noise: unseen executed inputs scatter the values even of a noiseless experiment.

    A model that knows what these do expects less, and leaves more to the data.
    """
    prior = LogNormalPrior(math.log(typical), spread)
    likelihood = GaussianLikelihood(noise_prior=prior, noise_constraint=GreaterThan(1e-6))
    likelihood.noise = typical
    return likelihood
