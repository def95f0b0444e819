"""From a user's report to observations, with errors that say what is wrong."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airbo.observed import (
    EXECUTED_COLUMN,
    FAILED,
    INFEASIBLE,
    OK,
    STATUS,
    VALUE,
    check_executed,
)
from airbo.optimizer.record import Observation
from airbo.outcomes import Want, check_values
from airbo.space import Design, Space
from airbo.uncertainty import InputUncertainty

if TYPE_CHECKING:
    import pandas as pd  # takes a third of a second, which a single command should not spend

NOT_GIVEN: Any = object()
"""Default of a value that was not passed; None means that the experiment failed."""


Check = Callable[[Observation], None]
"""Raises ``ValueError`` for an observation that no model could use."""


@dataclass(frozen=True)
class Rules:
    """Rules that observations must meet."""

    space: Space
    check: Check
    outcomes: Mapping[str, Want]
    """What experiments measure."""


def read(
    rules: Rules,
    told: "Mapping[str, Any] | Sequence[Mapping[str, Any]] | pd.Series | pd.DataFrame",
    value: Any,
    executed: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None,
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
    infeasible: bool = False,
) -> list[Observation]:
    """Read one design and its value, or a list or table of them; see ``Optimizer.tell``."""
    if isinstance(told, list | tuple) and (len(told) != 1 or hasattr(value, "__len__")):
        found = []
        for i, row in enumerate(from_lists(told, value, executed)):
            try:
                found += [read_one(rules, *row, uncertainty, allow_outside, infeasible)]
            except (ValueError, TypeError) as error:
                raise type(error)(f"Design {i} of the list: {error}") from None
        return found
    if isinstance(told, Mapping) or not hasattr(told, "columns"):  # no table
        if value is NOT_GIVEN:
            raise TypeError(
                "tell(design, value) needs a value. Pass None if the experiment failed."
            )
        design: Any = told.to_dict() if hasattr(told, "to_dict") else told
        measured: Any = executed or {}
        return [read_one(rules, design, value, measured, uncertainty, allow_outside, infeasible)]
    if executed is not None:
        raise ValueError("In a table, put executed inputs into columns executed_<name>.")
    if infeasible:
        raise ValueError(f"In a table, the column {STATUS!r} says what is {INFEASIBLE!r}.")
    table: Any = told
    return _read_table(rules, table, value, uncertainty, allow_outside)


def _read_table(
    rules: Rules,
    table: "pd.DataFrame",
    value: Any,
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
) -> list[Observation]:
    found = []
    for i, row in enumerate(from_table(rules, table, value)):
        design, told, executed, cannot = row
        try:
            here = (design, told, executed, uncertainty, allow_outside, cannot)
            found.append(read_one(rules, *here))
        except (ValueError, TypeError) as error:
            raise type(error)(f"Row {i} of the table: {error}") from None
    return found


def read_one(
    rules: Rules,
    design: Mapping[str, Any],
    value: Any,
    executed: Mapping[str, Any],
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
    infeasible: bool = False,
) -> Observation:
    """Read one design and its value."""
    space = rules.space
    for what, given in (("A design", design), ("An executed input", executed)):
        if not isinstance(given, Mapping):
            names = list(space.names)
            raise TypeError(f"{what} is a dict with the keys {names}, got {given!r}.")
    plain = space.checked(design, allow_outside)
    measured = check_executed(space, plain, executed)
    outcomes = check_values(rules.outcomes, value) or {}
    if infeasible and outcomes:
        raise ValueError("infeasible=True is for experiments that failed; this one has outcomes.")
    observation = Observation(plain, outcomes, measured, uncertainty, infeasible)
    rules.check(observation)
    return observation


# -- lists and tables


def from_lists(designs: Sequence[Any], values: Any, executed: Any) -> list[tuple[Any, Any, Any]]:
    """Combine designs, values and measured executed inputs."""
    rows = [values, [None] * len(designs) if executed is None else executed]
    for name, row in zip(("values", "executed inputs"), rows, strict=True):
        if (
            isinstance(row, str | Mapping)
            or not hasattr(row, "__len__")
            or len(row) != len(designs)
        ):
            raise ValueError(f"tell needs as many {name} as designs, {len(designs)}, got {row!r}.")
    pairs = zip(designs, *rows, strict=True)
    return [(design, value, measured or {}) for design, value, measured in pairs]


def check_names(space: Space, outcomes: Collection[str]) -> None:
    """Refuse names of parameters and outcomes that tables use for other columns."""
    ours = {STATUS, *(EXECUTED_COLUMN + name for name in space.names)}
    for name in space.names:
        if name in ours or name == VALUE in outcomes:
            raise ValueError(f"A parameter cannot be called {name!r}: tables use that column.")
    for name in outcomes:
        if name in space.names:
            raise ValueError(f"An outcome cannot be called {name!r}: a parameter has that name.")
        if name in ours:
            raise ValueError(f"An outcome cannot be called {name!r}: tables use that column.")


def as_table(rules: Rules, observations: list[Observation]) -> "pd.DataFrame":
    """Put observations into a table: parameters, values, status and measured executed inputs."""
    import pandas as pd

    space = rules.space
    measured = [name for name in space.names if any(name in o.executed for o in observations)]
    rows = [
        {
            **o.design,
            **{name: o.outcomes.get(name, math.nan) for name in rules.outcomes},
            STATUS: o.status,
            **{EXECUTED_COLUMN + name: o.executed.get(name) for name in measured},
        }
        for o in observations
    ]
    executed = (EXECUTED_COLUMN + name for name in measured)
    columns = [*space.names, *rules.outcomes, STATUS, *executed]
    return pd.DataFrame(rows, columns=columns)


def from_table(
    rules: Rules, table: "pd.DataFrame", value: Any = NOT_GIVEN
) -> list[tuple[Design, Any, dict[str, Any], bool]]:
    """Read the rows of a table.

    Returns:
        For each row the design, what was measured, the executed input as far as it was, and whether
        the design is infeasible.
    """
    import pandas as pd

    space = rules.space
    columns = _value_columns(rules, table, value)
    for column in table.columns[table.columns.duplicated()]:
        raise ValueError(f"The table has two columns {column!r}.")
    known = {*space.names, *columns, STATUS, *(EXECUTED_COLUMN + name for name in space.names)}
    for column in table.columns:
        if column not in known:
            raise ValueError(f"Unknown column {column!r}{space.hint(column)}")
    rows = []
    for index, row in enumerate(table.to_dict("records")):
        design = {name: row[name] for name in space.names if name in row}
        executed = {
            name: row[EXECUTED_COLUMN + name]
            for name in space.names
            if EXECUTED_COLUMN + name in row and not pd.isna(row[EXECUTED_COLUMN + name])
        }
        word = _status(row.get(STATUS), index)
        told: Any = {name: row[name] for name in columns if name in row}
        if word in (FAILED, INFEASIBLE):
            _check_empty(told, word, index)
            told = None
        elif len(columns) == 1:
            told = told[columns[0]]
        rows.append((design, told, executed, word == INFEASIBLE))
    return rows


def _check_empty(values: Mapping[str, Any], status: str, index: int) -> None:
    """Refuse a number that would be lost, in a row that says that the experiment failed."""
    import pandas as pd

    for name, value in values.items():
        if not pd.isna(value):
            raise ValueError(
                f"Row {index} of the table: {name} is {value!r}, but the status is {status!r}: "
                "remove one of them."
            )


def _value_columns(rules: Rules, table: "pd.DataFrame", value: Any) -> tuple[str, ...]:
    """Return the columns that may hold measured values; at least one must be there."""
    if len(rules.outcomes) > 1 and value is not NOT_GIVEN:
        raise TypeError("In a table, the outcomes stand in columns with their names.")
    columns = tuple(rules.outcomes) if value is NOT_GIVEN else (value,)
    if not any(column in table.columns for column in columns):
        wanted = " or ".join(map(repr, columns))
        raise ValueError(f"The table has no column {wanted}; it has {list(table.columns)}.")
    return columns


def _status(status: Any, index: int) -> str:
    import pandas as pd

    word = "" if pd.isna(status) else str(status).strip().lower()
    if word not in ("", OK, FAILED, INFEASIBLE):
        raise ValueError(
            f"Row {index} of the table: {STATUS} must be {OK!r}, {FAILED!r} or {INFEASIBLE!r}, "
            f"got {status!r}."
        )
    return word
