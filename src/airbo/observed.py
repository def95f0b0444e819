"""Checks of what an experiment gave: its value, and the measured part of the executed input.

This module imports neither PyTorch nor pandas, so that ``airbo tell`` starts at once.
"""

import math
import numbers
import operator
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from airbo.space import Design, Space
from airbo.space.parameters import Categorical, as_float, finite_number

Direction = Literal["maximize", "minimize"]
"""Whether larger or smaller values are better."""

VALUE, STATUS, EXECUTED_COLUMN, NOISE_COLUMN = "value", "status", "executed_", "noise_"
OK, FAILED, INFEASIBLE = "ok", "failed", "infeasible"
LARGEST = 1e100
"""Values beyond this are penalties, not measurements. Their squares could overflow."""

_MISSING = ("NAType", "NaTType")
"""Types of the values that pandas uses where there is none."""


def check_choice(name: str, value: object, *allowed: str) -> None:
    """Refuse a setting that is none of the allowed words."""
    if value not in allowed:
        words = " or ".join(map(repr, allowed))
        raise ValueError(f"{name} must be {words}, got {value!r}.")


def whole_number(name: str, value: object, least: int) -> int:
    """Return the value as an int; raise ``ValueError`` if it is not one, or too small."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
    return number


def check_value(value: Any) -> float | None:
    """Return an observed value as a float, or None for a failed experiment.

    None and NaN mean that the experiment failed.
    """
    if value is None or type(value).__name__ in _MISSING:
        return None
    is_array = hasattr(value, "item") and hasattr(value, "shape")
    number = value.item() if is_array and math.prod(value.shape) == 1 else value
    if isinstance(number, bool) or not isinstance(number, numbers.Real | Decimal):
        raise TypeError(
            f"The value must be a number, or None if the experiment failed, got {value!r}."
        )
    real = as_float(number)
    if math.isinf(real):
        raise ValueError(f"The value must be finite, or None if the experiment failed, got {real}.")
    if abs(real) > LARGEST:
        raise ValueError(
            f"The value must not exceed {LARGEST:g} in size, got {real}. "
            "If the experiment failed, report that instead."
        )
    return None if math.isnan(real) else real


def is_usable(value: float | None) -> bool:
    """Return whether a value can be a measurement: finite, and not a penalty."""
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def check_executed(
    space: Space, design: Design, executed: Mapping[str, Any], what: str = "executed"
) -> dict[str, Any]:
    """Return the measured part of an executed input, as plain values.

    Numbers may lie outside the bounds, and integer parameters may have a fraction.
    """
    if not isinstance(executed, Mapping):
        raise TypeError(f"{what}: expected a dict of values by name, got {executed!r}.")
    plain: dict[str, Any] = {}
    for name, value in executed.items():
        parameter = space.whole.parameters.get(name)
        if parameter is None:
            raise ValueError(f"{what}: unknown parameter {name!r}{space.whole.hint(name)}")
        try:
            if isinstance(parameter, Categorical):
                plain[name] = space.checked({**design, name: value}, allow_outside=True)[name]
            else:
                plain[name] = finite_number(value, f"Parameter {name!r}: value")
                low, high = parameter.range
                if name in space.environment and not low <= plain[name] <= high:
                    raise ValueError(
                        f"{name!r} is {plain[name]:g}, but its bounds are {low:g} and {high:g}."
                    )
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
    return plain


def check_noise_of(outcomes: Mapping[str, float], noise: Any, is_single: bool) -> dict[str, float]:
    """Return the known standard deviations of measured outcomes, by name.

    Args:
        outcomes: What was measured.
        noise: One number, if experiments have one outcome; a number by outcome; None: not known.
        is_single: Whether experiments have one outcome only.
    """
    if noise is None:
        return {}
    if not isinstance(noise, Mapping):
        if not is_single:
            raise TypeError(f"noise: expected a dict with a number by outcome, got {noise!r}.")
        noise = dict.fromkeys(outcomes, noise)
    known = {}
    for name, given in noise.items():
        try:
            std = check_value(given)
        except (TypeError, ValueError) as error:
            raise type(error)(f"noise: expected a finite number >= 0, got {given!r}.") from None
        if std is None:
            continue
        if name not in outcomes:
            raise ValueError(f"noise: {name!r} was not measured, so its noise says nothing.")
        if std < 0:
            raise ValueError(f"noise is a standard deviation and must be >= 0, got {std:g}.")
        known[name] = std
    return known
