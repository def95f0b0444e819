"""Weighted sums of integrals between designs, where these are too many to be remembered."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.embedding import PORTION
from airbo.embeddings.integrals import Integrals
from airbo.embeddings.kappa import over_pairs

N_STRIPS = 16
"""Into which the rows of a symmetric matrix are divided: the more, the closer to half the work."""


class WeightedSum(torch.autograd.Function):
    r"""The matrix :math:`\sum_q w_q\, g_q(x_i - y_j)`, with gradients for the weights only.

    Integrals are worked out for the matrix, and again for the gradient: what a step remembers does
    not grow with the number of base kernels. A symmetric matrix is worked out on one side of its
    diagonal.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weights: Float[Tensor, " q"],
        integrals: Integrals,
        f1: Float[Tensor, "n d"],
        f2: Float[Tensor, "k d"],
        symmetric: bool,
    ) -> Float[Tensor, "n k"]:
        """Sum over base kernels."""
        ctx.integrals, ctx.symmetric = integrals, symmetric
        ctx.save_for_backward(f1, f2)
        terms, result = integrals.summed(weights), f1.new_empty(len(f1), len(f2))
        for first, last in _strips(len(f1)):
            left = first if symmetric else 0
            strip = over_pairs(terms, f1[first:last], f2[left:], False, integrals.size)
            result[first:last, left:] = strip
            if symmetric:
                result[first:, first:last] = strip.mT
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Float[Tensor, "n k"]) -> tuple[Tensor | None, ...]:
        """Sum over pairs of designs."""
        f1, f2 = ctx.saved_tensors
        integrals: Integrals = ctx.integrals
        total = f1.new_zeros(integrals.n)
        for first, last in _strips(len(f1)):
            left = first if ctx.symmetric else 0
            strip = gradient[first:last, left:].clone()
            if ctx.symmetric:
                strip[:, last - first :] += gradient[last:, first:last].mT
            n_rows = max(1, PORTION // (integrals.size * strip.shape[-1]))
            for rows, part in zip(f1[first:last].split(n_rows), strip.split(n_rows), strict=True):
                values = integrals(rows.unsqueeze(1) - f2[left:])  # (rows, k, q)
                total += part.flatten() @ values.flatten(0, 1)
        return total, None, None, None, None


def _strips(n: int) -> Iterator[tuple[int, int]]:
    step = -(-n // N_STRIPS)
    for first in range(0, n, step):
        yield first, min(first + step, n)
