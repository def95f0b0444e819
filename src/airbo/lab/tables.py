"""Tables of experiments: those done before, all rows or none, and all of them to take along."""

import hashlib
import io
import json
import math
import os
import re
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.lab import events
from airbo.lab.entry import Entry, EntryReader, Report
from airbo.lab.errors import CampaignError, FileError, Mistake, StorageError
from airbo.lab.file import Settings
from airbo.lab.record import Change, Experiment, Record, in_short
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
from airbo.space import Design
from airbo.space.parameters import Categorical
from airbo.words import nearest, quoted, same_unit, typed_number, typed_value, unit_of

if TYPE_CHECKING:
    import pandas as pd

    from airbo.integrations.optuna import StudyTrial

    Source = str | Path | pd.DataFrame | io.StringIO

TRIAL, ASKED, TOLD = "trial", "asked", "told"
BY, EXCLUDED, NOTES = "by", "excluded", "notes"
_OURS = (TRIAL, ASKED, TOLD, BY, EXCLUDED, NOTES)
"""Columns that an export has and an import does not need."""
_SKIPPED = ("pending", "given up")
_STATUSES = (OK, FAILED, INFEASIBLE, *_SKIPPED)
_OUTSIDE = " Use --allow-outside if it was really run there."
_OUTSIDE_TOO = " Use --allow-outside to predict it all the same."
UNKNOWN_COLUMN = " (--map NAME=COLUMN says what it is; --ignore-others skips such columns)"
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
    """Whether the campaign had all of it before; nothing was changed then."""
    n_left_out: int = 0
    """Rows whose status says that they are pending or given up."""
    repeated: Mapping[int, int] = field(default_factory=dict)
    """Lines that were left out because the campaign has their experiments, and the numbers of
    these."""

    @property
    def repeated_words(self) -> str:
        """Say which rows were left out because the campaign has them; empty: none was."""
        if not self.repeated:
            return ""
        lines, numbers = in_short([*self.repeated]), in_short([*self.repeated.values()])
        return f"In the campaign already, and left out: line {lines}, as experiment {numbers}."


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
        content = [
            [t.design, t.outcomes, t.executed, t.infeasible, *([t.noise] if t.noise else [])]
            for t in (row.entry.told for row in self.rows)
        ]
        return hashlib.sha256(_text_of(content).encode()).hexdigest()[:16]

    def repeated(self, record: Record) -> dict[int, int]:
        """Return the lines whose experiments a campaign has, and the numbers of these.

        An experiment is that of one row: what was run twice stands twice in a table.
        """
        told: dict[str, list[Experiment]] = {}
        for e in record.experiments:
            if e.has_outcome:
                told.setdefault(_text_of(e.design), []).append(e)
        found = {}
        for row in self.rows:
            alike = told.get(_text_of(row.entry.told.design), [])
            same = [e for e in alike if not row.pending and _holds(e, row.entry.told)][:1]
            for e in same:
                alike.remove(e)
                found[row.line] = e.number
        return found

    def without(self, lines: Container[int]) -> "ExperimentTable":
        """Return the table without some lines."""
        return replace(self, rows=[row for row in self.rows if row.line not in lines])

    def new_call(self, record: Record) -> str:
        """Return a key for an import of this table that none had before."""
        before = self._calls(record)
        return f"import-{self.digest}" + (f"-{len(before) + 1}" if before else "")

    def known(self, record: Record) -> str | None:
        """Return the key of an import of this table that counts, if there is one."""
        undone = {c.call for c in record.history if c.undone}
        return next((call for call in self._calls(record) if call not in undone), None)

    def _calls(self, record: Record) -> list[str]:
        """Return the keys of earlier imports of this table, in their order."""
        own = f"import-{self.digest}"
        calls = (event.call for event in record.events)
        return list(dict.fromkeys(call for call in calls if call.startswith(own)))

    def facts(self, settings: Settings, record: Record) -> list[events.Fact]:
        """Return the events that store the table."""
        found: list[events.Fact] = []
        for row, number in zip(self.rows, self._numbers(record), strict=True):
            asked, told = row.moment(ASKED), row.moment(TOLD)
            if row.pending:
                found.append(events.Asked(number, row.entry.told.design, at=asked))
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


