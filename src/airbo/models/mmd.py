"""The surrogate of the paper."""

from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings import Estimator, Quadrature, default_base_kernel
from airbo.kernels import MMDKernel
from airbo.models.base import UncertainInputGP, Uncertainties, check_data, number_uncertainties
from airbo.models.priors import observation_noise, scaled
from airbo.uncertainty import InputUncertainty


class MMDGP(UncertainInputGP):
    r"""Gaussian process with the kernel :math:`\exp(-\alpha\,\mathrm{MMD}^2)`.

    Args of the constructor, the same for all surrogates:

    - ``train_X``: designs in user units;
    - ``train_Y``: observed values;
    - ``uncertainty``: where the designs landed: one for all, or one per observation;
    - ``bounds``: the range of designs, row 0 low, row 1 high; by default that of ``train_X``;
    - ``estimator``: how MMDs are estimated; by default ``Quadrature()``;
    - ``base_kernel``: any GPyTorch kernel on the unit cube; by default the paper's;
    - ``likelihood``: by default Gaussian observation noise of unknown size;
    - ``deployment``: what the model predicts under; by default as most observations were made;
    - ``seed``: fixes all draws.
    """

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
        base_kernel = (base_kernel or default_base_kernel(train_X.shape[-1])).to(train_X)
        embedding = (estimator or Quadrature()).embed(uncertainties, base_kernel, bounds, seed)
        kernel = MMDKernel(embedding, alpha=1.0, alpha_prior=LogNormalPrior(0.0, 1.0))
        likelihood = likelihood or observation_noise()
        super().__init__(inputs, train_Y, embedding, scaled(kernel), likelihood, deployment)
