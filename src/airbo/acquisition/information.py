"""What an experiment teaches about a design that will be used otherwise than it is tried."""

from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from jaxtyping import Float
from torch import Tensor

from airbo.models import UncertainInputGP
from airbo.uncertainty import InputUncertainty


class InformationAbout(AcquisitionFunction):
    r"""How much one experiment would reduce the variance of one design in use.

    .. math:: \frac{\mathrm{Cov}(F_Q(x^*), F_P(x))^2}{\mathrm{Var}\, F_P(x) + \sigma^2(x)}

    This is the drop in the variance of the expected value of :math:`x^*`, used under Q, after one
    experiment at x under P. If P equals Q, an experiment at :math:`x^*` itself serves as well. If
    they differ, such an experiment may be of no use.
    """

    def __init__(
        self,
        model: UncertainInputGP,
        design: Float[Tensor, "1 m"],
        deployment: InputUncertainty,
        experiments: InputUncertainty,
    ) -> None:
        """Score experiments, run under ``experiments``, for a design used under ``deployment``."""
        super().__init__(model=model)
        self.design = design
        self.deployment, self.experiments = deployment, experiments

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return the drop in variance for each experiment of a batch."""
        both = torch.cat([self.design.expand_as(X), X], dim=-2)
        model: Any = self.model
        posterior = model.posterior(both, uncertainty=[self.deployment, self.experiments])
        covariance = posterior.distribution.covariance_matrix  # (..., 2, 2)
        noise = model.noise_variance(X, self.experiments).squeeze(-1)
        # Cov(F_Q(x*), F_P(x))² / (Var F_P(x) + σ²(x))
        return covariance[..., 0, 1].square() / (covariance[..., 1, 1] + noise)
