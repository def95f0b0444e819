"""The uncertainties of the paper, each with the range of its designs."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from airbo import uncertainty as unc

NEIGHBOUR = 0.05
"""Distance, in model coordinates, of the designs whose kernel values are hard to tell apart."""


def wavy_beta(x: Tensor) -> unc.Beta:
    return unc.Beta(0.5, 0.5, scale=0.09 * (torch.sin(4 * math.pi * x) + 1))


@dataclass(frozen=True)
class Case:
    name: str
    uncertainty: unc.InputUncertainty
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def d(self) -> int:
        return len(self.low)

    @cached_property
    def bounds(self) -> Tensor:
        return torch.tensor([self.low, self.high], dtype=torch.float64)

    def designs(self, n: int, seed: int = 0) -> Tensor:
        """Spread designs evenly over the bounds."""
        return self._in_user_units(unc.base_draws(n, self.d, seed))

    def close_designs(self) -> Tensor:
        """Return four designs and a neighbour of each."""
        cube = unc.base_draws(4, self.d, seed=1) * (1 - NEIGHBOUR)
        return self._in_user_units(torch.cat([cube, cube + NEIGHBOUR / math.sqrt(self.d)]))

    def _in_user_units(self, cube: Tensor) -> Tensor:
        return self.bounds[0] + cube * (self.bounds[1] - self.bounds[0])


_PUSH_COV = [[0.3**2, -(0.1**2), 0.0], [-(0.1**2), 0.3**2, 0.0], [0.0, 0.0, 1.0]]

CASES = (
    Case("normal", unc.Normal(0.01), (0.0,), (1.0,)),
    Case("beta", unc.Beta(0.4, 0.2, scale=0.1), (0.0,), (1.0,)),
    Case("varying beta", unc.Varying(wavy_beta), (0.0,), (1.0,)),
    Case(
        "step chi²",
        unc.Piecewise([0.6], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7.0, scale=0.01)]),
        (0.0,),
        (1.0,),
    ),
    Case(
        "push mixture",
        unc.GaussianMixture([[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]], _PUSH_COV),
        (-5.0, -5.0, 0.0),
        (5.0, 5.0, 30.0),
    ),
    Case("ring + normal", unc.Product([unc.Ring(0.5), unc.Normal(0.1)]), (-2.0,) * 10, (2.0,) * 10),
)
