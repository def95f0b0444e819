"""From a user's report to observations, with errors that say what is wrong."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airbo.observed import (
    EXECUTED_COLUMN,
    FAILED,
    INFEASIBLE,
    NOISE_COLUMN,
    OK,
    STATUS,
    VALUE,
    check_choice,
    check_executed,
    check_noise_of,
)
from airbo.optimizer.record import Observation
from airbo.outcomes import Want, check_values
from airbo.space import Design, Space
from airbo.uncertainty import InputUncertainty

if TYPE_CHECKING:
    import pandas as pd  # takes a third of a second, which a single command should not spend

NOT_GIVEN: Any = object()
"""Default of a value that was not passed; None means that the experiment failed."""


@dataclass(frozen=True)
class Row:
    """One experiment, as it was reported."""

    where: str
    """Where it stands in a list or a table; empty: it is the only one."""
    design: Any
    value: Any
    executed: Any
    noise: Any
    status: str


@dataclass(frozen=True)
class Reader:
    """Reads reports of experiments; see ``Optimizer.tell``."""

    space: Space
    outcomes: Mapping[str, Want]
    """What experiments measure."""
    check: Callable[[Observation], None]
    """Raises ``ValueError`` for an observation that no model could use."""
    asked: Callable[[Design], Observation | None]
    """Returns the pending experiment with this design, which knows what was given."""

    def read(
        self,
        told: "Mapping[str, Any] | Sequence[Mapping[str, Any]] | pd.Series | pd.DataFrame",
        value: Any,
        executed: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None,
        noise: Any,
        uncertainty: InputUncertainty | None,
        allow_outside: bool,
        infeasible: bool,
    ) -> list[Observation]:
        """Read one design and its value, or a list or table of them."""
        found = []
        for row in self._rows(told, value, executed, noise, INFEASIBLE if infeasible else OK):
            try:
                found.append(self.observation(row, uncertainty, allow_outside))
            except (ValueError, TypeError) as error:
                raise type(error)(f"{row.where}{error}") from None
        return found

    def observation(
        self, row: Row, uncertainty: InputUncertainty | None, allow_outside: bool = True
    ) -> Observation:
        """Check one experiment."""
        known = (
            ("A design", row.design, self.space),
            ("An executed input", row.executed, self.space.whole),
        )
        for what, given, space in known:
            if not isinstance(given, Mapping):
                names = list(space.names)
                raise TypeError(f"{what} is a dict with the keys {names}, got {given!r}.")
        check_choice(STATUS, row.status, OK, FAILED, INFEASIBLE)
        plain = self.space.checked(row.design, allow_outside)
        # what was given when it was asked for counts, unless it is told otherwise
        asked = self.asked(plain)
        given = {} if asked is None else asked.executed
        measured = check_executed(self.space, plain, {**given, **row.executed})
        outcomes = check_values(self.outcomes, row.value) or {}
        if outcomes and row.status != OK:
            raise ValueError(f"The experiment is {row.status}, but it has outcomes: {outcomes}.")
        noise = check_noise_of(outcomes, row.noise, len(self.outcomes) == 1)
        infeasible = row.status == INFEASIBLE
        observation = Observation(plain, outcomes, measured, uncertainty, infeasible, noise)
        self.check(observation)
        return observation

    def _rows(self, told: Any, value: Any, executed: Any, noise: Any, status: str) -> Iterator[Row]:
        if isinstance(told, list | tuple) and (len(told) != 1 or hasattr(value, "__len__")):
            return _listed(told, value, executed, noise, status)
        if not isinstance(told, Mapping) and hasattr(told, "columns"):
            beside = value is not NOT_GIVEN or executed is not None or noise is not None
            if beside or status != OK:
                raise ValueError(
                    "A table says everything itself: outcomes in columns with their names, and "
                    "others in columns executed_<name>, noise_<outcome> and status."
                )
            return self._table_rows(told)
        if value is NOT_GIVEN:
            raise TypeError(
                "tell(design, value) needs a value. Pass None if the experiment failed."
            )
        design = told.to_dict() if hasattr(told, "to_dict") else told
        return iter([Row("", design, value, executed or {}, noise, status)])

    # -- tables

    def _table_rows(self, table: "pd.DataFrame") -> Iterator[Row]:
        names, executable = self.space.names, self.space.whole.names
        if not any(name in table.columns for name in self.outcomes):
            wanted = " or ".join(map(repr, self.outcomes))
            raise ValueError(f"The table has no column {wanted}; it has {list(table.columns)}.")
        for column in table.columns[table.columns.duplicated()]:
            raise ValueError(f"The table has two columns {column!r}.")
        known = {*names, *self.outcomes, STATUS, *(EXECUTED_COLUMN + name for name in executable)}
        known |= {NOISE_COLUMN + name for name in self.outcomes}
        for column in table.columns:
            if column in self.space.environment:
                raise ValueError(f"What was measured of {column!r} stands in 'executed_{column}'.")
            if column not in known:
                raise ValueError(f"Unknown column {column!r}{self.space.hint(column)}")
        for i, cells in enumerate(table.to_dict("records")):
            # an empty cell was not measured; an empty status says nothing
            measured = {str(c): cell for c, cell in cells.items() if not _is_empty(cell)}
            status = str(measured.get(STATUS, OK)).strip().lower() or OK
            values: Any = {n: measured[n] for n in self.outcomes if n in measured}
            if not values and (status != OK or len(self.outcomes) == 1):
                values = None
            yield Row(
                f"Row {i} of the table: ",
                {name: cells[name] for name in names if name in cells},
                next(iter(values.values())) if values and len(self.outcomes) == 1 else values,
                _with_prefix(EXECUTED_COLUMN, measured, executable),
                _with_prefix(NOISE_COLUMN, measured, self.outcomes),
                status,
            )

    def table(self, observations: Sequence[Observation]) -> "pd.DataFrame":
        """Put observations into a table: parameters, values, status, measured executed inputs."""
        import pandas as pd

        names, executable = self.space.names, self.space.whole.names
        measured = [name for name in executable if any(name in o.executed for o in observations)]
        noisy = [name for name in self.outcomes if any(name in o.noise for o in observations)]
        rows = [
            {
                **o.design,
                **{name: o.outcomes.get(name, math.nan) for name in self.outcomes},
                STATUS: o.status,
                **{EXECUTED_COLUMN + name: o.executed.get(name) for name in measured},
                **{NOISE_COLUMN + name: o.noise.get(name, math.nan) for name in noisy},
            }
            for o in observations
        ]
        others = [EXECUTED_COLUMN + name for name in measured]
        others += [NOISE_COLUMN + name for name in noisy]
        return pd.DataFrame(rows, columns=[*names, *self.outcomes, STATUS, *others])


def _with_prefix(prefix: str, cells: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the cells whose columns have a prefix before their name."""
    return {name: cells[prefix + name] for name in names if prefix + name in cells}


