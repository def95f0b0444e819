"""Values as people write and read them."""

import math
from collections.abc import Mapping
from typing import Any

from airbo.campaign.table import listed, nearest
from airbo.parameters import Categorical, Integer
from airbo.space import Space


def value_of(space: Space, name: str, text: str) -> Any:
    """Read the value of a parameter, or say in a ``ValueError`` what is wrong with it."""
    if name not in space.names:
        raise ValueError(f"unknown parameter {name!r}{nearest(name, space.names)}")
    parameter = space.parameters[name]
    text = text.strip()
    if isinstance(parameter, Categorical):
        for choice in parameter.choices:
            if text == str(choice) or text == repr(choice):
                return choice
        raise ValueError(f"{name} must be one of {listed(parameter.choices)}, got {text!r}.")
    number = number_of(text, name)
    if isinstance(parameter, Integer) and number.is_integer():
        return int(number)
    return number


def number_of(text: str, what: str) -> float:
    """Read a finite number, or say that it is none."""
    try:
        number = float(text)
    except ValueError:
        comma = " Write a decimal point, not a comma." if "," in text else ""
        raise ValueError(f"{what} must be a number, got {text!r}.{comma}") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, got {text!r}.")
    return number


def shown(value: Any) -> str:
    """Write a value for people: six digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def with_unit(value: Any, unit: str | None) -> str:
    """Write a value with its unit."""
    return f"{shown(value)} {unit}" if unit else shown(value)


def in_words(space: Space, design: Mapping[str, Any]) -> str:
    """Write a design on one line, with units."""
    units = {n: getattr(p, "unit", None) for n, p in space.parameters.items()}
    return ", ".join(f"{n} = {with_unit(v, units.get(n))}" for n, v in design.items())
