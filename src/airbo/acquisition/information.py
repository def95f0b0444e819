"""What an experiment teaches about a design that will be used otherwise than it is tried."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from jaxtyping import Float
from torch import Tensor
from torch.nn import ModuleList

from airbo.models import UncertainInputGP
from airbo.uncertainty import InputUncertainty


class InformationAbout(AcquisitionFunction):
    r"""Which share of the variance of one design in use an experiment would take away.

    .. math:: \sum_j \frac{\mathrm{Cov}(F_{jQ}(x^*), F_{jP}(x))^2}
              {\mathrm{Var}\, F_{jQ}(x^*) \; (\mathrm{Var}\, F_{jP}(x) + \sigma_j^2(x))}

    The numerator over the second factor is the drop in the variance of the expected value of
    :math:`x^*`, used under Q, after one experiment at x under P; the sum runs over all outcomes. If
    P equals Q, an experiment at :math:`x^*` itself serves as well. If they differ, such an
    experiment may be of no use.
    """

    n_steps = 20
    """Steps that a search takes from each start; every step needs the models of all outcomes."""

    def __init__(
        self,
        models: Sequence[UncertainInputGP],
        design: Float[Tensor, "1 m"],
        deployment: InputUncertainty,
        experiments: InputUncertainty,
    ) -> None:
        """Score experiments, run under ``experiments``, for a design used under ``deployment``.

        Args:
            models: One of every outcome.
            design: The design to learn about, x*.
            deployment: Q.
            experiments: P.
        """
        super().__init__(model=models[0])
        self.models = ModuleList(models)
        self.design = design
        self.deployment, self.experiments = deployment, experiments

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return the share for each experiment of a batch, summed over outcomes."""
        both = torch.cat([self.design.expand_as(X), X], dim=-2)
        return torch.stack([self._share(model, both, X) for model in self.models]).sum(0)

    def _share(self, model: Any, both: Tensor, X: Tensor) -> Tensor:
        posterior = model.posterior(both, uncertainty=[self.deployment, self.experiments])
        covariance = posterior.distribution.covariance_matrix  # (..., 2, 2)
        noise = model.noise_variance(X, self.experiments).squeeze(-1)
        # Cov(F_Q(x*), F_P(x))² / Var F_Q(x*) (Var F_P(x) + σ²(x))
        whole = covariance[..., 0, 0] * (covariance[..., 1, 1] + noise)
        return cast(Tensor, covariance[..., 0, 1].square() / whole.clamp_min(1e-300))
