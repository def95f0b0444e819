"""A deviation at several resolutions: the wider a Gaussian base kernel, the less it sees."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.blocks import Block
from airbo.embeddings.factors import Factor, Mixture
from airbo.embeddings.gaussians import GaussianSums
from airbo.embeddings.reduction import Gaussians, probes, reduced

TOLERANCE = 5e-5
"""Largest change of one Gaussian of the base kernel, times its weight, by a coarser resolution."""
TOLERANCE_OF_SAMPLES = 1e-4
"""The same where samples stand for the deviation, which cells describe no better than that."""
SIZES = (1, 3, 9, 17, 33)
"""Components of the coarser resolutions."""


@dataclass(frozen=True)
class Resolutions:
    """The same function of a difference, more and more finely resolved."""

    exact: Factor
    coarser: Sequence[Mixture] = ()
    """The coarsest first."""
    errors: Float[Tensor, "c q"] | None = None
    """Of the coarser ones, at the precisions of ``exact``."""
    tolerance: float = TOLERANCE

    @classmethod
    def of(cls, exact: Factor, fine: Mixture) -> "Resolutions":
        """Resolve a difference that is as likely as its opposite.

        Args:
            exact: The finest resolution; of alike groups of columns, or of one.
            fine: What errors are measured against, of one group of columns.
        """
        n_groups = len(exact.columns) // len(fine.columns)
        # a table costs the same, whatever it holds
        n_all = len(exact.weights) if isinstance(exact, Mixture) else 2 * SIZES[0] + 1
        many = Gaussians(fine.weights, fine.shifts, fine.covariances)
        sizes = [n for n in SIZES if 2 * n < n_all]
        if not sizes:
            return cls(exact)
        few = [_mixture(view, fine) for view in reduced(many, sizes)]
        t = probes(len(fine.columns), seed=1) * many.std
        truth = _values(fine, t)
        errors = torch.stack([n_groups * (_values(view, t) - truth).abs().amax(0) for view in few])
        if isinstance(exact, Mixture) and len(fine.weights) > n_all:  # both stand for samples
            error = (_values(exact, t) - truth).abs().amax(0)
            if errors[-1].sum() <= 2 * error.sum():
                return cls(few[-1], few[:-1], errors[:-1], TOLERANCE_OF_SAMPLES)
            return cls(exact, few, errors, TOLERANCE_OF_SAMPLES)
        return cls(exact, [_in_all(view, exact.columns) for view in few], errors)

    def chosen(self, precisions: Float[Tensor, " q"], weights: Float[Tensor, " q"]) -> list[Factor]:
        """Return the coarsest resolution that is good enough for each weighted base kernel."""
        if self.errors is None:
            return [self.exact] * len(precisions)
        known = self.exact.precisions
        above = torch.searchsorted(known, precisions).clamp(1, len(known) - 1)
        errors = torch.maximum(self.errors[:, above - 1], self.errors[:, above])
        enough = torch.cat([weights * errors <= self.tolerance, torch.ones(1, len(above)) > 0])
        views = [*self.coarser, self.exact]
        return [views[i] for i in enough.int().argmax(0)]


def _mixture(few: Gaussians, like: Mixture) -> Mixture:
    diagonals = few.covs.diagonal(dim1=-2, dim2=-1)
    turned = (few.covs - diagonals.diag_embed()).abs().amax() > 1e-12 * diagonals.amax()
    spread = few.covs if turned else diagonals
    weights, means, spread = (v.unsqueeze(0) for v in (few.weights, few.means, spread))
    block = Block(like.columns, weights, means, spread)
    return Mixture.of(block, like.precisions)


def _in_all(view: Mixture, columns: tuple[int, ...]) -> Mixture:
    """Repeat one Gaussian for all groups of columns."""
    if len(columns) == len(view.columns):
        return view
    shifts, variances = (v.repeat(1, len(columns)) for v in (view.shifts, view.variances))
    return replace(view, columns=columns, shifts=shifts, variances=variances)


def _values(mixture: Mixture, t: Float[Tensor, "p b"]) -> Float[Tensor, "p q"]:
    alone = replace(mixture, columns=tuple(range(t.shape[-1])))
    sums = (GaussianSums.of([[alone.at(one)]], t.shape[-1]) for one in mixture.precisions.split(1))
    return torch.cat([each(t) for each in sums], dim=-1)
