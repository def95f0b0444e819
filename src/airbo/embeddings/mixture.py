"""Sums of weighted Gaussians: what P_x is written as, block by block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor


@dataclass(frozen=True)
class Mixture:
    r"""A weighted sum of Gaussians over some columns of the executed input.

    .. math:: \sum_j w_j \, \mathcal N(m_j, C_j)

    There is one sum per design. Where the block is additive the sum is that of the deviation
    :math:`\delta = x' - x`, the same for all designs, and there is only one row.
    """

    columns: tuple[int, ...]
    weights: Float[Tensor, "*batch n j"]
    means: Float[Tensor, "*batch n j b"]
    spread: Float[Tensor, "..."] | None = None
    """Covariances; their diagonals where there is nothing else; None where all are 0: atoms."""
    additive: bool = False
    """Whether this is the deviation from the design, and not where the design lands."""

    @property
    def kind(self) -> int:
        """0 for atoms, 1 for axis-parallel Gaussians, 2 for Gaussians of any direction."""
        return 0 if self.spread is None else self.spread.dim() - self.weights.dim()

    @property
    def n_components(self) -> int:
        """Number of Gaussians."""
        return self.weights.shape[-1]

    @property
    def covariances(self) -> Float[Tensor, "*batch n j b b"]:
        """Full covariance matrices."""
        spread = self.of_kind(2).spread
        assert spread is not None
        return spread

    @property
    def variances(self) -> Float[Tensor, "*batch n j b"]:
        """Diagonals of the covariances."""
        if self.spread is None:
            return torch.zeros_like(self.means)
        return self.spread if self.kind == 1 else self.spread.diagonal(dim1=-2, dim2=-1)

    def of_kind(self, kind: int) -> "Mixture":
        """Write the same sum as a more general kind."""
        spread = torch.zeros_like(self.means) if self.spread is None else self.spread
        if kind == 2 and self.kind < 2:
            spread = spread.diag_embed()
        return replace(self, spread=spread if kind else None)

    def around(self, x: Float[Tensor, "*batch n b"]) -> "Mixture":
        """Return where designs land; ``x`` are their own columns."""
        if not self.additive:
            return self
        means = x.unsqueeze(-2) + self.means
        weights = self.weights.expand(means.shape[:-1])
        spread = self.spread
        if spread is not None:
            spread = spread.expand(*means.shape[:-1], *spread.shape[self.weights.dim() :])
        return Mixture(self.columns, weights, means, spread)

    def rows(self, numbers: Int64[Tensor, " k"]) -> "Mixture":
        """Return the sums of some designs."""
        spread = None if self.spread is None else self.spread[numbers]
        return replace(
            self, weights=self.weights[numbers], means=self.means[numbers], spread=spread
        )

    def clamped(self, low: float, high: float) -> "Mixture":
        """Return the same with all centres between two numbers."""
        return replace(self, means=self.means.clamp(low, high))

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return the mean and the variances of the whole sum, one column at a time."""
        w = self.weights.unsqueeze(-1)
        mean = (w * self.means).sum(-2)
        about = (self.means - mean.unsqueeze(-2)).square() + self.variances
        return mean, (w * about).sum(-2)

    def to(self, like: Tensor) -> "Mixture":
        """Return the same with the type and on the device of another tensor."""
        spread = None if self.spread is None else self.spread.to(like)
        return replace(
            self, weights=self.weights.to(like), means=self.means.to(like), spread=spread
        )


def choose(choice: Int64[Tensor, "*batch n"], options: Sequence[Mixture]) -> Mixture:
    """Take option ``choice[i]`` for design ``i``; all options have the same columns."""
    if len(options) == 1:
        return options[0]
    n = max(option.n_components for option in options)
    kind = max(option.kind for option in options)
    result, *others = (_padded(option, n).of_kind(kind) for option in options)
    for number, other in enumerate(others, start=1):
        result = _where(choice == number, other, result)
    return result


