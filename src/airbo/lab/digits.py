"""With how many digits a machine can hold a parameter: no more are asked for, shown or executed."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airbo.space import Design, Space
from airbo.space.parameters import Float, Parameter

PER_DEVIATION = 4
"""A rounded number keeps this many steps per standard deviation: less than 1% more variance."""
PER_RANGE = 500
"""Steps over the range of a parameter that is set exactly."""
LEAST = 50
"""Steps over the range of any parameter, however far it is missed."""
SIGNIFICANT = 3
"""Significant digits of a logarithmic parameter that is set exactly."""


@dataclass(frozen=True)
class Digits:
    """How a number is rounded: to decimal places, or to significant digits."""

    places: int | None = None
    """Digits behind the point; -1: tens."""
    significant: int | None = None

    def round(self, value: float) -> float:
        """Round a number.

        >>> Digits(places=1).round(61.444), Digits(significant=2).round(0.004449)
        (61.4, 0.0044)
        """
        return round(value, self.places_of(value))

    def inside(self, value: float, low: float, high: float) -> float:
        """Round a number; one that would leave the range goes to the next one inside, if any."""
        near = self.round(value)
        step = float(Decimal(1).scaleb(-self.places_of(value)))
        for candidate in (near, self.round(near - step), self.round(near + step)):
            if low <= candidate <= high:
                return candidate
        return value

    def places_of(self, value: float) -> int:
        """Return the digits behind the point of a number."""
        if self.places is not None:
            return self.places
        assert self.significant is not None
        return self.significant - 1 - math.floor(math.log10(abs(value))) if value else 0


def digits_of(space: Space, uncertainty: Any) -> dict[str, Digits]:
    """Return the digits that the machine can hold, by name: from how far it misses a design.

    Args:
        space: The parameters.
        uncertainty: How they are hit; where that depends on the design, the smallest deviation of
            a few designs counts.
    """
    import torch

    from airbo.uncertainty.in_cube import by_columns

    low, high = (torch.tensor(bounds, dtype=torch.float64) for bounds in space.bounds)
    X = torch.stack([low, (low + high) / 2, high])
    around = torch.tensor(space.typical, dtype=torch.float64).expand(3, -1)
    C = by_columns(space, uncertainty).covariance(torch.cat([X, around], dim=-1))
    std = C.diagonal(dim1=-2, dim2=-1).clamp_min(0).sqrt()  # (3, d)
    found = {}
    for column, (name, parameter) in enumerate(space.parameters.items()):
        own = std[:, column] / (X[:, column].abs() if parameter.log else 1.0)
        missed = [v for v in own.tolist() if v > 0]
        digits = digits_for(parameter, min(missed, default=None))
        if digits is not None:
            found[name] = digits
    return found


def digits_for(parameter: Parameter, std: float | None) -> Digits | None:
    """Return the digits that a parameter can hold; None: it has values of its own.

    Args:
        parameter: A number without a step; others need no rounding.
        std: How far it is missed, one standard deviation; for a logarithmic parameter in ranges of
            its value. None: it is set exactly.
    """
    if not isinstance(parameter, Float) or parameter.step is not None:
        return None
    missed = std is not None and math.isfinite(std) and std > 0
    if parameter.log:
        share = std / PER_DEVIATION if missed and std is not None else 10.0 ** (1 - SIGNIFICANT)
        return Digits(significant=min(max(1 - _magnitude(share), 2), 9))
    low, high = parameter.range
    step = std / PER_DEVIATION if missed and std is not None else (high - low) / PER_RANGE
    step = min(step, (high - low) / LEAST)
    finest = max(abs(low), abs(high)) * 1e-12
    return Digits(places=-_magnitude(max(step, finest)))


def _magnitude(value: float) -> int:
    return math.floor(math.log10(value) + 1e-9)


def as_held(
    space: Space,
    digits: Mapping[str, Digits],
    design: Mapping[str, Any],
    given: Collection[str] = (),
) -> Design:
    """Return a design as the machine can hold it, inside the ranges and the constraints.

    Where rounding would miss a constraint, the design stays as it is; so does what was given.
    """
    parameters = space.parameters
    held = {
        name: digits[name].inside(value, *parameters[name].range)
        if name in digits and name not in given
        else value
        for name, value in design.items()
    }
    return held if space.meets(held) else dict(design)
