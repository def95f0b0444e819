"""The rows of a table: what its columns mean, and what is wrong with its cells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airbo.campaign.config import Settings
from airbo.campaign.errors import FileError, Mistake
from airbo.campaign.limits import check_place
from airbo.observed import EXECUTED_COLUMN, FAILED, INFEASIBLE, OK, STATUS, VALUE, check_value
from airbo.sheets import Sheet, SheetError
from airbo.space import Design, Space
from airbo.space.parameters import Categorical
from airbo.words import nearest, number_of, quoted, same_unit, unit_of, value_of

TRIAL, ASKED, TOLD = "trial", "asked", "told"
BY, EXCLUDED, NOTES = "by", "excluded", "notes"
_OURS = (TRIAL, ASKED, TOLD, BY, EXCLUDED, NOTES)
"""Columns that an export has and an import does not need."""
_SKIPPED = ("pending", "given up", EXCLUDED)
_NO_NUMBER = ("nan", "na", "n/a", "none", "null", "-")
"""What people write into a cell that has no number."""
_OUTSIDE = " Use --allow-outside if it was really run there."
MOST_MISTAKES = 100
"""Number of mistakes after which airbo stops reading."""


@dataclass(frozen=True)
class TableRow:
    """One experiment of a file."""

    line: int
    design: Design
    value: Any
    """The value, or outcomes by name; None if the experiment failed."""
    executed: dict[str, Any] = field(default_factory=dict)
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""


@dataclass
class TableMistakes:
    """Mistakes of a table, as many as anybody reads."""

    mistakes: list[Mistake] = field(default_factory=list)
    n_left_out: int = 0
    """Rows that are no mistake and no experiment to import: pending, given up, excluded."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to stop."""
        return len(self.mistakes) >= MOST_MISTAKES

    def add(self, line: int, text: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(line, text))

    def check(self, name: str) -> None:
        """Refuse a table that has mistakes."""
        if not self.mistakes:
            return
        listed = sorted(self.mistakes, key=lambda mistake: mistake.line)[:MOST_MISTAKES]
        if self.is_full:
            more = f"airbo stopped reading after {MOST_MISTAKES} mistakes; there may be more."
            listed.append(Mistake(listed[-1].line, more))
        raise FileError(name, listed)


@dataclass(frozen=True)
class TableColumns:
    """What the columns of a table mean."""

    space: Space
    value_name: str = VALUE
    value_unit: str | None = None
    outcomes: Mapping[str, str | None] | None = None
    """Units of the outcomes by name, where there are several; there is no value then."""

    @classmethod
    def of(cls, settings: Settings) -> "TableColumns":
        """Return those of a campaign."""
        named = settings.named
        units = None if named is None else {name: o.unit for name, o in named.items()}
        return cls(settings.space, settings.value_name, settings.value_unit, units)

    @property
    def known(self) -> list[str]:
        """What a column can be called, but for units."""
        names = self.space.names
        own = [] if self.value_name in names else [self.value_name]
        values = [VALUE, *own] if self.outcomes is None else [*self.outcomes]
        measured = [EXECUTED_COLUMN + n for n in names]
        return list(dict.fromkeys([*names, *values, STATUS, *_OURS, *measured]))

    def meaning(self, column: str) -> str:
        """Return the name of a column without its unit, ``value`` for the value; or refuse it.

        Raises:
            ValueError: If it is unknown, or its unit is another one than that of the file.
        """
        name, unit = column, ""
        if name not in self.known and (found := _UNIT.fullmatch(column)):
            name, unit = found["name"], found["square"] or found["round"]
        if name not in self.known:
            raise ValueError(f"unknown column {column!r}{nearest(name, self.known)}")
        own = self._unit(name)
        if unit and own and not same_unit(unit, own):
            raise ValueError(
                f"column {column!r} is in {unit!r}, and the campaign file says {own!r}."
            )
        is_value = name == self.value_name and name not in self.space.names
        is_value = is_value and self.outcomes is None
        return VALUE if is_value and name not in (STATUS, *_OURS) else name

    def _unit(self, name: str) -> str | None:
        if self.outcomes is not None and name in self.outcomes:
            return self.outcomes[name]
        parameter = self.space.parameters.get(name.removeprefix(EXECUTED_COLUMN))
        return self.value_unit if parameter is None else unit_of(parameter)


