"""Products with tolerances: 4 to 8 parameters of unequal importance, most errors in percent.

Where a product has a target, the value is the squared distance to it: its scatter is skewed, and
differs from design to design.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from airbo.uncertainty import Normal, Product, Relative
from experiments.subjects.landscapes import Formula

Ranges = Mapping[str, tuple[float, float, float]]
"""Of every parameter: lowest value, highest value, standard deviation relative to the value."""


CIRCUIT: Ranges = {
    "Rb1": (50.0, 150.0, 0.05),
    "Rb2": (25.0, 70.0, 0.05),
    "Rf": (0.5, 3.0, 0.05),
    "Rc1": (1.2, 2.5, 0.05),
    "Rc2": (0.25, 1.2, 0.05),
    "gain": (50.0, 300.0, 0.2),
}


def circuit(rb1: Tensor, rb2: Tensor, rf: Tensor, rc1: Tensor, rc2: Tensor, gain: Tensor) -> Tensor:
    """Return the midpoint voltage of a push-pull circuit without transformer."""
    load = gain * (rc2 + 9)
    base = 12 * rb2 / (rb1 + rb2)
    return ((base + 0.74) * load + 11.35 * rf + 0.74 * rf * load / rc1) / (load + rf)


REACTOR: Ranges = {
    "temperature": (300.0, 360.0, 0.01),
    "time": (0.5, 10.0, 0.05),
    "catalyst": (0.2, 3.0, 0.1),
    "dilution": (0.5, 2.0, 0.05),
}


def reactor(temperature: Tensor, time: Tensor, catalyst: Tensor, dilution: Tensor) -> Tensor:
    """Return the yield of the middle of three substances; a hot batch is quick and sensitive."""
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


def spring(wire: Tensor, coil: Tensor, turns: Tensor, modulus: Tensor) -> Tensor:
    """Return the stiffness of a helical spring, in N/mm."""
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


def borehole(*columns: Tensor) -> Tensor:
    """Return the flow of water through a borehole, in m³ a year."""
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


def piston(*columns: Tensor) -> Tensor:
    """Return the cycle time of a piston, in tenths of a second."""
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


def controller(r1: Tensor, r2: Tensor, r3: Tensor, r4: Tensor, e0: Tensor, ez: Tensor) -> Tensor:
    """Return the resistance at which a temperature controller switches (Phadke), in kΩ."""
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


def absorber(*columns: Tensor) -> Tensor:
    """Return the largest vibration, in decibels, of a machine with an absorber, plus its price.

    The machine is that of Den Hartog.
    """
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


def cantilever(width: Tensor, height: Tensor, length: Tensor, modulus: Tensor) -> Tensor:
    """Return how far the free end of a beam bends under two loads."""
    loads = ((1000 / height**2).square() + (500 / width**2).square()).sqrt()
    return (4 * length**3 / (modulus * width * height) * loads).clamp_max(6.0)


QUANTITIES: dict[str, tuple[Callable[..., Tensor], Ranges]] = {
    "circuit": (circuit, CIRCUIT),
    "reactor": (reactor, REACTOR),
    "spring": (spring, SPRING),
    "borehole": (borehole, BOREHOLE),
    "piston": (piston, PISTON),
    "controller": (controller, CONTROLLER),
    "absorber": (absorber, ABSORBER),
    "cantilever": (cantilever, CANTILEVER),
}


def toleranced(
    name: str, target: float | None = None, direction: str = "minimize", n_samples: int = 2**13
) -> Formula:
    """Return a product with normal errors in percent; without a target, its quantity counts."""
    quantity, ranges = QUANTITIES[name]

    def value(X: Tensor) -> Tensor:
        measured = quantity(*X.unbind(-1))
        return measured if target is None else (measured - target).square()

    box = tuple((low, high) for low, high, _ in ranges.values())
    P = Product([Relative(Normal(error)) for _, _, error in ranges.values()])
    return Formula(name, value, box, direction, P, n_samples)
