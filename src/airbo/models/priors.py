"""Starting values and priors of hyper-parameters; docs/models.md explains them."""

import math

from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from airbo.embeddings.base_kernels import log_normal
from airbo.kernels.constraints import positive


def scaled(kernel: Kernel, start: float = 1.0, spread: float = 1.0) -> ScaleKernel:
    """Give a kernel a learnable output scale that starts at ``start``.

    ``spread`` may be smaller if the output scale explains all variation of the values and no noise
    parameter can take it over.
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
    """Build a likelihood with a prior that expects noise.

    Unseen executed inputs scatter the values even of a noiseless experiment. A model that accounts
    for this scatter can pass a smaller ``typical`` and a larger ``spread``. If variances are
    ``known``, they are used as they are.
    """
    if known is not None:
        return FixedNoiseGaussianLikelihood(noise=known)
    prior = LogNormalPrior(math.log(typical), spread)
    likelihood = GaussianLikelihood(noise_prior=prior, noise_constraint=GreaterThan(1e-6))
    likelihood.noise = typical
    return likelihood
