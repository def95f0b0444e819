"""The surrogate that believes the design."""

from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.models.utils.gpytorch_modules import (
    get_gaussian_likelihood_with_lognormal_prior as typical_noise,
)

from airbo.embeddings.features import Nominal
from airbo.models.base import UncertainInputGP
from airbo.models.data import Given, Parts


class NominalGP(UncertainInputGP):
    """Plain Gaussian process on the designs: BoTorch's ``SingleTaskGP`` on the unit cube.

    It accepts ``uncertainty`` and ``estimator``, so that all surrogates can be built alike, but
    ignores them.
    """

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare designs, with BoTorch's kernel and noise."""
        kernel = given.base_kernel or get_covar_module_with_dim_scaled_prior(given.d)
        noise = None if given.known_noise is not None else typical_noise()
        return Parts(Nominal(given.uncertainties, given.bounds), kernel, noise)
