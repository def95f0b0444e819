"""Files of logged deviations."""

import math
from collections.abc import Sequence
from pathlib import Path

from airbo.sheets import read_sheet


def header_of(path: Path) -> list[str]:
    """Return the cells of the first line."""
    return read_sheet(path).header


def read_deviations(path: Path, columns: Sequence[str | int] | None) -> list[list[float]]:
    """Read the rows of a CSV or Excel file, with or without header; see ``Empirical.from_csv``."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file of deviations at {path}.")
    sheet = read_sheet(path)
    first = [sheet.number(cell) for cell in sheet.header]
    header = None if any(map(_is_number, first)) else sheet.header
    lines = [(1, sheet.header)] if header is None and sheet.header else []
    lines += sheet.rows
    if not lines:
        raise ValueError(f"{path} holds no deviations.")

    width = len(header or lines[0][1])
    for number, cells in lines:
        if len(cells) != width:
            raise ValueError(f"{path}, row {number}: expected {width} cells, got {len(cells)}.")
    picked = range(width) if columns is None else [_position(c, header, width) for c in columns]
    return [
        [_number(sheet.number(cells[j]), f"{path}, row {n}, column {j}") for j in picked]
        for n, cells in lines
    ]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str, where: str) -> float:
    if not _is_number(cell):
        raise ValueError(f"{where}: expected a number, got {cell!r}.")
    if not math.isfinite(float(cell)):
        raise ValueError(f"{where}: expected a finite number, got {cell!r}.")
    return float(cell)


def _position(column: str | int, header: list[str] | None, width: int) -> int:
    if isinstance(column, str):
        if header is None:
            raise ValueError(f"Column {column!r} asked for by name, but the file has no header.")
        if column not in header:
            raise ValueError(f"There is no column {column!r}; the file has {', '.join(header)}.")
        return header.index(column)
    if not 0 <= column < width:
        raise ValueError(f"There is no column {column}; the file has {width}, counted from 0.")
    return column
