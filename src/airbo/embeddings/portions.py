"""Sums over the Gaussians of a base kernel, in portions of designs that fit in the cache.

``Terms`` gives G_q(i, j), the integral of Gaussian q over the distributions of designs i and j.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from airbo.embeddings.embedding import PORTION
from airbo.embeddings.terms import Looked, Terms

N_STRIPS = 16
"""Into which the rows of a symmetric matrix are divided: the more, the closer to half the work."""


def weighted_sum(terms: Terms, weights: Tensor, one: Looked, two: Looked, diag: bool) -> Tensor:
    """Return Σ_q w_q G_q(i, j) for all pairs, or matching ones, a portion of rows at a time."""
    n, per_row = one.f.shape[-2], terms.size * (1 if diag else two.f.shape[-2])
    step = max(8, PORTION // max(1, per_row * one.f.shape[:-2].numel()))
    parts = []
    for first in range(0, n, step):
        rows = one.rows(first, first + step)
        others = rows if one is two else two.rows(first, first + step)
        parts.append(_summed(weights, terms(rows, others if diag else two, diag)))
    return torch.cat(parts, dim=-1 if diag else -2) if len(parts) > 1 else parts[0]


def every_gaussian(terms: Terms, f: Float[Tensor, "n f"]) -> Float[Tensor, "q n n"]:
    """Return every G_q(i, j) by itself, a portion of rows at a time."""
    n, two = len(f), terms.look(f, weighed=True)
    step = max(1, PORTION // (terms.size * n))
    if terms.logs is not None:
        rows = [terms(two.rows(i, i + step), two, False) for i in range(0, n, step)]
        return torch.cat(rows, dim=-2)
    # G_q is symmetric: rows i, ... meet columns from i on, and the rest is their mirror image
    rows = [terms(two.rows(i, i + step), two.rows(i, n), False) for i in range(0, n, step)]
    padded = [torch.nn.functional.pad(r, (n - r.shape[-1], 0)) for r in rows]
    upper = torch.cat(padded, dim=-2).triu()
    return upper + upper.triu(1).mT


def _summed(weights: Float[Tensor, " q"], terms: Float[Tensor, "q ..."]) -> Tensor:
    if terms.dim() > 2 and terms.mT.is_contiguous():
        return torch.tensordot(weights, terms.mT, dims=1).mT
    return torch.tensordot(weights, terms, dims=1)


def symmetric_sum(terms: Terms, weights: Tensor, f: Float[Tensor, "n f"]) -> Float[Tensor, "n n"]:
    """Return Σ_q w_q G_q(i, j) for all pairs of a fit, strip by strip.

    A gradient computes each strip again, so that memory never holds more than one of them.
    """
    n = len(f)
    step = -(-n // N_STRIPS)
    rows = []
    for first in range(0, n, step):
        strip: Tensor = checkpoint(
            _strip, terms, weights, f, first, first + step, use_reentrant=False
        )
        rows.append(torch.nn.functional.pad(strip, (first, 0)))
    upper = torch.cat(rows).triu()
    return upper + upper.triu(1).mT


def _strip(terms: Terms, weights: Tensor, f: Tensor, first: int, last: int) -> Tensor:
    # the matrix is symmetric: many designs against few fit in the cache, few against many do not
    many, few = terms.look(f[first:]), terms.look(f[first:last], weighed=True)
    return weighted_sum(terms, weights, many, few, False).mT
