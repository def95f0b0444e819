"""What Gaussian base kernels see of two independent deviations: functions of a difference."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.blocks import Block, aligned, difference, to_atoms
from airbo.embeddings.compression import gauss_rule
from airbo.embeddings.tables import Table

N_NODES = 48
"""Nodes that stand for the difference of two deviations on a line."""
RESOLVED = 2.4
"""Range of a difference, in widths of the domain, up to which so many nodes do."""
SPACING = 1 / 1024
"""Of the tables, in model coordinates."""
REACH = 1.25
"""How far tables go, in widths of the domain; what lies beyond is worked out."""


@dataclass(frozen=True)
class Mixture:
    r"""The mean of Gaussian kernels over a weighted sum of Gaussians.

    .. math:: g_\lambda(t) = \sum_j w_j \prod_c (1 + \lambda v_{jc})^{-1/2}
              \exp\left(-\tfrac12 \frac{\lambda (t + s_j)_c^2}{1 + \lambda v_{jc}}\right)

    in the axes of each component.
    """

    columns: tuple[int, ...]
    precisions: Float[Tensor, " q"]
    weights: Float[Tensor, " j"]
    shifts: Float[Tensor, "j b"]
    variances: Float[Tensor, "j b"]
    axes: Float[Tensor, "j b b"] | None = None
    """Directions in which each component varies independently; None: the coordinate axes."""

    @classmethod
    def of(cls, block: Block, precisions: Float[Tensor, " q"]) -> "Mixture":
        """Take the deviation from a block of one design."""
        weights, shifts, spread = _distinct(block)
        if spread.dim() == 2:
            return cls(block.columns, precisions, weights, shifts, spread)
        variances, axes = torch.linalg.eigh(spread)
        return cls(block.columns, precisions, weights, shifts, variances.clamp_min(0), axes)

    @property
    def is_exact(self) -> bool:
        """Whether both designs are hit exactly."""
        return len(self.weights) == 1 and not bool(self.shifts.any() or self.variances.any())

    @property
    def fingerprint(self) -> bytes:
        """The same for mixtures that differ in their columns only."""
        numbers = torch.cat([self.weights, self.shifts.flatten(), self.variances.flatten()])
        return (numbers * 1e12).round().numpy().tobytes()

    @property
    def size(self) -> int:
        """Numbers that an evaluation holds at a time, per difference."""
        return 2 * len(self.precisions) + len(self.columns)

    def at(self, precisions: Float[Tensor, " q"]) -> "Mixture":
        """Return the same for other base kernels."""
        return replace(self, precisions=precisions)

    def __call__(self, t: Float[Tensor, "*pairs b"]) -> Float[Tensor, "*pairs q"]:
        """Return the mean for every precision."""
        total: Tensor | None = None
        for j, shift in enumerate(self.shifts.to(t)):
            moved = t + shift if bool(shift.any()) else t
            if self.axes is not None:
                moved = moved @ self.axes[j].to(t)
            mean = self.heights[j].to(t) * (moved.square() @ self._rates[j].to(t)).exp()
            total = mean if total is None else total + mean
        assert total is not None
        return total

    @property
    def covariances(self) -> Float[Tensor, "j b b"]:
        """Of the components."""
        C = self.variances.diag_embed()
        return C if self.axes is None else self.axes @ C @ self.axes.mT

    @cached_property
    def heights(self) -> Float[Tensor, "j q"]:
        """Values at the centres of the components."""
        return self.weights.unsqueeze(-1) * self._widening.prod(-2).rsqrt()

    @property
    def curvatures(self) -> Float[Tensor, "q j b b"]:
        """Matrices of the squared distances from the centres."""
        A = (-2 * self._rates).movedim(-1, 0).diag_embed()
        return A if self.axes is None else self.axes @ A @ self.axes.mT

    @cached_property
    def _widening(self) -> Float[Tensor, "j b q"]:
        return 1 + self.variances.unsqueeze(-1) * self.precisions

    @cached_property
    def _rates(self) -> Float[Tensor, "j b q"]:
        return -0.5 * self.precisions / self._widening


@dataclass(frozen=True)
class Tabulated:
    """The same, looked up.

    For deviations on a line, the same ones in one or more columns, or for one deviation that is
    alike in all directions.
    """

    columns: tuple[int, ...]
    exact: Mixture
    """What is tabulated, for one column or for one group of them."""
    table: Table
    """One function per precision."""

    @classmethod
    def of(cls, columns: tuple[int, ...], exact: Mixture) -> "Tabulated":
        """Tabulate a mean."""
        b = len(exact.columns)
        low, high = (-REACH, REACH) if b == 1 else (0.0, REACH * math.sqrt(b))
        grid = torch.linspace(low, high, round((high - low) / SPACING) + 1, dtype=torch.float64)
        t = torch.stack([grid, *[torch.zeros_like(grid)] * (b - 1)], dim=-1)
        return cls(columns, exact, Table.of(low, high, exact(t).numpy()))

    @property
    def precisions(self) -> Float[Tensor, " q"]:
        """Of the base kernels."""
        return self.exact.precisions

    @property
    def is_exact(self) -> bool:
        """Whether both designs are hit exactly."""
        return self.exact.is_exact

    @property
    def size(self) -> int:
        """Numbers that an evaluation holds at a time, per difference: the splines, above all."""
        return 3 * len(self.precisions) * (len(self.columns) // len(self.exact.columns))

    def at(self, precisions: Float[Tensor, " q"]) -> "Tabulated":
        """Return the same for other base kernels."""
        if torch.equal(precisions, self.precisions):
            return self
        return Tabulated.of(self.columns, self.exact.at(precisions))

    def __call__(self, t: Float[Tensor, "*pairs b"]) -> Float[Tensor, "*pairs q"]:
        """Look up what is on the grid and work out the rest."""
        return self._found(t, self.table, self.exact)

    @property
    def is_one_function(self) -> bool:
        """Whether there is one table for all columns, not one and the same for each."""
        return self.columns == self.exact.columns

    def summed(self, weights: Float[Tensor, " q"]) -> Callable[[Tensor], Tensor]:
        """Return the weighted sum over all precisions, as a function that costs as much as one."""
        table = self.table.summed(weights)
        return lambda t: self._found(
            t, table, lambda far: (self.exact(far) @ weights).unsqueeze(-1)
        ).squeeze(-1)

    def _found(self, t: Tensor, table: Table, exact: Callable[[Tensor], Tensor]) -> Tensor:
        t = t.unflatten(-1, (-1, len(self.exact.columns)))  # (*pairs, groups, b)
        # the table is a function of the difference, or of its length
        r = t.squeeze(-1) if t.shape[-1] == 1 else (t.square().sum(-1) + 1e-30).sqrt()
        values = table(r)
        outside = table.outside(r)
        if bool(outside.any()):
            values = values.masked_scatter(outside.unsqueeze(-1), exact(t[outside]))
        first, *others = values.unbind(-2)
        return reduce(torch.mul, others, first)


Factor = Mixture | Tabulated


def factors(
    p: Sequence[list[Block]],
    q: Sequence[list[Block]],
    precisions: Float[Tensor, " q"],
) -> list[tuple[Factor, Mixture]]:
    """Write ⟨ψ_P, ψ_Q⟩ as a product over groups of columns, for each precision.

    Args:
        p: The deviation under P, coarse and fine; both over the same columns.
        q: The same under Q.
        precisions: Of the base kernels.

    Returns:
        Factors, each with the finest that is known of one of its groups of columns.
    """
    found: list[tuple[Factor, Mixture]] = []
    plain: list[Mixture] = []
    lines: dict[bytes, list[Mixture]] = {}
    coarse, fine = (aligned([p[i], q[i]]) for i in (0, 1))
    alone = len(coarse) == 1
    for some, many in zip(coarse, fine, strict=True):
        b = len(some[0].columns)
        if b == 1 and (alone or max(block.weights.shape[-1] for block in some) > 1):
            line = Mixture.of(_on_a_line(*many), precisions)
            lines.setdefault(line.fingerprint, []).append(line)
        elif many[0].isotropic and many[1].isotropic:
            circle = Mixture.of(difference(*many), precisions)
            found.append((Tabulated.of(circle.columns, circle), circle))
        else:
            mixture = Mixture.of(difference(*some), precisions)
            if len(mixture.weights) == 1 and mixture.axes is None:
                plain.append(mixture)
            else:
                found.append((mixture, Mixture.of(difference(*many), precisions)))
    for line, *others in lines.values():
        columns = tuple(c for same in (line, *others) for c in same.columns)
        found.append((Tabulated.of(columns, line), line))
    if plain:
        columns = tuple(c for m in plain for c in m.columns)
        shifts, variances = (
            torch.cat([getattr(m, name) for m in plain], dim=-1) for name in ("shifts", "variances")
        )
        one = Mixture(columns, precisions, plain[0].weights, shifts, variances)
        found.append((one, one))
    return found


def _on_a_line(p: Block, q: Block) -> Block:
    """Return the difference of two deviations on a line, with few components."""
    if p.weights.shape[-1] * q.weights.shape[-1] > N_NODES:
        p, q = (to_atoms(block, N_NODES) for block in (p, q))
    both = difference(p, q)
    if both.spread is not None or bool(both.means.max() - both.means.min() > RESOLVED):
        return both  # too wide for a rule of its own, which would not be positive semi-definite
    values, weights = (v.flatten().cpu().numpy() for v in (both.means, both.weights))
    nodes, weights = gauss_rule(values, N_NODES, weights)
    means, heights = (torch.from_numpy(np.asarray(v)) for v in (nodes, weights))
    return Block(p.columns, heights.unsqueeze(0), means[None, :, None])


def _distinct(block: Block) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights, means and spreads of one design, joining components that coincide."""
    block = block.of_kind(max(1, block.kind))
    assert block.spread is not None
    means, spread = block.means.flatten(0, -2), block.spread.flatten(0, -1 - block.kind)
    table = torch.cat([means, spread.flatten(1)], dim=-1)
    keys, which = torch.unique((table * 1e12).round(), dim=0, return_inverse=True)
    weights = table.new_zeros(len(keys)).index_add(0, which, block.weights.flatten())
    first = table.new_zeros(len(keys), table.shape[-1]).index_copy(0, which, table)
    b = means.shape[-1]
    return weights, first[:, :b], first[:, b:].unflatten(-1, spread.shape[1:])
