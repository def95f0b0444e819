"""Sums of Gaussians over blocks of columns, and how they are put together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor


@dataclass(frozen=True)
class Block:
    r"""A weighted sum of Gaussians over some columns of the executed input.

    .. math:: \sum_j w_j \, \mathcal N(m_j, C_j)

    """

    columns: tuple[int, ...]
    weights: Float[Tensor, "*batch n j"]
    means: Float[Tensor, "*batch n j b"]
    spread: Float[Tensor, "..."] | None = None
    """Covariances; their diagonals where there is nothing else; None where all are 0: atoms."""
    isotropic: bool = False
    """Whether the deviation from the design looks the same in all directions."""

    @property
    def kind(self) -> int:
        """0 for atoms, 1 for axis-parallel Gaussians, 2 for Gaussians of any direction."""
        return 0 if self.spread is None else self.spread.dim() - self.weights.dim()

    def of_kind(self, kind: int) -> "Block":
        """Write the same sum as a more general kind."""
        spread = torch.zeros_like(self.means) if self.spread is None else self.spread
        if kind == 2 and self.kind < 2:
            spread = spread.diag_embed()
        return replace(self, spread=spread if kind else None)


def in_unit_cube(
    blocks: list[Block], low: Float[Tensor, " d"], width: Float[Tensor, " d"]
) -> list[Block]:
    """Scale blocks in user units to model coordinates."""
    scaled = []
    for block in blocks:
        start, range_ = (v[list(block.columns)] for v in (low, width))
        areas = range_.square() if block.kind == 1 else range_.outer(range_)
        spread = None if block.spread is None else block.spread / areas
        isotropic = block.isotropic and bool((range_ == range_[0]).all())
        means = (block.means - start) / range_
        scaled.append(replace(block, means=means, spread=spread, isotropic=isotropic))
    return scaled


def choose(choice: Int64[Tensor, "*batch n"], options: Sequence[list[Block]]) -> list[Block]:
    """Take the blocks of option ``choice[i]`` for design ``i``, on a common set of columns."""
    if len(options) == 1:
        return options[0]
    chosen = []
    for alternatives in aligned(options):
        n = max(a.weights.shape[-1] for a in alternatives)
        kind = max(a.kind for a in alternatives)
        result, *others = (_pad(a, n).of_kind(kind) for a in alternatives)
        for number, other in enumerate(others, start=1):
            result = _where(choice == number, other, result)
        chosen.append(result)
    return chosen


def aligned(options: Sequence[list[Block]]) -> list[list[Block]]:
    """Write all options on a common set of columns; return the alternatives for each of them."""
    if len({tuple(block.columns for block in option) for option in options}) > 1:
        options = [[part for block in option for part in by_column(block)] for option in options]
    partition = _coarsest([block.columns for option in options for block in option])
    return [[_merge(option, columns) for option in options] for columns in partition]


def difference(p: Block, q: Block) -> Block:
    """Return the distribution of u - v for independent u ~ p, v ~ q, over the same columns."""
    kind = max(p.kind, q.kind)
    p, q = p.of_kind(kind), q.of_kind(kind)

    def pairs(s: Tensor, t: Tensor, n_event: int) -> Tensor:
        both = s.unsqueeze(-1 - n_event) + t.unsqueeze(-2 - n_event)
        return both.flatten(-2 - n_event, -1 - n_event)

    spread = None
    if p.spread is not None and q.spread is not None:
        spread = pairs(p.spread, q.spread, kind)
    return Block(
        p.columns,
        (p.weights.unsqueeze(-1) * q.weights.unsqueeze(-2)).flatten(-2),
        pairs(p.means, -q.means, 1),
        spread,
        p.isotropic and q.isotropic,
    )


def to_atoms(block: Block, n_atoms: int) -> Block:
    """Replace every Gaussian on a line by the nodes of its Gauss-Hermite rule."""
    if block.spread is None:
        return block
    n = max(3, n_nodes(n_atoms) // block.weights.shape[-1])
    nodes, weights = (block.means.new_tensor(v) for v in np.polynomial.hermite_e.hermegauss(n))
    std = block.spread.flatten(-block.kind).clamp_min(1e-24).sqrt()  # (..., j, 1)
    means = (block.means + std * nodes).flatten(-2).unsqueeze(-1)
    weights = (block.weights.unsqueeze(-1) * weights / weights.sum()).flatten(-2)
    return Block(block.columns, weights, means)


def n_nodes(n_atoms: int) -> int:
    """Return how many nodes of a Gauss rule resolve as much as ``n_atoms`` cells."""
    return math.ceil(2 * n_atoms / 3)


def by_column(block: Block) -> list[Block]:
    """Split a point, or one axis-parallel Gaussian: its columns are independent."""
    if block.weights.shape[-1] > 1 or block.kind == 2 or block.isotropic:
        return [block]
    return [
        replace(
            block,
            columns=(c,),
            means=block.means[..., [i]],
            spread=None if block.spread is None else block.spread[..., [i]],
        )
        for i, c in enumerate(block.columns)
    ]


def _coarsest(parts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Join all column sets that overlap."""
    groups: list[set[int]] = []
    for part in map(set, parts):
        touching = [g for g in groups if g & part]
        groups = [g for g in groups if not g & part] + [part.union(*touching)]
    return sorted(tuple(sorted(g)) for g in groups)


