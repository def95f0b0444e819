"""Tables of experiments: those done before, all rows or none, and all of them to take along."""

import hashlib
import io
import itertools
import json
import math
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.lab import events
from airbo.lab.entry import Entry, EntryReader, Report
from airbo.lab.errors import CampaignError, FileError, Mistake, StorageError
from airbo.lab.file import Settings
from airbo.lab.record import Change, Experiment, Record
from airbo.observed import (
    EXECUTED_COLUMN,
    FAILED,
    INFEASIBLE,
    NOISE_COLUMN,
    OK,
    STATUS,
    VALUE,
    check_value,
)
from airbo.outcomes import objectives
from airbo.sheets import EXCEL, Sheet, SheetError, excel_of, harmless, read_sheet, sheet_of
from airbo.space import Design, Space
from airbo.space.parameters import Categorical
from airbo.words import nearest, number_of, quoted, same_unit, typed_value, unit_of

if TYPE_CHECKING:
    import pandas as pd

    from airbo.integrations.optuna import StudyTrial

TRIAL, ASKED, TOLD = "trial", "asked", "told"
BY, EXCLUDED, NOTES = "by", "excluded", "notes"
_OURS = (TRIAL, ASKED, TOLD, BY, EXCLUDED, NOTES)
"""Columns that an export has and an import does not need."""
_SKIPPED = ("pending", "given up")
_STATUSES = (OK, FAILED, INFEASIBLE, *_SKIPPED)
_OUTSIDE = " Use --allow-outside if it was really run there."
_SAME_DIGITS = 12
"""Digits by which two tables are compared: programs write the last ones differently."""
MOST_MISTAKES = 100
"""Number of mistakes after which airbo stops reading."""


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    numbers: list[int]
    """The experiments, in the order of the rows."""
    already: bool
    """Whether the same table had been imported before; nothing was changed then."""
    n_left_out: int = 0
    """Rows whose status says that they are pending or given up."""


