"""Surrogates that were tried as the default, and are not."""

from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import Likelihood

from airbo.embeddings import Embedding, default_base_kernel
from airbo.models import ExpectationGP
from airbo.models.likelihoods import UnseenInputLikelihood
from airbo.models.priors import observation_noise


class FiveLengthScales(ExpectationGP):
    """Has one length scale per rational quadratic and expects noise, as the paper's surrogates."""

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the paper's base kernel."""
        return default_base_kernel(d)

    @staticmethod
    def default_likelihood(embedding: Embedding, kernel: ScaleKernel) -> Likelihood:
        """Add to the noise what the unseen executed input does."""
        return UnseenInputLikelihood(observation_noise(), embedding, kernel)


class SquaredExponential(ExpectationGP):
    """Has one length scale per column, as a plain GP in BoTorch."""

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build BoTorch's kernel with its priors."""
        return get_covar_module_with_dim_scaled_prior(d)


class ConstantNoise(ExpectationGP):
    """Leaves what the unseen executed input does to one constant noise, as uGP."""

    @staticmethod
    def default_likelihood(embedding: Embedding, kernel: ScaleKernel) -> Likelihood:
        """Expect noise."""
        return observation_noise()


CANDIDATES = {
    "expectation-five": FiveLengthScales,
    "expectation-rbf": SquaredExponential,
    "expectation-constant-noise": ConstantNoise,
}