_UNIT = re.compile(r"(?P<name>.*?)\s*(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))")


def parse_rows(
    sheet: Sheet,
    columns: TableColumns,
    found: TableMistakes,
    allow_outside: bool = False,
    ignore_others: bool = False,
) -> list[TableRow]:
    """Read experiments from the cells of a table.

    Args:
        sheet: A header with the names of the parameters and of the value, perhaps with units, then
            one row each; also ``status`` and ``executed_<name>``.
        columns: What its columns may be called.
        found: Where mistakes are noted: all kinds of them, until there are very many.
        allow_outside: Whether designs may lie outside the ranges.
        ignore_others: Whether columns with other names are skipped.
    """
    header = _header(sheet.header, columns, ignore_others, found)
    rows: list[TableRow] = []
    if found.mistakes:
        return rows
    reader = _RowReader(sheet, columns.space, found, allow_outside, columns.outcomes)
    try:
        for line, cells in sheet.rows:
            if not any(cells[len(header) :]):  # spreadsheets add empty cells at the end
                cells = cells[: len(header)]
            if len(cells) != len(header):
                text = f"expected {len(header)} cells as in the header, got {len(cells)}."
                found.add(line, text)
            else:
                rows += reader.row(line, dict(zip(header, cells, strict=True)))
            if found.is_full:
                break
    except SheetError as error:
        found.add(error.line or 1, str(error))
    return rows


def _header(
    header: Sequence[str], columns: TableColumns, ignore_others: bool, found: TableMistakes
) -> list[str | None]:
    """Return what each column means; None: it is skipped."""
    meanings: list[str | None] = []
    for column in header:
        try:
            meanings.append(columns.meaning(column))
        except ValueError as error:
            meanings.append(None)
            if not ignore_others and column:
                hint = " (--ignore-others skips such columns)" if "unknown" in str(error) else ""
                found.add(1, f"{error}{hint}")
    needed = (*columns.space.names, *((VALUE,) if columns.outcomes is None else ()))
    if columns.outcomes and not set(columns.outcomes) & set(meanings):
        found.add(1, f"the header has none of the outcomes {quoted(columns.outcomes)}.")
    missing = [_called(name, columns) for name in needed if name not in meanings]
    if missing:
        there = f"; it has {quoted(header)}" if any(header) else ""
        found.add(1, f"the header has no column {' and none '.join(missing)}{there}.")
    for name in sorted({m for m in meanings if m and meanings.count(m) > 1}):
        own = [column for column, m in zip(header, meanings, strict=True) if m == name]
        what = f"two columns {name!r}" if len(set(own)) == 1 else f"columns {quoted(own)}"
        found.add(1, f"there are {what}: which one counts?")
    return meanings


def _called(name: str, columns: TableColumns) -> str:
    is_value = name == VALUE and columns.value_name not in columns.known[: columns.space.d]
    others = f" (or {columns.value_name!r})" if is_value and columns.value_name != VALUE else ""
    return f"{name!r}{others}"


