"""The inner product of two embedded designs as a function of their difference."""

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.embedding import in_portions
from airbo.embeddings.factors import Tabulated
from airbo.embeddings.integrals import Integrals
from airbo.embeddings.resolutions import Resolutions
from airbo.embeddings.scales import GaussianScales


class Kappa:
    r"""A sum over the Gaussians of the base kernel, each integrated over all deviations.

    .. math:: \kappa(t) = c_0 + \sum_q c_q g_q(t)

    On a line the sum is looked up in one table.
    """

    def __init__(
        self, constant: Float[Tensor, ""], terms: Callable[[Tensor], Tensor], d: int, size: int
    ) -> None:
        """Add a constant to a function of differences that holds ``size`` numbers for each."""
        self.constant, self.terms, self.d, self.size = constant, terms, d, size

    @classmethod
    def under_fixed_hyperparameters(
        cls, groups: Sequence[Resolutions], scales: GaussianScales
    ) -> "Kappa":
        """Prepare for many differences: look up, or shorten the sum over Gaussians."""
        table = only_table(groups)
        if table is not None:
            return cls.looked_up(table, scales.detached())
        short = scales.shortened()
        integrals = Integrals(groups, short.precisions.double().cpu(), short.weights.double().cpu())
        terms = integrals.summed(short.weights)
        return cls(short.constant, terms, integrals.d, integrals.size)

    @classmethod
    def looked_up(cls, table: Tabulated, scales: GaussianScales) -> "Kappa":
        """Sum in one table."""
        return cls(scales.constant, table.summed(scales.weights), len(table.columns), 8)

    @cached_property
    def at_zero(self) -> Float[Tensor, ""]:
        """The value where two designs are the same."""
        origin = self.constant.new_zeros(1, self.d)
        with torch.no_grad():
            return self(origin, origin, True)[0]

    def __call__(
        self, f1: Float[Tensor, "*#batch n d"], f2: Float[Tensor, "*#batch k d"], diag: bool
    ) -> Float[Tensor, "..."]:
        """Evaluate the differences of all pairs of designs, or matching ones."""
        return self.constant + over_pairs(self.terms, f1, f2, diag, self.size)


def over_pairs(
    function: Callable[[Tensor], Tensor],
    f1: Float[Tensor, "*#batch n d"],
    f2: Float[Tensor, "*#batch k d"],
    diag: bool,
    size: int,
    n_trailing: int = 0,
) -> Float[Tensor, "..."]:
    """Apply a function to the differences of all pairs of designs, or matching ones.

    Args:
        function: Maps differences to numbers.
        f1: Designs.
        f2: Other designs.
        diag: Whether matching designs are compared, or all pairs.
        size: Numbers that the function holds at a time, per difference.
        n_trailing: Dimensions that its result has.
    """

    def compare(a: Tensor, b: Tensor, diag: bool) -> Tensor:
        return function(a - b if diag else a.unsqueeze(-2) - b.unsqueeze(-3))

    return in_portions(compare, f1, f2, diag, size, n_trailing)


def only_table(groups: Sequence[Resolutions]) -> Tabulated | None:
    """Return the table that is all there is to a sum of Gaussians, if it is so."""
    [*others, last] = (group.exact for group in groups)
    alone = not others and isinstance(last, Tabulated) and last.is_one_function
    return last if alone and isinstance(last, Tabulated) else None
