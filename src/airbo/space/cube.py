"""The unit cube: columns in the user's units, scaled to what models and searches see.

The words *design*, *columns* and *unit cube* are explained in :mod:`airbo.space`. Notation:

    X (n d)    rows of columns, in the user's units
    Z (n m)    the same in the unit cube: z = (x - low) / width, or in logarithms; a category has
               one column per choice
    F (n d)    the same in the folded cube, where a category is one column
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from airbo.space import Design, Space

APART = 1 / math.sqrt(2)
"""One-hot entry of the chosen category. The distance between two choices is √(½ + ½) = 1."""


@dataclass(frozen=True)
class Axes:
    """Scales columns of numbers to [0, 1], linearly or logarithmically."""

    names: tuple[str, ...]
    """Names of the columns, for messages."""
    low: tuple[float, ...]
    """The number that becomes 0, for each column."""
    high: tuple[float, ...]
    """The number that becomes 1, for each column."""
    log: tuple[bool, ...]
    """Whether a column has a log scale."""

    @cached_property
    def is_linear(self) -> bool:
        """Whether no column has a log scale."""
        return not any(self.log)

    @cached_property
    def widths(self) -> tuple[float, ...]:
        """Length of the cube's side in the units of each column; meaningful for linear ones."""
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))

    def of(self, columns: Sequence[int]) -> "Axes":
        """Return the axes of some of the columns."""
        if tuple(columns) == tuple(range(len(self.names))):
            return self  # with its tensors, which are made once
        fields: tuple[Any, ...] = (self.names, self.low, self.high, self.log)
        return Axes(*(tuple(field[c] for c in columns) for field in fields))

    def from_columns(self, X: Float[Tensor, "*batch c"]) -> Float[Tensor, "*batch c"]:
        """Scale numbers in user units; those out of bounds lie outside [0, 1]."""
        # z = (x - low) / (high - low), or (log x - log low) / (log high - log low)
        start, width = self._start_and_width.to(X)
        if self.is_linear:
            return (X - start) / width
        for column in [c for c, log in enumerate(self.log) if log]:
            if (X[..., column] <= 0).any():
                name, worst = self.names[column], X[..., column].min().item()
                raise ValueError(f"Parameter {name!r} is logarithmic and must be > 0, got {worst}.")
        # the inner where keeps log(negative) = nan out of the gradients of linear columns
        log = self._is_log.to(X.device)
        return (torch.where(log, torch.where(log, X, 1.0).log(), X) - start) / width

    def to_columns(self, Z: Float[Tensor, "*batch c"]) -> Float[Tensor, "*batch c"]:
        """Return the numbers in user units: the inverse of :meth:`from_columns`."""
        # x = low + z (high - low), or low (high / low)^z
        start, width = self._start_and_width.to(Z)
        scaled = start + Z * width
        if self.is_linear:
            return scaled
        log = self._is_log.to(Z.device)
        return torch.where(log, torch.where(log, scaled, 0.0).exp(), scaled)

    @cached_property
    def _is_log(self) -> Tensor:
        return torch.tensor(self.log)

    @cached_property
    def _start_and_width(self) -> Float64[Tensor, "2 c"]:
        # low and high - low, in logarithms for log scales
        ends = torch.tensor([self.low, self.high], dtype=torch.float64)
        ends = torch.where(self._is_log, torch.where(self._is_log, ends, 1.0).log(), ends)
        return torch.stack([ends[0], ends[1] - ends[0]])


