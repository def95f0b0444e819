"""A base kernel as a sum of Gaussians of different widths."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

TOLERANCE = 2e-5
"""Largest change of the base kernel, whose value at distance 0 is about 5, when it is shortened."""
_LENGTHS = range(8, 26, 2)


@dataclass(frozen=True)
class GaussianScales:
    r"""A base kernel written as a sum of Gaussians of different widths.

    .. math:: k(x, x') = c_0 + \sum_q c_q \exp(-\tfrac12 \lambda_q \|x - x'\|^2)
    """

    constant: Float[Tensor, ""]
    weights: Float[Tensor, " q"]
    precisions: Float[Tensor, " q"] | Float[Tensor, "q d"]

    def detached(self) -> "GaussianScales":
        """Take the hyper-parameters for constants."""
        return GaussianScales(
            self.constant.detach(), self.weights.detach(), self.precisions.detach()
        )

    def shortened(self) -> "GaussianScales":
        r"""Return a sum of as few Gaussians as change the kernel by no more than ``TOLERANCE``.

        With :math:`A = \mathrm{diag}(\lambda)` and :math:`b = \sqrt c`, the sum is
        :math:`b^\top e^{-s A / 2} b` at squared distance s. Projecting A on the space of
        :math:`b` and :math:`(A + z_k)^{-1} b` leaves a small matrix whose eigenvalues are the new
        precisions; their weights are squares, so that the kernel stays positive semi-definite. An
        expectation over any P changes no more than the kernel itself.

        Hyper-parameters count as constants here.
        """
        weights, precisions = self.weights.detach(), self.precisions.detach()
        kept = weights > 1e-9 * weights.sum()
        if precisions.dim() > 1 or kept.sum() <= _LENGTHS[0]:
            return self.detached()
        whole = weights[kept].double(), precisions[kept].double()
        for n in _LENGTHS:
            short = _projected(*whole, n)
            if _distance(whole, short) <= TOLERANCE:
                break
        return GaussianScales(self.constant.detach(), *(v.to(weights) for v in short))


def _projected(w: Tensor, lam: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return weights and precisions of n Gaussians."""
    root = w.sqrt().unsqueeze(-1)
    largest = 10 * lam[w.cumsum(0) <= 0.97 * w.sum()].max()
    z = torch.logspace(-2, largest.log10().item(), n - 1).to(lam)
    basis = torch.cat([root, root / (1 + lam.unsqueeze(-1) / z)], dim=1)
    Q, _ = torch.linalg.qr(basis / basis.norm(dim=0))
    precisions, axes = torch.linalg.eigh(Q.mT @ (lam.unsqueeze(-1) * Q))
    return (axes.mT @ Q.mT @ root).squeeze(-1).square(), precisions


def _distance(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> float:
    """Return the largest difference of two sums, over all distances in and around the cube."""
    s = torch.cat([torch.zeros(1), torch.logspace(-8, 2, 200)]).to(a[0])
    kernels = [torch.exp(-0.5 * s.unsqueeze(-1) * lam) @ w for w, lam in (a, b)]
    return (kernels[0] - kernels[1]).abs().max().item()
