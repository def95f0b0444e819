"""Gaussian base kernels integrated over all deviations, as functions of a difference."""

from collections.abc import Callable, Sequence
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.factors import Factor, Mixture
from airbo.embeddings.gaussians import GaussianSums
from airbo.embeddings.resolutions import Resolutions


class Integrals:
    r"""For each Gaussian base kernel, a product over groups of columns.

    .. math:: g_q(t) = \prod_b g_{bq}(t_b)

    Wide base kernels see so little of the deviations that few Gaussians stand for them: these are
    worked out together. For the others, the factors are multiplied.
    """

    def __init__(
        self,
        groups: Sequence[Resolutions],
        precisions: Float[Tensor, " q"],
        weights: Float[Tensor, " q"],
    ) -> None:
        """Choose the resolution of all groups for base kernels that count so much."""
        self.d = sum(len(group.exact.columns) for group in groups)
        chosen = [group.chosen(precisions, weights) for group in groups]
        alike: dict[tuple[int, ...], list[int]] = {}
        for q, seen in enumerate(zip(*chosen, strict=True)):
            alike.setdefault(tuple(map(id, seen)), []).append(q)
        together: list[list[Mixture]] = []
        first: list[int] = []
        for members in alike.values():
            views = [each[members[0]] for each in chosen]
            mixtures = [view for view in views if isinstance(view, Mixture)]
            if len(mixtures) == len(views) and _multiply_out(mixtures):
                together.append([m.at(precisions[members]) for m in mixtures])
                first += members
        rest = sorted(set(range(len(precisions))) - set(first))
        self._sums = GaussianSums.of(together, self.d) if first else None
        self._factors: list[Factor | GaussianSums] = []
        if rest:
            self._factors = _joined([g.exact.at(precisions[rest]) for g in groups], self.d)
        self._n_sums, self._order = len(first), torch.tensor(first + rest)

    @property
    def n(self) -> int:
        """Number of base kernels."""
        return len(self._order)

    @property
    def size(self) -> int:
        """Numbers that are held at a time, per difference."""
        factors = sum(factor.size for factor in self._factors)
        return self.d + factors + (self._sums.size if self._sums else 0)

    def __call__(self, t: Float[Tensor, "*pairs d"]) -> Float[Tensor, "*pairs q"]:
        """Return the values under all base kernels."""
        parts = [self._sums(t)] if self._sums else []
        parts += [self._product(t)] if self._factors else []
        return torch.cat(parts, dim=-1)[..., self._order.argsort().to(t.device)]

    def summed(self, weights: Float[Tensor, " q"]) -> Callable[[Tensor], Tensor]:
        """Return the weighted sum over all base kernels as a function of the difference."""
        first, rest = weights[self._order.to(weights.device)].tensor_split([self._n_sums])
        sums = self._sums and self._sums.summed(first)

        def terms(t: Tensor) -> Tensor:
            parts = [sums(t).squeeze(-1)] if sums else []
            parts += [self._product(t) @ rest] if self._factors else []
            return reduce(torch.add, parts)

        return terms

    def _product(self, t: Tensor) -> Tensor:
        return reduce(torch.mul, (_part(factor, t) for factor in self._factors))


def _multiply_out(mixtures: Sequence[Mixture]) -> bool:
    """Say whether a product of sums has no more terms than its longest factor."""
    return sum(len(mixture.weights) > 1 for mixture in mixtures) <= 1


def _joined(factors: Sequence[Factor], d: int) -> list[Factor | GaussianSums]:
    """Join all Gaussians that are factors of their own."""
    single = [f for f in factors if isinstance(f, Mixture) and len(f.weights) == 1]
    joined: list[Factor | GaussianSums] = [f for f in factors if not any(f is g for g in single)]
    return [*joined, GaussianSums.of([single], d)] if single else joined


def _part(factor: Factor | GaussianSums, t: Tensor) -> Tensor:
    if isinstance(factor, GaussianSums) or len(factor.columns) == t.shape[-1]:
        return factor(t)
    first, last = factor.columns[0], factor.columns[-1]
    if factor.columns == tuple(range(first, last + 1)):
        return factor(t[..., first : last + 1])  # much faster than to choose columns
    return factor(t[..., list(factor.columns)])
