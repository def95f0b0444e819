"""The inner product of two embedded designs, Gaussian by Gaussian of the base kernel."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.columns import Waves, additive_features, landing_features
from airbo.embeddings.dependent import Quadratics, over_pairs_of_components
from airbo.embeddings.gaussian_sum import GaussianSum
from airbo.embeddings.plan import Group, Plan
from airbo.embeddings.reduction import Views

TOLERANCE = 3e-5
"""Largest change of the inner product, as a share of the base kernel at distance 0, by taking
distributions for normal ones, or with fewer Gaussians, where a base kernel cannot tell."""
FARTHEST = 4.0
"""How far outside the unit cube a point still has a place of its own among waves, in its widths."""


@dataclass(frozen=True)
class Wavy:
    """One column with any distribution, for those Gaussians that see its shape."""

    group: Group
    seen_by: list[int]
    """Numbers of the Gaussians."""
    waves: Waves


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
        simplified: bool = False,
    ) -> None:
        """Prepare for designs that land within ``seen``.

        Args:
            plan: The groups of columns.
            base: The base kernel.
            seen: Lowest and highest executed input in every column.
            simplified: Whether a distribution may be taken for a simpler one wherever that changes
                the weighted sum of all terms by no more than ``TOLERANCE``. It makes steps in the
                hyper-parameters, so it is not for fits.
        """
        self.plan, self.precisions = plan, base.by_column(plan.d)
        self.weights = base.weights
        self.reach = [(seen[1] - seen[0])[g.columns[0]].item() for g in plan.waves]
        budget = TOLERANCE * base.at_zero.item() if simplified else 0.0
        self.wavy = self._divide(budget)
        self.differences = [self._quadratics(g, budget) for g in plan.differences]

    # -- preparing

    def _divide(self, budget: float) -> list[Wavy]:
        """Keep waves where a Gaussian sees more of a column than a normal deviation."""
        n = len(self.precisions)
        keep = torch.ones(len(self.plan.waves), n, dtype=torch.bool)
        if budget > 0 and keep.numel():
            errors = torch.stack([self._error(g, r) for g, r in zip(self.plan.waves, self.reach, strict=True)])
            costs, order = (errors * self.weights).flatten().sort()
            keep.view(-1)[order[costs.cumsum(0) <= budget]] = False
        found = []
        for group, reach, kept in zip(self.plan.waves, self.reach, keep, strict=True):
            numbers = kept.nonzero().flatten().tolist()
            if numbers:
                precisions = self.precisions[numbers, group.columns[0]]
                found.append(Wavy(group, numbers, Waves.of(precisions, reach)))
        self._keep = keep
        return found

    def _error(self, group: Group, reach: float) -> Float[Tensor, " q"]:
        """Return how much a normal deviation of the same variance changes each Gaussian."""
        precisions = self.precisions[:, group.columns[0]]
        if not group.is_difference:
            return torch.full_like(precisions, torch.inf)
        assert group.deviations is not None
        waves = Waves.of(precisions, reach)
        t = torch.linspace(0, reach, 65).to(precisions)
        f = additive_features(t, torch.zeros_like(t).long(), list(group.deviations), waves)
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
        views = Views.of(group.difference)
        return Quadratics.of(views.chosen(precisions, self.weights, budget), precisions)

    @cached_property
    def _smooth(self) -> tuple[list[int], Tensor, Tensor]:
        """Return columns, their precisions under normal deviations, and the heights of all terms."""
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
        quadratics = sum(sum(q.coefficients.shape) for q in self.differences)
        pairs = sum(g.shape[0] ** 2 * n * len(g.columns) ** 2 for g in self.plan.pairs)
        return 2 * n + 2 * len(self._smooth[0]) + quadratics + pairs

    def __call__(
        self, f1: Float[Tensor, "*#batch n f"], f2: Float[Tensor, "*#batch k f"], diag: bool
    ) -> Float[Tensor, "q ..."]:
        """Compare all pairs of designs, or matching ones, under every Gaussian."""
        terms = self._normal_terms(f1, f2, diag)
        for group, quadratics in zip(self.plan.differences, self.differences, strict=True):
            terms = terms * quadratics(_differences(f1, f2, list(group.columns), diag))
        for group in self.plan.pairs:
            p, q = self.plan.landing(group, f1), self.plan.landing(group, f2)
            own = self.precisions[:, list(group.columns)]
            terms = terms * over_pairs_of_components(p, q, own, diag)
        return self._times_waves(terms, f1, f2, diag)

    def _normal_terms(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        columns, precisions, heights = self._smooth
        t2 = _differences(f1, f2, columns, diag).square()
        exponents = (-0.5 * precisions) @ t2.flatten(1)
        return (heights.unsqueeze(-1) * exponents.exp()).unflatten(-1, t2.shape[1:])

    def _times_waves(self, terms: Tensor, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        each = list(terms)
        for wavy in self.wavy:
            parts = [self._features(wavy, f).split(wavy.waves.sizes, dim=-1) for f in (f1, f2)]
            for q, a, b in zip(wavy.seen_by, *parts, strict=True):
                each[q] = each[q] * ((a * b).sum(-1) if diag else a @ b.mT)
        return torch.stack(each) if self.wavy else terms

    def _features(self, wavy: Wavy, f: Tensor) -> Tensor:
        group, waves = wavy.group, wavy.waves
        if group.deviations is None:
            landing = self.plan.landing(group, f)
            return landing_features(landing.clamped(-FARTHEST, 1 + FARTHEST), waves)
        x = f[..., group.columns[0]].clamp(-FARTHEST, 1 + FARTHEST)
        return additive_features(x, f[..., self.plan.d].long(), list(group.deviations), waves)


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
