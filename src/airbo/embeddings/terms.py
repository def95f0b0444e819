"""The inner product of two embedded designs, Gaussian by Gaussian of the base kernel."""

from dataclasses import dataclass, field
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.columns import Shifted, Waves, landing_features
from airbo.embeddings.dependent import Quadratics, over_pairs_of_components
from airbo.embeddings.gaussian_sum import GaussianSum
from airbo.embeddings.logarithms import Logarithms
from airbo.embeddings.plan import Group, Plan
from airbo.uncertainty.gaussians import difference

NARROWEST_WAVE = 4e4
"""Largest precision that waves follow; what is narrower is taken for that."""
FARTHEST = 4.0
"""How far outside the unit cube a point still has a place of its own among waves, in its widths."""


@dataclass(frozen=True)
class Wavy:
    """One column with any distribution, for those Gaussians that see its shape."""

    group: Group
    seen_by: list[int]
    """Numbers of the Gaussians."""
    waves: Waves
    shifted: Shifted | None
    """Of designs by this column alone; None: by where they land."""


@dataclass(frozen=True)
class GroupFunction:
    """Dependent columns of which only the difference counts, for some of the Gaussians."""

    columns: list[int]
    seen_by: list[int]
    quadratics: Quadratics


@dataclass(frozen=True)
class Kindwise:
    """The same under several kinds of uncertainty, with a function for each pair of them."""

    columns: list[int]
    seen_by: list[int]
    functions: dict[tuple[int, int], Quadratics]


@dataclass(frozen=True)
class Looked:
    """Designs with what is worked out for each of them."""

    f: Float[Tensor, "*batch n f"]
    values: Float[Tensor, "*batch n p"] | None = None
    """Of polynomials."""
    weighed: Float[Tensor, "*batch qn p"] | None = None
    """The same with weights, for those that many are compared with."""

    waves: dict[int, Tensor] = field(default_factory=dict)
    """Features of the groups that waves describe, once they were needed."""

    def rows(self, first: int, last: int) -> "Looked":
        """Return some of the designs."""
        if first == 0 and last >= self.f.shape[-2]:
            return self
        values = None if self.values is None else self.values[..., first:last, :]
        return Looked(self.f[..., first:last, :], values)


