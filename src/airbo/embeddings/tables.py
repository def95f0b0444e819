"""Smooth functions of one number, looked up instead of worked out."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from torch import Tensor


@dataclass(frozen=True)
class Table:
    """Cubic splines through the values of several functions on an even grid."""

    low: float
    high: float
    coefficients: Float[Tensor, "n 4 functions"]
    """Of the powers 3, 2, 1 and 0 of the place within each cell of the grid."""

    @classmethod
    def of(cls, low: float, high: float, values: NDArray[np.float64]) -> "Table":
        """Interpolate functions, one per column of ``values``, between ``low`` and ``high``."""
        spline = CubicSpline(np.arange(float(len(values))), values)
        return cls(low, high, torch.from_numpy(np.ascontiguousarray(spline.c.swapaxes(0, 1))))

    def summed(self, weights: Float[Tensor, " functions"]) -> "Table":
        """Return the table of one function, a weighted sum of all."""
        weights = weights.unsqueeze(-1)
        return Table(self.low, self.high, self.coefficients.to(weights) @ weights)

    def outside(self, t: Float[Tensor, "*shape"]) -> Tensor:
        """Say where ``t`` is not on the grid."""
        return (t < self.low) | (t > self.high)

    def __call__(self, t: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape functions"]:
        """Return the values of all functions."""
        n = len(self.coefficients)
        position = (t.flatten() - self.low) * (n / (self.high - self.low))
        cell = position.detach().long().clamp_(0, n - 1)
        x = (position - cell).unsqueeze(-1)
        rows = self.coefficients.to(t).flatten(1).index_select(0, cell)
        a, b, c, d = rows.unflatten(-1, (4, -1)).unbind(-2)
        values = torch.addcmul(d, torch.addcmul(c, torch.addcmul(b, a, x), x), x)
        return values.unflatten(0, t.shape)
