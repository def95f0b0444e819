"""Deviations that were logged."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.parameters import Parameter, as_tensor, ndim, parameter


@dataclass(frozen=True, eq=False, repr=False)
class Empirical(InputUncertainty):
    """The deviation is one of those that were logged, x' - x, each as likely as the others."""

    deviations: Parameter
    """Logged deviations (N d); (N) for one column."""

    def __post_init__(self) -> None:
        """Refuse samples that are empty or not finite."""
        if isinstance(self.deviations, Tensor):
            object.__setattr__(self, "deviations", self.deviations.detach())
        rows = parameter(self.deviations, "deviations", 2)
        if isinstance(rows, Tensor) or ndim(rows) == 0:
            raise ValueError("deviations must have shape (N,) or (N, d).")
        if ndim(rows) == 1:
            rows = tuple((value,) for value in rows)
        object.__setattr__(self, "deviations", rows)

    @classmethod
    def from_csv(cls, path: str | Path, columns: Sequence[str | int] | None = None) -> "Empirical":
        """Read logged deviations from a CSV file, one row per experiment, with or without header.

        Args:
            path: The file.
            columns: Names from the header or positions from 0, in the order of the design;
                all columns by default.
        """
        return cls(_read_csv(Path(path), columns))

    @property
    def dim(self) -> int:
        """Number of logged columns."""
        return len(self.deviations[0])

    @property
    def is_additive(self) -> bool:
        """True."""
        return True

    @property
    def independent_columns(self) -> bool:
        """True for one column; logged columns belong together."""
        return self.dim == 1

    def n_base(self, d: int) -> int:
        """Return 1: it picks the row."""
        return 1

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s 1"]
    ) -> Float[Tensor, "*batch n s d"]:
        rows = self._rows.to(X)
        picked = (base[:, 0] * len(rows)).long().clamp_max(len(rows) - 1)
        return X.unsqueeze(-2) + rows[picked]

    @cached_property
    def _rows(self) -> Tensor:
        return as_tensor(self.deviations)

    def _mean(self, X: Tensor) -> Tensor:
        return X + self._rows.mean(dim=0).to(X)

    def _covariance(self, X: Tensor) -> Tensor:
        centred = self._rows - self._rows.mean(dim=0)
        return (centred.mT @ centred / len(centred)).to(X).expand(*X.shape, X.shape[-1])


def _read_csv(path: Path, columns: Sequence[str | int] | None) -> list[list[float]]:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file of deviations at {path}.")
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        lines = [(reader.line_num, cells) for cells in reader if any(c.strip() for c in cells)]

    header = None
    if lines and not any(_is_number(cell) for cell in lines[0][1]):
        header = [cell.strip() for cell in lines.pop(0)[1]]
    if not lines:
        raise ValueError(f"{path} holds no deviations.")

    width = len(header or lines[0][1])
    for number, cells in lines:
        if len(cells) != width:
            raise ValueError(f"{path}, row {number}: expected {width} cells, got {len(cells)}.")
    picked = range(width) if columns is None else [_position(c, header, width) for c in columns]
    return [
        [_number(cells[j], f"{path}, row {n}, column {j}") for j in picked] for n, cells in lines
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
