"""Uncertainties with the range of their designs: the paper's, and others in 1 to 10 columns."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from airbo import uncertainty as unc

NEIGHBOUR = 0.05
"""Distance, in the unit cube, of designs whose kernel values are hard to tell apart."""


def wavy_beta(x: Tensor) -> unc.Beta:
    return unc.Beta(0.5, 0.5, scale=0.09 * (torch.sin(4 * math.pi * x) + 1))


def wide_wavy_beta(x: Tensor) -> unc.Beta:
    """Return the beta of the paper's text, ten times as wide: it leaves the range of designs."""
    return unc.Beta(0.5, 0.5, scale=0.9 * (torch.sin(4 * math.pi * x) + 1))


def widening_normal(x: Tensor) -> unc.Normal:
    return unc.Normal(0.02 + 0.1 * x)


def stretched(X: Tensor, base: Tensor) -> Tensor:
    """Return an uncertainty that is wider, on both sides, for larger designs."""
    return X.unsqueeze(-2) + (0.02 + 0.1 * X.unsqueeze(-2)) * torch.sin(7 * base)


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

    def close_designs(self) -> Tensor:
        """Return four designs and a neighbour of each."""
        cube = unc.base_draws(4, self.d, seed=1) * (1 - NEIGHBOUR)
        return self._in_user_units(torch.cat([cube, cube + NEIGHBOUR / math.sqrt(self.d)]))

    def _in_user_units(self, cube: Tensor) -> Tensor:
        return self.bounds[0] + cube * (self.bounds[1] - self.bounds[0])


def in_unit_cube(name: str, uncertainty: unc.InputUncertainty, d: int) -> UncertainBox:
    return UncertainBox(f"{name} {d}-D", uncertainty, (0.0,) * d, (1.0,) * d)


def logged(m: int, d: int) -> UncertainBox:
    """Return P as m logged deviations, skewed and dependent."""
    draws = torch.randn(m, d, generator=torch.Generator().manual_seed(m), dtype=torch.float64)
    return in_unit_cube(f"{m:,} logged", unc.Empirical(0.03 * (draws.cumsum(-1) + draws**2)), d)


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

ADDITIVE = (
    *(in_unit_cube("normal", unc.Normal(0.05), d) for d in (1, 3, 10)),
    *(in_unit_cube("beta", _BETA, d) for d in (1, 3, 10)),
    BY_NAME["push mixture"],
    BY_NAME["ring + normal"],
)
"""x' = x + δ; the beta in one column is the paper's."""

RELATIVE = tuple(
    in_unit_cube(f"relative {name}", unc.Relative(share), d)
    for d in (3, 6, 10)
    for name, share in (("uniform", unc.Uniform(-0.1, 0.1)), ("normal", unc.Normal(0.05)))
)
"""Errors in percent: x' = x (1 + δ)."""

VARYING = (
    BY_NAME["varying beta"],
    BY_NAME["step chi²"],
    in_unit_cube("black box", unc.Sampler(stretched), 1),
    *(in_unit_cube("varying normal", unc.Varying(widening_normal), d) for d in (3, 10)),
)
"""P changes with the design."""
