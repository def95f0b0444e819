"""Kernel matrices by brute force, to hold every estimator against."""

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from airbo.uncertainty import base_draws
from benchmarks.cases import Case

CHUNK = 2**13
"""Pairs that are worked on at a time: few enough for the cache."""


def true_kernel(case: Case, X: Tensor, kernel: Kernel, n_pairs: int, seed: int) -> Tensor:
    """Return exp(-MMD²) between all designs, from pairs of independent draws of u and v."""
    low, width = case.bounds[0], case.bounds[1] - case.bounds[0]
    inner = X.new_zeros(len(X), len(X))
    for chunk in base_draws(n_pairs, 2 * case.uncertainty.n_base(case.d), seed).split(CHUNK):
        first, second = chunk.chunk(2, dim=-1)
        u, v = ((case.uncertainty.perturb(X, base) - low) / width for base in (first, second))
        for i in range(len(X)):
            for j in range(i, len(X)):
                inner[i, j] += kernel(u[i], v[j], diag=True).sum() / n_pairs  # E k(u, v)
    inner = inner.triu() + inner.triu(1).mT

    norms = inner.diagonal()
    return torch.exp(-(norms.unsqueeze(-1) + norms - 2 * inner))