def land(
    x: Float[Tensor, "*batch n b"], kind: Int64[Tensor, "*batch n"], deviations: Sequence[Mixture]
) -> Mixture:
    """Return where designs land that deviate by ``deviations[kind[i]]``, whatever they are."""
    options = [deviation.to(x) for deviation in deviations]
    if len(options) == 1:
        return options[0].around(x)
    n, general = max(o.n_components for o in options), max(o.kind for o in options)
    options = [_padded(option, n).of_kind(general) for option in options]
    spreads = [option.spread for option in options if option.spread is not None]
    chosen = replace(
        options[0],
        weights=torch.cat([option.weights for option in options])[kind],
        means=torch.cat([option.means for option in options])[kind],
        spread=torch.cat(spreads)[kind] if spreads else None,
    )
    return chosen.around(x)


def coarsest(parts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Join all column sets that overlap."""
    groups: list[set[int]] = []
    for part in map(set, parts):
        touching = [g for g in groups if g & part]
        groups = [g for g in groups if not g & part] + [part.union(*touching)]
    return sorted(tuple(sorted(g)) for g in groups)


def joined(mixtures: Sequence[Mixture], columns: tuple[int, ...]) -> Mixture:
    """Join independent sums into one over ``columns``, which are all of theirs."""
    whole = reduce(_times, mixtures)
    order = [whole.columns.index(c) for c in columns]
    spread = whole.spread
    if spread is not None:
        spread = spread[..., order]
        spread = spread[..., order, :] if whole.kind == 2 else spread
    return replace(whole, columns=columns, means=whole.means[..., order], spread=spread)


def by_column(mixture: Mixture) -> list[Mixture]:
    """Split one point, or one axis-parallel Gaussian: its columns are independent."""
    if mixture.n_components > 1 or mixture.kind == 2 or len(mixture.columns) == 1:
        return [mixture]
    return [
        replace(
            mixture,
            columns=(c,),
            means=mixture.means[..., [i]],
            spread=None if mixture.spread is None else mixture.spread[..., [i]],
        )
        for i, c in enumerate(mixture.columns)
    ]


def difference(p: Mixture, q: Mixture) -> Mixture:
    """Return the distribution of u - v for independent u ~ p, v ~ q, over the same columns.

    Components that coincide are joined. Both are deviations.
    """
    C_p, C_q = p.covariances[0], q.covariances[0]
    weights = (p.weights[0].unsqueeze(-1) * q.weights[0]).flatten()
    means = (p.means[0].unsqueeze(1) - q.means[0]).flatten(0, 1)
    covs = (C_p.unsqueeze(1) + C_q).flatten(0, 1)

    b = means.shape[-1]
    table = torch.cat([means, covs.flatten(1)], dim=-1)
    keys, which = torch.unique((table * 1e12).round(), dim=0, return_inverse=True)
    weights = table.new_zeros(len(keys)).index_add(0, which, weights)
    first = table.new_zeros(len(keys), table.shape[-1]).index_copy(0, which, table)
    covs = first[:, b:].unflatten(-1, (b, b))
    return Mixture(p.columns, weights[None], first[None, :, :b], covs[None], additive=True)


def to_atoms(mixture: Mixture, n: int) -> Mixture:
    """Replace every Gaussian of a one-column sum by ``n`` nodes of its Gauss-Hermite rule."""
    if mixture.spread is None:
        return mixture
    nodes, weights = (mixture.means.new_tensor(v) for v in np.polynomial.hermite_e.hermegauss(n))
    std = mixture.variances.clamp_min(1e-24).sqrt()  # (..., j, 1)
    means = (mixture.means + std * nodes).flatten(-2).unsqueeze(-1)
    weights = (mixture.weights.unsqueeze(-1) * weights / weights.sum()).flatten(-2)
    return replace(mixture, weights=weights, means=means, spread=None)


def split(mixture: Mixture, n: int) -> Mixture:
    """Write every Gaussian of a one-column sum as ``n`` Gaussians a third as wide.

    N(m, v) = ∫ N(u, v/9) dN(u; m, 8v/9), and the outer normal becomes its Gauss-Hermite rule. From
    30 on, the narrow Gaussians lie so close that their sum is the wide one to 1e-6.
    """
    if mixture.spread is None:
        return mixture
    outer = to_atoms(replace(mixture, spread=8 / 9 * mixture.spread), n)
    inner = (1 / 9 * mixture.spread).repeat_interleave(n, dim=mixture.weights.dim() - 1)
    return replace(outer, spread=inner)


def moved(mixture: Mixture, place: Callable[[Tensor], Tensor]) -> Mixture:
    """Move a one-column sum along a curve; each Gaussian keeps its mean and its variance there."""
    if mixture.spread is None:
        return replace(mixture, means=place(mixture.means))
    nodes, weights = (mixture.means.new_tensor(v) for v in np.polynomial.hermite_e.hermegauss(7))
    weights = weights / weights.sum()
    points = place((mixture.means + mixture.variances.sqrt() * nodes).unsqueeze(-1)).squeeze(-1)
    means = (points * weights).sum(-1, keepdim=True)
    variances = ((points - means).square() * weights).sum(-1, keepdim=True)
    return replace(mixture, means=means, spread=variances)


def _times(a: Mixture, b: Mixture) -> Mixture:
    """Combine every component of one sum with every component of the other."""
    if a.additive != b.additive:
        raise ValueError("A deviation and a landing place cannot be joined.")
    n, m = a.n_components, b.n_components
    i, j = (
        index.flatten() for index in torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij")
    )
    kind = max(a.kind, b.kind)
    a, b = a.of_kind(kind), b.of_kind(kind)
    spread = None
    if a.spread is not None and b.spread is not None:
        s, t = (v.movedim(-1 - kind, 0) for v in (a.spread, b.spread))
        both = torch.cat([s[i], t[j]], dim=-1) if kind == 1 else _block_diagonal(s[i], t[j])
        spread = both.movedim(0, -1 - kind)
    return Mixture(
        a.columns + b.columns,
        a.weights[..., i] * b.weights[..., j],
        torch.cat([a.means[..., i, :], b.means[..., j, :]], dim=-1),
        spread,
        a.additive,
    )


def _block_diagonal(s: Float[Tensor, "*n a a"], t: Float[Tensor, "*n b b"]) -> Tensor:
    a, b = s.shape[-1], t.shape[-1]
    return F.pad(s, (0, b, 0, b)) + F.pad(t, (a, 0, a, 0))


def _padded(mixture: Mixture, n: int) -> Mixture:
    """Add components of weight 0: copies of the first, so that gradients stay finite."""
    missing = n - mixture.n_components
    if missing == 0:
        return mixture

    def repeat(v: Tensor, dim: int) -> Tensor:
        copies = v.narrow(dim, 0, 1).repeat_interleave(missing, dim=dim)
        return torch.cat([v, copies], dim=dim)

    spread = None if mixture.spread is None else repeat(mixture.spread, -1 - mixture.kind)
    weights = F.pad(mixture.weights, (0, missing))
    return replace(mixture, weights=weights, means=repeat(mixture.means, -2), spread=spread)


def _where(mask: Tensor, a: Mixture, b: Mixture) -> Mixture:
    def pick(s: Tensor, t: Tensor) -> Tensor:
        return torch.where(mask.reshape(*mask.shape, *[1] * (s.dim() - mask.dim())), s, t)

    spread = None
    if a.spread is not None and b.spread is not None:
        spread = pick(a.spread, b.spread)
    return replace(
        a, weights=pick(a.weights, b.weights), means=pick(a.means, b.means), spread=spread
    )
