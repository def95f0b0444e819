"""Branin's function: a correlated error makes one of its three equal valleys the best."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Box, Problem
from airbo.uncertainty import InputUncertainty, Normal

A, B, T = 5.1 / (4 * math.pi**2), 5 / math.pi, 1 / (8 * math.pi)


@dataclass(frozen=True)
class Branin(Problem):
    r"""Branin's function, smooth, with three equal minima.

    .. math:: f(x) = \left(x_2 - \tfrac{5.1}{4\pi^2} x_1^2 + \tfrac5\pi x_1 - 6\right)^2
              + 10 \left(1 - \tfrac1{8\pi}\right) \cos x_1 + 10

    By default both inputs have an error of standard deviation 1.5, mostly in the same direction.
    Valleys that lie along this direction stay deep.
    """

    name: ClassVar[str] = "branin"
    direction: ClassVar[Direction] = "minimize"
    box: ClassVar[Box] = ((-5.0, 0.0), (10.0, 15.0))

    uncertainty: InputUncertainty = field(
        default_factory=lambda: Normal(cov=[[2.25, 2.0], [2.0, 2.25]])
    )

    def __call__(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"]:
        self.check_columns(X)
        return self._averaged(X, X.new_zeros(2, 2))

    def exact(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"] | None:
        """Return E f(x') if the error is normal: the mean of a square and a damped cosine."""
        C = self.normal_covariance(X)
        return None if C is None else self._averaged(X, C)

    def _averaged(self, X: Tensor, covariance: Tensor) -> Tensor:
        """Return E f for x' around each design with a covariance."""
        x, y = X.unbind(-1)
        v, w, c = covariance[..., 0, 0], covariance[..., 1, 1], covariance[..., 0, 1]

        # E (y' - A x'² + B x' - 6)² is the squared mean plus the variance, with the slope s in x':
        # variance = w + s² v + 2 s c + 2 (A v)², and E cos x' = exp(-v/2) cos x
        mean = y - A * (x.square() + v) + B * x - 6
        s = B - 2 * A * x
        variance = w + s.square() * v + 2 * s * c + 2 * (A * v).square()
        return mean.square() + variance + 10 * (1 - T) * torch.exp(-v / 2) * x.cos() + 10
