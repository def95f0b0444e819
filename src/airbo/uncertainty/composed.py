"""Uncertainties made of others: side by side, correlated, in percent, clipped, rounded, scaled.

Notation: x a design (d), x̃ where the uncertainty inside lands it, x' where this one does;
δ = x' - x (of ``Relative``: the share); l, h limits (d) or numbers; a, c a shift and a factor of
every column; b a block of columns. Samples are (*batch n s d), sums of Gaussians
Σ_j w_j N(m_j, C_j) as in ``gaussians``.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import (
    FINEST,
    InputUncertainty,
    Numbers,
    as_step,
    as_tensor,
    beside_samples,
    per_design,
    with_columns,
)
from airbo.uncertainty.columns import Exact
from airbo.uncertainty.gaussians import Mixture, Resolution
from airbo.uncertainty.normal import Normal, check_covariance, square_root

MOST_VALUES = 64
"""With more values than these, a step between two is so small that models need not see it."""
RAREST = 2.0**-13
"""Distribution functions are counted from half as many draws: nothing rarer is known of them."""


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

    def layout(self, d: int) -> tuple[tuple[int, ...], ...]:
        """Return the columns of each part, for designs with ``d`` columns: all of them."""
        return (tuple(range(d)),) * len(self.parts)

    def _parts_with_columns(self, d: int) -> Iterator[tuple[InputUncertainty, tuple[int, ...]]]:
        return zip(self.parts, self.layout(d), strict=True)

    @property
    def is_additive(self) -> bool:
        return all(part.is_additive for part in self.parts)

    @property
    def independent_columns(self) -> bool:
        return all(part.independent_columns for part in self.parts)

    def n_base(self, d: int) -> int:
        """Return the largest number that a part takes; all use the first of them."""
        return max(part.n_base(len(own)) for part, own in self._parts_with_columns(d))

    def check_dim(self, d: int) -> None:
        super().check_dim(d)
        for part, own in self._parts_with_columns(d):
            part.check_dim(len(own))

    def is_bounded(self, d: int) -> bool:
        return all(part.is_bounded(len(own)) for part, own in self._parts_with_columns(d))

    def _scaled(self, factor: float) -> InputUncertainty:
        # deviations inside are scaled; limits and everything else stay where they are
        scaled = tuple(part._scaled(factor) for part in self.parts)
        whole: Any = scaled if isinstance(getattr(self, self.held), tuple) else scaled[0]
        return replace(cast(Any, self), **{self.held: whole})

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty | None:
        # of several uncertainties each has its own columns, or one column decides for all
        if isinstance(getattr(self, self.held), tuple):
            return None
        own = self.inside.on_columns(columns)
        return None if own is None else with_columns(self, columns, **{self.held: own})


class Affine(Wrapper):
    """x' = a + c x̃, column by column, where x̃ is the executed input of another design."""

    @abstractmethod
    def _terms(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the other design, a and c, for each design (*batch n d)."""

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        x, a, c = self._terms(X)
        return a.unsqueeze(-2) + c.unsqueeze(-2) * self.inside.perturb(x, base)

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = a + c E x̃
        x, a, c = self._terms(X)
        return a + c * self.inside.mean(x)

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = diag(c) Cov x̃ diag(c)
        x, _, c = self._terms(X)
        return c.unsqueeze(-1) * c.unsqueeze(-2) * self.inside.covariance(x)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # a + c x̃ < t: x̃ < s for c > 0 and x̃ > s for c < 0, with s = (t - a) / c
        x, a, c = self._terms(X)
        s = (t - a) / torch.where(c == 0, 1.0, c)
        # P(x̃ > s) = 1 - P(x̃ <= s), which is P(x̃ < the next number after s)
        s = torch.where(c < 0, s.nextafter(torch.full_like(s, torch.inf)), s)
        F = self.inside.cdf(x, s)
        return torch.where(c == 0, as_step(t - a), torch.where(c > 0, F, 1 - F))

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        x, a, c = self._terms(X)
        # Σ_j w_j N(m_j, C_j) of x̃ becomes Σ_j w_j N(a + c m_j, diag(c) C_j diag(c))
        parts = self.inside.landing(x, r)
        owns = [list(part.columns) for part in parts]
        return [
            part.affine(c[..., own].unsqueeze(-2), a[..., own].unsqueeze(-2))
            for part, own in zip(parts, owns, strict=True)
        ]


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
        # a partition of 0, 1, ..., d - 1, with no empty part
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
        super().check_dim(d)
        for block, own in self._parts_with_columns(d):
            if not own:
                raise ValueError(f"Product leaves no column of {d} for its block {block}.")

    def n_base(self, d: int) -> int:
        if self.independent_columns:
            return d
        return sum(block.n_base(len(own)) for block, own in self._parts_with_columns(d))

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x'_b = perturb_b(x_b, u_b) for every block b of columns
        result, start = X.new_empty(*X.shape[:-1], *base.shape[:1], X.shape[-1]), 0
        for block, own in self._parts_with_columns(X.shape[-1]):
            n, mine = block.n_base(len(own)), list(own)
            numbers = mine if self.independent_columns else list(range(start, start + n))
            result[..., mine] = block.perturb(X[..., mine], base[:, numbers])
            start += n
        return result

    def independent_blocks(self, d: int) -> list[tuple[InputUncertainty, tuple[int, ...]]]:
        return [
            (part, tuple(own[c] for c in some))
            for block, own in self._parts_with_columns(d)
            for part, some in block.independent_blocks(len(own))
        ]


def with_exact_rest(
    blocks: Sequence[InputUncertainty], columns: Sequence[Sequence[int]], d: int
) -> InputUncertainty:
    """Join blocks over some of ``d`` columns; the other columns are hit exactly."""
    # P = Π_b P_b, and x'_j = x_j in the columns of no block
    rest = sorted(set(range(d)).difference(*columns))
    if not blocks:
        return Exact()
    return Product([*blocks, Exact()], [*columns, rest]) if rest else Product(blocks, columns)


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Wrapper):
    r"""Columns with any distributions that deviate together: a Gaussian copula.

    .. math:: x'_j = F_j^{-1}(\Phi(z_j)), \quad z \sim \mathcal N(0, R)

    Column j alone is distributed as marginal j says. R holds the correlations of the normal scores
    z: for normal marginals they are those of x', for others nearly those of the ranks of x'.
    """

    marginals: Sequence[InputUncertainty]
    """One uncertainty for each column."""

    correlation: Numbers
    """R, a correlation matrix."""

    centre: Numbers = None
    """Mean of z, in place of 0; ``correlation`` then is any covariance of z. This is how the rest
    of a joint law is distributed where some of its columns are known."""

    held: ClassVar[str] = "marginals"
    independent_columns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse marginals of several columns, and what is no correlation matrix."""
        super().__post_init__()
        self.check_dim(len(self.marginals))
        check_covariance(self.correlation, "correlation")
        if self.centre is None and not bool((self._R.diagonal() - 1).abs().lt(1e-9).all()):
            raise ValueError("correlation must have ones on its diagonal.")

    @cached_property
    def _R(self) -> Float[Tensor, "d d"]:
        return as_tensor(self.correlation)

    def layout(self, d: int) -> tuple[tuple[int, ...], ...]:
        """Return the column of each marginal."""
        return tuple((c,) for c in range(d))

    def n_base(self, d: int) -> int:
        """Return d: the normal scores."""
        return d

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # z = R^½ Φ⁻¹(u) has the correlations R, and every Φ(z_j) is uniform again
        z = torch.special.ndtri(base) @ square_root(self.correlation).mT.to(X)
        if self.centre is not None:
            z = as_tensor(self.centre).to(X) + z
        u = torch.special.ndtr(z)
        columns = zip(self._columns(X), u.split(1, dim=-1), strict=True)
        return torch.cat([_quantiles(m, x, v) for (m, x), v in columns], dim=-1)

    def _columns(self, X: Tensor) -> Iterator[tuple[InputUncertainty, Tensor]]:
        """Yield each marginal with its own column of the designs."""
        return zip(self.marginals, X.split(1, dim=-1), strict=True)

    def scores(self, X: Float[Tensor, "n d"], landed: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Return the normal scores of executed inputs."""
        # z_j = Φ⁻¹(F_j(x'_j)), in the middle of a step of F_j; nothing is known of rarer tails
        found = []
        for (m, x), t in zip(self._columns(X), landed.split(1, dim=-1), strict=True):
            u = (m.cdf(x, t) + m.cdf(x, t.nextafter(torch.full_like(t, torch.inf)))) / 2
            found.append(torch.special.ndtri(u.clamp(RAREST, 1 - RAREST)))
        return torch.cat(found, dim=-1)

    def _mean(self, X: Tensor) -> Tensor:
        # E x'_j is that of marginal j
        if self.centre is not None:
            return super()._mean(X)
        return torch.cat([m.mean(x) for m, x in self._columns(X)], dim=-1)

    def _covariance(self, X: Tensor) -> Tensor:
        # variances are those of the marginals; correlations of x' are those of the cells
        C = super()._covariance(X)
        if self.centre is not None:
            return C
        size = C.diagonal(dim1=-2, dim2=-1).clamp_min(1e-300).sqrt()
        own = torch.cat([m.covariance(x)[..., 0] for m, x in self._columns(X)], dim=-1)
        std = own.sqrt() / size
        return C * std.unsqueeze(-1) * std.unsqueeze(-2)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        return super()._cdf(X, t) if self.centre is not None else self.marginals[0].cdf(X, t)

    def independent_blocks(self, d: int) -> list[tuple[InputUncertainty, tuple[int, ...]]]:
        """Return groups of columns without correlations between them."""
        # columns that a chain of correlations joins: repeated squares of |R| > 0
        joined = self._R.abs() + torch.eye(d) > 0
        for _ in range(d):
            joined = (joined.double() @ joined.double()) > 0
        groups = sorted({tuple(row.nonzero().flatten().tolist()) for row in joined})
        return [(self._block(list(own)), own) for own in groups]

    def _block(self, own: list[int]) -> InputUncertainty:
        marginals, R = [self.marginals[c] for c in own], self._R[own][:, own]
        if self.centre is not None:
            return Joint(marginals, R.tolist(), [self.centre[c] for c in own])
        if len(own) == 1:
            return marginals[0]
        stds = [m.std for m in marginals if isinstance(m, Normal) and m.cov is None]
        if len(stds) < len(own) or not self.is_additive:
            return Joint(marginals, R.tolist())
        # normal marginals: one normal distribution, C_ij = σ_i σ_j R_ij
        std = torch.stack([as_tensor(s).reshape(()) for s in stds])
        return Normal(cov=(R * std.outer(std)).tolist())


def _quantiles(
    marginal: InputUncertainty, x: Float[Tensor, "*batch n 1"], u: Float[Tensor, "s 1"]
) -> Float[Tensor, "*batch n s 1"]:
    """Return the u-quantiles of one column."""
    # a column that takes one number is its own quantile function; others are sorted samples
    if marginal.independent_columns:
        return marginal.perturb(x, u)
    ordered = marginal._cdf_samples(x).sort(dim=-2).values
    n = ordered.shape[-2]
    return ordered[..., (u[:, 0] * n).long().clamp_max(n - 1), :]


@dataclass(frozen=True, eq=False, repr=False)
class Relative(Affine):
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

    def _terms(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # x' = x + x δ, with δ around the design 0
        return torch.zeros_like(X), X, X

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        return super()._gaussians(X, r.coarser)


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
        # a limit that is None holds for no column
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
            bound = beside_samples(per_design(limit, X, name, 1))
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
        # l_j = -∞ and h_j = ∞ in columns that are not rounded
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

    def landings(self, X: Float[Tensor, "*batch n d"]) -> Mixture | None:
        """Return the values that one column can land on, with how likely each is.

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
        return Mixture((0,), likely, (values + (X - inside)).unsqueeze(-1))

    def _moment_sums(self, X: Tensor) -> list[Mixture]:
        # samples, where Gaussians do not show the steps
        return [self.landings(X) or self._in_cells(X, FINEST)]

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
        if found := self.landings(X):
            return [found]
        if self.columns is not None or not (self.independent_columns or X.shape[-1] == 1):
            return [self._in_cells(X, r)]
        # so many values that no model sees the steps between them
        return Clipped(self.uncertainty, self.low, self.high)._gaussians(X, r)


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Affine):
    """Another uncertainty, with every deviation x' - x times a factor.

    ``scaled`` makes one only where the kind inside has no parameter that says the same.
    """

    uncertainty: InputUncertainty
    """Where inputs would land with the factor 1."""

    factor: float | int
    """The factor: 0.5 is twice as precise, 0 is exact."""

    def _terms(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # x' = x + c (x̃ - x) = (1 - c) x + c x̃
        return X, (1 - self.factor) * X, torch.full_like(X, self.factor)

    def _scaled(self, factor: float) -> InputUncertainty:
        # c₂ (c₁ δ) = (c₁ c₂) δ
        return Scaled(self.uncertainty, self.factor * factor)
