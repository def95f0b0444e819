"""Logs as people have them: CSV or Excel, with decimal points or commas."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from airbo.sheets import read_sheet
from airbo.uncertainty.learning.pairs import Pair, find_pairs, in_wide_form, named_pairs

_NOTHING = {"", "nan", "na", "n/a", "null", "none", "-", "#n/a"}
_MOST_MISTAKES = 10


@dataclass(frozen=True)
class Log:
    """A log that was read."""

    asked: pd.DataFrame
    actual: pd.DataFrame
    pairs: list[Pair]
    unused: list[str] = field(default_factory=list)
    """Columns that belong to no pair."""
    long_by: str | None = None
    """The column that names the parameter, where each has rows of its own."""


def read_log(path: str | Path, pairs: Sequence[str] = ()) -> Log:
    """Read asked and actual values from a CSV or Excel file.

    Args:
        path: The file.
        pairs: ``asked=actual`` or ``name:asked=actual``; by default they are found by name.

    Raises:
        ValueError: If there are no pairs, or cells that are no numbers: each with row and column.
    """
    return log_of(_cells(Path(path)), pairs, str(path))


def log_of(table: pd.DataFrame, pairs: Sequence[str] = (), source: str = "the table") -> Log:
    """Find asked and actual values in a table, such as a campaign's ``export()``.

    Args:
        table: Numbers or texts; its index names the rows in messages.
        pairs: As for ``read_log``.
        source: What the table is called in messages.
    """
    long_by = None
    if not pairs:
        table, long_by = in_wide_form(table)
    columns = [str(c) for c in table.columns]
    found = named_pairs(pairs, columns) if pairs else find_pairs(columns)
    if not found:
        raise ValueError(
            f"{source}: no columns are called like asked and actual values; it has "
            f"{', '.join(columns)}. Name them: --pair asked=actual."
        )
    mistakes: list[str] = []
    comma = _has_decimal_comma(table[[c for p in found for c in (p.asked, p.actual)]])
    asked, actual = (
        pd.DataFrame(
            {p.name: _numbers(table[getattr(p, side)], comma, mistakes) for p in found},
            index=table.index,
        )
        for side in ("asked", "actual")
    )
    if mistakes:
        more = len(mistakes) - _MOST_MISTAKES
        listed = mistakes[:_MOST_MISTAKES] + ([f"and {more} more"] if more > 0 else [])
        raise ValueError(f"{source} has cells that are no numbers:\n  " + "\n  ".join(listed))
    used = {column for p in found for column in (p.asked, p.actual)}
    return Log(asked, actual, found, [c for c in columns if c not in used], long_by)


def _cells(path: Path) -> pd.DataFrame:
    """Return all cells as texts; the index is the row of the file, counted from 1."""
    sheet = read_sheet(path)
    header = sheet.header
    if not header:
        raise ValueError(f"{path} is empty.")
    if any(_number(cell, comma=False) is not None for cell in header if cell):
        raise ValueError(f"{path}: the first row must name the columns, got {', '.join(header)}.")
    doubles = sorted({name for name in header if name and header.count(name) > 1})
    if doubles:
        raise ValueError(f"{path}: several columns are called {', '.join(doubles)}.")
    rows, numbers = [], []
    for number, cells in sheet.rows:
        if any(cells[len(header) :]):
            raise ValueError(
                f"{path}, row {number}: {len(cells)} cells, but {len(header)} columns."
            )
        rows.append((cells + [""] * len(header))[: len(header)])
        numbers.append(number)
    return pd.DataFrame(rows, columns=header, index=numbers, dtype=object)


def _has_decimal_comma(table: pd.DataFrame) -> bool:
    texts = [str(cell) for column in table for cell in table[column].dropna()]
    return any("," in text for text in texts)


def _numbers(column: pd.Series, comma: bool, mistakes: list[str]) -> list[float]:
    found = []
    for row, cell in column.items():
        text = "" if pd.isna(cell) else str(cell).strip()
        value = math.nan if text.lower() in _NOTHING else _number(text, comma)
        if value is None or math.isinf(value):
            mistakes.append(f"row {row}, column {column.name}: expected a number, got {text!r}.")
            value = math.nan
        found.append(value)
    return found


def _number(text: str, comma: bool) -> float | None:
    if comma and "," in text:
        text = text.replace(".", "").replace(",", ".")  # 1.234,5
    try:
        return float(text)
    except ValueError:
        return None
