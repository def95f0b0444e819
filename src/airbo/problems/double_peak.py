"""The double peak: two peaks as far apart as the two modes of the uncertainty."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Box, Problem
from airbo.uncertainty import Beta, InputUncertainty


@dataclass(frozen=True)
class DoublePeak(Problem):
    r"""Two narrow peaks on a gentle slope.

    .. math:: f(x) = \mathrm{sinc}(2 \pi x) + 7.2\, e^{-(37 (x - 0.25))^2}
              + 8.9\, e^{-(39 (x - 0.35))^2}

    with :math:`\mathrm{sinc}(t) = \sin(\pi t) / (\pi t)`. Under the default uncertainty an executed
    input lies close to x or close to x + 0.1, so the best design is the lower peak.
    """

    name: ClassVar[str] = "double-peak"
    direction: ClassVar[Direction] = "maximize"
    box: ClassVar[Box] = ((0.0,), (1.0,))

    uncertainty: InputUncertainty = field(default_factory=lambda: Beta(0.4, 0.2, scale=0.1))

    def __call__(self, X: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n"]:
        x = X.squeeze(-1)
        # sinc(2πx) + 7.2 exp(-(37 (x - 0.25))²) + 8.9 exp(-(39 (x - 0.35))²)
        left = 7.2 * torch.exp(-((37 * (x - 0.25)) ** 2))
        right = 8.9 * torch.exp(-((39 * (x - 0.35)) ** 2))
        return torch.sinc(2 * torch.pi * x) + left + right
