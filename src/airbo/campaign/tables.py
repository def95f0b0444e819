"""Tables of experiments: those done before, all rows or none, and all of them to take along."""

import csv
import hashlib
import io
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.campaign.errors import CampaignError, FileError, Mistake, StorageError
from airbo.campaign.experiment import Experiment, Record
from airbo.campaign.history import IMPORT
from airbo.campaign.ledger import Ledger, Row
from airbo.campaign.outcome import Listener, Outcome
from airbo.integrations.optuna.counting import STAGED
from airbo.observed import EXECUTED_COLUMN, FAILED, OK, STATUS, VALUE
from airbo.space import Design, Space
from airbo.words import nearest, number_of, quoted, value_of

if TYPE_CHECKING:
    import pandas as pd

TRIAL, ASKED, TOLD = "trial", "asked", "told"
BY, EXCLUDED, NOTES = "by", "excluded", "notes"
_OURS = (TRIAL, ASKED, TOLD, BY, EXCLUDED, NOTES)
"""Columns that an export has and an import does not need."""
_SKIPPED = ("pending", "given up", EXCLUDED)


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    numbers: list[int]
    """The experiments, in the order of the rows."""
    already: bool
    """Whether the same table had been imported before; nothing was changed then."""


def import_table(
    ledger: Ledger,
    listener: Listener,
    source: "str | Path | pd.DataFrame",
    again: bool,
    ignore_others: bool,
) -> Imported:
    """Write all rows of a table, or none; see ``Campaign.import_table``."""
    name, text = read_table(source)
    rows = parse_rows(name, text, listener.settings.space, ignore_others)
    if not rows:
        raise FileError(name, [Mistake(1, "there are no experiments in it.")])
    outcomes = _outcomes(listener, name, rows)
    key, known = _key(listener.record, digest(rows))
    if known and not again:
        return Imported(_numbers(ledger, known["token"]) or [known["trial"]], already=True)
    mark = {"file": Path(name).name, "rows": len(rows), **listener.stamp}
    numbers = ledger.commit([Row.of(outcome) for outcome in outcomes], key, lambda _: mark)
    return Imported(numbers, already=False)


def _key(record: Record, name: str) -> tuple[str, dict[str, Any] | None]:
    """Return the key for an import, and the mark of the same one that counts, if there is such."""
    marks, undone = record.counted.marks, record.counted.undone
    keys = (f"{IMPORT}{name}" + (f":{i}" if i > 1 else "") for i in itertools.count(1))
    known = None
    for key in keys:
        if key not in marks:
            return key, known
        known = known if marks[key]["token"] in undone else marks[key]
    raise AssertionError("there is always another number")


def _outcomes(listener: Listener, name: str, rows: Sequence["TableRow"]) -> list[Outcome]:
    outcomes, mistakes = [], []
    for row in rows:
        try:
            outcomes.append(listener.added(row.design, row.value, row.executed))
        except CampaignError as error:
            mistakes.append(Mistake(row.line, str(error)))
    if mistakes:
        raise FileError(name, mistakes)
    return outcomes


def _numbers(ledger: Ledger, token: str) -> list[int]:
    """Return the numbers of the trials that were written together."""
    trials = ledger.study.get_trials(deepcopy=False)
    return [t.number for t in trials if t.user_attrs.get(STAGED, {}).get("token") == token]


@dataclass(frozen=True)
class TableRow:
    """One experiment of a file."""

    line: int
    design: Design
    value: float | None
    executed: dict[str, Any] = field(default_factory=dict)


def read_table(source: "str | Path | pd.DataFrame") -> tuple[str, str]:
    """Return the name and the text of a table."""
    if not isinstance(source, str | Path):
        return "the table", source.to_csv(index=False)
    try:
        return str(source), Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(str(source), [Mistake(1, "this is not a text file in UTF-8.")]) from None
    except OSError as error:
        raise StorageError(f"{source} cannot be read: {error.strerror}.") from None


def parse_rows(name: str, text: str, space: Space, ignore_others: bool = False) -> list[TableRow]:
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
    rows = []
    try:
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(header, space, ignore_others, mistakes)
        if mistakes:
            raise FileError(name, mistakes)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(_row(reader.line_num, header, cells, space, mistakes))
    except csv.Error as error:
        mistakes.append(Mistake(reader.line_num, f"this is not CSV: {error}."))
    if mistakes:
        raise FileError(name, mistakes)
    return [row for row in rows if row is not None]


def _check_header(
    header: Sequence[str], space: Space, ignore_others: bool, mistakes: list[Mistake]
) -> None:
    known = [*space.names, VALUE, STATUS, *_OURS, *(EXECUTED_COLUMN + n for n in space.names)]
    missing = [column for column in (*space.names, VALUE) if column not in header]
    if missing:
        there = f"; it has {quoted(header)}" if any(header) else ""
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
) -> TableRow | None:
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
    return TableRow(line, design, value, executed) if len(mistakes) == n_before else None


def _value(line: int, text: str, status: str, mistakes: list[Mistake]) -> float | None:
    if status == FAILED:
        return None
    if status not in ("", OK):
        known = quoted((OK, FAILED, *_SKIPPED))
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


def digest(rows: Iterable[TableRow]) -> str:
    """Return a short text that differs for tables that differ."""
    content = [[row.design, row.value, row.executed] for row in rows]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def table_of(space: Space, experiments: Sequence[Experiment]) -> "pd.DataFrame":
    """Put experiments into a table that can be imported again."""
    import pandas as pd

    measured = [n for n in space.names if any(n in e.executed for e in experiments)]
    rows = [
        {
            TRIAL: e.number,
            **e.design,
            VALUE: math.nan if e.value is None else e.value,
            STATUS: e.outcome if e.excluded is None else EXCLUDED,
            **{EXECUTED_COLUMN + name: e.executed.get(name) for name in measured},
            ASKED: _time(e.asked),
            TOLD: _time(e.told),
            BY: e.by,
            EXCLUDED: e.excluded,
            NOTES: "; ".join(e.notes) or None,
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
        *(c for c in (BY, EXCLUDED, NOTES) if any(row[c] is not None for row in rows)),
    ]
    return pd.DataFrame(rows, columns=columns)


def to_csv(table: "pd.DataFrame") -> str:
    """Write a table as CSV, with every digit."""
    stream = io.StringIO()
    table.to_csv(stream, index=False)
    return stream.getvalue()


def _time(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat(sep=" ", timespec="seconds")
