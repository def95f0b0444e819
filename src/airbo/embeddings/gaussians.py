"""Sums of Gaussian functions of a difference, worked out together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.factors import Mixture


@dataclass(frozen=True)
class GaussianSums:
    r"""Several sums of Gaussians as one matrix product and one exponential.

    .. math:: \sum_k h_k \exp\left(-\tfrac12 (t + s_k)^\top A_k (t + s_k)\right)

    The exponents are linear in the products of two entries of t, and in t.
    """

    products: list[tuple[int, int]]
    """Pairs of entries of t whose products count."""
    entries: list[int]
    """Entries of t that count by themselves."""
    coefficients: Float[Tensor, "k f"]
    offsets: Float[Tensor, "k 1"]
    heights: Float[Tensor, "q k"]
    """One row per sum."""

    @classmethod
    def of(cls, mixtures: Sequence[Sequence[Mixture]], d: int) -> "GaussianSums":
        """Take one sum per precision of products of mixtures over disjoint columns.

        Args:
            mixtures: Products; their sums follow one another in the result.
            d: Number of columns of a difference.
        """
        parts = [_expanded(product, d) for product in mixtures]
        A, s, h = (torch.cat([part[i] for part in parts]) for i in range(3))
        n_sums = [len(product[0].precisions) for product in mixtures]
        sizes = [len(part[2]) for part in parts]
        which = torch.cat(
            [
                torch.arange(q).repeat_interleave(size // q) + sum(n_sums[:i])
                for i, (q, size) in enumerate(zip(n_sums, sizes, strict=True))
            ]
        )
        heights = h.new_zeros(sum(n_sums), len(h))
        heights[which, torch.arange(len(h))] = h

        # -½ (t + s)ᵀ A (t + s) = -½ tᵀ A t - (A s)ᵀ t - ½ sᵀ A s
        i, j = torch.triu_indices(A.shape[-1], A.shape[-1])
        quadratic = A[:, i, j] * torch.where(i == j, -0.5, -1.0)
        linear = -(A @ s.unsqueeze(-1)).squeeze(-1)
        offsets = 0.5 * (linear * s).sum(-1, keepdim=True)
        pairs, entries = (v.any(0) for v in (quadratic, linear))
        return cls(
            list(zip(i[pairs].tolist(), j[pairs].tolist(), strict=True)),
            entries.nonzero().flatten().tolist(),
            torch.cat([quadratic[:, pairs], linear[:, entries]], dim=-1),
            offsets,
            heights,
        )

    def summed(self, weights: Float[Tensor, " q"]) -> "GaussianSums":
        """Return one weighted sum of all."""
        return replace(self, heights=weights.unsqueeze(0) @ self.heights.to(weights))

    @property
    def size(self) -> int:
        """Numbers that an evaluation holds at a time, per difference."""
        return sum(self.coefficients.shape)

    def __call__(self, t: Float[Tensor, "*pairs d"]) -> Float[Tensor, "*pairs q"]:
        """Evaluate all sums."""
        columns = t.reshape(-1, t.shape[-1]).unbind(-1)
        each = [columns[i] * columns[j] for i, j in self.products]
        rows = torch.stack(each + [columns[i] for i in self.entries])  # (f, pairs)
        exponents = torch.addmm(self.offsets.to(t), self.coefficients.to(t), rows)
        return (self.heights.to(t) @ exponents.exp_()).mT.unflatten(0, t.shape[:-1])


def _expanded(
    product: Sequence[Mixture], d: int
) -> tuple[Float[Tensor, "k d d"], Float[Tensor, "k d"], Float[Tensor, " k"]]:
    """Multiply sums out: curvatures, shifts and heights of all Gaussians, scale after scale."""
    q = len(product[0].precisions)
    A, s = (torch.zeros(q, 1, d, *rest, dtype=torch.float64) for rest in ((d,), ()))
    h = torch.ones(q, 1, dtype=torch.float64)
    for mixture in product:
        columns = list(mixture.columns)
        own, n, j = mixture.curvatures, A.shape[1], len(mixture.weights)
        A, s = (v.repeat_interleave(j, dim=1) for v in (A, s))
        A[..., torch.tensor(columns).unsqueeze(-1), columns] = own.repeat(1, n, 1, 1)
        s[..., columns] = mixture.shifts.repeat(n, 1)
        h = (h.unsqueeze(-1) * mixture.heights.mT.unsqueeze(-2)).flatten(1)
    return A.flatten(0, 1), s.flatten(0, 1), h.flatten()
