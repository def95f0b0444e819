"""Deviations that were logged.

Notation: δ_i row i of the log (N d), each with the probability 1/N; δ̄ their mean (d).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.gaussians import Mixture, Resolution, around, by_gauss_rules, compress
from airbo.uncertainty.logs import read_deviations
from airbo.uncertainty.parameters import Numbers, as_tensor


@dataclass(frozen=True, eq=False, repr=False)
class Empirical(InputUncertainty):
    """The deviation is one of those that were logged, x' - x, each as likely as the others."""

    deviations: Numbers
    """Logged deviations (N d); (N) for one column."""

    is_additive: ClassVar[bool] = True
    has_bounds: ClassVar[bool] = True

    @classmethod
    def from_csv(cls, path: str | Path, columns: Sequence[str | int] | None = None) -> "Empirical":
        """Read logged deviations from a CSV file, one row per experiment, with or without header.

        Args:
            path: The file.
            columns: Names from the header or positions from 0, in the order of the design;
                all columns by default.
        """
        return cls(read_deviations(Path(path), columns))

    @property
    def dim(self) -> int:
        """Number of logged columns."""
        return len(self.deviations[0])

    @property
    def independent_columns(self) -> bool:
        """True for one column; logged columns belong together."""
        return self.dim == 1

    def n_base(self, d: int) -> int:
        """Return 1: it picks the row."""
        return 1

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s 1"]
    ) -> Float[Tensor, "*batch n s d"]:
        # x' = x + δ_i with i = ⌊u N⌋
        rows = self._rows.to(X)
        picked = (base[:, 0] * len(rows)).long().clamp_max(len(rows) - 1)
        return X.unsqueeze(-2) + rows[picked]

    @cached_property
    def _rows(self) -> Tensor:
        return as_tensor(self.deviations)

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = x + Σ_i δ_i / N
        return X + self._rows.mean(dim=0).to(X)

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = Σ_i (δ_i - δ̄)(δ_i - δ̄)ᵀ / N
        centred = self._rows - self._rows.mean(dim=0)
        return (centred.mT @ centred / len(centred)).to(X).expand(*X.shape, X.shape[-1])

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t): the share of δ_i < t - x
        ordered = self._rows.to(X).flatten().sort().values
        return torch.searchsorted(ordered, (t - X).detach().contiguous()).to(X) / len(ordered)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # few rows are points; many are a Gauss rule in one column, and cells in several
        rows = self._rows.to(X)
        if len(rows) <= r.cells:
            return [around(X, X.new_full((len(rows),), 1 / len(rows)), rows)]
        if X.shape[-1] == 1:
            return by_gauss_rules(X, rows, r.fine_nodes)
        return [around(X, *compress(rows, r.cells))]
