"""Experiments that were done before, from a CSV file; and all of them as a table."""

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from airbo.campaign.errors import FileError, Mistake, StorageError
from airbo.campaign.experiments import Experiment
from airbo.campaign.table import listed, nearest
from airbo.campaign.words import number_of, value_of
from airbo.observed import EXECUTED_COLUMN, STATUS, VALUE
from airbo.space import Design, Space

TRIAL, ASKED, TOLD = "trial", "asked", "told"
_OURS = (TRIAL, ASKED, TOLD)
"""Columns that an export has and an import does not need."""
_OK, _FAILED, _SKIPPED = ("", "ok"), "failed", ("pending", "given up")


@dataclass(frozen=True)
class DataRow:
    """One experiment of a file."""

    line: int
    design: Design
    value: float | None
    executed: dict[str, Any] = field(default_factory=dict)


def read_data(source: str | Path | pd.DataFrame) -> tuple[str, str]:
    """Return the name and the text of a table."""
    if isinstance(source, pd.DataFrame):
        return "the table", source.to_csv(index=False)
    try:
        return str(source), Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(str(source), [Mistake(1, "this is not a text file in UTF-8.")]) from None
    except OSError as error:
        raise StorageError(f"{source} cannot be read: {error.strerror}.") from None


def parse_rows(name: str, text: str, space: Space, ignore_others: bool = False) -> list[DataRow]:
    """Read experiments from CSV.

    Args:
        name: Of the file, for messages.
        text: A header with the names of the parameters and ``value``, then one row each; also
            ``status`` and ``executed_<name>``.
        space: The parameters.
        ignore_others: Whether columns with other names are skipped.

    Raises:
        FileError: If anything is wrong in any row; all mistakes are named.
    """
    lines = text.splitlines()
    delimiter = ";" if lines and ";" in lines[0] and "," not in lines[0] else ","
    reader = csv.reader(lines, delimiter=delimiter)
    mistakes: list[Mistake] = []
    header = [cell.strip() for cell in next(reader, [])]
    _check_header(header, space, ignore_others, mistakes)
    if mistakes:
        raise FileError(name, mistakes)
    rows = []
    for cells in reader:
        if any(cell.strip() for cell in cells):
            rows.append(_row(reader.line_num, header, cells, space, mistakes))
    if mistakes:
        raise FileError(name, mistakes)
    return [row for row in rows if row is not None]


def _check_header(
    header: Sequence[str], space: Space, ignore_others: bool, mistakes: list[Mistake]
) -> None:
    known = [*space.names, VALUE, STATUS, *_OURS, *(EXECUTED_COLUMN + n for n in space.names)]
    missing = [column for column in (*space.names, VALUE) if column not in header]
    if missing:
        there = f"; it has {listed(header)}" if any(header) else ""
        mistakes.append(
            Mistake(1, f"the header has no column {' and none '.join(map(repr, missing))}{there}.")
        )
    for column in sorted({c for c in header if header.count(c) > 1}):
        mistakes.append(Mistake(1, f"there are two columns {column!r}."))
    for column in header:
        if column not in known and not ignore_others:
            hint = nearest(column, known)
            text = f"unknown column {column!r}{hint} (--ignore-others skips such columns)"
            mistakes.append(Mistake(1, text))


def _row(
    line: int, header: Sequence[str], cells: Sequence[str], space: Space, mistakes: list[Mistake]
) -> DataRow | None:
    if len(cells) != len(header):
        text = f"expected {len(header)} cells as in the header, got {len(cells)}."
        mistakes.append(Mistake(line, text))
        return None
    row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
    status = row.get(STATUS, "").lower()
    if status in _SKIPPED:
        return None
    n_before = len(mistakes)
    design = {name: _try(line, mistakes, value_of, space, name, row[name]) for name in space.names}
    executed = {
        name: _try(line, mistakes, number_of, row[EXECUTED_COLUMN + name], EXECUTED_COLUMN + name)
        for name in space.names
        if row.get(EXECUTED_COLUMN + name)
    }
    value = _value(line, row[VALUE], status, mistakes)
    return DataRow(line, design, value, executed) if len(mistakes) == n_before else None


def _value(line: int, text: str, status: str, mistakes: list[Mistake]) -> float | None:
    if status == _FAILED:
        return None
    if status not in _OK:
        known = listed(("ok", _FAILED, *_SKIPPED))
        mistakes.append(Mistake(line, f"status must be one of {known}, got {status!r}."))
    if not text:
        hint = "the value is missing; for an experiment that failed, add a column status"
        mistakes.append(Mistake(line, f"{hint} with the word 'failed'."))
        return None
    number: float | None = _try(line, mistakes, number_of, text, VALUE)
    return number


def _try(line: int, mistakes: list[Mistake], read: Any, *args: Any) -> Any:
    try:
        return read(*args)
    except ValueError as error:
        mistakes.append(Mistake(line, str(error)))
        return None


def digest(rows: Iterable[DataRow]) -> str:
    """Return a short text that differs for tables that differ."""
    content = [[row.design, row.value, row.executed] for row in rows]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def as_table(space: Space, experiments: Sequence[Experiment]) -> pd.DataFrame:
    """Put experiments into a table that can be imported again."""
    measured = [n for n in space.names if any(n in e.executed for e in experiments)]
    rows = [
        {
            TRIAL: e.number,
            **e.design,
            VALUE: math.nan if e.value is None else e.value,
            STATUS: e.outcome,
            **{EXECUTED_COLUMN + name: e.executed.get(name) for name in measured},
            ASKED: _time(e.asked),
            TOLD: _time(e.told),
        }
        for e in experiments
    ]
    columns = [
        TRIAL,
        *space.names,
        VALUE,
        STATUS,
        *(EXECUTED_COLUMN + n for n in measured),
        ASKED,
        TOLD,
    ]
    return pd.DataFrame(rows, columns=columns)


def to_csv(table: pd.DataFrame) -> str:
    """Write a table as CSV, with every digit."""
    stream = io.StringIO()
    table.to_csv(stream, index=False)
    return stream.getvalue()


def _time(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat(sep=" ", timespec="seconds")
