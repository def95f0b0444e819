"""What the optimizer knows when it chooses the next design."""

from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from jaxtyping import Float, Int
from torch import Tensor

from airbo.measures.posterior import MeasureModel
from airbo.models import UncertainInputGP
from airbo.uncertainty import InputUncertainty


@dataclass(frozen=True)
class Situation:
    """What the optimizer knows when it chooses the next design, in the unit cube."""

    X_observed: Float[Tensor, "n m"]
    """Designs with an observed value."""
    X_pending: Float[Tensor, "p m"] | None = None
    """Designs without a value: proposed and not told yet, or failed."""
    uncertainty: InputUncertainty | None = None
    """The uncertainty of pending designs; None: that of most observations."""


@runtime_checkable
class Acquisition(Protocol):
    """Builds a BoTorch acquisition function for a fitted model."""

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Build the function whose maximum is the next design."""


def most_promising(model: Model, Z: Float[Tensor, "n m"], most: int) -> Int[Tensor, "k"]:
    """Return the positions of the points that may be best: those with the largest mean + std."""
    if len(Z) <= most:
        return torch.arange(len(Z))
    with torch.no_grad():
        parts: list[Any] = [model.posterior(part.unsqueeze(-2)) for part in Z.split(256)]
        bounds = [p.mean.flatten() + p.variance.flatten().clamp_min(0).sqrt() for p in parts]
    return torch.cat(bounds).topk(most).indices


def with_pending(model: Any, situation: Situation) -> Model:
    """Return the model as if each pending design had given its expected value.

    The posterior mean stays the same. The standard deviation shrinks around pending designs, so
    that the next design goes elsewhere.
    """
    X = situation.X_pending
    if X is None:
        return model
    if isinstance(model, MeasureModel):
        return model.with_pending(X, situation.uncertainty)
    under: dict[str, Any] = {}
    if isinstance(model, UncertainInputGP):
        under["uncertainty"] = situation.uncertainty or model.features.uncertainties[0]
    with torch.no_grad():
        expected = model.posterior(X, **under).mean
    return cast(Model, model.condition_on_observations(X, expected, **under))
