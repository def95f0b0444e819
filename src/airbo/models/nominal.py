"""The surrogate that believes the design."""

from typing import Any

from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.features import Nominal
from airbo.models.base import UncertainInputGP, Uncertainties, check_data, number_uncertainties
from airbo.uncertainty import InputUncertainty


class NominalGP(UncertainInputGP):
    """Plain Gaussian process on the designs: BoTorch's ``SingleTaskGP`` on the unit cube.

    The arguments are those of ``MMDGP``; ``uncertainty`` and ``estimator`` are taken, so that all
    surrogates can be built alike, and not used.
    """

    def __init__(
        self,
        train_X: Float[Tensor, "n d"],
        train_Y: Float[Tensor, "n 1"],
        uncertainty: Uncertainties = None,
        bounds: Float[Tensor, "2 d"] | None = None,
        estimator: Any = None,
        base_kernel: Kernel | None = None,
        likelihood: Likelihood | None = None,
        deployment: InputUncertainty | None = None,
        seed: int = 0,
    ) -> None:
        """Build the surrogate; fit it with ``botorch.fit_gpytorch_mll``."""
        bounds = check_data(train_X, train_Y, bounds)
        inputs, uncertainties = number_uncertainties(train_X, uncertainty, deployment)
        features = Nominal(uncertainties, bounds)
        kernel = base_kernel or get_covar_module_with_dim_scaled_prior(train_X.shape[-1])
        super().__init__(inputs, train_Y, features, kernel, likelihood, deployment)