def _text_of(content: Any) -> str:
    """Return a text that is the same where all numbers are, up to their last digits."""
    return json.dumps(_rounded(content), sort_keys=True)


def _holds(e: Experiment, told: events.Told) -> bool:
    """Say whether all that a row tells is known of an experiment with its design."""
    if not told.outcomes:
        return not e.outcomes and e.infeasible == told.infeasible
    both = ((told.outcomes, e.outcomes), (told.executed, e.executed), (told.noise, e.noise))
    return all(_rounded(own).items() <= _rounded(known).items() for own, known in both)


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
    source: "Source",
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
    table = _TableReader(reader.settings, source, called, ignore_others)
    table.check_columns()
    rows = [row for line, cells in table.rows() for row in table.row(reader, line, cells, common)]
    if not rows and not table.mistakes:
        table.note(1, "there are no experiments in it.")
    table.check()
    return ExperimentTable(Path(table.name).name, rows, table.n_left_out)


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


def read_designs(settings: Settings, path: Path, allow_outside: bool = False) -> list[Design]:
    """Read the designs of a table, to predict them; empty cells, and what is no parameter, are not.

    Args:
        settings: The campaign file.
        path: The table.
        allow_outside: Whether designs may lie outside the ranges of the file.

    Raises:
        FileError: If there are mistakes; all are named.
    """
    table, names = _TableReader(settings, path), settings.space.names
    around = settings.space.environment
    designs = [
        {
            **{n: table.read(line, table.designed, n, cells[n], allow_outside, _OUTSIDE_TOO)
               for n in names if cells.get(n)},
            **{n: table.read(line, table.value, n, cells[n]) for n in around if cells.get(n)},
        }
        for line, cells in table.rows()
    ]  # fmt: skip
    table.check()
    return designs


_UNIT = re.compile(r"(?P<name>.*?)\s*(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))")


