"""Few points, or cells, in place of many samples."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor


def gauss_rule(
    samples: NDArray[np.float64], n: int, weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], ...]:
    """Compress one-dimensional samples into the ``n`` nodes and weights of their Gauss rule.

    Polynomials up to degree ``2 n - 1`` have the same mean under the rule as over the samples
    (Lanczos tridiagonalization); fewer distinct samples than ``n`` are returned as they are.
    Samples count alike unless ``weights`` are given.
    """
    values, which = np.unique(samples, return_inverse=True)
    counts = np.bincount(which, weights)
    if len(values) <= n:
        return values, counts / counts.sum()
    center, width = values.mean(), np.ptp(values) / 2
    t = (values - center) / width
    basis = [np.sqrt(counts / counts.sum())]
    alpha, beta = [], []
    for _ in range(n):
        q = t * basis[-1]
        alpha.append(q @ basis[-1])
        for _twice in range(2):
            q = q - np.stack(basis).T @ (np.stack(basis) @ q)
        beta.append(np.linalg.norm(q))
        basis.append(q / beta[-1])
    nodes, vectors = np.linalg.eigh(np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1))
    return center + width * nodes, vectors[0] ** 2


def compress(samples: Float[Tensor, "s d"], n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cut samples into ``n`` cells; return their weights, means and covariances.

    The next cell to be cut is the one that matters most, by its share of the samples and by how far
    it reaches; the cut goes through its mean and across the direction in which it reaches furthest.
    """
    cells = [_Cell.of(samples)]
    while len(cells) < n and max(cell.importance for cell in cells) > 0:
        cell = cells.pop(max(range(len(cells)), key=lambda i: cells[i].importance))
        above = (cell.samples - cell.mean) @ cell.direction > 0
        cells += [_Cell.of(cell.samples[above]), _Cell.of(cell.samples[~above])]
    weights = samples.new_tensor([len(cell.samples) / len(samples) for cell in cells])
    means, covariances = (torch.stack([getattr(c, k) for c in cells]) for k in ("mean", "cov"))
    return weights, means, covariances


def bisect(points: Float[Tensor, "s r"], n: int) -> Int64[Tensor, "j c"]:
    """Split points into ``n`` cells of equal size, each time across the widest column."""
    cells = [torch.arange(len(points), device=points.device)]
    while len(cells) < n:
        halves: list[Tensor] = []
        for cell in cells:
            column = points[cell].var(dim=0).argmax()
            halves += cell[points[cell, column].argsort(stable=True)].chunk(2)
        cells = halves
    return torch.stack(cells)


@dataclass(frozen=True)
class _Cell:
    samples: Float[Tensor, "s d"]
    mean: Float[Tensor, " d"]
    cov: Float[Tensor, "d d"]
    direction: Float[Tensor, " d"]
    importance: float

    @classmethod
    def of(cls, samples: Float[Tensor, "s d"]) -> "_Cell":
        mean = samples.mean(0)
        centred = samples - mean
        cov = centred.mT @ centred / len(samples)
        variances, axes = torch.linalg.eigh(cov)
        # below rounding errors all samples are the same
        apart = variances[-1] > 1e-24 * (1 + mean.square().sum())
        importance = len(samples) * variances[-1].item() ** 1.5 if apart else 0.0
        return cls(samples, mean, cov, axes[:, -1], importance)
