"""Independent blocks of columns."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty


@dataclass(frozen=True, eq=False, repr=False)
class Product(InputUncertainty):
    """Blocks of columns, each with its own uncertainty, independent of the others.

    Blocks use consecutive columns of the base draws; if all of them have independent columns,
    column j of the design uses base column j instead, so that the product has, too.
    """

    blocks: Sequence[InputUncertainty]
    """The uncertainties."""

    columns: Sequence[Sequence[int]] | None = None
    """The columns of each block. By default blocks stand side by side: a block that acts on any
    number of columns takes one, or all that remain if there is only one such block."""

    def __post_init__(self) -> None:
        """Refuse columns that are missing, repeated or too many for their block."""
        object.__setattr__(self, "blocks", tuple(self.blocks))
        if not self.blocks:
            raise ValueError("Product needs at least one block.")
        for block in self.blocks:
            if not isinstance(block, InputUncertainty):
                raise TypeError(f"Every block of a Product must be an uncertainty, got {block!r}.")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(map(_whole_numbers, self.columns)))
            self._check_columns(self.columns)

    def _check_columns(self, columns: Sequence[Sequence[int]]) -> None:
        if len(columns) != len(self.blocks):
            raise ValueError(f"{len(self.blocks)} blocks need as many columns, got {len(columns)}.")
        used = sorted(j for block in columns for j in block)
        if used != list(range(len(used))) or not all(columns):
            raise ValueError(
                f"columns must hold each of 0, 1, 2, ... exactly once, got {list(columns)}."
            )
        for block, own in zip(self.blocks, columns, strict=True):
            block.check_dim(len(own))

    @property
    def dim(self) -> int | None:
        """Number of columns of all blocks; None if one block takes all that remain."""
        if self.columns is not None:
            return sum(map(len, self.columns))
        sizes = [block.dim for block in self.blocks]
        return None if sizes.count(None) == 1 else sum(size or 1 for size in sizes)

    @property
    def is_additive(self) -> bool:
        """True if all blocks are."""
        return all(block.is_additive for block in self.blocks)

    @property
    def independent_columns(self) -> bool:
        """True if it is so for all blocks."""
        return all(block.independent_columns for block in self.blocks)

    def layout(self, d: int) -> tuple[tuple[int, ...], ...]:
        """Return the columns of each block, for designs with ``d`` columns."""
        if self.columns is not None:
            return tuple(map(tuple, self.columns))
        sizes = [block.dim for block in self.blocks]
        remain = d - sum(size for size in sizes if size is not None)
        free = remain if sizes.count(None) == 1 else 1
        ends = list(accumulate(free if size is None else size for size in sizes))
        return tuple(tuple(range(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    def check_dim(self, d: int) -> None:
        """Refuse designs whose columns cannot be shared out among the blocks."""
        super().check_dim(d)
        for block, own in zip(self.blocks, self.layout(d), strict=True):
            if not own:
                raise ValueError(f"Product leaves no column of {d} for its block {block}.")
            block.check_dim(len(own))

    def n_base(self, d: int) -> int:
        """Return the sum over the blocks, or d if all columns are independent."""
        if self.independent_columns:
            return d
        layout = self.layout(d)
        return sum(b.n_base(len(own)) for b, own in zip(self.blocks, layout, strict=True))

    def _shares(self, d: int) -> Iterator[tuple[InputUncertainty, list[int], list[int]]]:
        """Yield each block with its columns of the design and of the base draws."""
        start = 0
        for block, own in zip(self.blocks, self.layout(d), strict=True):
            n = block.n_base(len(own))
            consecutive = list(range(start, start + n))
            yield block, list(own), list(own) if self.independent_columns else consecutive
            start += n

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        parts = [
            block.perturb(X[..., own], base[:, numbers])
            for block, own, numbers in self._shares(X.shape[-1])
        ]
        return torch.cat(parts, dim=-1)[..., self._order(X.shape[-1])]

    def _mean(self, X: Tensor) -> Tensor:
        parts = [block.mean(X[..., own]) for block, own, _ in self._shares(X.shape[-1])]
        return torch.cat(parts, dim=-1)[..., self._order(X.shape[-1])]

    def _covariance(self, X: Tensor) -> Tensor:
        d = X.shape[-1]
        result = X.new_zeros(*X.shape, d)
        for block, own, _ in self._shares(d):
            rows, columns = torch.meshgrid(torch.tensor(own), torch.tensor(own), indexing="ij")
            result[..., rows, columns] = block.covariance(X[..., own])
        return result

    def _order(self, d: int) -> list[int]:
        """Return where each column of the design stands among the blocks side by side."""
        side_by_side = [j for own in self.layout(d) for j in own]
        return sorted(range(d), key=side_by_side.__getitem__)


def _whole_numbers(columns: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(operator.index(j) for j in columns)
    except TypeError as error:
        raise TypeError(f"columns must be tuples of whole numbers, got {columns!r}.") from error
