"""The RKHS function: a wide hill on the left, a range of narrow peaks on the right."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Box, Problem
from airbo.problems.truth import blurred_bumps
from airbo.uncertainty import InputUncertainty, Normal

WIDE_CENTERS = (0.1, 0.15, 0.08, 0.3, 0.4)
WIDE_HEIGHTS = (4.0, -1.0, 2.0, -2.0, 1.0)
NARROW_CENTERS = (0.8, 0.85, 0.9, 0.95, 0.92, 0.74, 0.91, 0.89, 0.79, 0.88, 0.86, 0.96, 0.99, 0.82)
NARROW_HEIGHTS = (3.0, 4.0, 2.0, 1.0, -1.0, 2.0, 2.0, 3.0, 3.0, 2.0, -1.0, -2.0, 4.0, -3.0)

BUMPS = (
    *((h, (c,), 0.1) for h, c in zip(WIDE_HEIGHTS, WIDE_CENTERS, strict=True)),
    *((h, (c,), 0.01) for h, c in zip(NARROW_HEIGHTS, NARROW_CENTERS, strict=True)),
)
"""Height, place and width of each."""


@dataclass(frozen=True)
class RKHS(Problem):
    r"""A sum of Gaussian bumps whose highest peak is too narrow to hit reliably.

    .. math:: f(x) = \sum_i a_i \exp\left(-\frac{(x - c_i)^2}{2 w_i^2}\right)
    """

    name: ClassVar[str] = "rkhs"
    direction: ClassVar[Direction] = "maximize"
    box: ClassVar[Box] = ((0.0,), (1.0,))

    uncertainty: InputUncertainty = field(default_factory=lambda: Normal(0.01))

    def __call__(self, X: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n"]:
        return blurred_bumps(X, BUMPS, torch.zeros_like(X))

    def exact(self, X: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n"] | None:
        """Return E f(x') for a normal error: the average of a Gaussian bump is a wider one."""
        C = self.normal_covariance(X)
        return None if C is None else blurred_bumps(X, BUMPS, C.squeeze(-1))
