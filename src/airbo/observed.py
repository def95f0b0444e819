"""What an experiment gave: a value, and what was measured of the executed input.

Plain values, checked without PyTorch and pandas, which ``airbo tell`` does not need.
"""

import math
import numbers
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from airbo.parameters import Categorical, as_float, finite_number
from airbo.space import Design, Space

Direction = Literal["maximize", "minimize"]
"""Whether large values are good, or small ones."""

VALUE, STATUS, EXECUTED_COLUMN = "value", "status", "executed_"
OK, FAILED, INFEASIBLE = "ok", "failed", "infeasible"
LARGEST = 1e100
"""Larger values are penalties, not measurements, and their squares overflow."""

_MISSING = ("NAType", "NaTType")
"""What pandas writes where there is no value."""


def check_value(value: Any) -> float | None:
    """Return an observed value as a float, or None for a failed experiment.

    None and NaN say that the experiment failed.
    """
    if value is None or type(value).__name__ in _MISSING:
        return None
    is_array = hasattr(value, "item") and hasattr(value, "shape")
    number = value.item() if is_array and math.prod(value.shape) == 1 else value
    if isinstance(number, bool) or not isinstance(number, numbers.Real | Decimal):
        raise TypeError(f"The value must be a number, or None if it failed, got {value!r}.")
    real = as_float(number)
    if math.isinf(real):
        raise ValueError(f"The value must be finite, or None if the experiment failed, got {real}.")
    if abs(real) > LARGEST:
        raise ValueError(
            f"The value must not exceed {LARGEST:g} in size, got {real}; "
            "if the experiment failed, say so instead."
        )
    return None if math.isnan(real) else real


def is_usable(value: float | None) -> bool:
    """Say whether a value can be a measurement: not infinite, and no penalty."""
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def check_executed(space: Space, design: Design, executed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measured part of an executed input, as plain values.

    Numbers may lie outside the bounds, and whole numbers may have been missed by a fraction.
    """
    plain: dict[str, Any] = {}
    for name, value in executed.items():
        if name not in space.names:
            raise ValueError(f"executed: unknown parameter {name!r}{space.hint(name)}.")
        try:
            if isinstance(space.parameters[name], Categorical):
                plain[name] = space.checked({**design, name: value}, allow_outside=True)[name]
            else:
                plain[name] = finite_number(value, f"Parameter {name!r}: value")
        except ValueError as error:
            raise ValueError(f"executed: {error}") from None
    return plain