class _TableReader:
    """Reads a table; what is wrong is noted with its line, as much as anybody reads."""

    def __init__(
        self,
        settings: Settings,
        source: "Source",
        called: Mapping[str, str] | None = None,
        ignore_others: bool | None = None,  # None: nobody can choose
    ) -> None:
        """Read the header; see ``read_experiments``."""
        self.settings, self.space, self.units = settings, settings.space.whole, settings.units
        self.name, self.sheet = _read(source)
        self.mistakes: list[Mistake] = []
        self.n_left_out = 0
        """Rows that are no mistake and no experiment to import: pending or given up."""
        values = [VALUE, *self.units] if settings.is_single else [*self.units]
        executed = [EXECUTED_COLUMN + n for n in settings.space.names]
        noise = [NOISE_COLUMN + n for n in values]
        self.known = [*self.space.names, *values, STATUS, *_OURS, *executed, *noise]
        """What a column can be called, but for units."""
        for name, column in (called or {}).items():
            if name not in self.known:
                raise CampaignError(f"There is nothing called {name!r}{nearest(name, self.known)}")
            if column not in self.sheet.header:
                near = nearest(column, self.sheet.header)
                raise CampaignError(f"There is no column {column!r}{near}")
        self.names = {column: name for name, column in (called or {}).items()}
        self.columns = [self._meaning(column, ignore_others) for column in self.sheet.header]
        """What each column means; None: it is skipped."""

    def _meaning(self, column: str, ignore_others: bool | None) -> str | None:
        name, unit = column, ""
        if name not in self.known and (found := _UNIT.fullmatch(column)):
            name, unit = found["name"], found["square"] or found["round"]
        name = self.names.get(column, name)
        if name not in self.known:
            if column and not ignore_others:
                near = nearest(name, self.known)
                hint = "" if ignore_others is None else UNKNOWN_COLUMN
                self.note(1, f"unknown column {column!r}{near}{hint}")
            return None
        if self.settings.is_single and name in (VALUE, NOISE_COLUMN + VALUE):
            name = name.removesuffix(VALUE) + self.settings.value_name
        own = self.units.get(name.removeprefix(NOISE_COLUMN))
        if (parameter := self.space.parameters.get(name.removeprefix(EXECUTED_COLUMN))) is not None:
            own = unit_of(parameter)
        if unit and own and not same_unit(unit, own):
            self.note(1, f"column {column!r} is in {unit!r}, and the campaign file says {own!r}.")
        return name

    def check_columns(self) -> None:
        """Note what a table of experiments lacks, or has twice."""
        missing = [name for name in self.settings.space.names if name not in self.columns]
        if not set(self.units) & set(self.columns):
            missing.append(VALUE if self.settings.is_single else " or ".join(self.units))
        for name in missing:
            text = f"the header has no column {name!r}; it has {quoted(self.sheet.header)}."
            self.note(1, text)
        for name in sorted({m for m in self.columns if m and self.columns.count(m) > 1}):
            headed = zip(self.sheet.header, self.columns, strict=True)
            own = [column for column, meaning in headed if meaning == name]
            self.note(1, f"there are columns {quoted(own)} for {name!r}: which one counts?")

    def note(self, line: int, text: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(line, text))

    def check(self) -> None:
        """Refuse a table that has mistakes."""
        listed = sorted(self.mistakes, key=lambda mistake: mistake.line)[:MOST_MISTAKES]
        if len(self.mistakes) >= MOST_MISTAKES:
            more = f"airbo stopped reading after {MOST_MISTAKES} mistakes; there may be more."
            listed.append(Mistake(listed[-1].line, more))
        if listed:
            raise FileError(self.name, listed)

    # -- rows

    def rows(self) -> Iterator[tuple[int, dict[str | None, str]]]:
        """Yield line and cells of each row, by what they mean."""
        n = len(self.columns)
        try:
            for line, cells in self.sheet.rows:
                if len(self.mistakes) >= MOST_MISTAKES:
                    return
                if not any(cells[n:]):  # spreadsheets add empty cells at the end
                    cells = cells[:n]
                if not self.sheet.is_csv:  # Excel leaves out empty cells at the end
                    cells = [*cells, *[""] * (n - len(cells))]
                if len(cells) == n:
                    yield line, dict(zip(self.columns, cells, strict=True))
                else:
                    self.note(line, f"expected {n} cells as in the header, got {len(cells)}.")
        except SheetError as error:
            self.note(error.line or 1, str(error))

    def row(
        self,
        reader: EntryReader,
        line: int,
        cells: Mapping[str | None, str],
        common: Mapping[str, Any],
    ) -> list[TableRow]:
        """Return the experiment of a row; nothing if it has mistakes, or was not done."""
        names, status = self.settings.space.names, cells.get(STATUS, "").lower() or OK
        if status in _SKIPPED:
            self.n_left_out += 1
            return []
        n_before = len(self.mistakes)
        if status not in _STATUSES:
            self.note(line, f"status must be one of {quoted(_STATUSES)}, got {status!r}.")
        outside = common.get("allow_outside", False)
        design = {
            n: self.read(line, self.designed, n, cells[n], outside) for n in names if n in cells
        }
        columns = {name: EXECUTED_COLUMN + name for name in names}
        columns |= {name: name for name in self.settings.space.environment}
        executed = {n: cells[column] for n, column in columns.items() if cells.get(column)}
        values = {n: cells[n] for n in self.units if cells.get(n)}
        noise = {n: cells[NOISE_COLUMN + n] for n in self.units if cells.get(NOISE_COLUMN + n)}
        said: dict[str, Any] = {
            "executed": {
                # a choice is refused with the row
                n: self.read(line, self._number, columns[n], cell) if n in self._numbers else cell
                for n, cell in executed.items()
            },
            "value": {n: self.read(line, self._number, n, cell) for n, cell in values.items()},
            "noise": {n: self.read(line, self._number, n, cell) for n, cell in noise.items()},
        }
        if values and status in (FAILED, INFEASIBLE):
            [(name, cell), *_] = values.items()
            text = f"{name} is {cell!r}, but the status is {status!r}: remove one of them."
            self.note(line, text)
        is_measured = bool(set(self.units) & set(cells))
        if not values and status == OK and is_measured:
            self.note(
                line,
                "the value is missing; for an experiment that failed, add a column status with "
                "the word 'failed'.",
            )
        if len(self.mistakes) > n_before or not set(names) <= set(cells) or not is_measured:
            return []
        said["value"] = said["value"] or None
        report = Report(design, infeasible=status == INFEASIBLE, **said, **common)
        entry = self.read(line, reader.added, report)
        kept = {c: self.sheet.text(cells[c]) for c in _OURS if cells.get(c) and c not in design}
        return [] if entry is None else [TableRow(line, entry, kept)]

    @cached_property
    def _numbers(self) -> list[str]:
        """Names of parameters, and of the environment, that are numbers."""
        parameters = self.space.parameters.items()
        return [name for name, p in parameters if not isinstance(p, Categorical)]

    def value(self, name: str, cell: str) -> Any:
        """Read the value of a parameter, or of the environment."""
        text = self._plain(name, cell) if name in self._numbers else self.sheet.text(cell)
        return typed_value(self.space, name, text)

    def designed(self, name: str, cell: str, allow_outside: bool, outside: str = _OUTSIDE) -> Any:
        """Read the value of a parameter, in its range; else add a sentence on what to do."""
        value = self.value(name, cell)
        try:
            self.space.parameters[name].encode(value, allow_outside)
        except ValueError as error:
            is_number = "between" in str(error) and name in self._numbers
            hint = outside if is_number else ""
            raise ValueError(f"Parameter {name!r}: {error}{hint}") from None
        return value

    def _number(self, name: str, cell: str) -> float | None:
        parameter = self.space.parameters.get(name.removeprefix(EXECUTED_COLUMN))
        unit = self.units.get(name) if parameter is None else unit_of(parameter)
        return check_value(typed_number(self._plain(name, cell), name, unit))

    def _plain(self, name: str, cell: str) -> str:
        try:
            return self.sheet.number(cell)
        except ValueError as error:
            raise ValueError(f"{name}: {error}.") from None

    def read(self, line: int, read: Callable[..., Any], *args: Any) -> Any:
        """Read something; note what is wrong with it."""
        try:
            return read(*args)
        except (ValueError, CampaignError) as error:
            self.note(line, str(error))
            return None


