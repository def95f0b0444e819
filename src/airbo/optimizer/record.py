"""What was asked, what came back: the memory of an optimization."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from airbo.observed import (
    EXECUTED_COLUMN,
    FAILED,
    LARGEST,
    OK,
    STATUS,
    VALUE,
    check_executed,
    check_value,
)
from airbo.space import Design, Space
from airbo.uncertainty import InputUncertainty

__all__ = [
    "EXECUTED_COLUMN",
    "FAILED",
    "LARGEST",
    "OK",
    "STATUS",
    "VALUE",
    "Design",
    "Observation",
    "as_table",
    "check_executed",
    "check_names",
    "check_value",
    "from_table",
]


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
    reserved = {VALUE, STATUS, *(EXECUTED_COLUMN + name for name in space.names)}
    for name in space.names:
        if name in reserved:
            raise ValueError(f"A parameter cannot be called {name!r}: tables use that column.")


def as_table(space: Space, observations: list[Observation]) -> pd.DataFrame:
    """Put observations into a table: parameters, value, status and measured executed inputs."""
    measured = [name for name in space.names if any(name in o.executed for o in observations)]
    rows = [
        {
            **o.design,
            VALUE: math.nan if o.value is None else o.value,
            STATUS: FAILED if o.failed else OK,
            **{EXECUTED_COLUMN + name: o.executed.get(name) for name in measured},
        }
        for o in observations
    ]
    columns = [*space.names, VALUE, STATUS, *(EXECUTED_COLUMN + name for name in measured)]
    return pd.DataFrame(rows, columns=columns)


def from_table(
    space: Space, table: pd.DataFrame, value: str
) -> list[tuple[Design, Any, dict[str, Any]]]:
    """Read designs, values and measured executed inputs from the rows of a table."""
    if value not in table.columns:
        raise ValueError(f"The table has no column {value!r}; it has {list(table.columns)}.")
    for column in table.columns[table.columns.duplicated()]:
        raise ValueError(f"The table has two columns {column!r}.")
    known = {*space.names, value, STATUS, *(EXECUTED_COLUMN + name for name in space.names)}
    for column in table.columns:
        if column not in known:
            raise ValueError(f"Unknown column {column!r}{space.hint(column)}.")
    rows = []
    for index, row in enumerate(table.to_dict("records")):
        design = {name: row[name] for name in space.names if name in row}
        executed = {
            name: row[EXECUTED_COLUMN + name]
            for name in space.names
            if EXECUTED_COLUMN + name in row and not pd.isna(row[EXECUTED_COLUMN + name])
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
