"""What was asked and what came back: read, remembered, and written into tables."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from airbo.cube import Cube
from airbo.observed import EXECUTED_COLUMN, FAILED, OK, STATUS, VALUE, check_executed, check_value
from airbo.space import Design, Space
from airbo.uncertainty import InputUncertainty

SAME = 1e-6
"""Distance, in ranges of the parameters, within which designs count as the same."""

NOT_GIVEN: Any = object()
"""Stands for a value that was left out; None says that the experiment failed."""


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


class Points:
    """Where designs lie in the unit cube: each is translated once."""

    def __init__(self, space: Space) -> None:
        """Know the cube of ``space``, and no design yet."""
        self.cube = Cube(space)
        self._columns: dict[tuple[Any, ...], list[float]] = {}
        self._points: dict[tuple[Any, ...], Tensor] = {}

    def of(self, designs: Sequence[Design]) -> Float[Tensor, "n {self.cube.m}"]:
        """Return designs as points of the cube."""
        keys = [tuple(design.values()) for design in designs]
        new = {k: d for k, d in zip(keys, designs, strict=True) if k not in self._points}
        if new:
            X = self.cube.space.to_columns(new.values(), allow_outside=True)
            Z = self.cube.from_columns(torch.tensor(X, dtype=torch.float64))
            self._columns.update(zip(new, X, strict=True))
            self._points.update(zip(new, Z, strict=True))
        points = [self._points[key] for key in keys]
        return torch.stack(points) if points else self.cube.bounds[:0]

    def columns(self, o: Observation) -> Float[Tensor, "1 {self.cube.space.d}"]:
        """Return the columns of a design, with what was measured in its place."""
        self.of([o.design])
        space, row = self.cube.space, [*self._columns[tuple(o.design.values())]]
        for name, value in o.executed.items():
            column = space.names.index(name)
            is_category = column in space.categorical_columns
            row[column] = space.parameters[name].encode(value) if is_category else value
        return torch.tensor([row], dtype=torch.float64)


@dataclass
class History:
    """The memory of an optimization: all that a model or a proposal is made from."""

    points: Points
    observations: list[Observation] = field(default_factory=list)
    pending: list[Design] = field(default_factory=list)
    """Designs that were asked for and not told yet."""
    n_asked: int = 0
    """How often a design was asked for."""

    def copy(self) -> "History":
        """Return a history that holds the same, and that can go its own way."""
        return replace(self, observations=[*self.observations], pending=[*self.pending])

    def ask(self, design: Design) -> None:
        """Remember a design that was proposed."""
        self.pending.append(design)
        self.n_asked += 1

    def tell(self, observation: Observation) -> None:
        """Remember an observation, asked for or not."""
        self.answer(observation.design)
        self.observations.append(observation)

    def answer(self, design: Design) -> bool:
        """Take a design off the pending ones, also where rounding has changed its last digits."""
        if design not in self.pending:
            distance = self.points.cube.space.distance
            alike = [p for p in self.pending if distance(p, design) < SAME]
            if not alike:
                return False
            design = alike[0]
        self.pending.remove(design)
        return True

    @property
    def known(self) -> list[Observation]:
        """Observations that have a value."""
        return [o for o in self.observations if not o.failed]

    @property
    def values(self) -> list[float]:
        """The values of known observations."""
        return [o.value for o in self.observations if o.value is not None]

    @property
    def designs(self) -> list[Design]:
        """Distinct designs that have a value."""
        return list({tuple(o.design.items()): o.design for o in self.known}.values())

    @property
    def tried(self) -> list[Design]:
        """Distinct designs that have a value, inside the space; all if none is inside."""
        distinct = self.designs
        inside = self.points.of(distinct).sub(0.5).abs().amax(-1) <= 0.5 + 1e-9
        meets = self.points.cube.space.meets
        pairs = zip(distinct, inside, strict=True)
        return [d for d, is_in in pairs if is_in and meets(d)] or distinct

    @property
    def waiting(self) -> list[Design]:
        """Pending and failed designs: those whose value is not known."""
        return [*self.pending, *(o.design for o in self.observations if o.failed)]

    @property
    def recently_failed(self) -> list[Design]:
        """Failed designs; each counts until as many new values have arrived as it has failures."""
        recent: list[Design] = []
        n_values = 0
        for o in reversed(self.observations):
            n_values += not o.failed
            if o.failed and o.design not in recent and n_values < self._n_failures(o.design):
                recent.append(o.design)
        return recent

    def _n_failures(self, design: Design) -> int:
        return sum(o.failed and o.design == design for o in self.observations)


# -- from what a user tells to observations, or to an error that says what is wrong with it

Check = Callable[[Observation], None]
"""Refuses an observation that no model could use."""


def read(
    space: Space,
    check: Check,
    told: Mapping[str, Any] | Sequence[Mapping[str, Any]] | pd.Series | pd.DataFrame,
    value: Any,
    executed: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None,
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
) -> list[Observation]:
    """Read one design and its value, or a list or table of them; see ``Optimizer.tell``."""
    if isinstance(told, list | tuple) and (len(told) != 1 or hasattr(value, "__len__")):
        found = []
        for i, row in enumerate(from_lists(told, value, executed)):
            try:
                found += [read_one(space, check, *row, uncertainty, allow_outside)]
            except (ValueError, TypeError) as error:
                raise type(error)(f"Design {i} of the list: {error}") from None
        return found
    if not isinstance(told, pd.DataFrame):
        if value is NOT_GIVEN:
            raise TypeError("tell(design, value) needs a value; None says that it failed.")
        design: Any = told.to_dict() if isinstance(told, pd.Series) else told
        measured: Any = executed or {}
        return [read_one(space, check, design, value, measured, uncertainty, allow_outside)]
    if executed is not None:
        raise ValueError("In a table, executed inputs stand in columns executed_<name>.")
    observations = []
    for i, row in enumerate(from_table(space, told, VALUE if value is NOT_GIVEN else value)):
        try:
            observations.append(read_one(space, check, *row, uncertainty, allow_outside))
        except (ValueError, TypeError) as error:
            raise type(error)(f"Row {i} of the table: {error}") from None
    return observations


def read_one(
    space: Space,
    check: Check,
    design: Mapping[str, Any],
    value: Any,
    executed: Mapping[str, Any],
    uncertainty: InputUncertainty | None,
    allow_outside: bool,
) -> Observation:
    """Read one design and its value."""
    for what, given in (("A design", design), ("An executed input", executed)):
        if not isinstance(given, Mapping):
            names = list(space.names)
            raise TypeError(f"{what} is a dict with the keys {names}, got {given!r}.")
    plain = space.checked(design, allow_outside)
    measured = check_executed(space, plain, executed)
    observation = Observation(plain, check_value(value), measured, uncertainty)
    check(observation)
    return observation


# -- lists and tables


def from_lists(designs: Sequence[Any], values: Any, executed: Any) -> list[tuple[Any, Any, Any]]:
    """Put designs, values and measured executed inputs together."""
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
