"""The inner product of two embedded designs, Gaussian by Gaussian of the base kernel."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.columns import (
    Compressed,
    Polynomials,
    Shifted,
    Waves,
    landing_features,
)
from airbo.embeddings.dependent import Quadratics, over_pairs_of_components
from airbo.embeddings.gaussian_sum import GaussianSum
from airbo.embeddings.mixture import difference
from airbo.embeddings.plan import Group, Plan

SIMPLER = 3e-5
"""Largest change of the inner product, as a share of the base kernel at distance 0, by taking
distributions for normal ones, or with fewer Gaussians, where a base kernel cannot tell."""
MOST_TOGETHER = 64
"""Features that a bundle of columns has at the most."""
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
class Smooth:
    """Columns whose features are polynomials, and where to find those of each Gaussian."""

    columns: list[int]
    polynomials: Polynomials
    products: list[list[list[tuple[int, slice]]]]
    """For each Gaussian, bundles of columns; of each column its place and its features.

    Within a bundle features are multiplied out: one product of longer matrices costs less than
    several of short ones.
    """
    owners: Float[Tensor, "c r q"]
    """1 where a feature of a column belongs to a Gaussian."""

    def diagonal(self, one: "Looked", two: "Looked") -> Float[Tensor, "q *batch n"]:
        """Compare matching designs under every Gaussian."""
        assert one.smooth is not None
        assert two.smooth is not None
        c = len(self.owners)
        owners = self.owners.reshape(c, *[1] * (one.smooth.dim() - 3), *self.owners.shape[1:])
        sums = (one.smooth * two.smooth) @ owners  # (c, *batch, n, q)
        return torch.where(owners.amax(-2, keepdim=True) > 0, sums, 1.0).prod(0).movedim(-1, 0)


@dataclass(frozen=True)
class Looked:
    """Designs with what is worked out for each of them."""

    f: Float[Tensor, "*batch n f"]
    smooth: Float[Tensor, "c *batch n r"] | None = None

    def rows(self, first: int, last: int) -> "Looked":
        """Return some of the designs."""
        smooth = None if self.smooth is None else self.smooth[..., first:last, :]
        return Looked(self.f[..., first:last, :], smooth)

    def multiplied(self, bundle: list[tuple[int, slice]]) -> Float[Tensor, "*batch n p"]:
        """Multiply out the features of several columns."""
        assert self.smooth is not None
        first, *others = (self.smooth[place][..., own] for place, own in bundle)
        for other in others:
            first = (first.unsqueeze(-1) * other.unsqueeze(-2)).flatten(-2)
        return first


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
        simplified: bool = False,
        limit: float = 0.0,
        without_waves: bool = False,
    ) -> None:
        """Prepare for designs, and executed inputs, within certain limits.

        Args:
            plan: The groups of columns.
            base: The base kernel.
            seen: Lowest and highest design in every column.
            landed: Lowest and highest executed input in every column.
            simplified: Whether hyper-parameters stay. Then a distribution may be taken for a
                simpler one wherever that changes the weighted sum of all terms by no more than
                ``SIMPLER``. It makes steps in the hyper-parameters, so it is not for fits.
            limit: Change of one term up to which a column is taken for normal, whatever its weight.
            without_waves: Leave out the columns that only waves describe.
        """
        self.plan, self.precisions = plan, base.by_column(plan.d)
        self.weights = base.weights
        self.seen = seen
        self.reach = [(landed[1] - landed[0])[g.columns[0]].item() for g in plan.waves]
        budget = SIMPLER * base.at_zero.item() if simplified else 0.0
        self.wavy: list[Wavy] = []
        self.smooth: Smooth | None = None
        self._keep = torch.ones(len(plan.waves), len(self.precisions), dtype=torch.bool)
        if not without_waves:
            self._divide(budget, limit, simplified)
        self.differences = [self._quadratics(g, budget) for g in plan.differences]
        self.kindwise = [self._kindwise(g) for g in plan.kindwise]
        self._normals = self._normal_columns()

    # -- preparing

    def _divide(self, budget: float, limit: float, fixed: bool) -> None:
        """Keep waves where a Gaussian sees more of a column than a normal deviation."""
        if (budget > 0 or limit > 0) and self._keep.numel():
            pairs = zip(self.plan.waves, self.reach, strict=True)
            errors = torch.stack([self._error(g, r) for g, r in pairs]).detach()
            costs, order = (errors * self.weights.detach()).flatten().sort()
            self._keep.view(-1)[order[costs.cumsum(0) <= budget].cpu()] = False
            self._keep &= (errors > limit).cpu()
        found = []
        for group, reach, kept in zip(self.plan.waves, self.reach, self._keep, strict=True):
            numbers = kept.nonzero().flatten().tolist()
            if numbers:
                precisions = self.precisions[numbers, group.columns[0]].clamp_max(NARROWEST_WAVE)
                waves = Waves.of(precisions, reach)
                shifted = Shifted.of(group.deviations, waves) if group.deviations else None
                found.append(Wavy(group, numbers, waves, shifted))
        tables = [self._compressed(wavy) if fixed else None for wavy in found]
        self.smooth = self._bundled([(w, t) for w, t in zip(found, tables, strict=True) if t])
        self.wavy = [w for w, t in zip(found, tables, strict=True) if t is None]

    def _compressed(self, wavy: Wavy) -> Compressed | None:
        """Write the features of a column as polynomials, if the column says all."""
        group, waves = wavy.group, wavy.waves
        if group.is_brought:
            return None

        def features(x: Tensor, kind: int) -> Tensor:
            x = x.unsqueeze(-1).to(waves.frequencies)
            kinds = torch.full(x.shape[:-1], kind, device=x.device)
            return self._of_column(wavy, x, kinds)

        n_kinds = len(group.deviations or group.blocks or ())
        low, high = self.seen[:, group.columns[0]].tolist()
        highest = waves.frequencies.max().item()
        return Compressed.of(features, n_kinds, (low, high), waves.sizes, highest)

    def _bundled(self, found: list[tuple[Wavy, Compressed]]) -> Smooth | None:
        if not found:
            return None
        products: list[list[list[tuple[int, slice]]]] = [[] for _ in self.precisions]
        ranks = [MOST_TOGETHER] * len(self.precisions)
        for place, (wavy, table) in enumerate(found):
            start = 0
            for q, rank in zip(wavy.seen_by, table.ranks, strict=True):
                if ranks[q] * rank > MOST_TOGETHER:
                    products[q].append([])
                    ranks[q] = 1
                products[q][-1].append((place, slice(start, start + rank)))
                ranks[q] *= rank
                start += rank
        columns = [wavy.group.columns[0] for wavy, _ in found]
        polynomials = Polynomials.of([table for _, table in found])
        shape = len(found), polynomials.coefficients.shape[-1], len(products)
        owners = self.precisions.new_zeros(shape)
        for q, bundles in enumerate(products):
            for place, own in (member for bundle in bundles for member in bundle):
                owners[place, own, q] = 1.0
        return Smooth(columns, polynomials, products, owners)

    def _error(self, group: Group, reach: float) -> Float[Tensor, " q"]:
        """Return how much a normal deviation of the same variance changes each Gaussian."""
        precisions = self.precisions[:, group.columns[0]].clamp_max(NARROWEST_WAVE)
        if not group.is_difference:
            return torch.full_like(precisions, torch.inf)
        assert group.deviations is not None
        waves = Waves.of(precisions, reach)
        t = torch.linspace(0, reach, 65).to(precisions)
        f = Shifted.of(group.deviations, waves)(t, torch.zeros_like(t).long())
        truth = torch.stack([part @ part[0] for part in f.split(waves.sizes, dim=-1)])  # (q, t)
        normal = self._normal(precisions.unsqueeze(-1), t.square(), _variance(group).to(t))
        return (truth - normal).abs().amax(-1)

    @staticmethod
    def _normal(precision: Tensor, t2: Tensor, variance: Tensor) -> Tensor:
        # E exp(-½ λ (t + δ)²) for δ ~ N(0, v)
        widening = 1 + precision * variance
        return widening.rsqrt() * torch.exp(-0.5 * precision / widening * t2)

    def _quadratics(self, group: Group, budget: float) -> Quadratics:
        precisions = self.precisions[:, list(group.columns)]
        if budget > 0:
            tolerance = budget / (2 * len(self.plan.differences))
            views = group.views.enough(precisions, self.weights, tolerance)
        else:
            views = [group.views.for_fits(self.precisions.requires_grad)] * len(precisions)
        return Quadratics.of(views, precisions)

    def _kindwise(self, group: Group) -> dict[tuple[int, int], Quadratics]:
        """Return one function of the difference for each pair of kinds."""
        assert group.deviations is not None
        precisions = self.precisions[:, list(group.columns)]
        return {
            (a, b): Quadratics.of([difference(p, q)] * len(precisions), precisions)
            for a, p in enumerate(group.deviations)
            for b, q in enumerate(group.deviations)
        }

    def _normal_columns(self) -> tuple[list[int], Tensor, Tensor]:
        """Return columns, their precisions with normal deviations, and the heights of all terms."""
        columns = [g.columns[0] for g in self.plan.normal]
        masks = [torch.ones(len(self.precisions), dtype=torch.bool) for _ in columns]
        groups = [*self.plan.normal]
        for group, kept in zip(self.plan.waves, self._keep, strict=True):
            if not bool(kept.all()):
                columns.append(group.columns[0])
                masks.append(~kept)
                groups.append(group)
        if not columns:
            return [], self.precisions[:, :0], self.precisions.new_ones(len(self.precisions))
        used = torch.stack(masks, dim=-1).to(self.precisions.device)
        variances = torch.stack([_variance(g) for g in groups]).to(self.precisions)
        precisions = torch.where(used, self.precisions[:, columns], 0.0)
        widening = 1 + precisions * variances
        return columns, precisions / widening, widening.prod(-1).rsqrt()

    # -- evaluating

    @property
    def size(self) -> int:
        """Numbers that are held at a time, per pair of designs."""
        n = len(self.precisions)
        functions = [*self.differences, *(q for by in self.kindwise for q in by.values())]
        quadratics = sum(sum(q.coefficients.shape) for q in functions)
        pairs = sum(g.shape[0] ** 2 * n * len(g.columns) ** 2 for g in self.plan.pairs)
        return 2 * n + 2 * len(self._normals[0]) + quadratics + pairs

    def look(self, f: Float[Tensor, "*batch n f"]) -> "Looked":
        """Work out what concerns designs one by one."""
        if self.smooth is None:
            return Looked(f)
        kind = f[..., self.plan.d].long()
        return Looked(f, self.smooth.polynomials(f[..., self.smooth.columns], kind))

    def __call__(self, one: "Looked", two: "Looked", diag: bool) -> Float[Tensor, "q ..."]:
        """Compare all pairs of designs, or matching ones, under every Gaussian."""
        f1, f2 = one.f, two.f
        terms = self._normal_terms(f1, f2, diag)
        for group, quadratics in zip(self.plan.differences, self.differences, strict=True):
            terms = terms * quadratics(_differences(f1, f2, list(group.columns), diag))
        for group, functions in zip(self.plan.kindwise, self.kindwise, strict=True):
            t = _differences(f1, f2, list(group.columns), diag)
            terms = terms * self._by_kind(functions, t, f1, f2, diag)
        for group in self.plan.pairs:
            p, q = self.plan.landing(group, f1), self.plan.landing(group, f2)
            own = self.precisions[:, list(group.columns)]
            terms = terms * over_pairs_of_components(p, q, own, diag)
        return self._times_waves(terms, one, two, diag)

    def _by_kind(
        self,
        functions: dict[tuple[int, int], Quadratics],
        t: Float[Tensor, "b *pairs"],
        f1: Tensor,
        f2: Tensor,
        diag: bool,
    ) -> Float[Tensor, "q *pairs"]:
        one, two = f1[..., self.plan.d].long(), f2[..., self.plan.d].long()
        if not diag:
            one, two = one.unsqueeze(-1), two.unsqueeze(-2)
        kinds = torch.broadcast_tensors(one, two)
        present = torch.stack([v.flatten() for v in kinds], dim=-1).unique(dim=0).tolist()
        total: Tensor | None = None
        for a, b in present:
            mine = (kinds[0] == a) & (kinds[1] == b)
            value = functions[a, b](t)
            total = value if total is None else torch.where(mine, value, total)
        assert total is not None
        return total

    def _normal_terms(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        columns, precisions, heights = self._normals
        if not columns:
            pairs = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2]) + f1.shape[-2:-1]
            pairs = pairs if diag else (*pairs, f2.shape[-2])
            return heights.reshape(-1, *[1] * len(pairs)).expand(-1, *pairs)
        t2 = _differences(f1, f2, columns, diag).square()
        exponents = (-0.5 * precisions) @ t2.flatten(1)
        return (heights.unsqueeze(-1) * exponents.exp()).unflatten(-1, t2.shape[1:])

    def _times_waves(self, terms: Tensor, one: "Looked", two: "Looked", diag: bool) -> Tensor:
        if not self.wavy and self.smooth is None:
            return terms
        each = list(terms)
        for wavy in self.wavy:
            parts = [self._features(wavy, v.f).split(wavy.waves.sizes, dim=-1) for v in (one, two)]
            for q, a, b in zip(wavy.seen_by, *parts, strict=True):
                each[q] = each[q] * _product(a, b, diag)
        if self.smooth is not None and diag:
            return torch.stack(each) * self.smooth.diagonal(one, two)
        for q, bundles in enumerate(self.smooth.products if self.smooth else ()):
            for bundle in bundles:
                a, b = one.multiplied(bundle), two.multiplied(bundle)
                each[q] = each[q] * _product(a, b, diag)
        return torch.stack(each)

    def _features(self, wavy: Wavy, f: Tensor) -> Tensor:
        if wavy.group.is_brought:
            landing = self.plan.landing(wavy.group, f)
            return landing_features(landing.clamped(-FARTHEST, 1 + FARTHEST), wavy.waves)
        return self._of_column(wavy, f[..., list(wavy.group.columns)], f[..., self.plan.d].long())

    def _of_column(self, wavy: Wavy, x: Tensor, kind: Tensor) -> Tensor:
        x = x.clamp(-FARTHEST, 1 + FARTHEST)
        if wavy.shifted is not None:
            return wavy.shifted(x.squeeze(-1), kind)
        landing = self.plan.landing_of(wavy.group, x, kind)
        return landing_features(landing.clamped(-FARTHEST, 1 + FARTHEST), wavy.waves)


def _product(a: Tensor, b: Tensor, diag: bool) -> Tensor:
    return (a * b).sum(-1) if diag else a @ b.mT


def _variance(group: Group) -> Float[Tensor, ""]:
    """Return the variance of the difference of two deviations in one column."""
    assert group.deviations is not None
    _, variances = group.deviations[0].moments()
    return 2 * variances[0, 0]


def _differences(
    f1: Tensor, f2: Tensor, columns: list[int], diag: bool
) -> Float[Tensor, "b *pairs"]:
    a, b = f1[..., columns], f2[..., columns]
    t = a - b if diag else a.unsqueeze(-2) - b.unsqueeze(-3)
    return t.movedim(-1, 0)
