"""Logs as people have them: CSV or Excel, decimal points or commas, columns paired by name."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from airbo.sheets import read_sheet

_NOTHING = {"", "nan", "na", "n/a", "null", "none", "-", "#n/a"}
_MOST_MISTAKES = 10
ASKED_WORDS = {
    "asked", "set", "setpoint", "sp", "command", "commanded", "cmd", "target", "planned", "plan",
    "desired", "demand", "demanded", "reference", "ref", "nominal", "requested", "request", "soll",
    "sollwert", "design", "input", "goal", "w",
}  # fmt: skip
"""Words for asked values."""
ACTUAL = {
    "actual", "act", "measured", "meas", "measurement", "pv", "executed", "real", "realized",
    "observed", "feedback", "fb", "ist", "istwert", "achieved", "readback", "rb", "true", "got",
    "sensed", "sensor", "effective",
}  # fmt: skip
"""Words for actual values."""
_TWO_WORDS = {("set", "point"): "setpoint", ("process", "value"): "pv", ("read", "back"): "rb"}
_PREFIXES = ("soll", "ist")


@dataclass(frozen=True)
class Pair:
    """One parameter, and its two columns."""

    name: str
    asked: str
    actual: str


@dataclass(frozen=True)
class Log:
    """A log that was read."""

    asked: pd.DataFrame
    actual: pd.DataFrame
    pairs: list[Pair]
    unused: list[str] = field(default_factory=list)
    """Columns that belong to no pair."""


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
    return Log(asked, actual, found, [c for c in columns if c not in used])


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


# -- pairs of columns


def find_pairs(columns: Iterable[str]) -> list[Pair]:
    """Pair columns by their names, such as ``speed_sp`` and ``speed_pv``.

    A column without such a word pairs with one that has it: ``speed`` and ``speed_actual``.
    """
    asked: dict[tuple[str, ...], str] = {}
    actual: dict[tuple[str, ...], str] = {}
    plain: dict[tuple[str, ...], str] = {}
    for column in columns:
        role, rest = _role(column)
        {"asked": asked, "actual": actual, "": plain}[role].setdefault(rest, column)
    pairs = []
    for rest in dict.fromkeys([*asked, *actual]):
        one = asked.get(rest) or (plain.get(rest) if rest else None)
        other = actual.get(rest) or (plain.get(rest) if rest else None)
        if one is not None and other is not None and one != other:
            pairs.append(Pair(_called(rest, one), one, other))
    return pairs


def named_pairs(texts: Sequence[str], columns: Sequence[str]) -> list[Pair]:
    """Read pairs that were named: ``asked=actual``, or ``name:asked=actual``."""
    pairs = []
    for text in texts:
        one, equals, other = text.partition("=")
        name, colon, rest = one.partition(":")
        if colon and one not in columns:
            one = rest
        else:
            name = ""
        if not equals:
            raise ValueError(f"A pair is written as asked=actual, got {text!r}.")
        for column in (one, other):
            if column not in columns:
                raise ValueError(
                    f"There is no column {column!r}; the log has {', '.join(columns)}."
                )
        pairs.append(Pair(name or _called(_role(one)[1], one), one, other))
    return pairs


def _role(column: str) -> tuple[str, tuple[str, ...]]:
    """Return whether a name speaks of asked or actual values, and what else it says."""
    words = _words(column)
    for role, known in (("actual", ACTUAL), ("asked", ASKED_WORDS)):
        for i in (len(words) - 1, *range(len(words) - 1)):
            if words and words[i] in known:
                return role, tuple(words[:i] + words[i + 1 :])
    return "", tuple(words)


def _words(column: str) -> list[str]:
    """Split a name at signs and capital letters; a unit in brackets does not count."""
    bare = re.sub(r"[\[(].*?[\])]", " ", column)
    parts = re.findall(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+|\d+", bare)
    words = [part.lower() for part in parts]
    for two, one in _TWO_WORDS.items():
        for i in range(len(words) - 1):
            if tuple(words[i : i + 2]) == two:
                words[i : i + 2] = [one]
    for prefix in _PREFIXES:
        first = words[0] if words else ""
        longer = first.startswith(prefix) and len(first) > len(prefix) + 3
        if longer and first not in ASKED_WORDS | ACTUAL:
            words[:1] = [prefix, first[len(prefix) :]]
    return words


def _called(rest: tuple[str, ...], column: str) -> str:
    return "_".join(rest) or column
