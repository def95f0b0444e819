"""Kernel matrices by brute force, to hold every estimator against."""

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from airbo.uncertainty import base_draws
from benchmarks.cases import Case


def true_kernel(case: Case, X: Tensor, kernel: Kernel, n_pairs: int, seed: int) -> Tensor:
    """Return exp(-MMD²) between all designs, from pairs of independent draws of u and v."""
    draws = base_draws(n_pairs, 2 * case.uncertainty.n_base(case.d), seed)
    first, second = draws.chunk(2, dim=-1)
    low, width = case.bounds[0], case.bounds[1] - case.bounds[0]

    inner = X.new_zeros(len(X), len(X))
    for i in range(len(X)):
        u = (case.uncertainty.perturb(X[i : i + 1], first)[0] - low) / width
        for j in range(i, len(X)):
            v = (case.uncertainty.perturb(X[j : j + 1], second)[0] - low) / width
            inner[i, j] = inner[j, i] = kernel(u, v, diag=True).mean()  # E k(u, v)

    norms = inner.diagonal()
    return torch.exp(-(norms.unsqueeze(-1) + norms - 2 * inner))
