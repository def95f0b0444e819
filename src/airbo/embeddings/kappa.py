"""The inner product of two embedded designs as a function of their difference."""

from collections.abc import Callable
from functools import cached_property, reduce

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.embedding import in_portions
from airbo.embeddings.factors import Factor, Tabulated
from airbo.embeddings.scales import GaussianScales


class Kappa:
    r"""A sum over the Gaussians of the base kernel, each a product over groups of columns.

    .. math:: \kappa(t) = c_0 + \sum_q c_q \prod_b g_{bq}(t_b)

    On a line there is one group, and the sum is looked up in one table.
    """

    def __init__(self, factors: list[Factor], scales: GaussianScales) -> None:
        """Combine the factors of each Gaussian, which have the precisions of ``scales``."""
        self.factors, self.scales = factors, scales

    @classmethod
    def under_fixed_hyperparameters(cls, factors: list[Factor], scales: GaussianScales) -> "Kappa":
        """Prepare for many differences: shorten the sum over Gaussians."""
        if _only_table(factors) is not None:
            return cls(factors, scales.detached())
        short = scales.shortened()
        return cls([f.at(short.precisions.double().cpu()) for f in factors], short)

    @cached_property
    def at_zero(self) -> Float[Tensor, ""]:
        """The value where two designs are the same."""
        n_columns = sum(len(factor.columns) for factor in self.factors)
        origin = self.scales.weights.new_zeros(1, n_columns)
        with torch.no_grad():
            return self(origin, origin, True)[0]

    @property
    def on_a_line(self) -> bool:
        """Whether the sum is looked up at once."""
        return _only_table(self.factors) is not None

    @cached_property
    def _sum(self) -> Callable[[Tensor], Tensor] | None:
        only = _only_table(self.factors)
        return None if only is None else only.summed(self.scales.weights)

    def __call__(
        self, f1: Float[Tensor, "*#batch n d"], f2: Float[Tensor, "*#batch k d"], diag: bool
    ) -> Float[Tensor, "..."]:
        """Evaluate the differences of all pairs of designs, or matching ones."""
        per_pair = 8 if self.on_a_line else 2 * len(self.scales.weights) + f1.shape[-1]
        return self.scales.constant + in_portions(self._summed, f1, f2, diag, per_pair)

    def per_scale(
        self, f1: Float[Tensor, "*#batch n d"], f2: Float[Tensor, "*#batch k d"], diag: bool
    ) -> Float[Tensor, "... q"]:
        """Return the product over groups of columns for each Gaussian."""
        t = _differences(f1, f2, diag)
        first, *others = (
            factor(t if len(factor.columns) == t.shape[-1] else t[..., list(factor.columns)])
            for factor in self.factors
        )
        return reduce(torch.mul, others, first)

    def _summed(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        if self._sum is not None:
            return self._sum(_differences(f1, f2, diag))
        return self.per_scale(f1, f2, diag) @ self.scales.weights


def _only_table(factors: list[Factor]) -> Tabulated | None:
    """Return the table that is all there is to a sum of Gaussians, if it is so."""
    [*others, last] = factors
    alone = not others and isinstance(last, Tabulated) and last.is_one_function
    return last if alone and isinstance(last, Tabulated) else None


def _differences(f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
    return f1 - f2 if diag else f1.unsqueeze(-2) - f2.unsqueeze(-3)