@dataclass(frozen=True)
class TableRow:
    """One experiment of a table, checked."""

    line: int
    entry: Entry
    kept: Mapping[str, str] = field(default_factory=dict)
    """What an export says beside it: number, times, who, notes, why it is excluded."""
    pending: bool = False
    """Whether it was asked for and nobody has answered yet."""

    @property
    def number(self) -> int | None:
        """Its number in the campaign that was exported."""
        text = self.kept.get(TRIAL, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def moment(self, column: str) -> str | None:
        """Return a time in UTC; without a zone it is local."""
        try:
            return datetime.fromisoformat(self.kept[column]).astimezone(UTC).isoformat()
        except (KeyError, ValueError, OverflowError):
            return None


@dataclass(frozen=True)
class ExperimentTable:
    """The experiments of a table, checked."""

    name: str
    """The file or study that they come from."""
    rows: Sequence[TableRow]
    n_left_out: int

    @property
    def digest(self) -> str:
        """A short text that differs for tables that differ."""
        entries = (row.entry for row in self.rows)
        content = [
            [e.design, e.outcomes, e.executed, e.infeasible, *([e.noise] if e.noise else [])]
            for e in entries
        ]
        text = json.dumps(_rounded(content), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def new_call(self, record: Record) -> str:
        """Return a key for an import of this table that none had before."""
        used = {event.call for event in record.events}
        return next(call for call in self._calls() if call not in used)

    def known(self, record: Record) -> str | None:
        """Return the key of an import of this table that counts, if there is one."""
        undone = {c.call for c in record.history if c.undone}
        used = {event.call for event in record.events} - undone
        calls = itertools.takewhile(lambda call: call in used | undone, self._calls())
        return next((call for call in calls if call in used), None)

    def _calls(self) -> "itertools.chain[str]":
        first = f"import-{self.digest}"
        return itertools.chain([first], (f"{first}-{i}" for i in itertools.count(2)))

    def facts(self, settings: Settings, record: Record) -> list[events.Fact]:
        """Return the events that store the table."""
        found: list[events.Fact] = []
        for row, number in zip(self.rows, self._numbers(record), strict=True):
            asked, told = row.moment(ASKED), row.moment(TOLD)
            if row.pending:
                found.append(events.Asked(number, dict(row.entry.design), at=asked))
                continue
            origin = {"source": self.name, "by": row.kept.get(BY), "at": told, "asked": asked}
            found.append(row.entry.fact(number, settings, **origin))
            if note := row.kept.get(NOTES):
                found.append(events.Noted(number, note))
            if why := row.kept.get(EXCLUDED):
                found.append(events.Excluded(number, why))
        return found

    def _numbers(self, record: Record) -> list[int]:
        """Keep the numbers of an exported table if all of them are free."""
        given = [row.number for row in self.rows]
        kept = [number for number in given if number is not None]
        facts = (event.fact for event in record.events)
        used = {fact.number for fact in facts if isinstance(fact, events.AboutExperiment)}
        if len(set(kept)) == len(given) and not used & set(kept):
            return kept
        return [record.next_number + i for i in range(len(given))]


def _rounded(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _rounded(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_rounded(value) for value in content]
    if isinstance(content, float | int) and not isinstance(content, bool):
        return f"{content:.{_SAME_DIGITS}g}"
    return content


def read_experiments(
    reader: EntryReader,
    source: "str | Path | pd.DataFrame",
    ignore_others: bool,
    called: Mapping[str, str],
    common: Mapping[str, Any],
) -> ExperimentTable:
    """Read and check all rows of a table; see ``Campaign.import_table``.

    Args:
        reader: Understands what the rows say.
        source: The table.
        ignore_others: Whether to skip columns with other names.
        called: Columns that have other names, by what they mean.
        common: What is said of all rows: ``uncertainty`` and ``allow_outside`` of a report.
    """
    name, sheet = _read(source)
    found = TableMistakes()
    columns = TableColumns(reader.settings.space, reader.settings.units, called)
    columns.check(sheet.header)
    meanings = _meanings(sheet.header, columns, ignore_others, found)
    rows = _RowReader(sheet, reader, found, meanings, common).rows()
    if not rows and not found.mistakes:
        found.add(1, "there are no experiments in it.")
    found.check(name)
    return ExperimentTable(Path(name).name, rows, found.n_left_out)


def read_trials(reader: EntryReader, url: str, name: str, allow_outside: bool) -> ExperimentTable:
    """Read and check the trials of an Optuna study; see ``Campaign.import_study``."""
    try:
        from airbo.integrations.optuna import read_study
    except ImportError:
        raise CampaignError("Optuna is not installed: pip install 'airbo[optuna]'.") from None
    try:
        trials = read_study(url, name)
    except ValueError as error:
        raise CampaignError(str(error)) from None
    rows, mistakes = [], []
    for trial in trials:
        if trial.state == "abandoned":
            continue
        try:
            rows.append(_row_of(trial, reader, allow_outside))
        except CampaignError as error:
            mistakes.append(f"  trial {trial.number}: {error}")
    if mistakes:
        listed = "\n".join(mistakes[:MOST_MISTAKES])
        raise CampaignError(f"The study {name!r} does not fit the campaign file:\n{listed}")
    if not rows:
        raise CampaignError(f"The study {name!r} has no trials to import.")
    return ExperimentTable(name, rows, len(trials) - len(rows))


def _row_of(trial: "StudyTrial", reader: EntryReader, allow_outside: bool) -> TableRow:
    """Return a trial as a row of a table."""
    goals = list(objectives(reader.settings.outcomes))
    if trial.values and len(trial.values) != len(goals):
        raise CampaignError(
            f"it has {len(trial.values)} values, and the file has {len(goals)} objectives."
        )
    measured = {}
    if trial.state == "told":
        values = dict(zip(goals, trial.values, strict=False))
        measured = {n: v for n, v in values.items() if v is not None} | trial.outcomes
    said: dict[str, Any] = {"executed": trial.executed, "uncertainty": trial.uncertainty}
    entry = reader.added(
        Report(trial.design, measured or None, allow_outside=allow_outside, **said)
    )
    times = {ASKED: trial.asked, TOLD: trial.told}
    kept = {column: moment.isoformat() for column, moment in times.items() if moment is not None}
    kept[TRIAL] = str(trial.number)
    return TableRow(trial.number, entry, kept, pending=trial.state == "pending")


def read_designs(settings: Settings, path: Path) -> list[Design]:
    """Read the designs of a table, to predict them; empty cells, and what is no parameter, are not.

    Raises:
        FileError: If there are mistakes; all are named.
    """
    name, sheet = _read(path)
    columns, found = TableColumns(settings.space, settings.units), TableMistakes()
    meanings = []
    for column in sheet.header:
        try:
            meanings.append(columns.meaning(column))
        except ValueError as error:
            found.add(1, str(error))
    found.check(name)
    designs = []
    for line, cells in sheet.rows:
        design: Design = {}
        for column, cell in zip(meanings, cells, strict=False):
            parameter = settings.space.whole.parameters.get(column)
            if parameter is None or not cell:
                continue
            is_text = isinstance(parameter, Categorical)
            try:
                text = sheet.text(cell) if is_text else sheet.number(cell)
                design[column] = typed_value(settings.space.whole, column, text)
            except ValueError as error:
                found.add(line, str(error))
        designs.append(design)
    found.check(name)
    return designs


def _read(source: "str | Path | pd.DataFrame") -> tuple[str, Sheet]:
    """Return the name and the cells of a table."""
    if not isinstance(source, str | Path):
        return "the table", sheet_of(to_csv(source))
    try:
        return str(source), read_sheet(source)
    except SheetError as error:
        raise _refused(str(source), error) from None
    except OSError as error:
        raise StorageError(f"{source} cannot be read: {error.strerror}.") from None


def _refused(name: str, error: SheetError) -> CampaignError:
    if error.line is None:
        return CampaignError(str(error))
    return FileError(name, [Mistake(error.line, str(error))])


@dataclass
class TableMistakes:
    """Mistakes of a table, as many as anybody reads."""

    mistakes: list[Mistake] = field(default_factory=list)
    n_left_out: int = 0
    """Rows that are no mistake and no experiment to import: pending or given up."""

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
    units: Mapping[str, str | None]
    """The outcomes and their units; a single one may also be called ``value``."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Columns that have other names, by what they mean."""

    def check(self, header: Sequence[str]) -> None:
        """Refuse names for columns that there are not."""
        for name, column in self.called.items():
            if name not in self.known:
                raise CampaignError(f"There is nothing called {name!r}{nearest(name, self.known)}")
            if column not in header:
                raise CampaignError(f"There is no column {column!r}{nearest(column, header)}")

    @property
    def known(self) -> list[str]:
        """What a column can be called, but for units."""
        names = self.space.whole.names
        values = [VALUE, *self.units] if len(self.units) == 1 else [*self.units]
        measured = [EXECUTED_COLUMN + n for n in self.space.names]
        noise = [NOISE_COLUMN + n for n in values]
        return list(dict.fromkeys([*names, *values, STATUS, *_OURS, *measured, *noise]))

    def meaning(self, column: str) -> str:
        """Return the name of a column without its unit; or refuse it.

        Raises:
            ValueError: If it is unknown, or its unit is another one than that of the file.
        """
        name, unit = column, ""
        if name not in self.known and (found := _UNIT.fullmatch(column)):
            name, unit = found["name"], found["square"] or found["round"]
        name = next((n for n, own in self.called.items() if own == column), name)
        if name not in self.known:
            raise ValueError(f"unknown column {column!r}{nearest(name, self.known)}")
        if len(self.units) == 1 and name in (VALUE, NOISE_COLUMN + VALUE):
            name = name.removesuffix(VALUE) + next(iter(self.units))
        own = self._unit(name)
        if unit and own and not same_unit(unit, own):
            raise ValueError(
                f"column {column!r} is in {unit!r}, and the campaign file says {own!r}."
            )
        return name

    def _unit(self, name: str) -> str | None:
        if name.removeprefix(NOISE_COLUMN) in self.units:
            return self.units[name.removeprefix(NOISE_COLUMN)]
        parameter = self.space.whole.parameters.get(name.removeprefix(EXECUTED_COLUMN))
        return None if parameter is None else unit_of(parameter)


_UNIT = re.compile(r"(?P<name>.*?)\s*(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))")


def _meanings(
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
    missing = [name for name in columns.space.names if name not in meanings]
    if not set(columns.units) & set(meanings):
        missing.append(VALUE if len(columns.units) == 1 else " or ".join(columns.units))
    for name in missing:
        found.add(1, f"the header has no column {name!r}; it has {quoted(header)}.")
    for name in sorted({m for m in meanings if m and meanings.count(m) > 1}):
        own = [column for column, m in zip(header, meanings, strict=True) if m == name]
        found.add(1, f"there are columns {quoted(own)} for {name!r}: which one counts?")
    return meanings


@dataclass(frozen=True)
class _RowReader:
    """Reads the cells of rows, and notes what is wrong with each."""

    sheet: Sheet
    reader: EntryReader
    found: TableMistakes
    meanings: Sequence[str | None]
    """Of the columns."""
    common: Mapping[str, Any]
    """What is said of all rows."""

    def rows(self) -> list[TableRow]:
        """Return all experiments; mistakes are noted."""
        rows: list[TableRow] = []
        n = len(self.meanings)
        try:
            for line, cells in self.sheet.rows:
                if not any(cells[n:]):  # spreadsheets add empty cells at the end
                    cells = cells[:n]
                if not self.sheet.is_csv:  # Excel leaves out empty cells at the end
                    cells = [*cells, *[""] * (n - len(cells))]
                if len(cells) == n:
                    rows += self._row(line, dict(zip(self.meanings, cells, strict=True)))
                else:
                    self.found.add(line, f"expected {n} cells as in the header, got {len(cells)}.")
                if self.found.is_full:
                    break
        except SheetError as error:
            self.found.add(error.line or 1, str(error))
        return rows

    def _row(self, line: int, cells: Mapping[str | None, str]) -> list[TableRow]:
        """Return the experiment of a row; nothing if it has mistakes, or was not done."""
        settings = self.reader.settings
        names, status = settings.space.names, cells.get(STATUS, "").lower() or OK
        if status in _SKIPPED:
            self.found.n_left_out += 1
            return []
        n_before = len(self.found.mistakes)
        if status not in _STATUSES:
            self.found.add(line, f"status must be one of {quoted(_STATUSES)}, got {status!r}.")
        design = {n: self._try(line, self._designed, n, cells[n]) for n in names if n in cells}
        columns = {name: EXECUTED_COLUMN + name for name in names}
        columns |= {name: name for name in settings.space.environment}
        executed = {
            name: self._try(line, self._executed, name, column, cells[column])
            for name, column in columns.items()
            if cells.get(column)
        }
        given = {n: cells[n] for n in settings.units if cells.get(n)}
        outcomes = {n: self._try(line, self._outcome, n, cell) for n, cell in given.items()}
        if given and status in (FAILED, INFEASIBLE):
            [(name, cell), *_] = given.items()
            text = f"{name} is {cell!r}, but the status is {status!r}: remove one of them."
            self.found.add(line, text)
        if not given and status == OK and set(settings.units) & set(cells):
            self.found.add(
                line,
                "the value is missing; for an experiment that failed, add a column status with "
                "the word 'failed'.",
            )
        noise = {
            name: self._try(line, self._outcome, column, cells[column])
            for name in settings.units
            if cells.get(column := NOISE_COLUMN + name)
        }
        is_whole = set(names) <= set(cells) and bool(set(settings.units) & set(cells))
        if len(self.found.mistakes) > n_before or not is_whole:
            return []
        said = {"infeasible": status == INFEASIBLE, "noise": noise, **self.common}
        entry = self._try(
            line, self.reader.added, Report(design, outcomes or None, executed=executed, **said)
        )
        kept = {c: self.sheet.text(cells[c]) for c in _OURS if cells.get(c) and c not in design}
        return [] if entry is None else [TableRow(line, entry, kept)]

    def _designed(self, name: str, cell: str) -> Any:
        space, allow_outside = self.reader.settings.space, self.common.get("allow_outside", False)
        parameter = space.parameters[name]
        is_choice = isinstance(parameter, Categorical)
        text = self.sheet.text(cell) if is_choice else self._number(name, cell)
        value = typed_value(space, name, text)
        try:
            parameter.encode(value, allow_outside)
        except ValueError as error:
            hint = _OUTSIDE if "between" in str(error) and not is_choice else ""
            raise ValueError(f"Parameter {name!r}: {error}{hint}") from None
        return value

    def _executed(self, name: str, column: str, cell: str) -> Any:
        if isinstance(self.reader.settings.space.whole.parameters[name], Categorical):
            return cell  # which is refused with the row
        return number_of(self._number(column, cell), column)

    def _outcome(self, name: str, cell: str) -> float | None:
        return check_value(number_of(self._number(name, cell), name))

    def _number(self, name: str, cell: str) -> str:
        try:
            return self.sheet.number(cell)
        except ValueError as error:
            raise ValueError(f"{name}: {error}.") from None

    def _try(self, line: int, read: Any, *args: Any) -> Any:
        try:
            return read(*args)
        except (ValueError, CampaignError) as error:
            self.found.add(line, str(error))
            return None


# -- writing


def table_of(settings: Settings, experiments: Sequence[Experiment]) -> "pd.DataFrame":
    """Put experiments into a table that can be imported again.

    Outcomes that were told and that the file no longer names have columns all the same.
    """
    import pandas as pd

    space = settings.space
    measured = [n for n in space.names if any(n in e.executed for e in experiments)]
    around = [*space.environment]
    called = {name: settings.event_name(name) for name in settings.outcomes}
    others = (name for e in experiments for name in e.outcomes if name not in called)
    called |= {name: name for name in others}
    noisy = {
        n: NOISE_COLUMN + c for n, c in called.items() if any(n in e.noise for e in experiments)
    }
    rows = [
        {
            BY: e.by,  # first: a parameter or an outcome with this name counts more
            EXCLUDED: e.excluded,
            NOTES: "; ".join(e.notes) or None,
            TRIAL: e.number,
            **e.design,
            **{column: e.outcomes.get(name, math.nan) for name, column in called.items()},
            **{column: e.noise.get(name) for name, column in noisy.items()},
            STATUS: INFEASIBLE if e.infeasible else e.outcome,
            **{EXECUTED_COLUMN + name: e.executed.get(name) for name in measured},
            **{name: e.executed.get(name) for name in around},
            ASKED: _local(e.asked),
            TOLD: _local(e.told),
        }
        for e in experiments
    ]
    columns = [
        TRIAL,
        *space.names,
        *called.values(),
        *noisy.values(),
        STATUS,
        *(EXECUTED_COLUMN + n for n in measured),
        *around,
        ASKED,
        TOLD,
        *(c for c in (BY, EXCLUDED, NOTES) if any(row[c] is not None for row in rows)),
    ]
    return pd.DataFrame(rows, columns=list(dict.fromkeys(columns)))


def table_of_changes(changes: Sequence[Change]) -> "pd.DataFrame":
    """Put the history into a table."""
    import pandas as pd

    rows = [
        {
            "at": _local(change.at),
            "by": change.by,
            "what": change.what,
            "experiments": change.about,
            "text": change.text,
            "undone": change.undone,
        }
        for change in changes
    ]
    return pd.DataFrame(rows, columns=["at", "by", "what", "experiments", "text", "undone"])


def to_csv(table: "pd.DataFrame") -> str:
    """Write a table as CSV, with every digit; no spreadsheet takes its texts for formulas."""
    safe = table.map(lambda cell: harmless(cell) if isinstance(cell, str) else cell)
    stream = io.StringIO()
    safe.to_csv(stream, index=False, header=[harmless(str(name)) for name in table.columns])
    return stream.getvalue()


def to_excel(table: "pd.DataFrame") -> bytes:
    """Write a table as an Excel file.

    Raises:
        CampaignError: If openpyxl is not installed.
    """
    rows = table.astype(object).where(table.notna(), None).to_numpy().tolist()
    try:
        return excel_of([str(name) for name in table.columns], rows)
    except SheetError as error:
        raise CampaignError(str(error)) from None


def write_table(table: "pd.DataFrame", path: Path) -> None:
    """Write a file, as Excel where its name says so."""
    is_excel = path.suffix.lower() == EXCEL
    write_whole(path, to_excel(table) if is_excel else to_csv(table))


def _local(moment: datetime | None) -> str | None:
    """Write a time as the clock on the wall shows it, with its zone."""
    return None if moment is None else moment.astimezone().isoformat(sep=" ", timespec="seconds")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that is there whole or not at all, by way of a temporary one beside it."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        try:
            with new.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from None
