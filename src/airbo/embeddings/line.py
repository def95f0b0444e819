"""One column, alone: distributions spread over a grid that all designs share."""

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.mixture import Mixture, to_atoms

SPACING = 1 / 100
"""Of the grid, in the unit cube: resolves length scales down to 0.03."""
STENCIL = 8
"""Points of the grid that stand for a point between them."""
EVEN = (-1.5, 2.5)
"""The grid is even here at most; beyond, it gets coarser."""
GROWTH, FARTHEST = 1.3, 1e3
NODES = 9
"""Points that stand for one of several Gaussians."""


class Line:
    r"""Writes P_x as weights of the points of a grid.

    .. math:: \psi_P \approx \sum_g \omega_g(P) \, k(z_g, \cdot), \qquad
              \langle\psi_P, \psi_Q\rangle \approx \omega(P)^\top K_{ZZ} \, \omega(Q)

    A point of P_x between points of the grid is shared among the nearest of them as polynomial
    interpolation of the base kernel demands. The weights do not depend on hyper-parameters, and
    comparing designs is a matrix product, however finely P_x is resolved.
    """

    def __init__(self, low: float, high: float, far: bool) -> None:
        """Span executed inputs between ``low`` and ``high``, or all up to ``FARTHEST``."""
        margin = STENCIL / 2 * SPACING
        start, end = max(min(low, 0.0) - margin, EVEN[0]), min(max(high, 1.0) + margin, EVEN[1])
        Z = torch.arange(start, end + SPACING, SPACING, dtype=torch.float64)
        if far:
            steps = [SPACING * GROWTH]
            while sum(steps) < FARTHEST + EVEN[1]:
                steps.append(steps[-1] * GROWTH)
            beyond = torch.tensor(steps, dtype=torch.float64).cumsum(0)
            Z = torch.cat([Z[0] - beyond.flip(0), Z, Z[-1] + beyond])
        self.Z = Z

    def spans(self, points: Tensor) -> bool:
        """Say whether all points are on the grid."""
        return bool((points >= self.Z[0]).all() and (points <= self.Z[-1]).all())

    def weights(self, landing: Mixture) -> Float[Tensor, "*batch n m"]:
        """Return the weights of the points of the grid."""
        points = landing.means.squeeze(-1).clamp(-FARTHEST, FARTHEST)  # (..., n, j)
        Z = self.Z.to(points)
        first, shares = _interpolation(Z, points)
        index = first.unsqueeze(-1) + torch.arange(STENCIL, device=Z.device)
        weights = landing.weights.unsqueeze(-1) * shares  # (..., n, j, stencil)
        empty = weights.new_zeros(*points.shape[:-1], len(Z))
        return empty.scatter_add(-1, index.flatten(-2), weights.flatten(-2))

    def gram(self, base_kernel: Kernel, like: Tensor) -> Float[Tensor, "m m"]:
        """Return the base kernel between all points of the grid."""
        return base_kernel(self.Z.to(like).unsqueeze(-1)).to_dense()


def points_of(landing: Mixture, n: int) -> Mixture:
    """Write a sum of Gaussians as points: ``n`` of one Gaussian, ``NODES`` of each of several."""
    return to_atoms(landing, n if landing.n_components == 1 else NODES)


def _interpolation(Z: Float[Tensor, " m"], u: Float[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
    """Return the first of the points of ``Z`` around each u, and the shares of those points."""
    place = torch.searchsorted(Z, u.detach().contiguous())
    first = (place - STENCIL // 2).clamp(0, len(Z) - STENCIL)

    # Lagrange: share_j = prod_(k != j) (u - z_k) / (z_j - z_k)
    stencils = Z.unfold(0, STENCIL, 1)  # (m - 7, 8)
    gaps = stencils.unsqueeze(-1) - stencils.unsqueeze(-2)
    gaps = gaps + torch.eye(STENCIL).to(Z)
    scaled = 1 / gaps.prod(-1)
    distance = u.unsqueeze(-1) - stencils[first]
    one = torch.ones_like(distance[..., :1])
    before = torch.cat([one, distance[..., :-1]], dim=-1).cumprod(-1)
    after = torch.cat([distance[..., 1:], one], dim=-1).flip(-1).cumprod(-1).flip(-1)
    return first, scaled[first] * before * after