def _merge(blocks: list[Block], columns: tuple[int, ...]) -> Block:
    """Join the blocks within ``columns`` into one: the product of independent Gaussian sums."""
    parts = [b for b in blocks if set(b.columns) <= set(columns)]
    if [b.columns for b in parts] == [columns]:
        return parts[0]
    joined = reduce(_times, parts)
    order = [joined.columns.index(c) for c in columns]
    spread = joined.spread
    if spread is not None:
        spread = spread[..., order]
        spread = spread[..., order, :] if joined.kind == 2 else spread
    return replace(joined, columns=columns, means=joined.means[..., order], spread=spread)


def _times(a: Block, b: Block) -> Block:
    """Combine every component of one block with every component of the other."""
    n, m = a.weights.shape[-1], b.weights.shape[-1]
    i, j = (
        index.flatten() for index in torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij")
    )
    kind = max(a.kind, b.kind)
    a, b = a.of_kind(kind), b.of_kind(kind)
    spread = None
    if a.spread is not None and b.spread is not None:
        s, t = (v.movedim(-1 - kind, 0) for v in (a.spread, b.spread))
        joined = torch.cat([s[i], t[j]], dim=-1) if kind == 1 else _block_diagonal(s[i], t[j])
        spread = joined.movedim(0, -1 - kind)
    return Block(
        a.columns + b.columns,
        a.weights[..., i] * b.weights[..., j],
        torch.cat([a.means[..., i, :], b.means[..., j, :]], dim=-1),
        spread,
    )


def _block_diagonal(s: Float[Tensor, "*n a a"], t: Float[Tensor, "*n b b"]) -> Tensor:
    a, b = s.shape[-1], t.shape[-1]
    return F.pad(s, (0, b, 0, b)) + F.pad(t, (a, 0, a, 0))


def _pad(block: Block, n: int) -> Block:
    """Add components of weight 0 (copies of the first, so that gradients stay finite)."""
    missing = n - block.weights.shape[-1]
    if missing == 0:
        return block

    def repeat(v: Tensor, dim: int) -> Tensor:
        first = v.narrow(dim, 0, 1)
        return torch.cat([v, *[first] * missing], dim=dim)

    spread = None if block.spread is None else repeat(block.spread, -1 - block.kind)
    weights = F.pad(block.weights, (0, missing))
    return replace(block, weights=weights, means=repeat(block.means, -2), spread=spread)


def _where(mask: Tensor, a: Block, b: Block) -> Block:
    def pick(s: Tensor, t: Tensor) -> Tensor:
        return torch.where(mask.reshape(*mask.shape, *[1] * (s.dim() - mask.dim())), s, t)

    spread = None
    if a.spread is not None and b.spread is not None:
        spread = pick(a.spread, b.spread)
    return replace(
        a, weights=pick(a.weights, b.weights), means=pick(a.means, b.means), spread=spread
    )
