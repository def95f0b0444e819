"""Tables of experiments: those done before, all rows or none, and all of them to take along."""

import hashlib
import io
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.campaign.config import Settings
from airbo.campaign.errors import CampaignError, FileError, Mistake, StorageError
from airbo.campaign.experiment import Experiment, Record
from airbo.campaign.history import IMPORT
from airbo.campaign.ledger import Ledger, Row
from airbo.campaign.optuna.counting import STAGED
from airbo.campaign.outcome import Listener, Outcome, cannot_be_used
from airbo.campaign.plausible import check_plausible_rows
from airbo.campaign.rows import (
    ASKED,
    BY,
    EXCLUDED,
    NOTES,
    TOLD,
    TRIAL,
    TableColumns,
    TableMistakes,
    TableRow,
    parse_rows,
)
from airbo.campaign.storage import write_whole
from airbo.observed import EXECUTED_COLUMN, INFEASIBLE, STATUS, VALUE
from airbo.sheets import EXCEL, Sheet, SheetError, excel_of, harmless, read_sheet, sheet_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    numbers: list[int]
    """The experiments, in the order of the rows."""
    already: bool
    """Whether the same table had been imported before; nothing was changed then."""
    n_left_out: int = 0
    """Rows whose status says that they are pending, given up or excluded."""


def import_table(
    ledger: Ledger,
    listener: Listener,
    source: "str | Path | pd.DataFrame",
    again: bool,
    ignore_others: bool,
    sure: bool,
) -> Imported:
    """Write all rows of a table, or none; see ``Campaign.import_table``."""
    name, sheet = _read(source)
    found = TableMistakes()
    rows = parse_rows(
        sheet, TableColumns.of(listener.settings), found, listener.allow_outside, ignore_others
    )
    outcomes = _outcomes(listener, rows, found)
    if not rows and not found.mistakes:
        found.add(1, "there are no experiments in it.")
    found.check(name)
    key, known = _key(listener.record, digest(rows))
    if known and not again:
        return Imported(_numbers(ledger, known["token"]) or [known["trial"]], already=True)
    if not sure:
        lines = [row.line for row in rows]
        said = list(zip(lines, outcomes, strict=True))
        check_plausible_rows(listener.settings, listener.record, said)
    mark = {"file": Path(name).name, "rows": len(rows), **listener.stamp}
    numbers = ledger.commit([Row.of(outcome) for outcome in outcomes], key, lambda _: mark)
    return Imported(numbers, already=False, n_left_out=found.n_left_out)


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


def _outcomes(listener: Listener, rows: Sequence[TableRow], found: TableMistakes) -> list[Outcome]:
    outcomes = []
    for row in rows:
        try:
            said = listener.added(row.design, row.value, row.executed)
            outcomes.append(cannot_be_used(listener.settings, said) if row.infeasible else said)
        except CampaignError as error:
            found.add(row.line, str(error))
    return outcomes


def _numbers(ledger: Ledger, token: str) -> list[int]:
    """Return the numbers of the trials that were written together."""
    trials = ledger.study.get_trials(deepcopy=False)
    return [t.number for t in trials if t.user_attrs.get(STAGED, {}).get("token") == token]


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


def digest(rows: Iterable[TableRow]) -> str:
    """Return a short text that differs for tables that differ."""
    content = [
        [row.design, row.value, row.executed, *([INFEASIBLE] if row.infeasible else [])]
        for row in rows
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def table_of(settings: Settings, experiments: Sequence[Experiment]) -> "pd.DataFrame":
    """Put experiments into a table that can be imported again.

    A value that was told before the outcomes had names is that of the first objective. Where the
    file no longer names outcomes, those that were told have columns all the same.
    """
    import pandas as pd

    space = settings.space
    measured = [n for n in space.names if any(n in e.executed for e in experiments)]
    told = (name for e in experiments for name in e.outcomes)
    named = dict.fromkeys((*(settings.outcomes or ()), *told))
    rows = [
        {
            BY: e.by,  # first: a parameter or an outcome with this name counts more
            EXCLUDED: e.excluded,
            NOTES: "; ".join(e.notes) or None,
            TRIAL: e.number,
            **e.design,
            **{name: e.measured(settings.value_name).get(name, math.nan) for name in named},
            VALUE: math.nan if e.value is None else e.value,
            STATUS: _status(e),
            **{EXECUTED_COLUMN + name: e.executed.get(name) for name in measured},
            ASKED: _time(e.asked),
            TOLD: _time(e.told),
        }
        for e in experiments
    ]
    columns = [
        TRIAL,
        *space.names,
        *((VALUE,) if settings.outcomes is None else ()),
        *named,
        STATUS,
        *(EXECUTED_COLUMN + n for n in measured),
        ASKED,
        TOLD,
        *(c for c in (BY, EXCLUDED, NOTES) if any(row[c] is not None for row in rows)),
    ]
    return pd.DataFrame(rows, columns=list(dict.fromkeys(columns)))


def to_csv(table: "pd.DataFrame") -> str:
    """Write a table as CSV, with every digit; no spreadsheet takes its texts for formulas."""
    safe = table.map(lambda cell: harmless(cell) if isinstance(cell, str) else cell)
    stream = io.StringIO()
    safe.to_csv(stream, index=False, header=[harmless(str(name)) for name in table.columns])
    return stream.getvalue()


def _status(e: Experiment) -> str:
    if e.excluded is not None:
        return EXCLUDED
    return INFEASIBLE if e.infeasible else e.outcome


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


def _time(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat(sep=" ", timespec="seconds")
