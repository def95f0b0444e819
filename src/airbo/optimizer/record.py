"""What was asked, what came back: the memory of an optimization."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from airbo.parameters import Categorical, as_float, finite_number
from airbo.space import Space
from airbo.uncertainty import InputUncertainty

Design = dict[str, Any]

VALUE, STATUS, EXECUTED = "value", "status", "executed_"
OK, FAILED = "ok", "failed"
LARGEST = 1e100
"""Larger values are penalties, not measurements, and their squares overflow."""

_ARRAYS = (np.generic, np.ndarray, Tensor)


@dataclass(frozen=True)
class Observation:
    """One experiment: the design asked for and what came of it."""

    design: Design
    value: float | None
    """The observed value, in the user's direction; None if the experiment failed."""
    executed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the executed input, where they were measured."""
    uncertainty: InputUncertainty | None = None
    """What this experiment was made under, if not what the others were."""

    @property
    def failed(self) -> bool:
        """Whether there is no value."""
        return self.value is None


def check_names(space: Space) -> None:
    """Refuse parameters that would share a column with something else in a table."""
    reserved = {VALUE, STATUS, *(EXECUTED + name for name in space.names)}
    for name in space.names:
        if name in reserved:
            raise ValueError(f"A parameter cannot be called {name!r}: tables use that column.")


def check_value(value: object) -> float | None:
    """Return an observed value as a float, or None for a failed experiment.

    None and NaN say that the experiment failed.
    """
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    number = value.item() if isinstance(value, _ARRAYS) and math.prod(value.shape) == 1 else value
    if isinstance(number, bool) or not isinstance(number, numbers.Real | Decimal):
        raise TypeError(f"The value must be a number, or None if it failed, got {value!r}.")
    real = as_float(number)
    if math.isinf(real):
        raise ValueError(f"The value must be finite, or None if the experiment failed, got {real}.")
    if abs(real) > LARGEST:
        raise ValueError(
            f"The value must not exceed {LARGEST:g} in size, got {real}; "
            "None says that the experiment failed."
        )
    return None if math.isnan(real) else real


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


def as_table(space: Space, observations: list[Observation]) -> pd.DataFrame:
    """Put observations into a table: parameters, value, status and measured executed inputs."""
    measured = [name for name in space.names if any(name in o.executed for o in observations)]
    rows = [
        {
            **o.design,
            VALUE: math.nan if o.value is None else o.value,
            STATUS: FAILED if o.failed else OK,
            **{EXECUTED + name: o.executed.get(name) for name in measured},
        }
        for o in observations
    ]
    columns = [*space.names, VALUE, STATUS, *(EXECUTED + name for name in measured)]
    return pd.DataFrame(rows, columns=columns)


def from_table(
    space: Space, table: pd.DataFrame, value: str
) -> list[tuple[Design, Any, dict[str, Any]]]:
    """Read designs, values and measured executed inputs from the rows of a table."""
    if value not in table.columns:
        raise ValueError(f"The table has no column {value!r}; it has {list(table.columns)}.")
    for column in table.columns[table.columns.duplicated()]:
        raise ValueError(f"The table has two columns {column!r}.")
    known = {*space.names, value, STATUS, *(EXECUTED + name for name in space.names)}
    for column in table.columns:
        if column not in known:
            raise ValueError(f"Unknown column {column!r}{space.hint(column)}.")
    rows = []
    for index, row in enumerate(table.to_dict("records")):
        design = {name: row[name] for name in space.names if name in row}
        executed = {
            name: row[EXECUTED + name]
            for name in space.names
            if EXECUTED + name in row and not pd.isna(row[EXECUTED + name])
        }
        failed = _has_failed(row.get(STATUS), index)
        rows.append((design, None if failed else row[value], executed))
    return rows


def _has_failed(status: Any, index: int) -> bool:
    word = "" if pd.isna(status) else str(status).strip().lower()
    if word not in ("", OK, FAILED):
        raise ValueError(
            f"Row {index} of the table: {STATUS} must be {OK!r} or {FAILED!r}, got {status!r}."
        )
    return word == FAILED
