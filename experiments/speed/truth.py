"""Squared MMDs by brute force, to compare every estimator with."""

from collections.abc import Sequence

from gpytorch.kernels import Kernel
from torch import Tensor

from airbo.uncertainty import base_draws
from experiments.subjects.uncertainties import UncertainBox

CHUNK = 2**13
"""Number of pairs at a time: few enough for the cache."""


def true_mmd2(
    case: UncertainBox, X: Tensor, kernels: Sequence[Kernel], n_pairs: int, seed: int
) -> list[Tensor]:
    """Return MMD² between all designs for each base kernel, from independent draws of u and v."""
    low, width = case.bounds[0], case.bounds[1] - case.bounds[0]
    inner = X.new_zeros(len(kernels), len(X), len(X))
    for chunk in base_draws(n_pairs, 2 * case.uncertainty.n_base(case.d), seed).split(CHUNK):
        first, second = chunk.chunk(2, dim=-1)
        u, v = ((case.uncertainty.perturb(X, base) - low) / width for base in (first, second))
        for i in range(len(X)):
            for j in range(i, len(X)):
                for k, kernel in enumerate(kernels):
                    inner[k, i, j] += kernel(u[i], v[j], diag=True).sum() / n_pairs  # E k(u, v)
    inner = inner.triu() + inner.triu(1).mT

    norms = inner.diagonal(dim1=-2, dim2=-1)
    return list(norms.unsqueeze(-1) + norms.unsqueeze(-2) - 2 * inner)
