"""A wave that averages out where the error is large."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Box, Problem
from airbo.uncertainty import InputUncertainty, Normal, Varying


@dataclass(frozen=True)
class Wave(Problem):
    r"""A wave on a slope, with an error that grows with x: :math:`\sigma(x) = 0.15\,x`.

    .. math:: f(x) = x / 2 + \sin(10 \pi x), \quad
              \mathbb E f(x + \sigma\epsilon) = x / 2 + e^{-(10 \pi \sigma)^2 / 2} \sin(10 \pi x)

    The slope makes the crests on the right the highest, but there the wave averages out. The robust
    optimum is the first crest.
    """

    name: ClassVar[str] = "wave"
    direction: ClassVar[Direction] = "maximize"
    box: ClassVar[Box] = ((0.0,), (1.0,))

    uncertainty: InputUncertainty = field(
        default_factory=lambda: Varying(lambda x: Normal(0.15 * x))
    )

    def __call__(self, X: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n"]:
        x = X.squeeze(-1)
        return 0.5 * x + torch.sin(10 * math.pi * x)

    def exact(self, X: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n"] | None:
        """Return the damped wave, if the executed input is normal around the design."""
        C = self.normal_covariance(X)
        if C is None:
            return None
        x, variance = X.squeeze(-1), C.flatten(-2).squeeze(-1)
        # E sin(ω x') = exp(-½ ω² v) sin(ω x), ω = 10π
        damping = torch.exp(-0.5 * (10 * math.pi) ** 2 * variance)
        return 0.5 * x + damping * torch.sin(10 * math.pi * x)
