r"""The inner product of two embedded distributions, for fits and predictions alike.

The base kernel is a sum of Gaussians,
:math:`k(u, v) = c_0 + \sum_q c_q \exp(-\frac12 (u - v)^\top \Lambda_q (u - v))` with diagonal
:math:`\Lambda_q`, and P_x is a product over groups b of columns that deviate independently. So

.. math:: \langle\psi_P, \psi_Q\rangle = c_0 + \sum_q c_q \prod_b g_{qb}, \qquad
          g_{qb} = \iint e^{-\frac12 (u-v)^\top \Lambda_q (u-v)} \, dP_b(u) \, dQ_b(v)

and every g is a Gaussian integral:

- *normal*: one column where a design brings one Gaussian, or none (exact): closed form;
- *waves*: one column of any other shape: its characteristic function (:mod:`waves`);
- *dependent* columns: all pairs of the Gaussians that P and Q are sums of (:mod:`dependent`).

A fit and a prediction go the same way. Nothing here depends on what was asked before.

Notation: q Gaussians of the base kernel, d columns, b columns of a group, n and k designs that are
compared, f numbers that describe a design: its place z in the unit cube, the number of its
uncertainty, and for groups whose distribution changes with the design the Gaussians of P_x.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int64
from linear_operator import to_dense
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from airbo.embeddings.dependent import Quadratics, over_pairs_of_components
from airbo.embeddings.embedding import PORTION, Embedding, is_same
from airbo.embeddings.gaussian_sum import GaussianSum, gaussian_sum
from airbo.embeddings.waves import Deviations, Grid, landing_features
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.gaussians import (
    Mixture,
    Resolution,
    choose,
    coarsest,
    difference,
    joined,
    land,
    parts_within,
)

BOX = (-0.05, 1.05)
"""Designs within these limits are compared by waves of one period."""
FARTHEST = 4.0
"""How far outside the unit cube a point still has a place of its own among waves, in its widths."""
SIGMAS = 6.0
"""Standard deviations beyond which a Gaussian is not followed."""
MAX_KEPT = 24_000_000
"""Numbers of a step of a fit that are kept for its gradient; else they are worked out again."""
TYPICAL_WAVES = 200
"""Waves of one Gaussian in one column, for the size of portions."""
NEGLIGIBLE = 1e-10
"""Share of the base kernel below which a Gaussian is left out."""


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that deviate together, under every uncertainty."""

    columns: list[int]
    deviations: tuple[Mixture, ...] | None
    """δ = x' - x, one per uncertainty, where that is all; None: a design brings its own P_x."""
    n: int
    """Gaussians per design."""
    kind: int
    """What a design brings of each: its place (0), also variances (1), also covariances (2)."""

    @property
    def is_normal(self) -> bool:
        """Whether there is one Gaussian, in one column."""
        return len(self.columns) == 1 and self.n == 1

    @cached_property
    def variance(self) -> float | None:
        """The variance in one normal column if all designs have the same, and no bias matters."""
        if not self.is_normal or self.deviations is None:
            return None
        found = {(d.means.item(), d.variances.item()) for d in self.deviations}
        return found.pop()[1] if len(found) == 1 else None

    @cached_property
    def between(self) -> Mixture | None:
        """The difference of two deviations, if there is one uncertainty."""
        if self.deviations is None or len(self.deviations) > 1:
            return None
        return difference(self.deviations[0], self.deviations[0])

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the weights, means and spreads that a design brings."""
        if self.deviations is not None:
            return []
        b = len(self.columns)
        return [(self.n,), (self.n, b), (self.n, *[b] * self.kind)][: 3 if self.kind else 2]

    @property
    def size(self) -> int:
        """Numbers that a design brings."""
        return sum(map(math.prod, self.shapes))

    @property
    def per_pair(self) -> int:
        """Numbers that comparing two designs takes, per Gaussian of the base kernel."""
        if len(self.columns) == 1:
            return 1
        if self.between is not None:
            return self.between.n_components
        return self.n**2 * len(self.columns) ** self.kind


@lru_cache(maxsize=64)
def groups_of(
    uncertainties: tuple[InputUncertainty, ...], d: int, resolution: Resolution
) -> list[Group]:
    """Divide columns into groups, as small as the dependences under all uncertainties allow."""
    # the middle of the cube shows what does not depend on the design
    middle = torch.full((1, d), 0.5, dtype=torch.float64)
    found = [_parts(u, middle, resolution) for u in uncertainties]
    groups = []
    for columns in coarsest([part.columns for parts in found for part in parts]):
        own = [parts_within(parts, columns) for parts in found]
        additive = all(part.additive for parts in own for part in parts)
        if additive:
            whole = [joined(parts, columns) for parts in own]
        else:
            whole = [_landing(parts, middle, columns) for parts in own]
        n, kind = max(w.n_components for w in whole), max(w.kind for w in whole)
        groups.append(Group(list(columns), tuple(whole) if additive else None, n, kind))
    return groups


class GaussianEmbedding(Embedding):
    """Embeds P_x as a sum of weighted Gaussians per group of dependent columns."""

    def __init__(
        self,
        n_atoms: int,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
    ) -> None:
        """Resolve what is not Gaussian with about ``n_atoms`` Gaussians."""
        super().__init__(uncertainties, base_kernel, bounds)
        self.resolution = Resolution(n_atoms)

    @property
    def groups(self) -> list[Group]:
        """The groups of columns."""
        make = lambda: groups_of(tuple(self.in_cube), self.d, self.resolution)  # noqa: E731
        return self.remembered("groups", self.low, make)

    # -- features: what the base kernel has to know of P_x

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return places, numbers of uncertainties, and the Gaussians that designs bring."""
        Z = (X - self.low) / self.width
        rows = [Z, choice.unsqueeze(-1).to(Z)]
        changing = [g for g in self.groups if g.deviations is None]
        found = [_parts(u, Z, self.resolution) for u in self.in_cube] if changing else []
        for g in changing:
            columns = tuple(g.columns)
            options = [_landing(parts_within(parts, columns), Z, columns) for parts in found]
            landing = choose(choice, options).of_kind(g.kind)
            rows += [landing.weights, landing.means.flatten(-2)]
            if landing.spread is not None:
                rows.append(landing.spread.flatten(-1 - g.kind))
        return torch.cat(rows, dim=-1)

    def landing(self, group: Group, f: Float[Tensor, "*batch n f"]) -> Mixture:
        """Return where designs land in the columns of a group."""
        if group.deviations is not None:
            return land(f[..., group.columns], f[..., self.d].long(), group.deviations)
        start = self.d + 1
        for other in self.groups:
            if other is group:
                break
            start += other.size
        numbers = f[..., start : start + group.size]
        parts = numbers.split([math.prod(s) for s in group.shapes], dim=-1)
        shaped = (p.unflatten(-1, s) for p, s in zip(parts, group.shapes, strict=True))
        return Mixture(tuple(group.columns), *shaped)

    # -- the inner product

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch k f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\langle\psi_P, \psi_Q\rangle` for all pairs, or matching ones."""
        if all(g.variance == 0 for g in self.groups):
            # ψ_P = k(x, ·): the inner product is the base kernel itself, Gaussians or not
            points = f1[..., : self.d], f2[..., : self.d]
            return to_dense(self.base_kernel(*points, diag=diag))
        if not diag and f1.shape[-2] == 1 and is_same(f1, f2):
            return self.inner(f1, f2, diag=True).unsqueeze(-1)
        base = self._base()
        (f1, f2), shape = _unbatched(f1, f2, diag)
        if not base.moves and not diag and f1.dim() == 2 and self._fits(base, f1, f2):
            each = self._each(base, f1)
            return base.constant + torch.tensordot(base.weights, each, dims=1)
        return self._summed(base, f1, f2, diag).reshape(shape)

    def _base(self) -> GaussianSum:
        base = gaussian_sum(self.base_kernel)
        assert base is not None
        if base.weights.requires_grad:
            return base
        # a prediction leaves out Gaussians without weight
        kept = base.weights > NEGLIGIBLE * base.at_zero
        return GaussianSum(
            base.constant, base.weights[kept], base.precisions[kept], base.relevances
        )

    def _fits(self, base: GaussianSum, f1: Tensor, f2: Tensor) -> bool:
        """Say whether Gaussians that stay as they are can be kept for the next step of a fit."""
        if not base.weights.requires_grad or f1.requires_grad or f1.shape != f2.shape:
            return False
        return len(base.weights) * len(f1) ** 2 <= 2 * MAX_KEPT and torch.equal(f1, f2)

    def _each(self, base: GaussianSum, f: Float[Tensor, "n f"]) -> Float[Tensor, "q n n"]:
        """Return Π_b g_qb for all pairs of observations, if only weights move: once per fit."""
        lam = base.by_column(self.d).detach()

        def compute() -> Tensor:
            with torch.no_grad():
                step = max(1, PORTION // (len(f) * self._per_pair))
                return torch.cat(
                    [
                        torch.cat([self._terms(a, f, one, False, q) for a in f.split(step)], dim=-2)
                        for q, one in enumerate(lam.split(1))
                    ]
                )

        return self.remembered("each", torch.cat([f.flatten(), lam.flatten()]), compute)

    @property
    def _per_pair(self) -> int:
        return max(g.per_pair for g in self.groups)

    @property
    def _per_design(self) -> int:
        """Numbers that waves take per design and Gaussian; most take fewer."""
        waves = any(len(g.columns) == 1 and not g.is_normal for g in self.groups)
        return TYPICAL_WAVES if waves else 1

    def _summed(self, base: GaussianSum, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        """Sum over Gaussians, so many pairs and Gaussians at a time as fit in the cache."""
        lam = base.by_column(self.d)  # (q, d)
        batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2]).numel()
        per_row = batch * max((1 if diag else f2.shape[-2]) * self._per_pair, self._per_design)
        n_rows = max(1, PORTION // per_row)
        n_gaussians = max(1, PORTION // (per_row * f1.shape[-2]))

        def part(c: Tensor, own: Tensor, a: Tensor, b: Tensor, place: int) -> Tensor:
            return torch.tensordot(c, self._terms(a, b, own, diag, place), dims=1)

        kept = f1.shape[-2] * per_row * len(lam) * (2 + len(self.groups))
        again = torch.is_grad_enabled() and base.moves and kept > MAX_KEPT
        rows = []
        for i in range(0, f1.shape[-2], n_rows):
            whole = n_rows >= f1.shape[-2]
            a = f1 if whole else f1[..., i : i + n_rows, :]
            b = f2 if whole or not diag else f2[..., i : i + n_rows, :]
            total = base.constant
            for j in range(0, len(lam), n_gaussians):
                args = base.weights[j : j + n_gaussians], lam[j : j + n_gaussians], a, b, j
                value = checkpoint(part, *args, use_reentrant=False) if again else part(*args)
                total = total + value
            rows.append(total)
        return rows[0] if len(rows) == 1 else torch.cat(rows, dim=-1 if diag else -2)

    def _terms(
        self, f1: Tensor, f2: Tensor, lam: Float[Tensor, "q d"], diag: bool, place: int
    ) -> Float[Tensor, "q ..."]:
        """Return Π_b g_qb for some Gaussians, from number ``place`` on, and pairs of designs."""
        total = self._normal(f1, f2, lam, diag)
        for i, g in enumerate(self.groups):
            if g.is_normal:
                continue
            own = lam[:, g.columns]
            if len(g.columns) == 1:
                factor = self._waves((i, place), g, f1, f2, own[:, 0], diag)
            elif g.between is not None:
                t = _pairwise(f1[..., g.columns], f2[..., g.columns], torch.sub, diag)
                factor = Quadratics.of([g.between] * len(own), own)(t.movedim(-1, 0))
            else:
                p, q = self.landing(g, f1), self.landing(g, f2)
                factor = over_pairs_of_components(p, q, own, diag)
            total = factor if total is None else total * factor
        assert total is not None
        return total

    def _normal(
        self, f1: Tensor, f2: Tensor, lam: Float[Tensor, "q d"], diag: bool
    ) -> Float[Tensor, "q ..."] | None:
        r"""Multiply over columns with one Gaussian per design; None if there is no such column.

        .. math:: \prod_c (1 + \lambda_c V_c)^{-1/2} \exp\Big(-\frac{\lambda_c t_c^2}
                  {2 (1 + \lambda_c V_c)}\Big), \quad V = v + v', \; t = m - m'
        """
        normal = [g for g in self.groups if g.is_normal]
        same = [g for g in normal if g.variance is not None]
        total = None
        if same:
            # the exponents of all pairs are one product of matrices
            columns = [g.columns[0] for g in same]
            V = lam.new_tensor([2 * (g.variance or 0.0) for g in same])
            w = 1 + lam[:, columns] * V  # (q, c)
            t2 = _pairwise(f1[..., columns], f2[..., columns], torch.sub, diag).square()
            exponent = (-0.5 * lam[:, columns] / w) @ t2.movedim(-1, 0).flatten(1)
            height = w.prod(-1).rsqrt().unsqueeze(-1)
            total = (height * exponent.exp()).unflatten(-1, t2.shape[:-1])
        for g in normal:
            if g.variance is not None:
                continue
            p, q = self.landing(g, f1), self.landing(g, f2)
            t2 = _pairwise(p.means[..., 0], q.means[..., 0], torch.sub, diag).square().squeeze(-1)
            V = _pairwise(p.variances[..., 0], q.variances[..., 0], torch.add, diag).squeeze(-1)
            own = lam[:, g.columns[0]].reshape(-1, *[1] * V.dim())
            w = 1 + own * V
            factor = (-0.5 * own * t2 / w).exp() * w.rsqrt()
            total = factor if total is None else total * factor
        return total

    def _waves(
        self,
        place: tuple[int, int],
        g: Group,
        f1: Tensor,
        f2: Tensor,
        lam: Float[Tensor, " q"],
        diag: bool,
    ) -> Float[Tensor, "q ..."]:
        """Return Φ₁ diag(a) Φ₂ᵀ for one column of any shape.

        ``place`` holds the numbers of the group and of the first Gaussian.
        """
        grid = Grid.of(lam, self._reach(place[0], g, f1, f2))
        two = self._features(None if diag else place, g, f2, grid)
        one = two if is_same(f1, f2) else self._features(None, g, f1, grid)
        one, two = _aligned(one, two)
        a = grid.amplitudes(lam)  # (q, v)
        weighted = one * a.reshape(len(a), *[1] * (one.dim() - 2), -1)
        return (weighted * two).sum(-1) if diag else weighted @ two.mT

    def _features(
        self, place: tuple[int, int] | None, g: Group, f: Float[Tensor, "*batch n f"], grid: Grid
    ) -> Float[Tensor, "q *batch n v"]:
        """Return Φ; that of observations, which many designs are compared with, is remembered."""
        if place is None or f.requires_grad or f.dim() > 2:
            return self._new_features(g, f, grid)
        key = torch.cat([f.flatten(), grid.key])
        compute = lambda: self._new_features(g, f, grid)  # noqa: E731
        return self.remembered(f"waves {place}", key, compute)

    def _new_features(self, g: Group, f: Tensor, grid: Grid) -> Tensor:
        if g.deviations is None:
            return landing_features(self.landing(g, f).clamped(-FARTHEST, 1 + FARTHEST), grid)
        x = f[..., g.columns[0]].clamp(-FARTHEST, 1 + FARTHEST)
        return Deviations.of(g.deviations, grid)(x, f[..., self.d].long())

    def _reach(self, i: int, g: Group, f1: Tensor, f2: Tensor) -> float:
        """Return how far apart executed inputs may be in one column.

        For designs of the box it is one number. Others need waves of a longer period, in this
        comparison only.
        """
        reach: float = self.remembered(f"reach {i}", self.low, lambda: self._reach_of_box(g))
        c = g.columns[0]
        with torch.no_grad():
            ends = [end for f in (f1, f2) for end in f[..., c].aminmax()]
            if BOX[0] <= min(ends) and max(ends) <= BOX[1]:
                return reach
            needed = _extent([self.landing(g, f) for f in (f1, f2)])
        return reach * 2 ** math.ceil(math.log2(max(1.0, needed / reach)))

    def _reach_of_box(self, g: Group) -> float:
        """Look at designs of the whole box."""
        n_kinds = len(self.uncertainties)
        Z = torch.full((33, self.d), 0.5, dtype=torch.float64).to(self.low)
        Z[:, g.columns[0]] = torch.linspace(*BOX, 33).to(Z)
        X = (self.low + self.width * Z).repeat(n_kinds, 1)
        with torch.no_grad():
            f = self.compute(X, torch.arange(n_kinds).repeat_interleave(33))
            return _extent([self.landing(g, f)])


def _extent(landings: Sequence[Mixture]) -> float:
    """Return the distance between the outermost points of some distributions in one column."""
    low, high = math.inf, -math.inf
    for landing in landings:
        means = landing.means.clamp(-FARTHEST, 1 + FARTHEST)
        reach = SIGMAS * landing.variances.clamp_min(0).sqrt()
        low, high = min(low, float((means - reach).min())), max(high, float((means + reach).max()))
    return min(high - low, 1 + 4 * FARTHEST)


def _parts(
    uncertainty: InputUncertainty, Z: Float[Tensor, "*batch n d"], resolution: Resolution
) -> list[Mixture]:
    """Return the independent parts of P_x; each may be additive by itself."""
    return [
        replace(part, columns=tuple(columns[c] for c in part.columns))
        for block, columns in uncertainty.independent_blocks(Z.shape[-1])
        for part in block.gaussians(Z[..., list(columns)], resolution)
    ]


def _landing(parts: Sequence[Mixture], Z: Tensor, columns: tuple[int, ...]) -> Mixture:
    return joined([part.around(Z[..., list(part.columns)]) for part in parts], columns)


def _pairwise(a: Tensor, b: Tensor, operation, diag: bool) -> Tensor:  # type: ignore[no-untyped-def]
    """Combine (..., n, c) and (..., k, c): all pairs, (..., n, k, c), or matching ones."""
    return operation(a, b) if diag else operation(a.unsqueeze(-2), b.unsqueeze(-3))


def _aligned(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Give (q, ..., n, v) and (q, ..., k, v) as many dimensions as the other has."""
    dims = max(a.dim(), b.dim())
    one, two = (t.reshape(len(t), *[1] * (dims - t.dim()), *t.shape[1:]) for t in (a, b))
    return one, two


def _unbatched(f1: Tensor, f2: Tensor, diag: bool) -> tuple[tuple[Tensor, Tensor], tuple[int, ...]]:
    """Write a batch of designs that all meet the same others as one long list.

    Returns:
        What to compare, and the shape of the result.
    """
    batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2])
    shape = (*batch, f1.shape[-2]) if diag else (*batch, f1.shape[-2], f2.shape[-2])
    if diag and batch:
        one, two = (f.expand(*batch, *f.shape[-2:]).reshape(-1, f.shape[-1]) for f in (f1, f2))
        return (one, one if is_same(f1, f2) else two), shape
    if diag or f1.dim() == 2:
        return (f1, f2), shape
    if any(size > 1 and step for size, step in zip(f2.shape[:-2], f2.stride(), strict=False)):
        return (f1, f2), shape
    others = f2.reshape(-1, *f2.shape[-2:])[0] if f2.dim() > 2 else f2
    rows = f1.expand(*batch, *f1.shape[-2:]).reshape(-1, f1.shape[-1])
    return (rows, others), shape
