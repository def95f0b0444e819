"""P_x in the unit cube: what a model sees of an uncertainty in the user's units."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from airbo.space import Space
from airbo.space.cube import Axes, Cube
from airbo.uncertainty import (
    Clipped,
    Exact,
    InputUncertainty,
    Piecewise,
    Product,
    Scaled,
)
from airbo.uncertainty.columns import some_columns
from airbo.uncertainty.parameters import Numbers
from airbo.uncertainty.scaled import stretch
from airbo.uncertainty.support import is_bounded


@lru_cache(maxsize=256)
def in_cube(space: Space, uncertainty: InputUncertainty) -> InputUncertainty:
    """Translate an uncertainty over the columns of a space into the unit cube.

    Blocks that are independent of each other are translated one by one. A block whose columns are
    all linear keeps its kind, with rescaled numbers. A block with a logarithmic column becomes
    ``InCube``. Categories, and columns that are set exactly, stay exact in the cube.
    """
    cube = Cube(space)
    blocks, columns = [], []
    for block, own in blocks_with_columns(uncertainty, range(space.d)):
        for part, some in _straight_and_bent(block, own, cube.axes):
            blocks.append(rescaled(part, cube.axes.of(some)))
            columns.append(tuple(cube.position(c) for c in some))
    rest = tuple(sorted(set(range(cube.m)).difference(*columns)))
    if not blocks:
        return Exact()
    if rest:
        return Product([*blocks, Exact()], [*columns, rest])
    return blocks[0] if columns == [tuple(range(cube.m))] else Product(blocks, columns)


@lru_cache(maxsize=256)
def in_axes(uncertainty: InputUncertainty, axes: Axes) -> InputUncertainty:
    """Translate an uncertainty over columns into the unit cube that axes span."""
    unit = (0.0,) * len(axes.names), (1.0,) * len(axes.names)
    if (axes.low, axes.high) == unit and axes.is_linear:
        return uncertainty
    parts = list(blocks_with_columns(uncertainty, range(len(axes.names))))
    columns = [own for _, own in parts]
    blocks = [rescaled(block, axes.of(own)) for block, own in parts]
    rest = tuple(sorted(set(range(len(axes.names))).difference(*columns)))
    if not blocks:
        return Exact()
    return Product([*blocks, Exact()], [*columns, rest]) if rest else Product(blocks, columns)


def blocks_with_columns(
    uncertainty: InputUncertainty, columns: Sequence[int]
) -> Iterator[tuple[InputUncertainty, tuple[int, ...]]]:
    """Yield the independent blocks of an uncertainty with their columns; leave out exact ones."""
    if isinstance(uncertainty, Product):
        layout = uncertainty.layout(len(columns))
        for block, own in zip(uncertainty.blocks, layout, strict=True):
            yield from blocks_with_columns(block, [columns[i] for i in own])
    elif not isinstance(uncertainty, Exact):
        yield uncertainty, tuple(columns)


def _straight_and_bent(
    block: InputUncertainty, columns: tuple[int, ...], axes: Axes
) -> list[tuple[InputUncertainty, tuple[int, ...]]]:
    """Split a block of independent columns: the linear ones together, each logarithmic one alone.

    A block whose columns depend on each other stays whole.
    """
    log = [i for i, c in enumerate(columns) if axes.log[c]]
    linear = [i for i, c in enumerate(columns) if not axes.log[c]]
    groups = [group for group in (linear, *([i] for i in log)) if group]
    parts = [some_columns(block, group) for group in groups] if len(groups) > 1 else [None]
    if None in parts:
        return [(block, columns)]
    owned = [tuple(columns[i] for i in group) for group in groups]
    return [(part, own) for part, own in zip(parts, owned, strict=True) if part is not None]


@dataclass(frozen=True, eq=False, repr=False)
class InCube(InputUncertainty):
    """An uncertainty in user units, seen in the unit cube: z' = cube(x'), x' ~ P_x, x = cube⁻¹(z).

    It is used where no simpler form exists in the cube. A constant shift of x is not a constant
    shift of log x, and an uncertainty that is a function of the design needs it in user units.
    """

    uncertainty: InputUncertainty
    """P_x in user units."""

    axes: Axes
    """How its columns are scaled."""

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.axes.names)

    @property
    def is_additive(self) -> bool:
        """Whether z' = z + δ: x' = x + δ on linear scales, log x' = log x + log ε on log scales."""
        if all(self.axes.log):
            return self.uncertainty.is_multiplicative
        return self.axes.is_linear and self.uncertainty.is_additive

    @property
    def independent_columns(self) -> bool:
        """Whether columns are independent, which scaling does not change."""
        return self.uncertainty.independent_columns

    def n_base(self, d: int) -> int:
        """Return the number of base draws, which is the same as in user units."""
        return self.uncertainty.n_base(d)

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        return self.axes.from_columns(self.uncertainty.perturb(self.axes.to_columns(X), base))

    def _mean(self, X: Tensor) -> Tensor:
        if not self.axes.is_linear:
            return super()._mean(X)
        return self.axes.from_columns(self.uncertainty.mean(self.axes.to_columns(X)))

    def _covariance(self, X: Tensor) -> Tensor:
        if not self.axes.is_linear:
            return super()._covariance(X)
        # Cov z' = W⁻¹ Cov x' W⁻¹ with W = diag(widths)
        width = X.new_tensor(self.axes.widths)
        return self.uncertainty.covariance(self.axes.to_columns(X)) / width.outer(width)


@is_bounded.register
def _(u: InCube, d: int) -> bool:
    return is_bounded(u.uncertainty, d)


def rescaled(uncertainty: InputUncertainty, axes: Axes) -> InputUncertainty:
    """Translate one block into the unit cube; it keeps its kind where that is possible."""
    varies = any(isinstance(value, Tensor) for value in _values(uncertainty).values())
    if varies or not axes.is_linear:
        return InCube(uncertainty, axes)
    return _rescaled(uncertainty, axes)


@singledispatch
def _rescaled(u: InputUncertainty, axes: Axes) -> InputUncertainty:
    stretched = stretch(u, [1 / width for width in axes.widths])
    return InCube(u, axes) if stretched is None else stretched


@_rescaled.register
def _(u: Scaled, axes: Axes) -> InputUncertainty:
    return replace(u, uncertainty=rescaled(u.uncertainty, axes))


@_rescaled.register
def _(u: Clipped, axes: Axes) -> InputUncertainty:
    low, high = (None if limit is None else _placed(limit, axes) for limit in (u.low, u.high))
    return Clipped(rescaled(u.uncertainty, axes), low, high)


@_rescaled.register
def _(u: Piecewise, axes: Axes) -> InputUncertainty:
    edges = tuple((edge - axes.low[u.column]) / axes.widths[u.column] for edge in u.edges)
    return Piecewise(edges, [rescaled(piece, axes) for piece in u.pieces], u.column)


@some_columns.register
def _(u: InCube, columns: Sequence[int]) -> InputUncertainty | None:
    inside = some_columns(u.uncertainty, columns)
    return None if inside is None else InCube(inside, u.axes.of(columns))


def _values(u: Any) -> dict[str, Any]:
    return {f.name: getattr(u, f.name) for f in fields(u)} if is_dataclass(u) else {}


def _placed(p: Numbers, axes: Axes) -> Numbers:
    return ((np.asarray(p) - np.asarray(axes.low)) / np.asarray(axes.widths)).tolist()
