"""What a model expects of designs, as its user counts them."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.posteriors.gpytorch import GPyTorchPosterior
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from airbo.models import UncertainInputGP
from airbo.observed import OK, STATUS, VALUE
from airbo.optimizer import Optimizer
from airbo.optimizer.surrogate import value_unit
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

    @classmethod
    def of(cls, optimizer: Optimizer) -> "Beliefs":
        """Take the model of an optimizer that has seen a value."""
        table = optimizer.observations
        values = table.loc[table[STATUS] == OK, VALUE]
        sign = 1 if optimizer.direction == "maximize" else -1
        unit = sign * value_unit([float(value) for value in values])
        return cls(Cube(optimizer.space), optimizer.model, unit)

    def under(self, uncertainty: InputUncertainty) -> "Beliefs":
        """Return the beliefs of the same model about designs under another uncertainty."""
        model = copy.deepcopy(self._over_distributions)
        model.deployment = in_cube(self.cube.space, uncertainty)
        return replace(self, model=model)

    def expected(self, X: Float[Tensor, "n d"], noise: bool = False) -> Estimate:
        """Return the expected value of designs in columns.

        Args:
            X: The designs.
            noise: Whether the standard deviation is that of a single experiment, not of its mean.
        """
        parts = [self._portion(part, noise) for part in X.split(_AT_ONCE)]
        mean, variance = (torch.cat(both).numpy() for both in zip(*parts, strict=True))
        return Estimate(self.unit * mean, abs(self.unit) * np.sqrt(variance))

    def joint(self, X: Float[Tensor, "n d"]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return means and covariances of the expected values of a few designs in columns."""
        with torch.no_grad():
            posterior = self.model.posterior(self.cube.from_columns(X))
            assert isinstance(posterior, GPyTorchPosterior)
            C = posterior.distribution.covariance_matrix.numpy()
        return self.unit * posterior.mean.squeeze(-1).numpy(), self.unit**2 * C

    def compare(
        self, X: Float[Tensor, "2 d"], uncertainties: Sequence[InputUncertainty]
    ) -> tuple[Estimate, Estimate]:
        """Compare two designs, each under its own uncertainty.

        Returns:
            What to expect of the second one, and by how much that differs from the first.
        """
        each = [in_cube(self.cube.space, u) for u in uncertainties]
        with torch.no_grad():
            joint = self._over_distributions.posterior(self.cube.from_columns(X), uncertainty=each)
            mean, C = joint.mean.squeeze(-1).numpy(), joint.distribution.covariance_matrix.numpy()
        variances = np.array([C[1, 1], C[0, 0] + C[1, 1] - 2 * C[0, 1]])
        stds = abs(self.unit) * np.sqrt(variances.clip(min=0))
        means = self.unit * np.array([mean[1], mean[1] - mean[0]])
        both = Estimate(means, stds)
        return both[0], both[1]

    @property
    def _over_distributions(self) -> UncertainInputGP:
        if not isinstance(self.model, UncertainInputGP):
            kind = type(self.model).__name__
            raise TypeError(f"{kind} does not know where designs land; use surrogate='ugp'.")
        return self.model

    def _portion(self, X: Tensor, noise: bool) -> tuple[Tensor, Tensor]:
        missing = -len(X) % _TOGETHER
        padded = torch.cat([X, X[-1:].expand(missing, -1)])
        Z = self.cube.from_columns(padded).unflatten(0, (-1, _TOGETHER))
        with torch.no_grad():
            posterior = self.model.posterior(Z, observation_noise=noise)
            mean, variance = posterior.mean.flatten(), posterior.variance.flatten()
        return mean[: len(X)], variance[: len(X)].clamp_min(0)
