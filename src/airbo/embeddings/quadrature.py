"""The default embedding: P_x integrated in closed form or by quadrature, block by block."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int64
from linear_operator import to_dense
from torch import Tensor

from airbo.embeddings.embedding import MAX_REMEMBERED, Embedding, is_same
from airbo.embeddings.fitting import PairTables, products
from airbo.embeddings.gaussian_sum import GaussianSum, gaussian_sum, skeleton
from airbo.embeddings.line import Line, line_of
from airbo.embeddings.plan import Plan, plan_of
from airbo.embeddings.portions import every_gaussian, symmetric_sum, weighted_sum
from airbo.embeddings.terms import FARTHEST, Looked, Terms
from airbo.uncertainty.gaussians import Mixture, Resolution

REACH = 6.0
"""Standard deviations beyond which a Gaussian is not followed."""
N_FEWER, N_SAMPLED, NEIGHBOURS = 200, 16, (1e-3, 4e-3, 0.016, 0.06, 0.15, 0.4)
"""Observations from which on a fit looks for Gaussians that it can do without, observations that it
looks at, and distances of their neighbours."""
N_POLYNOMIALS = 64
"""Observations from which on polynomials of dependent columns save a fit time."""
N_TOGETHER = 300
"""Observations up to which a fit keeps all it needs for gradients; else it works it out again."""
TOO_LIGHT = 1e-6
"""Share of the base kernel that a Gaussian has to have where all take too much time."""
LIMIT = 1e-5
"""By how much one Gaussian may be simplified there, as a share of the base kernel."""
SIMPLER = 3e-5
"""Largest change of the inner product, as a share of the base kernel at distance 0, so that
predictions take less time."""


class QuadratureEmbedding(Embedding):
    """Embeds P_x by a product over groups of columns, each computed in its own way."""

    seen: Tensor
    """Lowest and highest design so far, in every column of the unit cube."""
    landed: Tensor
    """The same of executed inputs, where designs bring their own distribution."""

    def __init__(self, n_atoms: int, *args: object) -> None:
        """Resolve what is not Gaussian with ``n_atoms`` components."""
        super().__init__(*args)  # type: ignore[arg-type]
        self.resolution = Resolution(n_atoms)
        for name in ("seen", "landed"):
            self.register_buffer(name, torch.tensor([[0.0], [1.0]]).repeat(1, self.d).to(self.low))
        self._far = False

    @property
    def plan(self) -> Plan:
        """The groups of columns."""
        return self.remembered(
            "plan", self.low, lambda: plan_of(tuple(self.in_cube), self.d, self.resolution)
        )

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return designs in the unit cube with all that the base kernel has to know of P_x."""
        Z, plan = (X - self.low) / self.width, self.plan
        if plan.on_a_line:
            return self._on_the_line(Z, choice)
        f = plan.features(Z, choice)
        self._look(f.detach())
        return f

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch k f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\langle\psi_P, \psi_Q\rangle` for all pairs, or matching ones."""
        plan = self.plan
        if plan.is_exact:
            d = self.d
            return to_dense(self.base_kernel(f1[..., :d], f2[..., :d], diag=diag))
        if plan.on_a_line:
            return self._inner_on_the_line(f1, f2, diag)
        if self.training:
            return self._while_fitting(f1, f2, diag)
        if not diag and is_same(f1, f2) and f1.shape[-2] == 1:
            return self.squared_norm(f1).unsqueeze(-1)
        base, terms, _ = self._prepared()
        (f1, f2), shape = _unbatched(f1, f2, diag)
        one, two = self._looked(terms, f1, f2, diag)
        return (base.constant + weighted_sum(terms, base.weights, one, two, diag)).reshape(shape)

    def squared_norm(self, f: Float[Tensor, "*batch n f"]) -> Float[Tensor, "*batch n"]:
        r"""Return :math:`\|\psi_P\|^2`; often the number of the uncertainty says it all."""
        plan = self.plan
        if plan.design_matters or plan.is_exact:
            return self.inner(f, f, diag=True)
        if plan.on_a_line:
            if len(self.uncertainties) > 1 or not self._line().is_even:
                return self.inner(f, f, diag=True)
            one = f.detach().reshape(-1, f.shape[-1])[:1]  # all have the same
            return self.inner(one, one, diag=True).expand(f.shape[:-1])
        norms = self._norms_of_kinds(f)
        return norms.expand(f.shape[:-1]) if len(norms) == 1 else norms[f[..., self.d].long()]

    def mmd2(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch k f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\|\psi_P - \psi_Q\|^2`, looking at every design once."""
        alone, plan = is_same(f1, f2) and f1.shape[-2] == 1, self.plan
        if self.training or diag or alone or plan.on_a_line or plan.is_exact:
            return super().mmd2(f1, f2, diag)
        base, terms, norms = self._prepared()
        (f1, f2), shape = _unbatched(f1, f2, diag)
        one, two = self._looked(terms, f1, f2, diag)
        inner = weighted_sum(terms, base.weights, one, two, False)
        if len(norms) == 1:
            return (2 * (norms - base.constant) - 2 * inner).reshape(shape)
        if not len(norms):
            n1, n2 = (weighted_sum(terms, base.weights, v, v, True) for v in (one, two))
        else:
            n1, n2 = (norms[v.f[..., self.d].long()] - base.constant for v in (one, two))
        return (n1.unsqueeze(-1) + n2.unsqueeze(-2) - 2 * inner).reshape(shape)

    def _norms_of_kinds(self, like: Tensor) -> Float[Tensor, " kinds"]:
        if not self.training:
            return self._prepared()[2]
        kinds = self._kinds(like)
        return self.inner(kinds, kinds, diag=True)

    def _kinds(self, like: Tensor) -> Float[Tensor, "kinds f"]:
        """Return one design under each uncertainty."""
        n = len(self.uncertainties)
        middle = like.new_full((n, self.d), 0.5)
        return torch.cat([middle, torch.arange(n).to(like).unsqueeze(-1)], dim=-1)

    def _looked(self, terms: Terms, f1: Tensor, f2: Tensor, diag: bool) -> tuple[Looked, Looked]:
        """Look at every design once; at the second ones, the observations, once in all."""
        if diag:
            one = terms.look(f1)
            return one, one if is_same(f1, f2) else terms.look(f2)
        if f2.requires_grad:
            return terms.look(f1), terms.look(f2, weighed=True)
        two = terms.look_again(f2)
        return two if is_same(f1, f2) else terms.look(f1), two

    # -- predicting: the hyper-parameters stay

    def _prepared(self) -> tuple[GaussianSum, Terms, Tensor]:
        """Return what does not change as long as the hyper-parameters stay the same.

        Returns:
            The base kernel, what compares designs, and the squared norm under each uncertainty
            where the design does not matter.
        """

        def prepare() -> tuple[GaussianSum, Terms, Tensor]:
            base = self._base().shortened()
            # under several uncertainties, all pairs of them have to see the same
            budget = SIMPLER if len(self.uncertainties) == 1 else SIMPLER / 30
            share = budget * base.at_zero / 3
            terms = Terms(self.plan, base, self.seen, self._extent(), share / base.weights)
            if self.plan.design_matters:
                return base, terms, base.weights[:0]
            kinds = terms.look(self._kinds(base.weights))
            norms = weighted_sum(terms, base.weights, kinds, kinds, True)
            return base, terms, base.constant + norms

        with torch.no_grad():
            return self.remembered("terms", self._key(), prepare)

    def _key(self) -> Tensor:
        """Return all that predictions depend on, besides designs."""
        parts = [*self.base_kernel.parameters(), self.seen, self.landed]
        return torch.cat([p.detach().flatten() for p in parts])

    # -- fitting: the hyper-parameters move, the designs do not

    def _while_fitting(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        """Sum over all Gaussians: the likelihood has to be smooth in the hyper-parameters."""
        base = self._base()
        moving = f1.requires_grad or f2.requires_grad
        alike = f1.dim() == 2 and f1.shape == f2.shape and not moving and torch.equal(f1, f2)
        if not alike:
            terms = Terms(self.plan, base, self.seen, self._extent())
            return base.constant + weighted_sum(terms, base.weights, Looked(f1), Looked(f2), diag)
        if base.moves:
            return base.constant + self._with_moving_widths(base, f1, diag)
        return base.constant + self._with_moving_weights(base, f1, diag)

    def _with_moving_weights(self, base: GaussianSum, f: Tensor, diag: bool) -> Tensor:
        """Work out every Gaussian once per fit, where that does not take too much memory."""
        few = self._fewer(base, f)
        if len(f) ** 2 * len(few.weights) > MAX_REMEMBERED:
            return self._again_in_every_step(base, f, diag)
        key = torch.cat([f.flatten(), few.widths])
        each = self.remembered("each", key, lambda: self._each(few.detached(), f))
        each = each.diagonal(dim1=-2, dim2=-1) if diag else each
        return torch.tensordot(few.weights, each, dims=1)

    def _fewer(self, base: GaussianSum, f: Float[Tensor, "n f"]) -> GaussianSum:
        """Replace Gaussians by sums of others that look the same at every distance.

        The new weights are linear in the old ones, so that the likelihood stays smooth.
        """
        if self.plan.brings or len(f) < N_FEWER:
            return base

        def find() -> tuple[Tensor, Tensor]:
            # some designs, the corners of all, and neighbours of theirs at all distances
            some = f[:: max(1, len(f) // N_SAMPLED)][: N_SAMPLED + 2].clone()
            some[:2, : self.d] = torch.stack([f.amin(0), f.amax(0)])[:, : self.d]
            away = some.repeat(len(NEIGHBOURS), 1)
            shift = torch.tensor(NEIGHBOURS).to(f).repeat_interleave(len(some))
            signs = torch.where(torch.arange(self.d) % 2 == 0, 1.0, -1.0).to(f)
            away[:, : self.d] += shift.unsqueeze(-1) * signs / self.d**0.5
            return skeleton(self._each(base.detached(), torch.cat([some, away])).flatten(1))

        kept, shares = self.remembered("fewer", torch.cat([f.flatten(), base.widths]), find)
        return replace(base, weights=base.weights @ shares, precisions=base.precisions[kept])

    def _with_moving_widths(self, base: GaussianSum, f: Tensor, diag: bool) -> Tensor:
        """Look up single columns in tables, which are made once per fit."""
        n, columns = len(f), [g.columns[0] for g in self.plan.waves]
        if len(columns) * n**2 * 45 > MAX_REMEMBERED or n > N_TOGETHER:
            return self._again_in_every_step(base, f, diag)
        terms = Terms(self.plan, base, self.seen, self._extent(), without_waves=True)
        each = terms(Looked(f), Looked(f), diag)
        i, j = torch.triu_indices(n, n, device=f.device)
        if diag:
            if columns:
                tables = self.remembered("diagonal", f, lambda: self._tables(f, i, j).only(i == j))
                each = each * tables(terms.precisions[:, columns])
            return base.weights @ each
        each = each[:, i, j]
        if columns:
            each = each * self._tables(f, i, j)(terms.precisions[:, columns])
        upper = f.new_zeros(n, n).index_put((i, j), base.weights @ each)
        return upper + upper.triu(1).mT

    def _tables(self, f: Tensor, i: Tensor, j: Tensor) -> PairTables:
        def build() -> PairTables:
            low, high = self._extent()
            reaches = [(high - low)[g.columns[0]].item() for g in self.plan.waves]
            return PairTables.of(self.plan, f.detach(), reaches, torch.stack([i, j]))

        with torch.no_grad():
            return self.remembered("tables", f, build)

    def _again_in_every_step(self, base: GaussianSum, f: Tensor, diag: bool) -> Tensor:
        """Sum over the Gaussians that count at present; what a step remembers does not grow."""
        counts = base.weights.detach() > TOO_LIGHT * base.weights.detach().sum()
        kept = replace(base, weights=base.weights[counts], precisions=base.precisions[counts])
        kept = kept if base.moves else self._fewer(kept, f)
        terms = self._terms_of_steps(kept)
        if diag:
            looked = terms.look(f)
            return weighted_sum(terms, kept.weights, looked, looked, True)
        return symmetric_sum(terms, kept.weights, f)

    def _terms_of_steps(self, base: GaussianSum) -> Terms:
        """Prepare a step; several of them, where only weights move, and not by much."""
        if base.moves:
            return Terms(self.plan, base, self.seen, self._extent())
        with torch.no_grad():
            share = base.weights.abs() / base.at_zero
            key = torch.cat([base.widths, share.log2().ceil(), self.seen.flatten()])
            return self.remembered(
                "steps",
                key,
                lambda: Terms(
                    self.plan, base.detached(), self.seen, self._extent(), LIMIT / share / 2
                ),
            )

    def _each(self, base: GaussianSum, f: Float[Tensor, "n f"]) -> Float[Tensor, "q n n"]:
        """Work out every Gaussian between all pairs of observations."""
        with torch.no_grad():
            low, high = extent = self._extent()
            if self.plan.differences and len(f) >= N_POLYNOMIALS:
                limits = torch.full_like(base.weights, LIMIT / 10)
                return every_gaussian(Terms(self.plan, base, self.seen, extent, limits), f)
            each = every_gaussian(Terms(self.plan, base, self.seen, extent, without_waves=True), f)
            for group in self.plan.waves:
                c = group.columns[0]
                precisions = base.by_column(self.d)[:, c]
                each = each * products(self.plan, group, f, precisions, (high - low)[c].item())
            return each

    # -- one column

    def _on_the_line(self, Z: Tensor, choice: Tensor) -> Tensor:
        line = self._line()
        if not self._far and not line.spans(Z):
            self._far = True
            self._changes += 1
            line = self._line()
        return line.features(Z, choice)

    def _inner_on_the_line(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        gram = self._gram(f1)
        if diag:
            return ((f1 @ gram) * f2).sum(-1)
        (rows, others), shape = _unbatched(f1, f2, diag)
        if self.training or others.requires_grad:
            return (rows @ (gram @ others.mT)).reshape(shape)
        # the observations, which stay, take the larger part of the work
        key = torch.cat([self._key(), others.flatten()])
        weighed = self.remembered("weighed", key, lambda: gram @ others.mT)
        return (rows @ weighed).reshape(shape)

    def _line(self) -> Line:
        with torch.no_grad():
            return line_of(self.plan, self._far)

    def _gram(self, f: Tensor) -> Tensor:
        line = self._line()
        if self.training:
            return line.gram(self.base_kernel, f)
        with torch.no_grad():
            return self.remembered(
                f"gram {self._far}", self._key(), lambda: line.gram(self.base_kernel, f)
            )

    # -- helpers

    def _base(self) -> GaussianSum:
        base = gaussian_sum(self.base_kernel)
        assert base is not None
        return base

    def _look(self, f: Tensor) -> None:
        """Remember how far designs, and the distributions that they bring, reach."""
        rows, plan = f[..., : self.d].reshape(-1, self.d), self.plan
        if not torch.equal(rows.clamp(*self.seen), rows):
            self.seen = _widened(self.seen, rows.amin(0), rows.amax(0))
        for group in plan.waves:
            if group.is_brought:
                self.landed = _spanned(self.landed, plan.landing(group, f), group.columns[0])

    def _extent(self) -> Float[Tensor, "2 d"]:
        """Return the range of executed inputs in columns that waves describe."""
        with torch.no_grad():
            return self.remembered("extent", torch.cat([self.seen, self.landed]), self._span)

    def _span(self) -> Float[Tensor, "2 d"]:
        extent = _widened(self.landed, *self.seen)
        for group in self.plan.waves:
            if not group.is_brought:
                c = group.columns[0]
                low, high = self.seen[:, c]
                x = low + (high - low) * torch.linspace(0, 1, 33).to(low).unsqueeze(-1)
                for kind in range(len(self.uncertainties)):
                    kinds = torch.full((33,), kind, device=x.device)
                    extent = _spanned(extent, self.plan.landing_of(group, x, kinds), c)
        return extent


def _spanned(extent: Tensor, landing: Mixture, column: int) -> Tensor:
    """Extend a range to where designs land."""
    reach = REACH * landing.variances.clamp_min(0).sqrt()
    low, high = extent.clone()
    low[column] = (landing.means - reach).min()
    high[column] = (landing.means + reach).max()
    return _widened(extent, low, high)


def _widened(extent: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Extend a range in coarse steps, so that it soon stays as it is."""
    low = (low.clamp(-FARTHEST, 1 + FARTHEST) * 4).floor() / 4
    high = (high.clamp(-FARTHEST, 1 + FARTHEST) * 4).ceil() / 4
    return torch.stack([torch.minimum(low, extent[0]), torch.maximum(high, extent[1])])


def _unbatched(f1: Tensor, f2: Tensor, diag: bool) -> tuple[tuple[Tensor, Tensor], tuple[int, ...]]:
    """Write a batch of designs that all meet the same others as one long list.

    Returns:
        What to compare, and the shape of the result.
    """
    batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2])
    shape = (*batch, f1.shape[-2]) if diag else (*batch, f1.shape[-2], f2.shape[-2])
    if diag or f1.dim() == 2:
        return (f1, f2), shape
    if any(size > 1 and step for size, step in zip(f2.shape[:-2], f2.stride(), strict=False)):
        return (f1, f2), shape
    others = f2.reshape(-1, *f2.shape[-2:])[0] if f2.dim() > 2 else f2
    rows = f1.expand(*batch, *f1.shape[-2:]).reshape(-1, f1.shape[-1])
    return (rows, others), shape
