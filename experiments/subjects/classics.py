"""Classical test functions under errors, and two more products: the cases of the third round.

They were written down before any of them was run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from airbo.observed import Direction
from airbo.problems import Problem
from airbo.uncertainty import (
    Beta,
    GaussianMixture,
    InputUncertainty,
    Normal,
    SciPy,
    base_draws,
)
from experiments.subjects.internals import Optimum
from experiments.subjects.tolerances import Ranges, Toleranced, percent

N_STARTS, N_BOXES, REACH = 4096, 8, 0.1
"""Designs that are tried, boxes that are searched, and half their width relative to the ranges."""

Formula = Callable[[Tensor], Tensor]


def camel(X: Float[Tensor, "*n 2"]) -> Float[Tensor, "*n"]:
    """Return the six-hump camel function."""
    x, y = X.unbind(-1)
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + 4 * (y**2 - 1) * y**2


def ackley(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return Ackley's function: a funnel with many small dents."""
    root = X.square().mean(-1).sqrt()
    return 20 - 20 * torch.exp(-0.2 * root) + math.e - torch.cos(2 * math.pi * X).mean(-1).exp()


def styblinski(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return the function of Styblinski and Tang: two valleys in every column."""
    return (X**4 - 16 * X**2 + 5 * X).sum(-1) / 2


FOXHOLES = (
    (4.0, 4.0, 4.0, 4.0),
    (1.0, 1.0, 1.0, 1.0),
    (8.0, 8.0, 8.0, 8.0),
    (6.0, 6.0, 6.0, 6.0),
    (3.0, 7.0, 3.0, 7.0),
)
DEPTHS = (0.1, 0.2, 0.2, 0.4, 0.4)


def shekel(X: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n"]:
    """Return Shekel's function with its first five foxholes."""
    squared = (X.unsqueeze(-2) - X.new_tensor(FOXHOLES)).square().sum(-1)  # (..., holes)
    return -(1 / (squared + X.new_tensor(DEPTHS))).sum(-1)


def levy(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return Levy's function: waves in a bowl."""
    w = 1 + (X - 1) / 4
    first, last, rest = w[..., 0], w[..., -1], w[..., :-1]
    waves = (rest - 1).square() * (1 + 10 * torch.sin(math.pi * rest + 1).square())
    end = (last - 1).square() * (1 + torch.sin(2 * math.pi * last).square())
    return torch.sin(math.pi * first).square() + waves.sum(-1) + end


@dataclass(frozen=True)
class Classic(Problem):
    """A function with many valleys, minimized."""

    direction: ClassVar[Direction] = "minimize"
    ranges: ClassVar[tuple[tuple[float, float], ...]]
    formula: ClassVar[Formula]

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        return torch.tensor(self.ranges, dtype=torch.float64).T

    def __call__(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        return type(self).formula(X)

    @cached_property
    def robust_optimum(self) -> Optimum:
        """Search around many starting points."""
        low, high = self.bounds
        tried = low + (high - low) * base_draws(N_STARTS, len(low))
        best = tried[self.expected(tried).argsort()[:N_BOXES]]
        boxes = (torch.stack([x - REACH * (high - low), x + REACH * (high - low)]) for x in best)
        inside = (torch.minimum(torch.maximum(box, low), high) for box in boxes)
        return min((self.best_within(box) for box in inside), key=lambda found: found.value)


TWO_MODES = GaussianMixture([[-0.4, 0.1], [0.4, -0.1]], [[0.01, 0.0], [0.0, 0.01]])


@dataclass(frozen=True)
class Camel(Classic):
    """Six humps in two columns; every design lands on one of two sides."""

    name: ClassVar[str] = "camel"
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((-2.0, 2.0), (-1.0, 1.0))
    formula: ClassVar[Formula] = staticmethod(camel)
    uncertainty: InputUncertainty = field(default_factory=lambda: TWO_MODES)


@dataclass(frozen=True)
class Ackley(Classic):
    """Three columns, errors with heavy tails."""

    name: ClassVar[str] = "ackley"
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((-2.0, 3.0),) * 3
    formula: ClassVar[Formula] = staticmethod(ackley)
    uncertainty: InputUncertainty = field(default_factory=lambda: SciPy(stats.t(3, scale=0.15)))


@dataclass(frozen=True)
class Styblinski(Classic):
    """Four columns, skewed errors."""

    name: ClassVar[str] = "styblinski"
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((-4.0, 4.0),) * 4
    formula: ClassVar[Formula] = staticmethod(styblinski)
    uncertainty: InputUncertainty = field(default_factory=lambda: Beta(0.8, 2.5, scale=2.0))


@dataclass(frozen=True)
class Shekel(Classic):
    """Four columns, narrow holes."""

    name: ClassVar[str] = "shekel"
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((0.0, 10.0),) * 4
    formula: ClassVar[Formula] = staticmethod(shekel)
    uncertainty: InputUncertainty = field(default_factory=lambda: Normal(0.7))


@dataclass(frozen=True)
class Levy(Classic):
    """Five columns, normal errors about as wide as the waves."""

    name: ClassVar[str] = "levy"
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((-5.0, 5.0),) * 5
    formula: ClassVar[Formula] = staticmethod(levy)
    uncertainty: InputUncertainty = field(default_factory=lambda: Normal(0.5))


CANTILEVER: Ranges = {
    "width": (1.0, 4.0, 0.03),
    "height": (1.0, 4.0, 0.03),
    "length": (80.0, 120.0, 0.01),
    "modulus": (2.0e7, 4.0e7, 0.05),
}


@dataclass(frozen=True)
class Cantilever(Toleranced):
    """How far the free end of a beam bends under two loads; 2 units are wanted."""

    name: ClassVar[str] = "cantilever"
    ranges: ClassVar[Ranges] = CANTILEVER
    target: ClassVar[float | None] = 2.0
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(CANTILEVER))

    def quantity(self, *columns: Tensor) -> Tensor:
        width, height, length, modulus = columns
        loads = ((1000 / height**2).square() + (500 / width**2).square()).sqrt()
        return (4 * length**3 / (modulus * width * height) * loads).clamp_max(6.0)


WING: Ranges = {
    "area": (150.0, 200.0, 0.01),
    "fuel": (220.0, 300.0, 0.05),
    "aspect": (6.0, 10.0, 0.02),
    "sweep": (1.0, 10.0, 0.1),
    "pressure": (16.0, 45.0, 0.05),
    "taper": (0.5, 1.0, 0.02),
    "thickness": (0.08, 0.18, 0.05),
    "factor": (2.5, 6.0, 0.05),
    "gross": (1700.0, 2500.0, 0.02),
    "paint": (0.025, 0.08, 0.1),
}


@dataclass(frozen=True)
class Wing(Toleranced):
    """Weight of the wing of a light aircraft; 240 lb are wanted."""

    name: ClassVar[str] = "wing"
    ranges: ClassVar[Ranges] = WING
    target: ClassVar[float | None] = 240.0
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(WING))

    def quantity(self, *columns: Tensor) -> Tensor:
        area, fuel, aspect, sweep, pressure, taper, thickness, factor, gross, paint = columns
        cosine = torch.cos(torch.deg2rad(sweep))
        shape = (aspect / cosine**2) ** 0.6 * pressure**0.006 * taper**0.04
        slender = (100 * thickness / cosine) ** -0.3
        loaded = (factor * gross) ** 0.49
        return 0.036 * area**0.758 * fuel**0.0035 * shape * slender * loaded + area * paint
