"""Problems of others, with the robust optima that they published (Fröhlich et al., 2020).

There experiments are exact simulations, and the errors are normal in use only. They come from
"Noisy-input entropy search for efficient robust Bayesian optimization", AISTATS 2020.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems import Problem
from airbo.uncertainty import Normal
from experiments.subjects.landscapes import Formula, box

CENTERS = ((0.2, 0.2), (0.8, 0.2), (0.5, 0.7))
WIDTHS = (0.2, 0.1, 0.1)
HEIGHTS = (0.5, 0.7, 0.7)


def chirp(X: Float[Tensor, "*n 1"]) -> Float[Tensor, "*n"]:
    """Return a wave that gets shorter: sin 5πx² + x/2."""
    x = X.squeeze(-1)
    return torch.sin(5 * math.pi * x.square()) + x / 2


CHIRP = Formula("chirp", chirp, box(0.0, 1.0, 1), uncertainty=Normal(0.05))
"""Published: x* = 0.3111 with an expected value of 1.0421."""


@dataclass(frozen=True)
class ThreeBumps(Problem):
    """A wide bump and two higher, narrower ones.

    Published: x* = (0.2003, 0.2002) with an expected value of 0.40012.
    """

    name: ClassVar[str] = "three-bumps"
    direction: ClassVar[Direction] = "maximize"
    box: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = ((0.0, 0.0), (1.0, 1.0))
    uncertainty: Normal = field(default_factory=lambda: Normal(0.1))

    def __call__(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"]:
        return self._smoothed(X, 0.0)

    def exact(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"]:
        """Return the bumps, widened by a normal error that is the same in both columns."""
        assert isinstance(self.uncertainty.std, float)
        return self._smoothed(X, self.uncertainty.std)

    def _smoothed(self, X: Tensor, std: float) -> Tensor:
        total = X.new_zeros(X.shape[:-1])
        for center, width, height in zip(CENTERS, WIDTHS, HEIGHTS, strict=True):
            variance = width**2 + std**2
            squared = (X - X.new_tensor(center)).square().sum(-1)
            total = total + height * width**2 / variance * torch.exp(-squared / (2 * variance))
        return total


RANGES = ((-0.95, 3.2), (-0.45, 4.4))


def polynomial(X: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n"]:
    """Return several deep valleys with steep walls (Bertsimas, Nohadani and Teo).

    Executed inputs stop at the bounds.
    """
    low, high = X.new_tensor(RANGES).T
    x, y = torch.minimum(torch.maximum(X, low), high).unbind(-1)
    of_x = 2 * x**6 - 12.2 * x**5 + 21.2 * x**4 - 6.4 * x**3 - 4.7 * x**2 + 6.2 * x
    of_y = y**6 - 11 * y**5 + 43.3 * y**4 - 74.8 * y**3 + 56.9 * y**2 - 10 * y
    return of_x + of_y - 4.1 * x * y - 0.1 * (x * y) ** 2 + 0.4 * y**2 * x + 0.4 * x**2 * y


POLYNOMIAL = Formula("polynomial", polynomial, RANGES, "minimize", Normal(0.6))
"""Published: x* = (0.267, 0.675) with an expected value of 7.342."""
