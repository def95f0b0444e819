"""Products with tolerances: 4 to 8 parameters of unequal importance, most errors in percent.

Where a product has a target, the value is the squared distance to it: its scatter is skewed, and
differs from design to design.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems import Problem
from airbo.uncertainty import InputUncertainty, Normal, Product, Relative

Ranges = Mapping[str, tuple[float, float, float]]
"""Of every parameter: lowest value, highest value, standard deviation relative to the value."""


def percent(ranges: Ranges) -> Product:
    """Return independent normal errors, relative to the values."""
    return Product([Relative(Normal(error)) for _, _, error in ranges.values()])


@dataclass(frozen=True)
class Toleranced(Problem):
    """A product whose parameters have normal errors in percent."""

    direction: ClassVar[Direction] = "minimize"
    ranges: ClassVar[Ranges]
    target: ClassVar[float | None] = None
    """The value that is wanted of the product; None: f is the quantity itself."""

    uncertainty: InputUncertainty = field(init=False)

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        low, high = zip(*((low, high) for low, high, _ in self.ranges.values()), strict=True)
        return torch.tensor([low, high], dtype=torch.float64)

    def __call__(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        value = self.quantity(*X.unbind(-1))
        return value if self.target is None else (value - self.target).square()

    @abstractmethod
    def quantity(self, *columns: Tensor) -> Tensor:
        """Return what is measured of the product."""


CIRCUIT: Ranges = {
    "Rb1": (50.0, 150.0, 0.05),
    "Rb2": (25.0, 70.0, 0.05),
    "Rf": (0.5, 3.0, 0.05),
    "Rc1": (1.2, 2.5, 0.05),
    "Rc2": (0.25, 1.2, 0.05),
    "gain": (50.0, 300.0, 0.2),
}


@dataclass(frozen=True)
class Circuit(Toleranced):
    """Midpoint voltage of a push-pull circuit without transformer; 5 V are wanted."""

    name: ClassVar[str] = "circuit"
    ranges: ClassVar[Ranges] = CIRCUIT
    target: ClassVar[float | None] = 5.0
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(CIRCUIT))

    def quantity(self, *columns: Tensor) -> Tensor:
        rb1, rb2, rf, rc1, rc2, gain = columns
        load = gain * (rc2 + 9)
        base = 12 * rb2 / (rb1 + rb2)
        return ((base + 0.74) * load + 11.35 * rf + 0.74 * rf * load / rc1) / (load + rf)


REACTOR: Ranges = {
    "temperature": (300.0, 360.0, 0.01),
    "time": (0.5, 10.0, 0.05),
    "catalyst": (0.2, 3.0, 0.1),
    "dilution": (0.5, 2.0, 0.05),
}


@dataclass(frozen=True)
class Reactor(Toleranced):
    """Yield of the middle of three substances in a batch; a hot batch is quick and sensitive."""

    name: ClassVar[str] = "reactor"
    direction: ClassVar[Direction] = "maximize"
    ranges: ClassVar[Ranges] = REACTOR
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(REACTOR))

    def quantity(self, *columns: Tensor) -> Tensor:
        temperature, time, catalyst, dilution = columns
        # rates 1 at 330 K (wanted) and 0.15 (unwanted), which rises more steeply
        u = 330 / temperature
        wanted = catalyst.clamp_min(0) / dilution * torch.exp(25 * (1 - u))
        unwanted = 0.15 * catalyst.clamp_min(0).sqrt() * torch.exp(40 * (1 - u))
        gap = wanted - unwanted
        gap = torch.where(gap.abs() < 1e-9, torch.full_like(gap, 1e-9), gap)
        made = wanted / gap * (torch.exp(-unwanted * time) - torch.exp(-wanted * time))
        return 100 * made - 3 * dilution - 0.5 * time


SPRING: Ranges = {
    "wire": (3.0, 5.0, 0.02),
    "coil": (25.0, 40.0, 0.03),
    "turns": (6.0, 12.0, 0.05),
    "modulus": (70.0, 82.0, 0.03),
}


@dataclass(frozen=True)
class Spring(Toleranced):
    """Stiffness of a helical spring; 10 N/mm are wanted."""

    name: ClassVar[str] = "spring"
    ranges: ClassVar[Ranges] = SPRING
    target: ClassVar[float | None] = 10.0
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(SPRING))

    def quantity(self, *columns: Tensor) -> Tensor:
        wire, coil, turns, modulus = columns
        return 1000 * modulus * wire**4 / (8 * coil**3 * turns)


BOREHOLE: Ranges = {
    "rw": (0.05, 0.15, 0.1),
    "r": (100.0, 50000.0, 0.2),
    "Tu": (63070.0, 115600.0, 0.05),
    "Hu": (990.0, 1110.0, 0.01),
    "Tl": (63.1, 116.0, 0.05),
    "Hl": (700.0, 820.0, 0.01),
    "L": (1120.0, 1680.0, 0.02),
    "Kw": (1500.0, 15000.0, 0.1),
}


@dataclass(frozen=True)
class Borehole(Toleranced):
    """Flow of water through a borehole; 60 m³ a year are wanted."""

    name: ClassVar[str] = "borehole"
    ranges: ClassVar[Ranges] = BOREHOLE
    target: ClassVar[float | None] = 60.0
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(BOREHOLE))

    def quantity(self, *columns: Tensor) -> Tensor:
        rw, r, tu, hu, tl, hl, length, kw = columns
        log = torch.log(r.clamp_min(1.0) / rw.clamp_min(1e-3))
        below = log * (1 + 2 * length * tu / (log * rw.square() * kw) + tu / tl)
        return 2 * math.pi * tu * (hu - hl) / below


PISTON: Ranges = {
    "M": (30.0, 60.0, 0.02),
    "S": (0.005, 0.02, 0.1),
    "V0": (0.002, 0.01, 0.1),
    "k": (1000.0, 5000.0, 0.05),
    "P0": (90000.0, 110000.0, 0.01),
    "Ta": (290.0, 296.0, 0.005),
    "T0": (340.0, 360.0, 0.005),
}


@dataclass(frozen=True)
class Piston(Toleranced):
    """Cycle time of a piston; 0.4 s are wanted, and the value is in units of (0.1 s)²."""

    name: ClassVar[str] = "piston"
    ranges: ClassVar[Ranges] = PISTON
    target: ClassVar[float | None] = 4.0
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(PISTON))

    def quantity(self, *columns: Tensor) -> Tensor:
        m, s, v0, k, p0, ta, t0 = columns
        force = p0 * s + 19.62 * m - k * v0 / s
        gas = p0 * v0 / t0 * ta
        volume = s / (2 * k) * ((force.square() + 4 * k * gas).sqrt() - force)
        return 10 * 2 * math.pi * (m / (k + s.square() * gas / volume.square())).sqrt()


CONTROLLER: Ranges = {
    "R1": (2.668, 6.0, 0.05),
    "R2": (5.334, 12.0, 0.05),
    "R3": (0.5, 3.0, 0.05),
    "R4": (26.68, 60.0, 0.05),
    "E0": (8.0, 12.0, 0.03),
    "Ez": (4.8, 7.2, 0.03),
}


@dataclass(frozen=True)
class Controller(Toleranced):
    """Resistance at which a temperature controller switches (Phadke); 3 kΩ are wanted."""

    name: ClassVar[str] = "controller"
    ranges: ClassVar[Ranges] = CONTROLLER
    target: ClassVar[float | None] = 3.0
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(CONTROLLER))

    def quantity(self, *columns: Tensor) -> Tensor:
        r1, r2, r3, r4, e0, ez = columns
        below = (r1 * (ez * r2 + ez * r4 - e0 * r2)).clamp_min(1.0)
        return r3 * r2 * (ez * r4 + e0 * r1) / below


ABSORBER: Ranges = {
    "stiffness": (0.8, 1.2, 0.03),
    "mass": (0.02, 0.2, 0.05),
    "tuning": (0.7, 1.2, 0.03),
    "damping": (0.02, 0.4, 0.1),
    "friction": (0.01, 0.05, 0.2),
}
FREQUENCIES = (0.5, 1.5, 61)


@dataclass(frozen=True)
class Absorber(Toleranced):
    """Largest vibration of a machine with an absorber (Den Hartog), in decibels, plus its price."""

    name: ClassVar[str] = "absorber"
    ranges: ClassVar[Ranges] = ABSORBER
    uncertainty: InputUncertainty = field(default_factory=lambda: percent(ABSORBER))
    n_samples: ClassVar[int] = 2**10

    def quantity(self, *columns: Tensor) -> Tensor:
        stiffness, mass, tuning, damping, friction = (c.unsqueeze(-1) for c in columns)
        w = torch.linspace(*FREQUENCIES, dtype=mass.dtype)
        # machine of mass 1 on a spring; absorber of mass m tuned to the frequency t
        absorber = tuning.square() + 2j * damping * tuning * w  # per mass of the absorber
        carried = mass * w**2 * absorber / (absorber - w**2)
        response = 1 / (stiffness - w**2 + 2j * friction * w - carried)
        loudest = response.abs().amax(-1)
        return 20 * torch.log10(loudest) + 20 * columns[1]


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
