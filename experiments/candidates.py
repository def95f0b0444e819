"""Surrogates that were tried as the default."""

from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import Kernel

from airbo.embeddings import default_base_kernel
from airbo.models import ExpectationGP


class LongExpectationGP(ExpectationGP):
    """Expects longer length scales, as the paper's surrogates do here."""

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the paper's base kernel, expecting features of a third of the range."""
        return default_base_kernel(d)


class SquaredExponentialExpectationGP(ExpectationGP):
    """Has one length scale per column, as a plain GP in BoTorch."""

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build BoTorch's kernel with its priors."""
        return get_covar_module_with_dim_scaled_prior(d)


CANDIDATES = {
    "expectation-long": LongExpectationGP,
    "expectation-rbf": SquaredExponentialExpectationGP,
}
