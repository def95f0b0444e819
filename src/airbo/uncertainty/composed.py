"""Uncertainties made of others: side by side, correlated, in percent, clipped, rounded, scaled.

Notation: x a design (d), x̃ where the uncertainty inside lands it, x' where this one does;
δ = x' - x (of ``Relative``: the share); l, h limits (d) or numbers; c a factor; b a block of
columns. Samples are (*batch n s d), sums of Gaussians Σ_j w_j N(m_j, C_j) as in ``gaussians``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import (
    InputUncertainty,
    Numbers,
    as_step,
    as_tensor,
    per_design,
    with_columns,
)
from airbo.uncertainty.columns import Exact
from airbo.uncertainty.gaussians import Mixture, Resolution
from airbo.uncertainty.normal import Normal, check_covariance, square_root

MOST_VALUES = 64
"""With more values than these, a step between two is so small that models need not see it."""


class Wrapper(InputUncertainty):
    """Another uncertainty, or several: what is not said here is as for all of them."""

    held: ClassVar[str] = "uncertainty"
    """The field that holds the other one, or the others."""

    @property
    def inside(self) -> InputUncertainty:
        """The other one."""
        held: InputUncertainty = getattr(self, self.held)
        return held

    @property
    def parts(self) -> tuple[InputUncertainty, ...]:
        """The others."""
        held = getattr(self, self.held)
        return held if isinstance(held, tuple) else (held,)

    @property
    def is_additive(self) -> bool:
        return all(part.is_additive for part in self.parts)

    @property
    def independent_columns(self) -> bool:
        return all(part.independent_columns for part in self.parts)

    def n_base(self, d: int) -> int:
        """Return the largest number that a part takes; all use the first of them."""
        return max(part.n_base(d) for part in self.parts)

    def check_dim(self, d: int) -> None:
        super().check_dim(d)
        for part in self.parts:
            part.check_dim(d)

    def is_bounded(self, d: int) -> bool:
        return all(part.is_bounded(d) for part in self.parts)

    def _scaled(self, factor: float) -> InputUncertainty:
        # deviations inside are scaled; limits and everything else stay where they are
        held: Any = getattr(self, self.held)
        scaled = tuple(part._scaled(factor) for part in self.parts)
        whole: Any = scaled if isinstance(held, tuple) else scaled[0]
        return replace(cast(Any, self), **{self.held: whole})

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty | None:
        own = self.inside.on_columns(columns)
        return None if own is None else with_columns(self, columns, **{self.held: own})


@dataclass(frozen=True, eq=False, repr=False)
class Product(Wrapper):
    """Blocks of columns, each with its own uncertainty, independent of the others.

    Blocks use consecutive columns of the base draws; if all of them have independent columns,
    column j of the design uses base column j instead, so that the product has, too.
    """

    blocks: Sequence[InputUncertainty]
    """The uncertainties."""

    held: ClassVar[str] = "blocks"

    columns: Sequence[Sequence[int]] | None = None
    """The columns of each block. By default blocks stand side by side: a block that acts on any
    number of columns takes one, or all that remain if there is only one such block."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.blocks:
            raise ValueError("Product needs at least one block.")
        if self.columns is not None:
            self._check_columns(self.columns)

    def _check_columns(self, columns: Sequence[Sequence[int]]) -> None:
        if len(columns) != len(self.blocks):
            raise ValueError(f"{len(self.blocks)} blocks need as many columns, got {len(columns)}.")
        used = sorted(j for block in columns for j in block)
        if used != list(range(len(used))) or not all(columns):
            raise ValueError(
                f"columns must hold each of 0, 1, 2, ... exactly once, got {list(columns)}."
            )
        for block, own in zip(self.blocks, columns, strict=True):
            block.check_dim(len(own))

    @property
    def dim(self) -> int | None:
        """Number of columns of all blocks; None if one block takes all that remain."""
        if self.columns is not None:
            return sum(map(len, self.columns))
        sizes = [block.dim for block in self.blocks]
        return None if sizes.count(None) == 1 else sum(size or 1 for size in sizes)

    def layout(self, d: int) -> tuple[tuple[int, ...], ...]:
        """Return the columns of each block, for designs with ``d`` columns."""
        # blocks side by side; the one without a size takes what remains
        if self.columns is not None:
            return tuple(map(tuple, self.columns))
        sizes = [block.dim for block in self.blocks]
        remain = d - sum(size for size in sizes if size is not None)
        free = remain if sizes.count(None) == 1 else 1
        ends = list(accumulate(free if size is None else size for size in sizes))
        return tuple(tuple(range(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    def check_dim(self, d: int) -> None:
        InputUncertainty.check_dim(self, d)
        for block, own in zip(self.blocks, self.layout(d), strict=True):
            if not own:
                raise ValueError(f"Product leaves no column of {d} for its block {block}.")
            block.check_dim(len(own))

    def n_base(self, d: int) -> int:
        if self.independent_columns:
            return d
        layout = self.layout(d)
        return sum(b.n_base(len(own)) for b, own in zip(self.blocks, layout, strict=True))

    def _shares(self, d: int) -> Iterator[tuple[InputUncertainty, list[int], list[int]]]:
        """Yield each block with its columns of the design and of the base draws."""
        start = 0
        for block, own in zip(self.blocks, self.layout(d), strict=True):
            n = block.n_base(len(own))
            consecutive = list(range(start, start + n))
            yield block, list(own), list(own) if self.independent_columns else consecutive
            start += n

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x'_b = perturb_b(x_b, u_b) for every block b of columns
        d = X.shape[-1]
        result = X.new_empty(*X.shape[:-1], base.shape[0], d)
        for block, own, numbers in self._shares(d):
            result[..., own] = block.perturb(X[..., own], base[:, numbers])
        return result

    def _mean(self, X: Tensor) -> Tensor:
        result = torch.empty_like(X)
        for block, own, _ in self._shares(X.shape[-1]):
            result[..., own] = block.mean(X[..., own])
        return result

    def _covariance(self, X: Tensor) -> Tensor:
        # block diagonal: blocks are independent
        d = X.shape[-1]
        result = X.new_zeros(*X.shape, d)
        for block, own, _ in self._shares(d):
            rows, columns = torch.meshgrid(torch.tensor(own), torch.tensor(own), indexing="ij")
            result[..., rows, columns] = block.covariance(X[..., own])
        return result

    def independent_blocks(self, d: int) -> list[tuple[InputUncertainty, tuple[int, ...]]]:
        return [
            (part, tuple(own[c] for c in some))
            for block, own in zip(self.blocks, self.layout(d), strict=True)
            for part, some in block.independent_blocks(len(own))
        ]

    def is_bounded(self, d: int) -> bool:
        parts = zip(self.blocks, self.layout(d), strict=True)
        return all(block.is_bounded(len(own)) for block, own in parts)

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty | None:
        return None  # its blocks are said by ``independent_blocks``


def with_exact_rest(
    blocks: Sequence[InputUncertainty], columns: Sequence[Sequence[int]], d: int
) -> InputUncertainty:
    """Join blocks over some of ``d`` columns; the other columns are hit exactly."""
    rest = sorted(set(range(d)).difference(*columns))
    if not blocks:
        return Exact()
    return Product([*blocks, Exact()], [*columns, rest]) if rest else Product(blocks, columns)


@dataclass(frozen=True, eq=False, repr=False)
class Joint(InputUncertainty):
    r"""Columns with any distributions that deviate together: a Gaussian copula.

    .. math:: x'_j = F_j^{-1}(\Phi(z_j)), \quad z \sim \mathcal N(0, R)

    Column j alone is distributed as marginal j says. R holds the correlations of the normal scores
    z: for normal marginals they are those of x', for others nearly those of the ranks of x'.
    """

    marginals: Sequence[InputUncertainty]
    """One uncertainty for each column."""

    correlation: Numbers
    """R, a correlation matrix."""

    def __post_init__(self) -> None:
        """Refuse marginals of several columns, and what is no correlation matrix."""
        super().__post_init__()
        for marginal in self.marginals:
            marginal.check_dim(1)
        check_covariance(self.correlation, "correlation")
        if not bool((self._R.diagonal() - 1).abs().lt(1e-9).all()):
            raise ValueError("correlation must have ones on its diagonal.")

    @cached_property
    def _R(self) -> Float[Tensor, "d d"]:
        return as_tensor(self.correlation)

    @property
    def is_additive(self) -> bool:
        """True if all marginals are."""
        return all(marginal.is_additive for marginal in self.marginals)

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # z = R^½ Φ⁻¹(u) has the correlations R, and every Φ(z_j) is uniform again
        z = torch.special.ndtri(base) @ square_root(self.correlation).to(X)
        u = torch.special.ndtr(z)
        columns = zip(self._columns(X), u.split(1, dim=-1), strict=True)
        return torch.cat([_quantiles(m, x, v) for (m, x), v in columns], dim=-1)

    def _columns(self, X: Tensor) -> Iterator[tuple[InputUncertainty, Tensor]]:
        """Yield each marginal with its own column of the designs."""
        return zip(self.marginals, X.split(1, dim=-1), strict=True)

    def _mean(self, X: Tensor) -> Tensor:
        # E x'_j is that of marginal j
        return torch.cat([m.mean(x) for m, x in self._columns(X)], dim=-1)

    def _covariance(self, X: Tensor) -> Tensor:
        # variances are those of the marginals; correlations of x' are estimated from draws
        C = super()._covariance(X)
        size = C.diagonal(dim1=-2, dim2=-1).clamp_min(1e-300).sqrt()
        own = torch.cat([m.covariance(x)[..., 0] for m, x in self._columns(X)], dim=-1)
        std = own.sqrt() / size
        return C * std.unsqueeze(-1) * std.unsqueeze(-2)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        return self.marginals[0].cdf(X, t)

    def is_bounded(self, d: int) -> bool:
        """True if all marginals are."""
        return all(marginal.is_bounded(1) for marginal in self.marginals)

    def _scaled(self, factor: float) -> InputUncertainty:
        # c δ column by column: ranks stay
        return replace(self, marginals=tuple(m._scaled(factor) for m in self.marginals))

    def independent_blocks(self, d: int) -> list[tuple[InputUncertainty, tuple[int, ...]]]:
        """Return groups of columns without correlations between them."""
        # columns that a chain of correlations joins: repeated squares of |R| > 0
        joined = self._R.abs() > 0
        for _ in range(d):
            joined = (joined.double() @ joined.double()) > 0
        groups = sorted({tuple(row.nonzero().flatten().tolist()) for row in joined})
        return [(self._of(own), own) for own in groups]

    def _of(self, columns: tuple[int, ...]) -> InputUncertainty:
        if len(columns) == 1:
            return self.marginals[columns[0]]
        R = self._R[list(columns)][:, list(columns)]
        return Joint([self.marginals[c] for c in columns], R.tolist())

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        stds = [m.std for m in self.marginals if isinstance(m, Normal) and m.cov is None]
        if len(stds) < len(self.marginals) or not self.is_additive:
            return super()._gaussians(X, r)
        # normal marginals: one normal distribution, C_ij = σ_i σ_j R_ij
        std = torch.stack([as_tensor(s).reshape(()) for s in stds])
        return Normal(cov=self._R * std.outer(std))._gaussians(X, r)


def _quantiles(
    marginal: InputUncertainty, x: Float[Tensor, "*batch n 1"], u: Float[Tensor, "s 1"]
) -> Float[Tensor, "*batch n s 1"]:
    """Return the u-quantiles of one column."""
    # a column that takes one number is its own quantile function; others are sorted samples
    if marginal.independent_columns:
        return marginal.perturb(x, u)
    ordered = marginal._moment_samples(x).sort(dim=-2).values
    n = ordered.shape[-2]
    return ordered[..., (u[:, 0] * n).long().clamp_max(n - 1), :]


@dataclass(frozen=True, eq=False, repr=False)
class Relative(Wrapper):
    r"""The deviation is a share of the design.

    .. math:: x' = x \, (1 + \delta)

    ``Relative(Normal(0.05))`` is an error of 5%, ``Relative(Uniform(-0.1, 0.1))`` one of at most
    10%. Near x = 0 there is hardly any deviation.
    """

    share: InputUncertainty
    """Distribution of the share δ: any uncertainty that does not change with the design."""

    held: ClassVar[str] = "share"
    is_additive: ClassVar[bool] = False  # the deviation grows with the design
    is_multiplicative: ClassVar[bool] = True  # x' / x = 1 + δ does not depend on x

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.share.is_additive:
            raise ValueError(
                f"The share in Relative must be the same for all designs, got {self.share}."
            )

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x (1 + δ)
        share = self.share.perturb(torch.zeros_like(X[..., :1, :]), base)  # (..., 1, s, d)
        return X.unsqueeze(-2) * (1 + share)

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = x (1 + E δ)
        return X * (1 + self.share.mean(torch.zeros_like(X)))

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = diag(x) Cov δ diag(x)
        return X.unsqueeze(-1) * X.unsqueeze(-2) * self.share.covariance(torch.zeros_like(X))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # x (1 + δ) < t: δ < s for x > 0 and δ > s for x < 0, with s = t/x - 1
        s = t / torch.where(X == 0, 1.0, X) - 1
        # P(δ > s) = 1 - P(δ <= s), which is P(δ < the next number after s)
        s = torch.where(X < 0, s.nextafter(torch.full_like(s, torch.inf)), s)
        F = self.share.cdf(torch.zeros_like(X), s)
        return torch.where(X == 0, as_step(t), torch.where(X > 0, F, 1 - F))

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # x' = x + x δ
        shares = self.share.gaussians(X, r.coarser)
        own = [X[..., list(share.columns)].unsqueeze(-2) for share in shares]  # (..., n, 1, b)
        return [share.affine(x, x) for share, x in zip(shares, own, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Clipped(Wrapper):
    """Another uncertainty, with executed inputs clamped to [low, high]."""

    uncertainty: InputUncertainty
    """Where inputs would land without the limits."""

    low: Numbers = None
    """Smallest executed input, one for all columns or one per column; None: no limit."""

    high: Numbers = None
    """Largest executed input; None: no limit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim is not None:
            self.uncertainty.check_dim(self.dim)

    def _limits(self) -> dict[str, Numbers]:
        both = {"low": self.low, "high": self.high}
        return {name: limit for name, limit in both.items() if limit is not None}

    @property
    def is_additive(self) -> bool:
        """False: near a limit the deviation depends on the design."""
        return not self._limits() and self.uncertainty.is_additive

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = min(max(x̃, l), h) with x̃ from the uncertainty inside
        samples = self.uncertainty.perturb(X, base)
        for name, limit in self._limits().items():
            bound = per_design(limit, X, name, 1)
            bound = bound.unsqueeze(-2) if bound.ndim > 1 else bound
            samples = (torch.maximum if name == "low" else torch.minimum)(samples, bound)
        return samples

    def is_bounded(self, d: int) -> bool:
        return len(self._limits()) == 2 or self.uncertainty.is_bounded(d)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = P(x̃ < t) for l < t <= h, 0 below and 1 above: what would land beyond a limit
        # counts there
        F = self.uncertainty.cdf(X, t)
        if self.low is not None:
            F = torch.where(t > per_design(self.low, X, "low", 1), F, 0.0)
        return (
            F if self.high is None else torch.where(t > per_design(self.high, X, "high", 1), 1.0, F)
        )


@dataclass(frozen=True, eq=False, repr=False)
class Rounded(Wrapper):
    r"""Another uncertainty, with executed inputs rounded to whole numbers within a range.

    .. math:: x' = \min(\max(\lfloor \tilde x + \tfrac12 \rfloor, l), h), \quad \tilde x \sim P_x

    A design outside the range lands as the nearest one inside does, moved to where it is.
    ``airbo.Optimizer`` makes one for every ``Integer`` parameter that is uncertain.
    """

    uncertainty: InputUncertainty
    """Where inputs would land without rounding."""

    low: Numbers
    """Smallest value, one for all rounded columns or one per column."""

    high: Numbers
    """Largest value."""

    columns: Sequence[int] | None = None
    """Which columns are rounded; None: all of them."""

    is_additive: ClassVar[bool] = False  # where a deviation is rounded to depends on the design

    def _limits(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return which columns are rounded, and limits for all; infinite where they are not."""
        d = X.shape[-1]
        own = torch.zeros(d, dtype=torch.bool, device=X.device)
        own[list(range(d) if self.columns is None else self.columns)] = True
        low, high = X.new_full((d,), -torch.inf), X.new_full((d,), torch.inf)
        low[own], high[own] = as_tensor(self.low).to(X), as_tensor(self.high).to(X)
        return own, low, high

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # a design outside [l, h] is moved inside, rounded there, and moved back
        own, low, high = self._limits(X)
        inside = torch.minimum(torch.maximum(X, low), high)
        landed = self.uncertainty.perturb(inside, base)
        whole = torch.minimum(torch.maximum((landed + 0.5).floor(), low), high)
        return torch.where(own, whole, landed) + (X - inside).unsqueeze(-2)

    def landings(
        self, X: Float[Tensor, "*batch n d"]
    ) -> tuple[Float[Tensor, "*batch n k"], Float[Tensor, "*batch n k"]] | None:
        """Return the values that one column can land on, and how likely each is.

        None: there are several columns, or too many values.
        """
        if X.shape[-1] != 1:
            return None
        low, high = (float(as_tensor(limit).max()) for limit in (self.low, self.high))
        if high - low >= MOST_VALUES:
            return None
        values = torch.arange(low, high + 1, dtype=torch.float64).to(X)
        inside = X.clamp(low, high)
        # P(x' = v) = P(v - ½ <= x̃ < v + ½); what lands beyond an end counts there
        edges = self.uncertainty.cdf(inside, values[:-1] + 0.5)  # (..., n, k - 1)
        ends = torch.zeros_like(X), torch.ones_like(X)
        likely = torch.cat([ends[0], edges, ends[1]], dim=-1).diff(dim=-1)
        return values + (X - inside), likely

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = Σ_v v P(x' = v)
        found = self.landings(X)
        if found is None:
            return super()._mean(X)
        values, likely = found
        return (values * likely).sum(dim=-1, keepdim=True)

    def _covariance(self, X: Tensor) -> Tensor:
        # Var x' = Σ_v (v - E x')² P(x' = v)
        found = self.landings(X)
        if found is None:
            return super()._covariance(X)
        values, likely = found
        away = values - (values * likely).sum(dim=-1, keepdim=True)
        return (away.square() * likely).sum(dim=-1)[..., None, None]

    def is_bounded(self, d: int) -> bool:
        return self.columns is None or self.uncertainty.is_bounded(d)

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty | None:
        # which columns are rounded is said for all of them together
        return super().on_columns(columns) if self.columns is None else None

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # the values below t are those up to ⌈t⌉ - 1, where x̃ lies below ⌈t⌉ - ½
        _, low, high = self._limits(X)
        inside = torch.minimum(torch.maximum(X, low), high)
        t = t - (X - inside)
        F = self.uncertainty.cdf(inside, t.ceil() - 0.5)
        return torch.where(t <= low, 0.0, torch.where(t > high, 1.0, F))

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        found = self.landings(X)
        if found is not None:
            values, likely = found
            return [Mixture((0,), likely, values.unsqueeze(-1))]
        if self.columns is not None or not (self.independent_columns or X.shape[-1] == 1):
            return [self._in_cells(X, r)]
        # so many values that no model sees the steps between them
        return Clipped(self.uncertainty, self.low, self.high)._gaussians(X, r)


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Wrapper):
    """Another uncertainty, with every deviation x' - x times a factor.

    ``scaled`` makes one only where the kind inside has no parameter that says the same.
    """

    uncertainty: InputUncertainty
    """Where inputs would land with the factor 1."""

    factor: float | int
    """The factor: 0.5 is twice as precise, 0 is exact."""

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x + c (x̃ - x)
        x = X.unsqueeze(-2)
        return x + self.factor * (self.uncertainty.perturb(X, base) - x)

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = x + c (E x̃ - x)
        return X + self.factor * (self.uncertainty.mean(X) - X)

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = c² Cov x̃
        return self.factor**2 * self.uncertainty.covariance(X)

    def _scaled(self, factor: float) -> InputUncertainty:
        # c₂ (c₁ δ) = (c₁ c₂) δ
        return Scaled(self.uncertainty, self.factor * factor)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # x + c (x̃ - x) < t: x̃ < x + (t - x) / c
        if self.factor == 0:
            return as_step(t - X)
        return self.uncertainty.cdf(X, X + (t - X) / self.factor)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # x' = (1 - c) x + c x̃
        c, parts = X.new_full((1,), self.factor), self.uncertainty.landing(X, r)
        return [p.affine(c, (1 - c) * X[..., list(p.columns)].unsqueeze(-2)) for p in parts]
