"""BoTorch's acquisitions that were tried with the default surrogate and not taken."""

from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
from jaxtyping import Float
from torch import Tensor

N_CANDIDATES = 512
"""Random designs from which the largest value is drawn."""


class OneDraw(AcquisitionFunction):
    """One function drawn from the posterior: Thompson sampling."""

    def __init__(self, model: Any) -> None:
        """Draw the function."""
        super().__init__(model=model)
        self.path = model.draw_paths(1)

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return its expected values."""
        values: Tensor = self.path(X.squeeze(-2))
        return values.squeeze(0)


def entropy(model: Any, X_observed: Tensor) -> AcquisitionFunction:
    """Learn most about the largest expected value."""
    drawn = torch.rand(N_CANDIDATES, X_observed.shape[-1], dtype=X_observed.dtype)
    return qMaxValueEntropy(model, torch.cat([drawn, X_observed]))


def noisy_ei(model: Any, X_observed: Tensor, X_pending: Tensor) -> AcquisitionFunction:
    """Improve on the designs tried, whose expected values are not known."""
    return qLogNoisyExpectedImprovement(model, X_observed, X_pending=X_pending)


TRIED: dict[str, Callable[..., AcquisitionFunction]] = {
    "thompson": OneDraw,
    "entropy": entropy,
    "noisy-ei": noisy_ei,
}
"""By their names in a protocol."""