def _read(source: "Source") -> tuple[str, Sheet]:
    """Return the name and the cells of a table."""
    if not isinstance(source, str | Path):
        if isinstance(source, io.StringIO):
            return "the pasted table", sheet_of(source.getvalue())
        return "the table", sheet_of(to_csv(source))
    try:
        return str(source), read_sheet(source)
    except SheetError as error:
        if error.line is None:
            raise CampaignError(str(error)) from None
        raise FileError(str(source), [Mistake(error.line, str(error))]) from None
    except OSError as error:
        raise StorageError(f"{source} cannot be read: {error.strerror}.") from None


# -- writing


def table_of(settings: Settings, experiments: Sequence[Experiment]) -> "pd.DataFrame":
    """Put experiments into a table that can be imported again.

    Outcomes that were told and that the file no longer names have columns all the same.
    """
    import pandas as pd

    space = settings.space
    measured = [n for n in space.names if any(n in e.executed for e in experiments)]
    called = {name: settings.event_name(name) for name in settings.outcomes}
    called |= {n: n for e in experiments for n in e.outcomes if n not in called}
    noisy = [n for n in called if any(n in e.noise for e in experiments)]
    remarks = [
        {BY: e.by, EXCLUDED: e.excluded, NOTES: "; ".join(e.notes) or None} for e in experiments
    ]
    taken = {*space.names, *called.values()}  # a parameter or an outcome with such a name counts
    said = [c for c in (BY, EXCLUDED, NOTES) if c not in taken and any(r[c] for r in remarks)]
    rows = [
        {
            TRIAL: e.number,
            **{name: e.design.get(name) for name in space.names},
            **{column: e.outcomes.get(name, math.nan) for name, column in called.items()},
            **{NOISE_COLUMN + called[name]: e.noise.get(name) for name in noisy},
            STATUS: INFEASIBLE if e.infeasible else e.outcome,
            **{EXECUTED_COLUMN + name: e.executed.get(name) for name in measured},
            **{name: e.executed.get(name) for name in space.environment},
            ASKED: _local(e.asked),
            TOLD: _local(e.told),
            **{column: remark[column] for column in said},
        }
        for e, remark in zip(experiments, remarks, strict=True)
    ]
    none = [TRIAL, *space.names, *called.values(), STATUS, *space.environment, ASKED, TOLD]
    return pd.DataFrame(rows, columns=None if rows else none)


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
