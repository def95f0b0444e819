"""Noise of observations that were made at one unknown point of P_x."""

from typing import Any

import torch
from gpytorch.kernels import ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase
from gpytorch.likelihoods.noise_models import Noise
from linear_operator.operators import DiagLinearOperator, LinearOperator
from torch import Tensor

from airbo.embeddings.features import Features


class UnseenInputNoise(Noise):
    r"""Observation noise plus what the unseen executed input adds.

    .. math:: \sigma^2 + s \, (k(x', x') - \hat k(P_x, P_x))

    for a kernel of output scale ``s``: the variance of f at one point of P_x is larger than that of
    its expected value.
    """

    def __init__(self, noise: Noise, features: Features, kernel: ScaleKernel) -> None:
        """Add to ``noise``, with the features and the kernel of the model.

        Under the output scale there is a kernel that knows its value ``at_a_point``.
        """
        super().__init__()
        self.observation_noise = noise
        self.features = features
        self.kernel = kernel

    @property
    def noise(self) -> Tensor:
        """The observation noise alone."""
        return self.observation_noise.noise

    def forward(
        self, *params: Any, shape: torch.Size | None = None, **kwargs: Any
    ) -> LinearOperator:
        """Return the diagonal noise covariance at designs.

        Args:
            *params: The designs.
            shape: Of the variances.
            **kwargs: With ``noise``, variances to be taken instead, as BoTorch passes them.
        """
        if kwargs.get("noise") is not None:
            return DiagLinearOperator(kwargs["noise"])
        if not params:
            raise ValueError(
                "The noise of this likelihood differs from design to design: call it with the "
                "designs, as likelihood(distribution, [X])."
            )
        X = params[0][0] if isinstance(params[0], (list, tuple)) else params[0]
        f = self.features(X)
        at_a_point = self.kernel.outputscale * self.kernel.base_kernel.at_a_point
        unseen = (at_a_point - self.kernel(f, diag=True)).clamp_min(0)
        total = unseen + self.observation_noise.noise
        return DiagLinearOperator(total if shape is None else total.expand(shape))


class UnseenInputLikelihood(_GaussianLikelihoodBase):
    """Gaussian likelihood with the noise of unseen executed inputs."""

    def __init__(
        self, likelihood: GaussianLikelihood, features: Features, kernel: ScaleKernel
    ) -> None:
        """Take the observation noise from ``likelihood``."""
        super().__init__(UnseenInputNoise(likelihood.noise_covar, features, kernel))

    @property
    def noise(self) -> Tensor:
        """The observation noise alone, without what unseen inputs add."""
        return self.noise_covar.noise