@dataclass(frozen=True)
class _RowReader:
    """Reads the cells of rows, and notes what is wrong with each."""

    sheet: Sheet
    space: Space
    found: TableMistakes
    allow_outside: bool
    outcomes: Mapping[str, str | None] | None = None

    def row(self, line: int, cells: Mapping[str | None, str]) -> list[TableRow]:
        """Return the experiment of a row; nothing if it has mistakes, or was not done."""
        status = cells.get(STATUS, "").lower()
        if status in _SKIPPED:
            self.found.n_left_out += 1
            return []
        n_before = len(self.found.mistakes)
        design = {
            name: self._try(line, self._designed, name, cells[name]) for name in self.space.names
        }
        executed = {
            name: self._try(line, self._executed, name, cells[column])
            for name in self.space.names
            if cells.get(column := EXECUTED_COLUMN + name)
        }
        several = self.outcomes is not None
        value = self._outcomes(line, cells, status) if several else None
        if not several:
            value = self._value(line, cells[VALUE], status)
        is_good = len(self.found.mistakes) == n_before
        cannot = several and status == INFEASIBLE
        return [TableRow(line, design, value, executed, cannot)] if is_good else []

    def _designed(self, name: str, cell: str) -> Any:
        parameter = self.space.parameters[name]
        is_choice = isinstance(parameter, Categorical)
        value = value_of(
            self.space, name, self.sheet.text(cell) if is_choice else self._number(name, cell)
        )
        try:
            parameter.encode(value, self.allow_outside)
        except ValueError as error:
            hint = (
                "" if is_choice or self.allow_outside or "between" not in str(error) else _OUTSIDE
            )
            raise ValueError(f"Parameter {name!r}: {error}{hint}") from None
        if parameter.log and value <= 0:
            raise ValueError(f"Parameter {name!r} is logarithmic and must be > 0, got {value}.")
        check_place(self.space, {name: value}, "the design")
        return value

    def _executed(self, name: str, cell: str) -> float:
        column = EXECUTED_COLUMN + name
        if isinstance(self.space.parameters[name], Categorical):
            raise ValueError(f"{column}: {name!r} is a choice, which is always hit exactly.")
        number = number_of(self._number(column, cell), column)
        if self.space.parameters[name].log and number <= 0:
            raise ValueError(f"{column}: {name!r} is logarithmic and must be > 0, got {number}.")
        check_place(self.space, {name: number}, column)
        return number

    def _outcomes(self, line: int, cells: Mapping[str | None, str], status: str) -> Any:
        """Return the outcomes that were measured, by name; None if the experiment failed."""
        if status in (FAILED, INFEASIBLE):
            for name in self.outcomes or ():
                self._check_empty(line, name, cells.get(name), status)
            return None
        if status not in ("", OK):
            known = quoted((OK, FAILED, INFEASIBLE, *_SKIPPED))
            self.found.add(line, f"status must be one of {known}, got {status!r}.")
        given = {name: cells[name] for name in self.outcomes or () if cells.get(name)}
        if not given:
            self.found.add(line, "no outcome was measured; if it failed, its status is 'failed'.")
        return {n: self._try(line, self._outcome, n, cell) for n, cell in given.items()}

    def _outcome(self, name: str, cell: str) -> float | None:
        if cell.lower() in _NO_NUMBER:
            raise ValueError(f"{name} is {cell!r}: leave the cell empty if it was not measured.")
        return check_value(number_of(self._number(name, cell), name))

    def _value(self, line: int, cell: str, status: str) -> float | None:
        if status == FAILED:
            self._check_empty(line, "the value", cell, status)
            return None
        if status not in ("", OK):
            known = quoted((OK, FAILED, *_SKIPPED))
            self.found.add(line, f"status must be one of {known}, got {status!r}.")
        if not cell:
            hint = "the value is missing; for an experiment that failed, add a column status"
            self.found.add(line, f"{hint} with the word 'failed'.")
            return None
        read = lambda: check_value(number_of(self._number(VALUE, cell), VALUE))  # noqa: E731
        number: float | None = self._try(line, read)
        return number

    def _check_empty(self, line: int, name: str, cell: str | None, status: str) -> None:
        """Refuse a number that would be lost."""
        if cell and cell.lower() not in _NO_NUMBER:
            self.found.add(
                line, f"{name} is {cell!r}, but the status is {status!r}: remove one of them."
            )

    def _number(self, name: str, cell: str) -> str:
        try:
            return self.sheet.number(cell)
        except ValueError as error:
            raise ValueError(f"{name}: {error}.") from None

    def _try(self, line: int, read: Any, *args: Any) -> Any:
        try:
            return read(*args)
        except ValueError as error:
            self.found.add(line, str(error))
            return None
