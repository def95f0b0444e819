r"""The inner product of two embedded distributions, for fits and predictions alike.

The base kernel is a sum of Gaussians,
:math:`k(u, v) = c_0 + \sum_q c_q \exp(-\frac12 (u - v)^\top \Lambda_q (u - v))` with diagonal
:math:`\Lambda_q`, and P_x is a product over groups b of columns that deviate independently. So

.. math:: \langle\psi_P, \psi_Q\rangle = c_0 + \sum_q c_q \prod_b g_{qb}, \qquad
          g_{qb} = \iint e^{-\frac12 (u-v)^\top \Lambda_q (u-v)} \, dP_b(u) \, dQ_b(v)

and every g is a Gaussian integral. There are three ways to work it out:

- *closed form*, where P and Q are one Gaussian each, or where the Gaussian of the base kernel is so
  wide that it sees no more of them than their mean and their variance;
- *waves*, for one to three columns of any other shape: characteristic functions (:mod:`waves`);
- *pairs* of the Gaussians that P and Q are sums of, for more dependent columns (:mod:`dependent`).

A fit and a prediction go the same way. Nothing here depends on what was asked before.

Notation:

- ``q`` Gaussians of the base kernel, ``d`` columns of a design, ``b`` columns of a group;
- ``c`` (q,): weights c_q; ``lam`` (q, d): the diagonals of Λ_q;
- ``n`` and ``k``: designs that are compared, all pairs (n, k), or matching ones (n,);
- ``f`` (n, f): what is known of a design: its place z in the unit cube (d numbers), the number of
  its uncertainty, and the Gaussians of P_x in groups where P_x changes with the design;
- ``t`` = z - z': the difference of two designs; V: the variance of u - v around it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int64
from linear_operator import to_dense
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from airbo.embeddings.base_kernels import GaussianSum, gaussian_sum
from airbo.embeddings.dependent import Quadratics, over_pairs_of_components
from airbo.embeddings.features import PORTION, Embedding
from airbo.embeddings.waves import (
    MARGIN,
    Grid,
    characteristic,
    landing_waves,
    n_waves,
    narrowest,
    shifted,
    widest,
)
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.gaussians import (
    Mixture,
    Resolution,
    coarsest,
    difference,
    joined,
    padded,
    parts_within,
)

Way = tuple[str, tuple[float, ...]]
NORMAL, WAVES, PAIRS = "normal", "waves", "pairs"
"""The ways to work out g, as above; each comes with how far executed inputs may be apart."""
BOX = (-0.05, 1.05)
"""Designs within these limits are compared by waves of one period."""
FARTHEST = 4.0
"""How far outside the unit cube a point still has a place of its own among waves, in its widths."""
SIGMAS = 6.0
"""Standard deviations beyond which a Gaussian is not followed."""
INVISIBLE = {1: 1e-7, 2: 1e-5, 3: 1e-4}
"""Error of g, which is at most 1, that counts as none, by the number of columns: less than waves of
one column leave, and than dependent columns lose by being cut into cells."""
N_PERIODS = 64
"""Periods to choose from: a step between two of them is 2% of a period."""
MOST_KINDS = 4
"""Uncertainties under which designs are compared block by block. With more, every design brings its
own Gaussians."""
MOST_WAVES = 12_000
"""Waves of one Gaussian in several columns; with more, pairs of Gaussians cost less."""
FEW_DESIGNS = 2000
"""Pairs of designs that are compared in as few steps as possible."""
FEW_PAIRS = 8
"""Pairs of Gaussians that cost less than waves."""
MAX_KEPT = 24_000_000
"""Numbers of a step of a fit that are kept for its gradient; else they are worked out again."""
N_BLOCKS, SMALLEST_BLOCK = 6, 120
"""Rows of blocks into which a symmetric matrix is divided, of which the upper triangle is worked
out. Smaller blocks cost more than they save: with blocks of 60, an ask after 200 observations of
six beta parameters takes a third longer; without blocks, one after 500 takes a fifth longer."""
NEGLIGIBLE = 1e-10
"""Share of the base kernel below which a Gaussian is left out."""
MOST_KEPT = 1_000_000
"""Waves of a list of designs that are kept, per group and Gaussian: 8 MB."""
SHORT, MOST_KEPT_OF_SHORT = 300, 5_000_000
"""Designs of a short list, as observations are, of which more is kept: without it, an ask after 200
observations of three dependent columns takes twice as long."""
TYPICAL_WAVES = 200
"""Waves of one Gaussian, for the size of portions; most have fewer."""
N_REMEMBERED = 6
"""Lists of designs whose waves are kept: of a search, the observations, the designs to compare
with, and the last and the present candidates under two uncertainties."""


class Group:
    """Columns that deviate together, under every uncertainty."""

    def __init__(self, columns: list[int], options: Sequence[Mixture], additive: bool) -> None:
        """Describe columns by the Gaussians of P_x under every uncertainty.

        Args:
            columns: The columns.
            options: δ = x' - x if that is all, or where a design of the middle lands.
            additive: Whether these are deviations; otherwise a design brings its own P_x.
        """
        self.columns, self.b = columns, len(columns)
        self.deviations = tuple(options) if additive else None
        # Gaussians per design, and what a design brings of each: w, m, and C unless all are points
        self.n = n = max(option.n_components for option in options)
        self.are_points, b = all(option.spread is None for option in options), self.b
        shapes = [(n,), (n, b), (n, b, b)][: 2 if self.are_points else 3]
        self.shapes: list[tuple[int, ...]] = [] if additive else shapes
        self.is_exact = (
            additive
            and n == 1
            and not any(bool(x.means.any() or x.variances.any()) for x in options)
        )
        # P_x of several columns that is the same around all designs: t = z - z' says all
        self.is_compared_by_place = additive and self.b > 1
        self._between: dict[tuple[int, int], Difference] = {}

    def __deepcopy__(self, memo: Any) -> "Group":
        """Return itself: a value that nobody changes, by which grids are remembered."""
        return self

    def between(self, one: int, two: int) -> "Difference":
        """Return the difference of two deviations, by the numbers of their uncertainties."""
        assert self.deviations is not None
        # δ - δ' for δ under uncertainty one and δ' under uncertainty two
        if (one, two) not in self._between:
            self._between[one, two] = Difference(self.deviations[one], self.deviations[two])
        return self._between[one, two]


class Difference:
    """δ - δ' for two independent deviations of the same columns."""

    def __init__(self, one: Mixture, two: Mixture) -> None:
        """Work out moments."""
        self.one, self.two = one, two
        self.n_pairs = one.n_components * two.n_components
        # E (δ - δ') = m₁ - m₂, Cov (δ - δ') = C₁ + C₂
        (m1, C1), (m2, C2) = one.moments(), two.moments()
        self.mean: Float[Tensor, " b"] = (m1 - m2)[0]
        self.covariance: Float[Tensor, "b b"] = (C1 + C2)[0]
        # cumulants of independent variables add up; the odd ones of -δ' change their sign
        (s1, k1), (s2, k2) = _third_and_fourth(one), _third_and_fourth(two)
        self.third, self.fourth = float((s1 - s2).abs().max()), float((k1 + k2).abs().max())
        self.variance = float(self.covariance.diagonal().max())
        self.moments = float(self.mean[0]), float(self.covariance[0, 0])  # of a single column

    def is_visible(self, lam: float) -> bool:
        r"""Say whether a Gaussian of a precision sees more than the mean and the variance.

        With cumulants κ of the difference, replacing it by a normal one changes g by the terms of
        the Gram-Charlier series, :math:`\kappa_3 \lambda^{3/2} He_3 / 6 + \kappa_4 \lambda^2 He_4 /
        24` times the Gaussian; where it is largest, He₃ times it is 1.4 and He₄ times it is 3.
        """
        if self.n_pairs == 1:
            return False
        # 1.4 / 6 = 0.23 and 3 / 24 = 1/8; the series converges fast where λ V is small
        error = 0.23 * self.third * lam**1.5 + self.fourth * lam**2 / 8
        return self.variance * lam > 0.1 or error > INVISIBLE.get(len(self.mean), 1e-5)

    def seen(self, lam: Float[Tensor, "q b"], as_normal: bool) -> Quadratics:
        """Return g as a function of the difference of designs."""
        # g_q(t) = E exp(-½ (t + s)ᵀ Λ_q (t + s)), s = δ - δ'
        mixture = self.normal if as_normal else self.whole
        return Quadratics.of(mixture, lam)

    def period(self, lam: Float[Tensor, " b"], reach: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
        r"""Return the shortest periods with which repetitions of a Gaussian stay invisible.

        Waves of period p show a Gaussian again at the distance p. Designs are at most ``reach``
        apart; there the next Gaussian has the value :math:`E e^{-\lambda (p - r - |s|)^2 / 2}` for
        s = δ - δ', a sum of Gaussian integrals.
        """
        w, m, V = (
            v[0].to(lam) for v in (self.whole.weights, self.whole.means, self.whole.variances)
        )
        # Σ_j w_j (1 + λ V_j)^-½ exp(-½ λ (p - r - |m_j|)² / (1 + λ V_j)) for many p
        widened = 1 + lam * V
        last = m.abs().amax(0) + SIGMAS * (V.amax(0) + 1 / lam).sqrt()
        beyond = torch.linspace(0, 1, N_PERIODS).to(lam).unsqueeze(-1) * last  # p - r, (p, b)
        away = (beyond.unsqueeze(-2) - m.abs()).clamp_min(0)  # (p, j, b)
        terms = (-0.5 * lam / widened * away.square()).exp() * widened.rsqrt()
        again = (w.unsqueeze(-1) * terms).sum(-2)
        # it falls with p: the first that cannot be seen
        first = (again > INVISIBLE[len(lam)]).sum(0, keepdim=True).clamp_max(N_PERIODS - 1)
        return reach + beyond.gather(0, first).squeeze(0)

    @cached_property
    def normal(self) -> Mixture:
        """The normal distribution with the same mean and covariance."""
        # N(E (δ - δ'), Cov (δ - δ'))
        one = self.mean.new_ones(1, 1)
        mean, covariance = self.mean[None, None], self.covariance[None, None]
        return Mixture(self.one.columns, one, mean, covariance, additive=True)

    @cached_property
    def whole(self) -> Mixture:
        """All pairs of Gaussians."""
        return difference(self.one, self.two)


@lru_cache(maxsize=64)
def groups_of(
    uncertainties: tuple[InputUncertainty, ...], d: int, resolution: Resolution
) -> list[Group]:
    """Divide columns into groups, as small as the dependences under all uncertainties allow."""
    # the middle of the cube shows what does not depend on the design
    middle = torch.full((1, d), 0.5, dtype=torch.float64)
    found = [u.gaussians(middle, resolution) for u in uncertainties]
    groups = []
    for columns in coarsest([part.columns for parts in found for part in parts]):
        own = [parts_within(parts, columns) for parts in found]
        additive = all(part.additive for parts in own for part in parts)
        if additive and len(uncertainties) <= MOST_KINDS:
            whole = [joined(parts, columns) for parts in own]
        else:
            whole = [_landing(parts, middle, columns) for parts in own]
            additive = False
        groups.append(Group(list(columns), whole, additive))
    return groups


class Designs:
    """Designs by their features, and the waves that were worked out of them."""

    def __init__(
        self,
        f: Float[Tensor, "n f"],
        kinds: Int64[Tensor, " n"],
        d: int,
        whole: "Designs | None" = None,
        chosen: Any = None,
    ) -> None:
        """Take features, which begin with ``d`` columns, and numbers of uncertainties.

        These may be the ``chosen`` ones of a ``whole`` list, whose waves serve all.
        """
        self.f, self.kinds, self.d = f, kinds, d
        self.whole, self.chosen = whole, chosen
        self._waves: dict[tuple[Any, ...], Tensor] = {}

    def __len__(self) -> int:
        """Return the number of designs."""
        return len(self.f)

    @cached_property
    def distinct(self) -> list[int]:
        """The numbers of the uncertainties that occur."""
        if self.whole is not None and len(self.whole.distinct) == 1:
            return self.whole.distinct
        found: list[int] = self.kinds.unique().tolist()
        return found

    @cached_property
    def is_within(self) -> bool:
        """Whether all designs lie in the box, or hardly outside."""
        if self.whole is not None and self.whole.is_within:
            return True
        # min and max over all columns of z
        low, high = self.f.detach()[:, : self.d].aminmax()
        return bool(low >= BOX[0]) and bool(high <= BOX[1])

    def take(self, chosen: Any) -> "Designs":
        """Return some of the designs, by a slice or by their numbers."""
        return Designs(self.f[chosen], self.kinds[chosen], self.d, self, chosen)

    @cached_property
    def by_kind(self) -> list[tuple["Designs", Int64[Tensor, " p"]]]:
        """The designs under each uncertainty that occurs, with their numbers in this list."""
        if len(self.distinct) == 1:
            return [(self, torch.arange(len(self), device=self.f.device))]
        numbers = [(self.kinds == kind).nonzero().squeeze(-1) for kind in self.distinct]
        return [(self.take(index), index) for index in numbers]

    def keeps(self, grid: Grid) -> bool:
        """Say whether the waves of all designs may be kept."""
        return len(self) * grid.size <= (MOST_KEPT_OF_SHORT if len(self) <= SHORT else MOST_KEPT)

    def waves(
        self, place: tuple[int, ...], grid: Grid, compute: Callable[["Designs", Grid], Tensor]
    ) -> Float[Tensor, "q n v"]:
        """Return waves on a grid; of a ``place``, a group and some Gaussians, the last are kept."""
        # Φ of some rows are rows of Φ
        whole = self.whole
        if whole is not None and len(whole.distinct) == 1 and whole.keeps(grid):
            return whole.waves(place, grid, compute)[:, self.chosen]
        if not self.keeps(grid):
            return compute(self, grid)
        key = (place, grid, torch.is_grad_enabled() and self.f.requires_grad)
        if key not in self._waves:
            for old in [known for known in self._waves if known[0] == place]:
                del self._waves[old]
            self._waves[key] = compute(self, grid)
        return self._waves[key]


class Spectrum:
    """The Gaussians of the base kernel, and what follows from them alone."""

    def __init__(self, base: GaussianSum, d: int) -> None:
        """Take the Gaussians as they are now; a prediction leaves out those without weight."""
        self.is_fitted = base.weights.requires_grad or base.moves
        self.numbers = list(range(len(base.weights)))
        if not self.is_fitted:
            kept = base.weights > NEGLIGIBLE * base.at_zero
            base = replace(base, weights=base.weights[kept], precisions=base.precisions[kept])
            self.numbers = kept.nonzero().flatten().tolist()
        self.constant, self.weights, self.moves = base.constant, base.weights, base.moves
        self.lam: Float[Tensor, "q d"] = base.by_column(d)
        self.precisions: list[list[float]] = self.lam.detach().tolist()
        self._known: dict[tuple[Any, ...], Any] = {}

    def known(self, key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Return what was worked out for these Gaussians, if they do not change."""
        if self.is_fitted:
            return compute()
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]


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
        self.resolution = Resolution(n_atoms)
        super().__init__(uncertainties, base_kernel, bounds)

    def prepare(self, uncertainties: Sequence[InputUncertainty]) -> None:
        """Divide the columns into groups, and see how far apart designs of the box may land."""
        super().prepare(uncertainties)
        self.groups = groups_of(tuple(self.in_cube), self.d, self.resolution)
        self.reach = self._reach_of_box()

    # -- features: what the base kernel has to know of P_x

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return places, numbers of uncertainties, and the Gaussians that designs bring."""
        # f = (z, number of the uncertainty, then for each group that changes: w, m, C)
        Z = (X - self.low) / self.width
        rows = [Z, choice.unsqueeze(-1).to(Z)]
        changing = [g for g in self.groups if g.deviations is None]

        def numbers_of(own: Tensor, number: int) -> Tensor:
            # P_x = Σ_j w_j N(m_j, C_j) in the columns of each group
            parts, numbers = self.in_cube[number].gaussians(own, self.resolution), []
            for g in changing:
                columns = tuple(g.columns)
                landing = padded(_landing(parts_within(parts, columns), own, columns), g.n)
                numbers += [landing.weights, landing.means.flatten(-2)]
                numbers += [] if g.are_points else [landing.covariances.flatten(-3)]
            return torch.cat(numbers, dim=-1)

        if changing:
            rows.append(self.under_own(Z, choice, numbers_of))
        return torch.cat(rows, dim=-1)

    def landing(self, group: Group, designs: Designs) -> Mixture:
        """Return where designs land in the columns of a group."""
        f = designs.f
        if group.deviations is not None:
            [kind] = designs.distinct
            return group.deviations[kind].to(f).around(f[:, group.columns])
        # the numbers of this group come after the place, the kind and the groups before
        sizes = [[math.prod(s) for s in g.shapes] for g in self.groups]
        before = self.groups.index(group)
        start = self.d + 1 + sum(map(sum, sizes[:before]))
        parts = f[:, start : start + sum(sizes[before])].split(sizes[before], dim=-1)
        shaped = [p.unflatten(-1, s) for p, s in zip(parts, group.shapes, strict=True)]
        # designs with fewer Gaussians than others have some of weight 0 at the end
        used = 1 + int(shaped[0].detach().any(0).nonzero()[-1])
        return Mixture(tuple(group.columns), *(v[:, :used] for v in shaped))

    # -- which designs are compared

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch k f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\langle\psi_P, \psi_Q\rangle` for all pairs, or matching ones."""
        if all(g.is_exact for g in self.groups):
            # ψ_P = k(x, ·): the inner product is the base kernel itself, Gaussians or not
            points = f1[..., : self.d], f2[..., : self.d]
            return to_dense(self.base_kernel(*points, diag=diag))
        batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2])
        shape = (*batch, f1.shape[-2]) if diag else (*batch, f1.shape[-2], f2.shape[-2])
        one, i = self._designs(f1)
        two, j = (one, i) if f1 is f2 else self._designs(f2)
        if not diag and len(two) == f2.shape[-2]:
            # a batch of designs that all meet the same others is one long list
            lead = f1.shape[:-1] if len(one) == i.numel() else f1.shape[-2:-1]
            return self._all_pairs(one, two).reshape(*lead, len(two)).expand(shape)
        if diag and one is two and len(one) == i.numel():
            return self._matching(one, two).reshape(i.shape).expand(shape)
        # batches of lists: the pairs (i, j) of designs that meet, as one long list of pairs
        if not diag:
            i, j = i.unsqueeze(-1), j.unsqueeze(-2)
        i, j = (index.expand(shape).reshape(-1) for index in (i, j))
        return self._matching(one.take(i), two.take(j)).reshape(shape)

    def _designs(self, f: Float[Tensor, "*batch n f"]) -> tuple[Designs, Int64[Tensor, "*batch n"]]:
        """Return features as one list, with the numbers of designs in it.

        A list that is repeated along a batch is taken once. The last few are remembered, so that
        all comparisons of the same designs share their waves.
        """
        known: list[Any] = self._memory.setdefault("designs", [])
        version = None if f.is_inference() else f._version
        for number, (tensor, its_version, *found) in enumerate(known):
            if tensor is f and its_version == version:
                known.insert(0, known.pop(number))
                return found[0], found[1]
        repeated = all(n == 1 or s == 0 for n, s in zip(f.shape[:-2], f.stride(), strict=False))
        lead = f.shape[-2:-1] if repeated else f.shape[:-1]
        rows = (f[(0,) * (f.dim() - 2)] if repeated else f).reshape(lead.numel(), f.shape[-1])
        numbers = torch.arange(lead.numel(), device=f.device).reshape(lead).expand(f.shape[:-1])
        designs = Designs(rows, rows[:, self.d].detach().long(), self.d)
        if len(self.uncertainties) == 1:
            designs.distinct = [0]
        known.insert(0, (f, version, designs, numbers))
        del known[N_REMEMBERED:]
        return designs, numbers

    def _all_pairs(self, one: Designs, two: Designs) -> Float[Tensor, "n k"]:
        """Compare all pairs, block by block of uncertainties."""
        if len(one.distinct) == len(two.distinct) == 1 or not any(
            g.deviations for g in self.groups
        ):
            return self._compared(one, two, matching=False)
        # K consists of blocks K_ab = ⟨ψ_P, ψ_Q⟩ with P under uncertainty a and Q under b
        (As, i), (Bs, j) = (zip(*x.by_kind, strict=True) for x in (one, two))
        rows = [torch.cat([self._compared(A, B, False) for B in Bs], dim=-1) for A in As]
        return torch.cat(rows)[torch.cat(i).argsort()][:, torch.cat(j).argsort()]

    def _matching(self, one: Designs, two: Designs) -> Float[Tensor, " n"]:
        """Compare matching designs, group by group of uncertainties."""
        if len(self.uncertainties) == 1 or not any(g.deviations for g in self.groups):
            return self._compared(one, two, matching=True)
        # pairs (a, b) of uncertainties, as one number
        kinds = one.kinds * len(self.uncertainties) + two.kinds
        found = kinds.unique().tolist()
        if len(found) == 1:
            return self._compared(one, two, matching=True)
        total = torch.zeros(len(kinds)).to(one.f)
        for number in found:
            [chosen] = (kinds == number).nonzero(as_tuple=True)
            a = one.take(chosen)
            b = a if one is two else two.take(chosen)
            total = total.index_put((chosen,), self._compared(a, b, matching=True))
        return total

    # -- sums over the Gaussians of the base kernel

    def _compared(self, one: Designs, two: Designs, matching: bool) -> Tensor:
        """Return c₀ + Σ_q c_q Π_b g_qb; all designs of a list are under one uncertainty."""
        base = self._spectrum()
        if matching and one is two and all(g.deviations for g in self.groups):
            # ‖ψ_P‖² under an additive uncertainty is the same for all designs
            first = one.take(slice(0, 1))
            compute = lambda: self._summed(base, first, first, True)  # noqa: E731
            norm: Tensor = base.known(("norm", one.distinct[0]), compute)
            return norm.expand(len(one))
        if one is two and not matching and self._keeps(base, one):
            # c₀ + Σ_q c_q T_q, where only the c_q move
            each = self._each(base, one)
            return base.constant + torch.tensordot(base.weights, each, dims=1)
        return self._summed(base, one, two, matching)

    def _spectrum(self) -> Spectrum:
        """Return the Gaussians of the base kernel; those of predictions are remembered."""
        hyper = list(self.base_kernel.parameters())
        now = torch.cat([*(p.detach().flatten() for p in hyper), self.low])
        fitted = torch.is_grad_enabled() and any(p.requires_grad for p in hyper)
        key, known = self._memory.get("spectrum", (now, None))
        if known is not None and not fitted and torch.equal(key, now):
            found: Spectrum = known
            return found
        # c₀, c_q and Λ_q as the hyper-parameters make them now
        base = gaussian_sum(self.base_kernel)
        assert base is not None
        spectrum = Spectrum(base, self.d)
        if not spectrum.is_fitted:
            self._memory["spectrum"] = now, spectrum
        return spectrum

    def _keeps(self, base: Spectrum, one: Designs) -> bool:
        """Say whether a fit moves only weights, so that the Gaussians can be kept for all steps."""
        if base.moves or not base.weights.requires_grad or one.f.requires_grad:
            return False
        return len(base.weights) * len(one) ** 2 <= 2 * MAX_KEPT

    def _each(self, base: Spectrum, one: Designs) -> Float[Tensor, "q n n"]:
        """Return Π_b g_qb for all pairs of observations."""

        def compute() -> Tensor:
            with torch.no_grad():
                product = partial(self._product, base, matching=False)
                blocks = [
                    torch.cat([product(q, a, b, ways) for q, ways in some])
                    for a, b, some in self._blocks(base, one, one, False)
                ]
                return _mirrored(blocks) if len(blocks) > 1 else blocks[0]

        key = torch.cat([one.f.flatten(), base.lam.detach().flatten()])
        return self.remembered("each", key, compute)

    def _summed(self, base: Spectrum, one: Designs, two: Designs, matching: bool) -> Tensor:
        """Sum over Gaussians, so many pairs and Gaussians at a time as fit in the cache."""
        n_pairs = len(one) * (1 if matching else len(two))
        # a gradient keeps all factors and their products, unless they are worked out again
        kept = n_pairs * len(base.weights) * (2 + len(self.groups))
        again = torch.is_grad_enabled() and base.moves and kept > MAX_KEPT

        def part(q: slice, a: Designs, b: Designs, ways: list[Way]) -> Tensor:
            # Σ_q c_q Π_b g_qb over some of the Gaussians
            each = self._product(base, q, a, b, ways, matching)
            return torch.tensordot(base.weights[q], each, dims=1)

        blocks = []
        for a, b, some in self._blocks(base, one, two, matching):
            total: Tensor = base.constant
            for q, ways in some:
                args = q, a, b, ways
                total = total + (
                    checkpoint(part, *args, use_reentrant=False) if again else part(*args)
                )
            blocks.append(total)
        if len(blocks) == 1:
            return blocks[0]
        if one is two and not matching:
            return _mirrored(blocks)
        return torch.cat(blocks, dim=-1 if matching else -2)

    def _blocks(
        self, base: Spectrum, one: Designs, two: Designs, matching: bool
    ) -> list[tuple[Designs, Designs, list[tuple[slice, list[Way]]]]]:
        """Divide designs and Gaussians, so that every product fits in the cache.

        Returns:
            Pairs of lists of designs, each with all Gaussians, some at a time, and how each group
            of columns is worked out for them. Of a list with itself, blocks of the upper triangle.
        """
        kinds, reach = (one.distinct[0], two.distinct[0]), self._reach(one, two)
        few = len(one) * (1 if matching else len(two)) <= FEW_DESIGNS
        make = lambda: self._ways(base.precisions, reach, kinds, few)  # noqa: E731
        ways, per_pair, waves = base.known(("ways", *reach, *kinds, few), make)
        width = 1 if matching else len(two)
        size = max(1, PORTION // max(max(waves), max(per_pair) * width))
        symmetric = one is two and not matching
        if symmetric and len(one) >= 2 * SMALLEST_BLOCK:
            size = min(size, max(SMALLEST_BLOCK, len(one) // N_BLOCKS))
        # Gaussians that are worked out together: with the same ways, in the same portion
        portions, start = [], 0
        while start < len(ways):
            own = ways[start]
            # several columns have a grid for each Gaussian
            apart = any(w == WAVES and g.b > 1 for (w, _), g in zip(own, self.groups, strict=True))
            pairs = per_pair[start] * width * min(size, len(one))
            most = (
                1 if apart else max(1, PORTION // max(pairs, TYPICAL_WAVES * min(size, len(one))))
            )
            stop = start + 1
            while stop < len(ways) and stop - start < most and ways[stop] == own:
                stop += 1
            portions.append((slice(start, stop), own))
            start = stop
        if len(one) <= size:
            return [(one, two, portions)]
        # rows i to i + size of K; of a symmetric matrix only what is right of the diagonal
        found = []
        for i in range(0, len(one), size):
            rows = one.take(slice(i, i + size))
            if matching:
                others = rows if one is two else two.take(slice(i, i + size))
            else:
                others = one.take(slice(i, None)) if symmetric else two
            found.append((rows, others, portions))
        return found

    def _ways(
        self,
        lam: list[list[float]],
        reach: list[tuple[float, ...]],
        kinds: tuple[int, int],
        few: bool,
    ) -> tuple[list[list[Way]], list[int], list[int]]:
        """Return how every group is worked out, by Gaussian of the base kernel, and what it takes.

        For few designs, fewer steps save more than they cost: all Gaussians are worked out
        together. In single columns, waves are right wherever the closed form is.

        Returns:
            The ways; numbers that comparing two designs takes; waves of a design.
        """
        found: list[list[Way]] = [[] for _ in lam]
        per_pair, per_design = [1] * len(lam), [1] * len(lam)
        for g, r in zip(self.groups, reach, strict=True):
            between = None if g.deviations is None else g.between(*kinds)
            # pairs of Gaussians (j, k) that P and Q are sums of
            n_pairs = g.n**2 if between is None else between.n_pairs
            for q, precisions in enumerate(lam):
                own = [precisions[c] for c in g.columns]
                visible = between.is_visible(max(own)) if between else g.n > 1 or g.b > 1
                waves = TYPICAL_WAVES if g.b == 1 else n_waves(own, r) if g.b <= 3 else math.inf
                if not visible:
                    found[q].append((NORMAL, r))
                elif g.b == 1 or (n_pairs > FEW_PAIRS and waves <= MOST_WAVES):
                    found[q].append((WAVES, r))
                    per_design[q] = max(per_design[q], math.ceil(waves))
                else:
                    found[q].append((PAIRS, r))
                    numbers = n_pairs * (1 if between or g.are_points else g.b**2)
                    per_pair[q] = max(per_pair[q], numbers)
        # few designs: if one Gaussian needs waves in a column, all take them; g is then the same up
        # to INVISIBLE, and all Gaussians are one product
        if few:
            columns = zip(self.groups, zip(*found, strict=True), strict=True)
            same = [max(each) if g.b == 1 else None for g, each in columns]
            found = [[a or b for a, b in zip(same, each, strict=True)] for each in found]
        return found, per_pair, per_design

    # -- g for each group of columns

    def _product(
        self,
        base: Spectrum,
        q: slice,
        one: Designs,
        two: Designs,
        ways: list[Way],
        matching: bool,
    ) -> Float[Tensor, "q ..."]:
        """Return Π_b g_qb for some Gaussians and pairs of designs."""
        kinds = one.distinct[0], two.distinct[0]
        # single columns with the same V for all designs share one exponential
        factors, columns, changing = [], [], []
        for i, (g, (way, reach)) in enumerate(zip(self.groups, ways, strict=True)):
            own = base.lam[q][:, g.columns]
            if way == NORMAL and g.b == 1 and g.deviations is not None:
                columns.append((g.columns[0], *g.between(*kinds).moments))
            elif way == WAVES:
                factors.append(self._waves(base, q, i, reach, one, two, matching))
            elif way == NORMAL and g.b == 1:
                changing.append(g)
            elif g.deviations is not None:
                make = partial(g.between(*kinds).seen, own, way == NORMAL)
                seen = base.known(("seen", i, q.start, q.stop, way, *kinds), make)
                t = _pairwise(one.f[:, g.columns], two.f[:, g.columns], torch.sub, matching)
                factors.append(seen(t.movedim(-1, 0)))
            else:
                landings = self.landing(g, one), self.landing(g, two)
                factors.append(over_pairs_of_components(*landings, own, matching))
        if changing:
            factors.append(self._normals(changing, one, two, base.lam[q], matching))
        if columns:
            factors.append(_shifted_normals(columns, one, two, base.lam[q], matching))
        return math.prod(factors[1:], start=factors[0])

    def _normals(
        self,
        groups: list[Group],
        one: Designs,
        two: Designs,
        lam: Float[Tensor, "q d"],
        matching: bool,
    ) -> Float[Tensor, "q ..."]:
        r"""Multiply over single columns in which every design brings one Gaussian.

        .. math:: \prod_c (1 + \lambda_c V_c)^{-1/2} \exp\Big(-\frac12 \sum_c
                  \frac{\lambda_c t_c^2}{1 + \lambda_c V_c}\Big), \quad V = v + v', \; t = m - m'
        """
        exponent, widened = torch.zeros(()).to(lam), torch.ones(()).to(lam)
        for g in groups:
            p, q = self.landing(g, one), self.landing(g, two)
            t = _pairwise(p.means[..., 0], q.means[..., 0], torch.sub, matching).squeeze(-1)
            V = _pairwise(p.variances[..., 0], q.variances[..., 0], torch.add, matching).squeeze(-1)
            own = lam[:, g.columns].unflatten(-1, [1] * V.dim())
            # the Gaussian is widened from 1/λ to 1/λ + V: w = 1 + λ V
            w = 1 + own * V
            exponent, widened = exponent + own * t.square() / w, widened * w
        # one exponential for all columns
        return (-0.5 * exponent).exp() * widened.rsqrt()

    def _waves(
        self,
        base: Spectrum,
        q: slice,
        i: int,
        reach: tuple[float, ...],
        one: Designs,
        two: Designs,
        matching: bool,
    ) -> Float[Tensor, "q ..."]:
        """Return Φ₁ diag(a) Φ₂ᵀ for group number ``i``."""
        # g_q = Φ diag(a_q) Φ'ᵀ, for some q at a time
        g = self.groups[i]
        place, lam = (i, *base.numbers[q]), base.lam[q][:, g.columns]
        kinds = (0, 0) if g.deviations is None else (one.distinct[0], two.distinct[0])

        def make() -> tuple[Grid, Tensor]:
            # the grid is the same for similar widths; the amplitudes follow them
            grid = grid_of(g, narrowest(lam), reach, kinds, lam.dtype, lam.device)
            return grid, grid.amplitudes(lam)

        grid, a = base.known(("grid", *place, *reach, *kinds), make)
        phi = one.waves(place, grid, partial(self._new_waves, g))
        other = phi if one is two else two.waves(place, grid, partial(self._new_waves, g))
        # Σ_k a_k (E cos ω_k u E cos ω_k v + E sin ω_k u E sin ω_k v) = Σ_k a_k E cos ω_k (u - v)
        weighted = phi * a.unsqueeze(-2)
        return (weighted * other).sum(-1) if matching else weighted @ other.mT

    def _new_waves(self, g: Group, designs: Designs, grid: Grid) -> Float[Tensor, "q n v"]:
        # P_x = Σ_j w_j N(m_j, C_j) of every design, or x + δ with the same δ for all
        if g.deviations is None:
            landing = self.landing(g, designs).clamped(-FARTHEST, 1 + FARTHEST)
            return landing_waves(landing, grid)
        x = designs.f[:, g.columns].clamp(-FARTHEST, 1 + FARTHEST)
        deviation = g.deviations[designs.distinct[0]]
        return shifted(x, *characteristic(deviation, grid.frequencies), grid.frequencies)

    # -- how far apart executed inputs may be

    def _reach(self, one: Designs, two: Designs) -> list[tuple[float, ...]]:
        """Return, by group, how far apart executed inputs may be in its columns.

        For designs of the box these are constants. Others need waves of a longer period, in this
        comparison only.
        """
        # r = max |u - v|, doubled until it covers designs outside of the box
        reach = self.reach
        if one.is_within and two.is_within:
            return reach
        with torch.no_grad():
            needed = [self._extent(g, (one, two)) for g in self.groups]
        return [
            tuple(r * 2 ** math.ceil(math.log2(max(1.0, n / r))) for r, n in zip(*own, strict=True))
            for own in zip(reach, needed, strict=True)
        ]

    def _reach_of_box(self) -> list[tuple[float, ...]]:
        """Look at designs of the whole box: of one column after the other, and on its diagonal."""
        side = torch.linspace(0, 1, 33).to(self.low)
        Z = torch.full((self.d, 33, self.d), 0.5).to(self.low)
        for c in range(self.d):
            Z[c, :, c] = side
        Z = torch.cat([Z.flatten(0, 1), side.unsqueeze(-1).expand(-1, self.d)])
        every = []
        with torch.no_grad():
            for kind in range(len(self.uncertainties)):
                kinds = torch.full((len(Z),), kind, device=Z.device)
                every.append(Designs(self.compute(self.low + self.width * Z, kinds), kinds, self.d))
            inside = [self._extent(g, every) for g in self.groups]
        longer = BOX[1] - BOX[0]
        return [tuple(longer * r for r in own) for own in inside]

    def _extent(self, g: Group, every: Sequence[Designs]) -> tuple[float, ...]:
        """Return the distances between the outermost executed inputs, or designs, by column."""
        lows, highs = [], []
        for some, _ in [pair for designs in every for pair in designs.by_kind]:
            if g.is_compared_by_place:
                m, reach = (
                    some.f[:, g.columns].clamp(-FARTHEST, 1 + FARTHEST),
                    self.low.new_zeros(1),
                )
            else:
                landing = self.landing(g, some).clamped(-FARTHEST, 1 + FARTHEST)
                m, V = landing.means.flatten(0, 1), landing.variances.flatten(0, 1)
                reach = SIGMAS * V.clamp_min(0).sqrt()
            lows.append((m - reach).amin(0))
            highs.append((m + reach).amax(0))
        # the largest u - v over all executed inputs, up to SIGMAS standard deviations
        extent = torch.stack(highs).amax(0) - torch.stack(lows).amin(0)
        return tuple(extent.clamp_max(1 + 4 * FARTHEST).tolist())


@lru_cache(maxsize=512)
def grid_of(
    g: Group,
    roots: tuple[tuple[float, ...], ...],
    reach: tuple[float, ...],
    kinds: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
) -> Grid:
    """Return the frequencies of a group, for Gaussians that are not narrower than 1 / ``roots``."""
    like = torch.empty(0, dtype=dtype, device=device)
    narrow, r = like.new_tensor(roots), like.new_tensor(reach)
    deviations = g.deviations
    if g.b == 1 or deviations is None:
        # at the distance r the next Gaussian has fallen to exp(-½ margin²)
        margin = MARGIN[g.b]
        return Grid.of(narrow, r + margin / widest(narrow), margin)
    between = g.between(*kinds)
    grid = Grid.of(narrow, between.period(widest(narrow)[0].square(), r), MARGIN[1])
    # g = Σ_k a_k |φ_P(ω_k)| |φ_Q(ω_k)| cos(...): leave out the smallest terms, as many as together
    # stay invisible
    height = grid.bounds()[0]
    for kind in kinds:
        height = height * characteristic(deviations[kind], grid.frequencies)[0][0]
    ordered, order = height.sort()
    return grid.only(order[ordered.cumsum(0) > INVISIBLE[g.b]])


def _shifted_normals(
    columns: list[tuple[int, float, float]],
    one: Designs,
    two: Designs,
    lam: Float[Tensor, "q d"],
    matching: bool,
) -> Float[Tensor, "q ..."]:
    r"""Multiply over columns whose difference is normal, with the same variance for all designs.

    .. math:: \prod_c (1 + \lambda_c V_c)^{-1/2} \exp\Big(-\frac{\lambda_c t_c^2}
              {2 (1 + \lambda_c V_c)}\Big)

    The exponents of all pairs are one product of matrices. A column comes with the mean and the
    variance V of δ - δ'.
    """
    # t_c = z_c + E (δ - δ')_c - z'_c
    numbers = [c for c, _, _ in columns]
    shift, V = (lam.new_tensor(v) for v in list(zip(*columns, strict=True))[1:])
    own = lam[:, numbers]
    w = 1 + own * V  # (q, c)
    z1, z2 = one.f[:, numbers] + shift, two.f[:, numbers]
    t2 = _pairwise(z1, z2, torch.sub, matching).square()
    # -½ Σ_c λ_c t_c² / (1 + λ_c V_c): (q, c) times (c, pairs)
    exponent = (-0.5 * own / w) @ t2.movedim(-1, 0).flatten(1)
    # Π_c (1 + λ_c V_c)^-½
    height = w.prod(-1).rsqrt().unsqueeze(-1)
    return (height * exponent.exp()).unflatten(-1, t2.shape[:-1])


def _mirrored(blocks: list[Tensor]) -> Float[Tensor, "... n n"]:
    """Return a symmetric matrix from rows of its upper triangle."""
    # K = U + (U - diag U)ᵀ
    n = blocks[0].shape[-1]
    upper = torch.cat([pad(block, (n - block.shape[-1], 0)) for block in blocks], dim=-2)
    return upper.triu() + upper.triu(1).mT


def _third_and_fourth(deviation: Mixture) -> tuple[Float[Tensor, " u"], Float[Tensor, " u"]]:
    """Return cumulants along the columns, and along the diagonals between two of them."""
    b = len(deviation.columns)
    eye = torch.eye(b, dtype=torch.float64)
    i, j = torch.triu_indices(b, b, offset=1)
    U = torch.cat([eye, (eye[i] + eye[j]) / 2**0.5, (eye[i] - eye[j]) / 2**0.5]).mT  # (b, u)
    w = deviation.weights[0].double().unsqueeze(-1)  # (j, 1)
    m = deviation.means[0].double() @ U
    m = m - (w * m).sum(0)
    C = deviation.covariances[0].double()
    s = (U * (C @ U)).sum(-2)  # uᵀ C_j u, (j, u)
    # moments of Gaussians at m with variances s
    second = (w * (m**2 + s)).sum(0)
    third = (w * (m**3 + 3 * m * s)).sum(0)
    fourth = (w * (m**4 + 6 * m**2 * s + 3 * s**2)).sum(0)
    # κ₃ = μ₃, κ₄ = μ₄ - 3 μ₂²
    return third, fourth - 3 * second**2


def _landing(parts: Sequence[Mixture], Z: Tensor, columns: tuple[int, ...]) -> Mixture:
    return joined([part.around(Z[..., list(part.columns)]) for part in parts], columns)


def _pairwise(
    a: Float[Tensor, "n c"],
    b: Float[Tensor, "k c"],
    operation: Callable[[Tensor, Tensor], Tensor],
    matching: bool,
) -> Tensor:
    """Combine all pairs, (n, k, c), or matching ones, (n, c)."""
    return operation(a, b) if matching else operation(a.unsqueeze(1), b.unsqueeze(0))
