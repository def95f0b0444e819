"""Whole numbers that are missed: they land on whole numbers, within their range."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.below import below
from airbo.uncertainty.clipped import Clipped
from airbo.uncertainty.parameters import Numbers, as_tensor, check_order, parameter

MOST_VALUES = 64
"""With more values than these, a step between two is so small that models need not see it."""


@dataclass(frozen=True, eq=False, repr=False)
class Rounded(InputUncertainty):
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

    def __post_init__(self) -> None:
        """Refuse limits in the wrong order."""
        for name in ("low", "high"):
            object.__setattr__(self, name, parameter(getattr(self, name), name, 1))
        check_order(self.low, self.high)
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(int(c) for c in self.columns))

    @property
    def dim(self) -> int | None:
        """That of the uncertainty inside."""
        return self.uncertainty.dim

    @property
    def is_additive(self) -> bool:
        """False: where a deviation is rounded to depends on the design."""
        return False

    @property
    def independent_columns(self) -> bool:
        """As for the uncertainty inside."""
        return self.uncertainty.independent_columns

    def n_base(self, d: int) -> int:
        """Return the number that the uncertainty inside takes."""
        return self.uncertainty.n_base(d)

    def check_dim(self, d: int) -> None:
        """Refuse what the uncertainty inside cannot act on."""
        self.uncertainty.check_dim(d)

    @property
    def unrounded(self) -> InputUncertainty:
        """The same limits without rounding, for models that cannot see the difference."""
        return Clipped(self.uncertainty, self.low, self.high)

    def _limits(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return which columns are rounded, and limits for all; infinite where they are not."""
        d = X.shape[-1]
        own = torch.zeros(d, dtype=torch.bool, device=X.device)
        own[list(range(d) if self.columns is None else self.columns)] = True
        low, high = X.new_full((d,), -torch.inf), X.new_full((d,), torch.inf)
        low[own], high[own] = as_tensor(self.low).to(X), as_tensor(self.high).to(X)
        return own, low, high

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
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
        edges = below(self.uncertainty, inside, values[:-1] + 0.5)  # (..., n, k - 1)
        ends = torch.zeros_like(X), torch.ones_like(X)
        likely = torch.cat([ends[0], edges, ends[1]], dim=-1).diff(dim=-1)
        return values + (X - inside), likely

    def _mean(self, X: Tensor) -> Tensor:
        found = self.landings(X)
        if found is None:
            return super()._mean(X)
        values, likely = found
        return (values * likely).sum(dim=-1, keepdim=True)

    def _covariance(self, X: Tensor) -> Tensor:
        found = self.landings(X)
        if found is None:
            return super()._covariance(X)
        values, likely = found
        away = values - (values * likely).sum(dim=-1, keepdim=True)
        return (away.square() * likely).sum(dim=-1)[..., None, None]
