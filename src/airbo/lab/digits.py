"""With how many digits a machine can hold a parameter: no more are asked for, shown or executed."""

import math
from collections.abc import Callable, Collection, Mapping
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


Places = Callable[[float], int]
"""Returns how many digits behind the point a number keeps; -1: tens."""


def digits_of(space: Space, uncertainty: Any) -> dict[str, Places]:
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


def digits_for(parameter: Parameter, std: float | None) -> Places | None:
    """Return the digits that a parameter can hold; None: it has values of its own.

    Args:
        parameter: A number without a step; others need no rounding.
        std: How far it is missed, one standard deviation; for a logarithmic parameter in ranges of
            its value. None: it is set exactly.

    >>> digits_for(Float(40.0, 120.0), 2.0)(61.444)
    1
    """
    if not isinstance(parameter, Float) or parameter.step is not None:
        return None
    missed = std if std is not None and math.isfinite(std) and std > 0 else None
    if parameter.log:
        share = 10.0 ** (1 - SIGNIFICANT) if missed is None else missed / PER_DEVIATION
        digits = min(max(1 - _magnitude(share), 2), 9)
        return lambda value: digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    low, high = parameter.range
    step = (high - low) / PER_RANGE if missed is None else missed / PER_DEVIATION
    step = max(min(step, (high - low) / LEAST), max(abs(low), abs(high)) * 1e-12)
    return lambda value: -_magnitude(step)


def _magnitude(value: float) -> int:
    return math.floor(math.log10(value) + 1e-9)


def as_held(
    space: Space,
    digits: Mapping[str, Places],
    design: Mapping[str, Any],
    given: Collection[str] = (),
) -> Design:
    """Return a design as the machine can hold it, inside the ranges and the constraints.

    What would leave its range goes to the next number inside, if there is one. Where rounding would
    miss a constraint, the design stays as it is; so does what was given.
    """
    held = dict(design)
    for name in set(digits) - set(given):
        (low, high), places = space.parameters[name].range, digits[name](design[name])
        near, step = round(design[name], places), float(Decimal(1).scaleb(-places))
        rounded = (near, round(near - step, places), round(near + step, places))
        held[name] = next((v for v in rounded if low <= v <= high), design[name])
    return held if space.meets(held) else dict(design)
