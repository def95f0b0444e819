"""A wave that can only be ridden where designs are hit precisely."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.problems.base import Optimum, Problem
from airbo.problems.expectation import highest_point
from airbo.uncertainty import InputUncertainty, Normal, Varying


@dataclass(frozen=True)
class Wave(Problem):
    r"""A wave on a slope, hit ever less precisely: :math:`\sigma(x) = 0.15\,x`.

    .. math:: f(x) = x / 2 + \sin(10 \pi x), \quad
              \mathbb E f(x + \sigma\epsilon) = x / 2 + e^{-(10 \pi \sigma)^2 / 2} \sin(10 \pi x)

    The slope draws to the right, where the wave is highest and averages out; the robust optimum is
    the first crest.
    """

    name: ClassVar[str] = "wave"
    direction: ClassVar[Literal["maximize", "minimize"]] = "maximize"

    uncertainty: InputUncertainty = field(
        default_factory=lambda: Varying(lambda x: Normal(0.15 * x))
    )

    @property
    def bounds(self) -> Float[Tensor, "2 1"]:
        """The unit interval."""
        return torch.tensor([[0.0], [1.0]], dtype=torch.float64)

    def __call__(self, X: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n"]:
        """Evaluate the wave at executed inputs."""
        x = X.squeeze(-1)
        return 0.5 * x + torch.sin(10 * math.pi * x)

    def expected(self, X: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n"]:
        """Return the damped wave."""
        variance = self.uncertainty.covariance(X).flatten(-2).squeeze(-1)
        x = X.squeeze(-1)
        return 0.5 * x + torch.exp(-0.5 * (10 * math.pi) ** 2 * variance) * torch.sin(
            10 * math.pi * x
        )

    @cached_property
    def nominal_optimum(self) -> Optimum:
        """The last crest."""
        return highest_point(self, self.bounds)

    @cached_property
    def robust_optimum(self) -> Optimum:
        """The first crest."""
        return highest_point(self.expected, self.bounds)
