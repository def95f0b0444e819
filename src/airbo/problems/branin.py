"""Branin's function: three equal valleys, of which a correlated error prefers one."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.problems.base import Problem
from airbo.problems.optimum import Direction
from airbo.uncertainty import InputUncertainty, Normal


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
        x, y = X.unbind(-1)
        valley = y - 5.1 / (4 * math.pi**2) * x.square() + 5 / math.pi * x - 6
        return valley.square() + 10 * (1 - 1 / (8 * math.pi)) * x.cos() + 10