@dataclass(frozen=True)
class Cube:
    """The unit cube of a space.

    A search needs one number per parameter. It uses the *folded* cube, in which a category is one
    column: its position divided by the last position. Without categories, the two cubes are the
    same.

    >>> cube = Cube(Space({"speed": (50, 200), "tool": ["A", "B", "C"]}))
    >>> Z = cube.from_designs({"speed": 80, "tool": "B"})
    >>> Z
    tensor([[0.2000, 0.0000, 0.7071, 0.0000]], dtype=torch.float64)
    >>> cube.fold(Z)
    tensor([[0.2000, 0.5000]], dtype=torch.float64)
    >>> cube.to_designs(Z)
    [{'speed': 80.0, 'tool': 'B'}]
    """

    space: Space

    @cached_property
    def axes(self) -> Axes:
        """How each column of the space is scaled."""
        log = tuple(column in self.space.log_columns for column in range(self.space.d))
        return Axes(self.space.names, *self.space.bounds, log)

    @cached_property
    def sizes(self) -> list[int]:
        """Number of columns of the cube for each parameter."""
        space = self.space
        return [space.n_values[c] if c in space.categorical_columns else 1 for c in range(space.d)]

    @cached_property
    def m(self) -> int:
        """Number of columns of the cube."""
        return sum(self.sizes)

    def position(self, column: int) -> int:
        """Return where a column of the space starts in the cube."""
        return sum(self.sizes[:column])

    @cached_property
    def bounds(self) -> Float64[Tensor, "2 m"]:
        """Zeros and ones: the bounds of the cube."""
        return torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, self.m)

    # -- designs <-> columns <-> cube

    def columns(
        self, designs: Iterable[Any], allow_outside: bool = False
    ) -> Float64[Tensor, "n {self.space.d}"]:
        """Return the columns of designs as a tensor; see :meth:`Space.to_columns`."""
        table = self.space.to_columns(designs, allow_outside)
        return torch.tensor(table, dtype=torch.float64).reshape(-1, self.space.d)

    def from_designs(
        self, designs: Iterable[Any], allow_outside: bool = False
    ) -> Float64[Tensor, "n {self.m}"]:
        """Translate designs into points of the cube, after checking them."""
        return self.from_columns(self.columns(designs, allow_outside))

    def to_designs(self, Z: Float[Tensor, "n {self.m}"]) -> list[Design]:
        """Translate points of the cube into designs."""
        return self.space.to_designs(self.to_columns(Z))

    def from_columns(
        self, X: Float[Tensor, "*batch {self.space.d}"]
    ) -> Float[Tensor, "*batch {self.m}"]:
        """Scale columns to the cube; numbers out of bounds lie outside [0, 1]."""
        return self.unfold(self.axes.from_columns(X))

    def to_columns(
        self, Z: Float[Tensor, "*batch {self.m}"]
    ) -> Float[Tensor, "*batch {self.space.d}"]:
        """Return the columns: the inverse of :meth:`from_columns`."""
        return self.axes.to_columns(self.fold(Z))

    # -- the folded cube: one column per parameter

    def unfold(self, F: Float[Tensor, "*batch {self.space.d}"]) -> Float[Tensor, "*batch {self.m}"]:
        """Spread every category over one column per choice."""
        # category k of c becomes the k-th unit vector of length 1/√2 in c columns
        if not self.space.categorical_columns:
            return F
        parts = []
        for column, size in enumerate(self.sizes):
            values = F[..., column]
            if column in self.space.categorical_columns:
                choice = (values.detach() * (size - 1)).round().long()
                parts.append(torch.nn.functional.one_hot(choice, size).to(F) * APART)
            else:
                parts.append(values.unsqueeze(-1))
        return torch.cat(parts, dim=-1)

    def fold(self, Z: Float[Tensor, "*batch {self.m}"]) -> Float[Tensor, "*batch {self.space.d}"]:
        """Write every category as one number again: the inverse of :meth:`unfold`."""
        # the largest of c columns is the category k, written as k / (c - 1)
        if not self.space.categorical_columns:
            return Z
        columns = []
        for column, part in enumerate(Z.split(self.sizes, dim=-1)):
            if column in self.space.categorical_columns:
                columns.append(part.argmax(-1).to(Z) / (part.shape[-1] - 1))
            else:
                columns.append(part.squeeze(-1))
        return torch.stack(columns, dim=-1)

    def round(
        self, F: Float[Tensor, "*batch {self.space.d}"]
    ) -> Float[Tensor, "*batch {self.space.d}"]:
        """Move points of the folded cube to the nearest points that belong to a design."""
        # to the nearest of n equally spaced values; on a log scale, to the nearest whole number
        F = F.clamp(0.0, 1.0)
        counts, log = self.space.n_values, self.space.log_columns
        even = [column for column in counts if column not in log]
        steps = torch.tensor([counts[column] - 1 for column in even]).to(F)
        rounded = F.clone()
        rounded[..., even] = (F[..., even] * steps).round() / steps
        uneven = [column for column in counts if column in log]
        if uneven:
            X = self.axes.to_columns(F)
            X[..., uneven] = X[..., uneven].round()
            rounded[..., uneven] = self.axes.from_columns(X)[..., uneven]
        return rounded

    def values(self, column: int) -> list[float]:
        """Return all values that a column with finitely many can take, in the folded cube."""
        n = self.space.n_values[column]
        if column not in self.space.log_columns:
            return [k / (n - 1) for k in range(n)]
        low, high = (end[column] for end in self.space.bounds)
        return [math.log(v / low) / math.log(high / low) for v in range(int(low), int(high) + 1)]


