"""What was asked, what came back: the memory of an optimization."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from airbo.space import Space
from airbo.uncertainty import InputUncertainty, from_dict

Design = dict[str, Any]

VALUE, STATUS, EXECUTED = "value", "status", "executed_"


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

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        data: dict[str, Any] = {"design": self.design, "value": self.value}
        if self.executed:
            data["executed"] = dict(self.executed)
        if self.uncertainty is not None:
            data["uncertainty"] = self.uncertainty.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Observation":
        """Rebuild an observation from what ``to_dict`` gave."""
        given = data.get("uncertainty")
        uncertainty = None if given is None else from_dict(given)
        return cls(dict(data["design"]), data["value"], data.get("executed", {}), uncertainty)


def check_value(value: object) -> float | None:
    """Return an observed value as a float, or None for a failed experiment.

    None and NaN say that the experiment failed.
    """
    if value is None or value is pd.NA:
        return None
    try:
        number = None if isinstance(value, bool | str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise TypeError(f"The value must be a number, or None if it failed, got {value!r}.")
    if math.isinf(number):
        raise ValueError(
            f"The value must be finite, or None if the experiment failed, got {number}."
        )
    return None if math.isnan(number) else number


def as_table(space: Space, observations: list[Observation]) -> pd.DataFrame:
    """Put observations into a table: parameters, value, status and measured executed inputs."""
    measured = [name for name in space.names if any(name in o.executed for o in observations)]
    rows = [
        {
            **o.design,
            VALUE: math.nan if o.value is None else o.value,
            STATUS: "failed" if o.failed else "ok",
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
    known = {*space.names, value, STATUS, *(EXECUTED + name for name in space.names)}
    for column in table.columns:
        if column not in known:
            raise ValueError(f"Unknown column {column!r}{space.hint(column)}.")
    rows = []
    for row in table.to_dict("records"):
        design = {name: row[name] for name in space.names if name in row}
        executed = {
            name: row[EXECUTED + name]
            for name in space.names
            if EXECUTED + name in row and not pd.isna(row[EXECUTED + name])
        }
        rows.append((design, row[value], executed))
    return rows
