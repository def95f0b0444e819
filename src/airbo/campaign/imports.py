"""Imports: tables of experiments that were done before, all of a table or nothing."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from airbo.campaign.book import Book
from airbo.campaign.data import DataRow, digest, parse_rows, read_data
from airbo.campaign.errors import CampaignError, FileError, Mistake
from airbo.campaign.reports import Report
from airbo.campaign.staging import Row
from airbo.coordinates import NamedUncertainty
from airbo.integrations.optuna.counting import STAGED


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    numbers: list[int]
    """The experiments, in the order of the rows."""
    already: bool
    """Whether the same table had been imported before; nothing was changed then."""


def import_table(
    book: Book,
    source: str | Path | pd.DataFrame,
    *,
    again: bool = False,
    allow_outside: bool = False,
    ignore_others: bool = False,
    uncertainty: NamedUncertainty = None,
) -> Imported:
    """Write all rows of a table, or none; see ``Campaign.import_table``."""
    name, text = read_data(source)
    rows = parse_rows(name, text, book.settings.space, ignore_others)
    if not rows:
        raise FileError(name, [Mistake(1, "there are no experiments in it.")])
    checked = _checked(book, name, rows, allow_outside, uncertainty)
    key = f"airbo:import:{digest(rows)}"
    marks = book.study.user_attrs
    if key in marks and not again:
        first = marks[key]["trial"]
        return Imported(_numbers(book, marks[key]["token"]) or [first], already=True)
    if key in marks:
        key = next(k for i in itertools.count(2) if (k := f"{key}:{i}") not in marks)
    numbers = book.ledger.write(checked, key, {"file": Path(name).name, "rows": len(rows)})
    return Imported(numbers, already=False)


def _checked(
    book: Book,
    name: str,
    rows: Sequence[DataRow],
    allow_outside: bool,
    uncertainty: NamedUncertainty,
) -> list[Row]:
    checked, mistakes = [], []
    for row in rows:
        try:
            report = Report.checked(book.settings.space, row.value, row.executed, uncertainty)
            design = book.design(row.design, allow_outside)
            book.check(design, report)
            checked.append(book.row(design, report))
        except CampaignError as error:
            mistakes.append(Mistake(row.line, str(error)))
    if mistakes:
        raise FileError(name, mistakes)
    return checked


def _numbers(book: Book, token: str) -> list[int]:
    """Return the numbers of the trials that were written together."""
    trials = book.study.get_trials(deepcopy=False)
    return [t.number for t in trials if t.user_attrs.get(STAGED, {}).get("token") == token]
