"""Branin's function: three equal valleys, of which a correlated error prefers one."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Problem
from airbo.uncertainty import InputUncertainty, Normal

A, B, T = 5.1 / (4 * math.pi**2), 5 / math.pi, 1 / (8 * math.pi)


@dataclass(frozen=True)
class Branin(Problem):
    r"""Branin's function, smooth, with three equal minima.

    .. math:: f(x) = \left(x_2 - \tfrac{5.1}{4\pi^2} x_1^2 + \tfrac5\pi x_1 - 6\right)^2
              + 10 \left(1 - \tfrac1{8\pi}\right) \cos x_1 + 10

    By default both inputs miss by 1.5, mostly in the same direction: valleys that lie along it stay
    deep.
    """

    name: ClassVar[str] = "branin"
    direction: ClassVar[Direction] = "minimize"

    uncertainty: InputUncertainty = field(
        default_factory=lambda: Normal(cov=[[2.25, 2.0], [2.0, 2.25]])
    )

    @property
    def bounds(self) -> Float[Tensor, "2 2"]:
        """The usual box."""
        return torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)

    def __call__(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"]:
        """Evaluate f at executed inputs."""
        self.check_columns(X)
        return self._averaged(X, X.new_zeros(2, 2))

    def exact(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"] | None:
        """Return a parabola's average and a damped cosine, if both inputs miss by normals."""
        self.check_columns(X)
        if not isinstance(self.uncertainty, Normal):
            return None
        return self._averaged(X, self.uncertainty.covariance(X))

    def _averaged(self, X: Tensor, covariance: Tensor) -> Tensor:
        """Return E f for x' around each design with a covariance."""
        x, y = X.unbind(-1)
        v, w, c = covariance[..., 0, 0], covariance[..., 1, 1], covariance[..., 0, 1]

        # E (y' - a x'² + b x' - 6)² is the squared mean plus the variance; s is the slope in x'
        mean = y - A * (x.square() + v) + B * x - 6
        s = B - 2 * A * x
        variance = w + s.square() * v + 2 * s * c + 2 * (A * v).square()
        return mean.square() + variance + 10 * (1 - T) * torch.exp(-v / 2) * x.cos() + 10
