"""From what a user tells to observations, or to an error that says what is wrong with it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from airbo.optimizer.record import VALUE, Observation, check_executed, check_value, from_table
from airbo.optimizer.surrogate import Surrogate
from airbo.uncertainty import InputUncertainty

NOT_GIVEN: Any = object()
"""Stands for a value that was left out; None says that the experiment failed."""


def read(
    surrogate: Surrogate,
    told: Mapping[str, Any] | pd.Series | pd.DataFrame,
    value: Any,
    executed: Mapping[str, Any] | None,
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
) -> list[Observation]:
    """Check one design and its value, or a table of them; see ``Optimizer.tell``."""
    if isinstance(told, pd.DataFrame):
        if executed is not None:
            raise ValueError("In a table, executed inputs stand in columns executed_<name>.")
        column = VALUE if value is NOT_GIVEN else value
        return _read_table(surrogate, told, column, uncertainty, allow_outside)
    if value is NOT_GIVEN:
        raise TypeError("tell(design, value) needs a value; None says that it failed.")
    design: Any = told.to_dict() if isinstance(told, pd.Series) else told
    return [read_one(surrogate, design, value, executed or {}, uncertainty, allow_outside)]


def read_one(
    surrogate: Surrogate,
    design: Mapping[str, Any],
    value: Any,
    executed: Mapping[str, Any],
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
) -> Observation:
    """Check one design and its value."""
    space = surrogate.space
    for what, given in (("A design", design), ("An executed input", executed)):
        if not isinstance(given, Mapping):
            names = list(space.names)
            raise TypeError(f"{what} is a dict with the keys {names}, got {given!r}.")
    plain = space.checked(design, allow_outside)
    measured = check_executed(space, plain, executed)
    observation = Observation(plain, check_value(value), measured, uncertainty)
    surrogate.check(observation)
    return observation


def _read_table(
    surrogate: Surrogate,
    table: pd.DataFrame,
    column: str,
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
) -> list[Observation]:
    observations = []
    for i, row in enumerate(from_table(surrogate.space, table, column)):
        try:
            observations.append(read_one(surrogate, *row, uncertainty, allow_outside))
        except (ValueError, TypeError) as error:
            raise type(error)(f"Row {i} of the table: {error}") from None
    return observations
