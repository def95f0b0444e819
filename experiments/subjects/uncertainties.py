"""Uncertainties with the range of their designs: those of the paper."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from airbo import uncertainty as unc


def wavy_beta(x: Tensor) -> unc.Beta:
    return unc.Beta(0.5, 0.5, scale=0.09 * (torch.sin(4 * math.pi * x) + 1))


def wide_wavy_beta(x: Tensor) -> unc.Beta:
    """Return the beta of the paper's text, ten times as wide: it leaves the range of designs."""
    return unc.Beta(0.5, 0.5, scale=0.9 * (torch.sin(4 * math.pi * x) + 1))


@dataclass(frozen=True)
class UncertainBox:
    """An uncertainty, and the box that its designs lie in."""

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

    def _in_user_units(self, cube: Tensor) -> Tensor:
        return self.bounds[0] + cube * (self.bounds[1] - self.bounds[0])


_PUSH_COV = [[0.3**2, -(0.1**2), 0.0], [-(0.1**2), 0.3**2, 0.0], [0.0, 0.0, 1.0]]
_BETA = unc.Beta(0.4, 0.2, scale=0.1)

CASES = (
    UncertainBox("normal", unc.Normal(0.01), (0.0,), (1.0,)),
    UncertainBox("beta", _BETA, (0.0,), (1.0,)),
    UncertainBox("varying beta", unc.Varying(wavy_beta), (0.0,), (1.0,)),
    UncertainBox(
        "step chi²",
        unc.Piecewise([0.6], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7.0, scale=0.01)]),
        (0.0,),
        (1.0,),
    ),
    UncertainBox(
        "push mixture",
        unc.GaussianMixture([[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]], _PUSH_COV),
        (-5.0, -5.0, 0.0),
        (5.0, 5.0, 30.0),
    ),
    UncertainBox(
        "ring + normal", unc.Product([unc.Ring(0.5), unc.Normal(0.1)]), (-2.0,) * 10, (2.0,) * 10
    ),
)
"""The uncertainties of the paper."""

WIDE = UncertainBox("wide varying beta", unc.Varying(wide_wavy_beta), (0.0,), (1.0,))
"""The varying beta with the width that the text of the paper gives, 0.9 instead of 0.09."""

BY_NAME = {case.name: case for case in (*CASES, WIDE)}
