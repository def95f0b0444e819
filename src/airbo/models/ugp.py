"""The surrogate of expected values."""

from typing import ClassVar

from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import Likelihood
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings import Embedding, Estimator, Quadrature, default_base_kernel
from airbo.kernels import IntegralKernel
from airbo.models.base import UncertainInputGP, Uncertainties, check_data, number_uncertainties
from airbo.models.priors import observation_noise, scaled
from airbo.uncertainty import InputUncertainty


class UGP(UncertainInputGP):
    """Gaussian process with the integral kernel E k(u, v) (Oliveira 2019).

    The arguments are those of ``MMDGP``.
    """

    outputscale_spread: ClassVar[float] = 1.0
    """Of the logarithm of the output scale, in its prior."""

    def __init__(
        self,
        train_X: Float[Tensor, "n d"],
        train_Y: Float[Tensor, "n 1"],
        uncertainty: Uncertainties = None,
        bounds: Float[Tensor, "2 d"] | None = None,
        estimator: Estimator | None = None,
        base_kernel: Kernel | None = None,
        likelihood: Likelihood | None = None,
        deployment: InputUncertainty | None = None,
        seed: int = 0,
    ) -> None:
        """Build the surrogate; fit it with ``botorch.fit_gpytorch_mll``."""
        bounds = check_data(train_X, train_Y, bounds)
        inputs, uncertainties = number_uncertainties(train_X, uncertainty, deployment)
        base_kernel = (base_kernel or self.default_base_kernel(train_X.shape[-1])).to(train_X)
        embedding = (estimator or Quadrature()).embed(uncertainties, base_kernel, bounds, seed)
        integral = IntegralKernel(embedding)
        kernel = scaled(integral, 1 / integral.at_a_point.item(), self.outputscale_spread)
        likelihood = likelihood or self.default_likelihood(embedding, kernel)
        super().__init__(inputs, train_Y, embedding, kernel, likelihood, deployment)

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the base kernel for ``d`` columns: the paper's."""
        return default_base_kernel(d)

    @staticmethod
    def default_likelihood(embedding: Embedding, kernel: ScaleKernel) -> Likelihood:
        """Build the likelihood of an observation: constant noise."""
        return observation_noise()
