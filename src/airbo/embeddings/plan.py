"""Which way each block of P_x is computed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.reduction import Views
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.gaussians import (
    Mixture,
    Resolution,
    choose,
    coarsest,
    difference,
    gauss_rule,
    joined,
    land,
)

CELLS = 4.0
"""Error that cells may add, as a multiple of that of other ways."""
N_POINTS = 24
"""Points that stand for the difference of two deviations in one column."""
MAX_KINDS = 4
"""Number of uncertainties up to which each pair of them has its own function."""
MOST_COLUMNS = 3
"""Dependent columns up to which P_x that changes with the design may be a polynomial of it."""


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that have to be looked at together, under every kind of uncertainty."""

    columns: tuple[int, ...]
    deviations: tuple[Mixture, ...] | None
    """One per kind where all kinds are additive in these columns; None: designs bring their own."""
    blocks: tuple[InputUncertainty, ...] | None = None
    """One per kind, where P_x in these columns is a function of nothing but these columns."""
    finest: Mixture | None = None
    """The deviation under the only kind, more finely resolved, if it can be."""
    shape: tuple[int, int] = (1, 0)
    """Number of Gaussians that a design brings, and whether they are points (0), have variances (1)
    or covariances (2)."""

    @property
    def is_normal(self) -> bool:
        """Whether all kinds have one and the same normal deviation, or none, in one column."""
        if self.deviations is None or len(self.columns) > 1:
            return False
        first, *others = self.deviations
        alike = all(
            torch.equal(o.means, first.means) and torch.equal(o.variances, first.variances)
            for o in others
            if o.n_components == 1
        )
        return alike and all(d.n_components == 1 for d in self.deviations)

    @property
    def is_brought(self) -> bool:
        """Whether designs bring their own distribution along, among their features."""
        return self.deviations is None and (self.blocks is None or len(self.columns) > 1)

    @property
    def is_known_by_columns(self) -> bool:
        """Whether these columns and the kind say all, so that polynomials can say it too."""
        if self.deviations is None:
            b, kinds = len(self.columns), self.n_kinds
            return kinds > 0 and (b == 1 or (b <= MOST_COLUMNS and kinds == 1))
        return len(self.columns) == 1 or len(self.deviations) <= MAX_KINDS

    @property
    def n_kinds(self) -> int:
        """Number of uncertainties."""
        return len(self.deviations or self.blocks or ())

    @property
    def is_difference(self) -> bool:
        """Whether only the difference of two designs counts."""
        return self.deviations is not None and len(self.deviations) == 1

    @property
    def is_kindwise(self) -> bool:
        """Whether there are several kinds, so few that each pair of them has its own function."""
        return self.deviations is not None and 1 < len(self.deviations) <= MAX_KINDS

    @cached_property
    def views(self) -> Views:
        """The difference of two deviations, at several resolutions."""
        assert self.deviations is not None
        medium = difference(self.deviations[0], self.deviations[0])
        return Views.of(medium, difference(self.finest, self.finest) if self.finest else medium)

    @property
    def slack(self) -> float:
        """How much coarser than other groups this one may be: cells are no more accurate."""
        return CELLS if self.finest is not None else 1.0

    @cached_property
    def rule(self) -> Mixture:
        """The same difference in a single column, by few points."""
        assert self.deviations is not None
        whole = difference(self.deviations[0], self.deviations[0])
        if self.deviations[0].kind > 0:
            return whole
        points, weights = gauss_rule(
            whole.means.flatten().numpy(), N_POINTS, whole.weights.flatten().numpy()
        )
        means = torch.from_numpy(points).reshape(1, -1, 1)
        return Mixture(self.columns, torch.from_numpy(weights)[None], means, additive=True)

    @cached_property
    def signature(self) -> object:
        """Equal for groups that differ in nothing but their columns."""
        if self.deviations is None:
            return self.blocks
        parts = [(d.weights, d.means, d.variances) for d in self.deviations]
        return tuple(tuple(v.flatten().tolist()) for part in parts for v in part)

    @property
    def n_components(self) -> int:
        """Number of Gaussians by which a design is described, at the most."""
        return max([self.shape[0], *(d.n_components for d in self.deviations or ())])

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the weights, means and spreads that a design brings."""
        if not self.is_brought:
            return []
        (j, kind), b = self.shape, len(self.columns)
        return [(j,), (j, b), (j, *[b] * kind)][: 3 if kind else 2]

    @property
    def size(self) -> int:
        """Numbers that a design brings."""
        return sum(map(math.prod, self.shapes))

    def pack(self, landing: Mixture) -> Float[Tensor, "*batch n f"]:
        """Write what a design brings as one row of numbers."""
        parts = [landing.weights, landing.means.flatten(-2)]
        if landing.spread is not None:
            parts.append(landing.spread.flatten(-1 - landing.kind))
        return torch.cat(parts, dim=-1)

    def unpack(self, numbers: Float[Tensor, "*batch n f"]) -> Mixture:
        """Read it again."""
        parts = numbers.split([math.prod(shape) for shape in self.shapes], dim=-1)
        values = (p.unflatten(-1, s) for p, s in zip(parts, self.shapes, strict=True))
        return Mixture(self.columns, *values)


class Plan:
    r"""How :math:`\langle\psi_P, \psi_Q\rangle` is computed for a list of uncertainties.

    For a Gaussian base kernel it is a product over groups of columns:

    - *normal*: one column, exact or with the same normal deviation everywhere: a Gaussian again;
    - *waves*: one column with any other distribution, additive or not;
    - *difference*: dependent columns under one additive uncertainty;
    - *kindwise*: the same under a few of them, one function for each pair of kinds;
    - *pairs*: dependent columns under several kinds, or where P_x changes with the design.

    A group is as small as the dependences allow, so that one awkward parameter slows down no other.
    """

    def __init__(
        self, uncertainties: Sequence[InputUncertainty], d: int, resolution: Resolution
    ) -> None:
        """Divide ``d`` columns into groups."""
        self.d, self.resolution = d, resolution
        self._blocks = [u.independent_blocks(d) for u in uncertainties]
        # the middle of the cube shows what does not depend on the design
        probe = torch.full((1, d), 0.5, dtype=torch.float64)
        kinds = [self._parts(number, probe, resolution) for number in range(len(uncertainties))]
        columns = coarsest([part.columns for parts in kinds for part in parts])
        self.groups = [
            _group(own, [_within(parts, own) for parts in kinds], probe) for own in columns
        ]
        self.groups = [self._refined(self._alone(group), probe) for group in self.groups]
        self.normal = [g for g in self.groups if g.is_normal]
        self.waves = [g for g in self.groups if len(g.columns) == 1 and not g.is_normal]
        dependent = [g for g in self.groups if len(g.columns) > 1]
        self.differences = [g for g in dependent if g.is_difference]
        self.kindwise = [g for g in dependent if g.is_kindwise]
        self.pairs = [g for g in dependent if not (g.is_difference or g.is_kindwise)]
        self._brought = [g for g in self.groups if g.is_brought]

    @property
    def is_exact(self) -> bool:
        """Whether all designs are hit exactly."""
        return len(self.normal) == len(self.groups) and not any(
            bool(g.deviations[0].variances.any()) for g in self.normal if g.deviations
        )

    @property
    def brings(self) -> bool:
        """Whether designs bring distributions of their own."""
        return bool(self._brought)

    @property
    def on_a_line(self) -> bool:
        """Whether there is one column, and it is not normal."""
        return self.d == 1 and not self.normal

    @property
    def design_matters(self) -> bool:
        """Whether ‖ψ_P‖ depends on the design, and not only on the number of its uncertainty."""
        return any(g.deviations is None for g in self.groups)

    def landings(
        self, Z: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> list[Mixture]:
        """Return what designs bring, group by group."""
        if not self._brought:
            return []
        kinds = [self._parts(number, Z, self.resolution) for number in range(len(self._blocks))]
        found = []
        for group in self._brought:
            own = list(group.columns)
            options = [_joined_landing(_within(parts, group.columns), Z, own) for parts in kinds]
            found.append(choose(choice, options))
        return found

    def features(
        self, Z: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return designs, the numbers of their uncertainties, and what they bring."""
        landings = self.landings(Z, choice)
        packed = [g.pack(m) for g, m in zip(self._brought, landings, strict=True)]
        return torch.cat([Z, choice.unsqueeze(-1).to(Z), *packed], dim=-1)

    def landing(self, group: Group, f: Float[Tensor, "*batch n f"]) -> Mixture:
        """Read what designs bring for one group."""
        start = self.d + 1
        for other in self._brought:
            if other is group:
                return group.unpack(f[..., start : start + group.size])
            start += other.size
        return self.landing_of(group, f[..., list(group.columns)], f[..., self.d].long())

    def landing_of(
        self, group: Group, x: Float[Tensor, "*batch n b"], kind: Int64[Tensor, "*batch n"]
    ) -> Mixture:
        """Return where designs land, by the columns of the group alone."""
        if group.deviations is not None:
            return land(x, kind, group.deviations)
        assert group.blocks is not None
        present = kind.unique()  # candidates of a search are all of one kind
        options = []
        for number in present.tolist():
            parts = group.blocks[number].gaussians(x, self.resolution)
            landing = _joined_landing(parts, x, list(range(len(group.columns))))
            options.append(replace(landing, columns=group.columns))
        return choose(torch.searchsorted(present, kind), options)

    def _alone(self, group: Group) -> Group:
        """Note that columns are a block of their own under every kind."""
        if group.deviations is not None:
            return group
        own = [[b for b, columns in blocks if columns == group.columns] for blocks in self._blocks]
        if not all(own):
            return group
        return replace(group, blocks=tuple(found[0] for found in own))

    def _refined(self, group: Group, probe: Tensor) -> Group:
        """Look more closely at logged or sampled deviations of dependent columns."""
        if len(group.columns) == 1 or not group.is_difference:
            return group
        assert group.deviations is not None
        if group.deviations[0].n_components != self.resolution.cells:
            return group
        parts = _within(self._parts(0, probe, self.resolution.finer), group.columns)
        return replace(group, finest=joined(parts, group.columns))

    def _parts(self, number: int, Z: Tensor, resolution: Resolution) -> list[Mixture]:
        """Return the independent parts of P_x under one uncertainty."""
        return [
            Mixture(
                tuple(columns[c] for c in part.columns),
                part.weights,
                part.means,
                part.spread,
                part.additive,
            )
            for block, columns in self._blocks[number]
            for part in block.gaussians(Z[..., list(columns)], resolution)
        ]


@lru_cache(maxsize=64)
def plan_of(uncertainties: tuple[InputUncertainty, ...], d: int, resolution: Resolution) -> Plan:
    """Return the plan for some uncertainties; models that are built one after another share it."""
    return Plan(uncertainties, d, resolution)


def _within(parts: list[Mixture], columns: tuple[int, ...]) -> list[Mixture]:
    return [part for part in parts if set(part.columns) <= set(columns)]


def _joined_landing(parts: list[Mixture], Z: Tensor, columns: list[int]) -> Mixture:
    landed = [part.around(Z[..., list(part.columns)]) for part in parts]
    return joined(landed, tuple(columns))


def _group(columns: tuple[int, ...], kinds: list[list[Mixture]], probe: Tensor) -> Group:
    if all(part.additive for parts in kinds for part in parts):
        return Group(columns, tuple(joined(parts, columns) for parts in kinds))
    options = [_joined_landing(parts, probe, list(columns)) for parts in kinds]
    n, kind = max(o.n_components for o in options), max(o.kind for o in options)
    return Group(columns, None, shape=(n, kind))