class Terms:
    r"""For every Gaussian of the base kernel a product over groups of columns.

    .. math:: g_q(x, x') = \prod_b \iint e^{-\frac12 (u-v)^\top \Lambda_q (u-v)}
              \, dP_b(u) \, dP'_b(v)

    Precisions may carry gradients, for a fit, or be constants, for predictions.
    """

    def __init__(
        self,
        plan: Plan,
        base: GaussianSum,
        seen: Float[Tensor, "2 d"],
        landed: Float[Tensor, "2 d"],
        tolerances: Float[Tensor, " q"] | None = None,
        without_waves: bool = False,
    ) -> None:
        """Prepare for designs, and executed inputs, within certain limits.

        Args:
            plan: The groups of columns.
            base: The base kernel.
            seen: Lowest and highest design in every column.
            landed: Lowest and highest executed input in every column.
            tolerances: Where the precisions stay: by how much each term may change so that it
                takes less time. It makes steps in the precisions, so it is not for fits of these.
            without_waves: Leave out the columns that only waves describe.
        """
        self.plan, self.precisions = plan, base.by_column(plan.d)
        self.reach = (landed[1] - landed[0]).tolist()
        self.logs: Logarithms | None = None
        left = {n: [*range(len(self.precisions))] for n in range(len(plan.groups))}
        if tolerances is not None:
            each = tolerances / max(1, len(plan.groups) - len(plan.normal))
            self.logs = Logarithms(plan, self.precisions, seen, each)
            left |= self.logs.left
        numbered = [(group, left[n]) for n, group in enumerate(plan.groups) if left[n]]
        self.wavy = [
            self._wavy(group, numbers)
            for group, numbers in numbered
            if group in plan.waves and not without_waves
        ]
        self.differences = [
            self._function(group, numbers, each if tolerances is not None else None)
            for group, numbers in numbered
            if group in plan.differences
        ]
        self.kindwise = [
            self._kindwise(group, numbers) for group, numbers in numbered if group in plan.kindwise
        ]
        self.pairs = [(group, numbers) for group, numbers in numbered if group in plan.pairs]
        self._normals = self._normal_columns()
        self._last: tuple[Tensor, Looked] | None = None

    # -- preparing

    def _wavy(self, group: Group, numbers: list[int]) -> Wavy:
        c = group.columns[0]
        waves = Waves.of(self.precisions[numbers, c].clamp_max(NARROWEST_WAVE), self.reach[c])
        shifted = Shifted.of(group.deviations, waves) if group.deviations else None
        return Wavy(group, numbers, waves, shifted)

    def _function(
        self, group: Group, numbers: list[int], tolerances: Tensor | None
    ) -> GroupFunction:
        columns = list(group.columns)
        precisions = self.precisions[numbers][:, columns]
        if tolerances is None:
            views = [group.views.for_fits(precisions.requires_grad)] * len(precisions)
        else:
            views = group.views.enough(precisions, tolerances[numbers].reciprocal(), group.slack)
        return GroupFunction(columns, numbers, Quadratics.of(views, precisions))

    def _kindwise(self, group: Group, numbers: list[int]) -> Kindwise:
        """Prepare one function of the difference for each pair of kinds."""
        assert group.deviations is not None
        precisions = self.precisions[numbers][:, list(group.columns)]
        functions = {
            (a, b): Quadratics.of([difference(p, q)] * len(precisions), precisions)
            for a, p in enumerate(group.deviations)
            for b, q in enumerate(group.deviations)
        }
        return Kindwise(list(group.columns), numbers, functions)

    def _normal_columns(self) -> tuple[list[int], Tensor, Tensor]:
        """Return columns, their precisions with normal deviations, and the heights of all terms."""
        columns = [g.columns[0] for g in self.plan.normal]
        precisions = self.precisions[:, columns]
        found = [2 * g.deviations[0].variances[0, 0, 0] for g in self.plan.normal if g.deviations]
        variances = torch.stack(found).to(precisions) if found else precisions[:0].sum(0)
        # E exp(-½ λ (t + δ)²) for δ ~ N(0, v)
        widening = 1 + precisions * variances
        return columns, precisions / widening, widening.prod(-1).rsqrt()

    # -- evaluating

    @property
    def size(self) -> int:
        """Numbers that are held at a time, per pair of designs."""
        n = len(self.precisions)
        functions = [f.quadratics for f in self.differences]
        functions += [q for by in self.kindwise for q in by.functions.values()]
        quadratics = sum(sum(q.coefficients.shape) for q in functions)
        pairs = sum(g.n_components**2 * len(left) * len(g.columns) ** 2 for g, left in self.pairs)
        return 2 * n + quadratics + pairs + (0 if self.logs else 2 * len(self._normals[0]))

    def look(self, f: Float[Tensor, "*batch n f"], weighed: bool = False) -> "Looked":
        """Work out what concerns designs one by one.

        Args:
            f: The designs.
            weighed: Whether others will be compared with these.
        """
        if self.logs is None:
            return Looked(f)
        values = self.logs.values(f)
        return Looked(f, values, self.logs.weighed(values) if weighed else None)

    def look_again(self, f: Float[Tensor, "*batch n f"]) -> "Looked":
        """Look at designs that others are compared with, unless they are those of last time."""
        if (
            self._last is None
            or self._last[0].shape != f.shape
            or not torch.equal(self._last[0], f)
        ):
            self._last = (f, self.look(f, weighed=True))
        return self._last[1]

    def __call__(self, one: "Looked", two: "Looked", diag: bool) -> Float[Tensor, "q ..."]:
        """Compare all pairs of designs, or matching ones, under every Gaussian."""
        f1, f2 = one.f, two.f
        terms = self._first_terms(one, two, diag)
        if not (self.differences or self.kindwise or self.pairs or self.wavy):
            return terms
        each = list(terms)
        for group, numbers in self.pairs:
            p, q = self.plan.landing(group, f1), self.plan.landing(group, f2)
            own = self.precisions[numbers][:, list(group.columns)]
            factors = over_pairs_of_components(p, q, own, diag)
            for number, factor in zip(numbers, factors, strict=True):
                each[number] = each[number] * factor
        for kindwise in self.kindwise:
            t = _differences(f1, f2, kindwise.columns, diag)
            factors = self._by_kind(kindwise.functions, t, f1, f2, diag)
            for number, factor in zip(kindwise.seen_by, factors, strict=True):
                each[number] = each[number] * factor
        for function in self.differences:
            factors = function.quadratics(_differences(f1, f2, function.columns, diag))
            for number, factor in zip(function.seen_by, factors, strict=True):
                each[number] = each[number] * factor
        for place, wavy in enumerate(self.wavy):
            parts = [self._features(place, v).split(wavy.waves.sizes, dim=-1) for v in (one, two)]
            for number, a, b in zip(wavy.seen_by, *parts, strict=True):
                each[number] = each[number] * ((a * b).sum(-1) if diag else a @ b.mT)
        return torch.stack(each)

    def _first_terms(self, one: "Looked", two: "Looked", diag: bool) -> Tensor:
        """Multiply over all columns that are normal, or whose logarithm is a polynomial."""
        if self.logs is None:
            return self._normal_terms(one.f, two.f, diag)
        assert one.values is not None
        if not diag:
            assert two.weighed is not None
            return self.logs.terms(one.values, two.weighed)
        if one is two:
            return self.logs.diagonal(one.values)
        assert two.values is not None
        return self.logs.matching(one.values, two.values)

    def _by_kind(
        self,
        functions: dict[tuple[int, int], Quadratics],
        t: Float[Tensor, "b *pairs"],
        f1: Tensor,
        f2: Tensor,
        diag: bool,
    ) -> Float[Tensor, "q *pairs"]:
        one, two = f1[..., self.plan.d], f2[..., self.plan.d]
        present = product(one.unique().int().tolist(), two.unique().int().tolist())
        if not diag:
            one, two = one.unsqueeze(-1), two.unsqueeze(-2)
        total: Tensor | None = None
        for a, b in present:
            value = functions[a, b](t)
            total = value if total is None else torch.where((one == a) & (two == b), value, total)
        assert total is not None
        return total

    def _normal_terms(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        # Π_c (1 + λ_c v_c)^(-½) exp(-½ λ_c t_c² / (1 + λ_c v_c)): one product of matrices
        columns, precisions, heights = self._normals
        t2 = _differences(f1, f2, columns, diag).square()
        exponents = (-0.5 * precisions) @ t2.flatten(1)
        return (heights.unsqueeze(-1) * exponents.exp()).unflatten(-1, t2.shape[1:])

    def _features(self, place: int, designs: "Looked") -> Tensor:
        if place not in designs.waves:
            designs.waves[place] = self._waves_of(self.wavy[place], designs.f)
        return designs.waves[place]

    def _waves_of(self, wavy: Wavy, f: Tensor) -> Tensor:
        c = wavy.group.columns[0]
        if wavy.shifted is not None:
            x = f[..., c].clamp(-FARTHEST, 1 + FARTHEST)
            return wavy.shifted(x, f[..., self.plan.d].long())
        landing = self.plan.landing(wavy.group, f)
        return landing_features(landing.clamped(-FARTHEST, 1 + FARTHEST), wavy.waves)


def _differences(
    f1: Tensor, f2: Tensor, columns: list[int], diag: bool
) -> Float[Tensor, "b *pairs"]:
    a, b = f1[..., columns], f2[..., columns]
    t = a - b if diag else a.unsqueeze(-2) - b.unsqueeze(-3)
    return t.movedim(-1, 0)