class Section:
    """The designs that a search chooses from, inside the unit cube that models see.

    The *whole* cube has columns for all that an executed input has. A search moves in the folded
    cube of the *free* parameters alone: what is given is held, and so is the environment, at its
    typical value or at what is given of it. If nothing is held, the two cubes are the same.

    Z (n m) are points of the whole cube, F (n d) of the folded cube of the free parameters.

    >>> section = Section(Space({"speed": (50, 200), "tool": ["A", "B"]}), {"tool": "B"})
    >>> Z = section.unfold(torch.tensor([[0.2]], dtype=torch.float64))
    >>> Z
    tensor([[0.2000, 0.0000, 0.7071]], dtype=torch.float64)
    >>> section.to_designs(Z)
    [{'speed': 80.0, 'tool': 'B'}]
    """

    def __init__(self, designs: Space, given: Mapping[str, Any] | None = None) -> None:
        """Hold what is given; see ``Space.checked_given``."""
        self.given = given = dict(given or {})
        self.designs = designs
        """The space of all designs."""
        self.whole = Cube(designs.whole)
        self.held = {name: value for name, value in given.items() if name in designs.names}
        """The parameters of a design that are given."""
        self.known = {n: value for n, value in given.items() if n in designs.environment}
        """What is given of the environment."""
        typical = {name: around.typical for name, around in designs.environment.items()}
        self._environment = [*(typical | self.known).values()]
        self.space = designs.without(self.held)
        """The free parameters."""
        self.free = Cube(self.space)

    @property
    def m(self) -> int:
        """Number of columns of the whole cube."""
        return self.whole.m

    @property
    def axes(self) -> Axes:
        """How the free parameters are scaled."""
        return self.free.axes

    # -- designs <-> columns <-> whole cube

    def columns(
        self, designs: Iterable[Any], allow_outside: bool = False
    ) -> Float64[Tensor, "n {self.whole.space.d}"]:
        """Return the columns of designs, with those of the environment."""
        rows = self.designs.to_columns(designs, allow_outside)
        table = [[*row, *self._environment] for row in rows]
        return torch.tensor(table, dtype=torch.float64).reshape(-1, self.whole.space.d)

    def to_designs(self, Z: Float[Tensor, "n {self.m}"]) -> list[Design]:
        """Translate points of the whole cube into designs."""
        return self.designs.to_designs(self.whole.to_columns(Z)[:, : self.designs.d])

    def allows(self, design: Mapping[str, Any]) -> bool:
        """Say whether a design has what is given."""
        return all(design[name] == value for name, value in self.held.items())

    # -- free parameters <-> whole cube

    @cached_property
    def _place(self) -> list[int]:
        """Columns of the whole cube that belong to free parameters."""
        starts = [self.designs.names.index(name) for name in self.space.names]
        sizes = zip(starts, self.free.sizes, strict=True)
        return [self.whole.position(c) + i for c, size in sizes for i in range(size)]

    @cached_property
    def _held(self) -> Float64[Tensor, " {self.m}"]:
        """A point of the whole cube with everything that is held in its place."""
        low = [p.range[0] for p in self.designs.parameters.values()]
        for name, value in self.held.items():
            column = self.designs.names.index(name)
            low[column] = self.designs.parameters[name].encode(value)
        row = torch.tensor([*low, *self._environment], dtype=torch.float64)
        return self.whole.from_columns(row)

    def unfold(self, F: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch {self.m}"]:
        """Return points of the whole cube, with what is held in its place."""
        Z = self.free.unfold(F)
        if len(self._place) == self.m:
            return Z
        place = torch.tensor(self._place)
        return self._held.to(Z).expand(*Z.shape[:-1], -1).index_copy(-1, place, Z)

    def fold(self, Z: Float[Tensor, "*batch {self.m}"]) -> Float[Tensor, "*batch d"]:
        """Return the free parameters of points: the inverse of :meth:`unfold`."""
        return self.free.fold(Z if len(self._place) == self.m else Z[..., self._place])

    def folded(self, design: Mapping[str, Any]) -> Float[Tensor, "1 d"]:
        """Return the free parameters of one design, inside the bounds or not."""
        row = self.designs.to_columns([design], allow_outside=True)[0]
        free = [row[self.designs.names.index(name)] for name in self.space.names]
        return self.axes.from_columns(torch.tensor([free], dtype=torch.float64))

    def round(self, F: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Move points to the nearest ones that belong to a design."""
        return self.free.round(F)

    def values(self, column: int) -> list[float]:
        """Return all values that a free parameter with finitely many can take, folded."""
        return self.free.values(column)
