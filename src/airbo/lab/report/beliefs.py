"""What a model expects of designs, as its user counts them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from airbo.optimizer.goal import OutcomeModel
from airbo.space.cube import Cube
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.in_cube import in_cube

_TOGETHER = 16
"""Designs that are predicted jointly; the cost grows with the square of their number."""
_AT_ONCE = 256


@dataclass(frozen=True)
class Estimate:
    """Expected values, each with its standard deviation."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    def __getitem__(self, i: Any) -> "Estimate":
        """Return some of the values."""
        return Estimate(np.asarray(self.mean[i]), np.asarray(self.std[i]))


@dataclass(frozen=True)
class Beliefs:
    """A fitted model that takes and gives numbers in the user's units and direction."""

    cube: Cube
    model: GPyTorchModel
    unit: float
    """Factor from values of the model to the user's; negative if smaller is better."""
    where: InputUncertainty | None = None
    """Where designs land, in the cube; by default as in use."""

    @classmethod
    def of(cls, outcome: OutcomeModel) -> "Beliefs":
        """Take the model of an outcome."""
        surrogate = outcome.surrogate
        return cls(surrogate.points.cube, outcome.model, surrogate.sign * outcome.unit)

    def under(self, uncertainty: InputUncertainty) -> "Beliefs":
        """Return the beliefs of the same model about designs under another uncertainty."""
        return replace(self, where=in_cube(self.cube.space, uncertainty))

    def expected(self, X: Float[Tensor, "n d"]) -> Estimate:
        """Return the expected value of designs in columns."""
        parts = [self._portion(part) for part in X.split(_AT_ONCE)]
        mean, variance = (torch.cat(both).numpy() for both in zip(*parts, strict=True))
        return Estimate(self.unit * mean, abs(self.unit) * np.sqrt(variance))

    def compare(
        self, X: Float[Tensor, "2 d"], uncertainties: Sequence[InputUncertainty]
    ) -> tuple[Estimate, Estimate]:
        """Compare two designs, each under its own uncertainty.

        Returns:
            What to expect of the second one, and by how much that differs from the first.
        """
        each = [in_cube(self.cube.space, u) for u in uncertainties]
        with torch.no_grad():
            model: Any = self.model
            joint = model.posterior(self.cube.from_columns(X), uncertainty=each)
            mean, C = joint.mean.squeeze(-1).numpy(), joint.distribution.covariance_matrix.numpy()
        variances = np.array([C[1, 1], C[0, 0] + C[1, 1] - 2 * C[0, 1]])
        stds = abs(self.unit) * np.sqrt(variances.clip(min=0))
        means = self.unit * np.array([mean[1], mean[1] - mean[0]])
        both = Estimate(means, stds)
        return both[0], both[1]

    def _portion(self, X: Tensor) -> tuple[Tensor, Tensor]:
        missing = -len(X) % _TOGETHER
        padded = torch.cat([X, X[-1:].expand(missing, -1)])
        Z = self.cube.from_columns(padded).unflatten(0, (-1, _TOGETHER))
        with torch.no_grad():
            model: Any = self.model
            under = {} if self.where is None else {"uncertainty": self.where}
            posterior = model.posterior(Z, **under)
            mean, variance = posterior.mean.flatten(), posterior.variance.flatten()
        return mean[: len(X)], variance[: len(X)].clamp_min(0)
