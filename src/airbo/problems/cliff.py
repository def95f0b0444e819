"""A slope that ends at a cliff, under an error that overshoots."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Box, Problem
from airbo.uncertainty import ChiSquared, InputUncertainty, Normal, Product

BELOW = -1.0
"""Value beyond the edge."""


@dataclass(frozen=True)
class Cliff(Problem):
    r"""A slope up to an edge; beyond the edge the value is -1.

    .. math:: f(x) = x_1 + 0.2 \cos 2 \pi x_2 \text{ if } x_1 < 0.7 + 0.1 \sin 2 \pi x_2,
              \text{ otherwise } -1

    By default the first input overshoots by a skewed amount. The best design keeps a distance from
    the edge that is larger than the mean overshoot.
    """

    name: ClassVar[str] = "cliff"
    direction: ClassVar[Direction] = "maximize"
    box: ClassVar[Box] = ((0.0, 0.0), (1.0, 1.0))
    n_samples: ClassVar[int] = 2**16
    """More than usual: the edge needs more samples than a smooth function."""

    uncertainty: InputUncertainty = field(
        default_factory=lambda: Product([ChiSquared(3.0, scale=0.02), Normal(0.03)])
    )

    def __call__(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"]:
        self.check_columns(X)
        x, angle = X[..., 0], 2 * math.pi * X[..., 1]
        # x₁ + 0.2 cos 2πx₂ before the edge at 0.7 + 0.1 sin 2πx₂
        slope = x + 0.2 * angle.cos()
        return torch.where(x < 0.7 + 0.1 * angle.sin(), slope, BELOW)