def _is_empty(cell: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def _listed(
    designs: Sequence[Any], values: Any, executed: Any, noise: Any, status: str
) -> Iterator[Row]:
    """Combine designs, values, measured executed inputs and known noise."""
    # one standard deviation for all values, or one for each
    is_common = noise is None or isinstance(noise, Mapping) or not hasattr(noise, "__len__")
    columns = [
        values,
        [None] * len(designs) if executed is None else executed,
        [noise] * len(designs) if is_common else noise,
    ]
    for name, column in zip(("values", "executed inputs", "noise"), columns, strict=True):
        is_list = hasattr(column, "__len__") and not isinstance(column, str | Mapping)
        if not is_list or len(column) != len(designs):
            raise ValueError(
                f"tell needs as many {name} as designs, {len(designs)}, got {column!r}."
            )
    for i, (design, value, measured, std) in enumerate(zip(designs, *columns, strict=True)):
        yield Row(f"Design {i} of the list: ", design, value, measured or {}, std, status)


def check_names(space: Space, outcomes: Collection[str]) -> None:
    """Refuse names of parameters and outcomes that tables use for other columns."""
    names = space.whole.names
    # columns of tables: parameters, outcomes, status, executed_<name>, noise_<outcome>
    ours = {STATUS, *(EXECUTED_COLUMN + name for name in names)}
    ours |= {NOISE_COLUMN + name for name in outcomes}
    for name in names:
        if name in ours or name == VALUE in outcomes:
            raise ValueError(f"A parameter cannot be called {name!r}: tables use that column.")
    for name in outcomes:
        if name in names:
            raise ValueError(f"An outcome cannot be called {name!r}: a parameter has that name.")
        if name in ours:
            raise ValueError(f"An outcome cannot be called {name!r}: tables use that column.")
