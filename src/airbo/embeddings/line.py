"""One column, alone: distributions spread over a grid that all designs share."""

from functools import lru_cache

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.plan import Plan
from airbo.uncertainty.gaussians import Mixture, to_atoms

SPACING = 1 / 100
"""Of the grid, in the unit cube: resolves length scales down to 0.03."""
STENCIL = 8
"""Points of the grid that stand for a point between them."""
EVEN = (-1.5, 2.5)
"""The grid is even here at most; beyond, it gets coarser."""
GROWTH, END_OF_LINE = 1.3, 1e3
NODES_PER_GAUSSIAN = 9
"""Points that stand for one of several Gaussians."""
JUMP = 2e-5
"""What a narrow Gaussian may see of a step of P_x before designs are no longer interpolated."""


class Line:
    r"""Writes P_x as weights of the points of a grid.

    .. math:: \psi_P \approx \sum_g \omega_g(P) \, k(z_g, \cdot), \qquad
              \langle\psi_P, \psi_Q\rangle \approx \omega(P)^\top K_{ZZ} \, \omega(Q)

    A point of P_x between points of the grid is shared among the nearest of them as polynomial
    interpolation of the base kernel demands. The weights do not depend on hyper-parameters, and
    comparing designs is a matrix product, however finely P_x is resolved.

    Where P_x is smooth in x, a design is shared among the nearest designs of a second grid in the
    same way, and all that is left of P_x is in the matrix between the designs of that grid.
    """

    def __init__(self, plan: Plan, far: bool) -> None:
        """Span designs in the unit cube, or ``far`` beyond it."""
        self.plan, self.group = plan, plan.groups[0]
        self.n_kinds = len(self.group.deviations or self.group.blocks or ())
        # P_x need not be defined for designs outside the cube
        self.designs = torch.linspace(0, 1, round(1 / SPACING) + 1, dtype=torch.float64)
        landed = [self._landing(self.designs, kind) for kind in range(self.n_kinds)]
        low = min(points.means.min().item() for points in landed)
        high = max(points.means.max().item() for points in landed)
        self.Z = _grid(low, high, far)
        self.far = far
        self.is_even = bool(self.Z.diff().max() < 1.01 * SPACING)
        self.spread = torch.cat(
            [self._weights(points) for points in landed]
        )  # (kinds · designs, m)
        self.smooth = not far and self._is_smooth()

    def spans(self, Z: Tensor) -> bool:
        """Say whether designs are on the grid, and land on it."""
        if self.far:
            return True
        return bool(((Z >= 0) & (Z <= 1)).all())

    def features(
        self, Z: Float[Tensor, "*batch n 1"], kind: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n m"]:
        """Return the weights of designs of the one grid, or of executed inputs of the other."""
        if not self.smooth:
            return self._weights(self._points(self.plan.landing_of(self.group, Z, kind)))
        first, shares = _interpolation(self.designs.to(Z), Z.squeeze(-1))
        first = first + kind * len(self.designs)
        index = first.unsqueeze(-1) + torch.arange(STENCIL, device=Z.device)
        return Z.new_zeros(*Z.shape[:-1], len(self.spread)).scatter_add(-1, index, shares)

    def gram(self, base_kernel: Kernel, like: Tensor) -> Float[Tensor, "m m"]:
        """Return the inner products of all points of the grid that features are weights of."""
        K = base_kernel(self.Z.to(like).unsqueeze(-1)).to_dense()
        if not self.smooth:
            return K
        A = self.spread.to(like)
        return A @ K @ A.mT

    def _landing(self, x: Float[Tensor, " n"], kind: int) -> Mixture:
        kinds = torch.full(x.shape, kind)
        return self._points(self.plan.landing_of(self.group, x.unsqueeze(-1), kinds))

    def _points(self, landing: Mixture) -> Mixture:
        """Write a sum of Gaussians as points."""
        n = self.plan.resolution.nodes
        return to_atoms(landing, n if landing.n_components == 1 else NODES_PER_GAUSSIAN)

    def _weights(self, landing: Mixture) -> Float[Tensor, "*batch n m"]:
        points = landing.means.squeeze(-1).clamp(-END_OF_LINE, END_OF_LINE)  # (..., n, j)
        Z = self.Z.to(points)
        first, shares = _interpolation(Z, points)
        index = first.unsqueeze(-1) + torch.arange(STENCIL, device=Z.device)
        weights = landing.weights.unsqueeze(-1) * shares  # (..., n, j, stencil)
        empty = weights.new_zeros(*points.shape[:-1], len(Z))
        return empty.scatter_add(-1, index.flatten(-2), weights.flatten(-2))

    def _is_smooth(self) -> bool:
        """Compare designs between those of the grid with what they are taken for."""
        x = torch.linspace(0, 1 - SPACING, 37, dtype=torch.float64) + 0.37 * SPACING
        narrow = torch.exp(-0.5 * ((self.Z[:, None] - self.Z) / 0.05).square())
        for kind in range(self.n_kinds):
            self.smooth = True
            taken = self.features(x.unsqueeze(-1), torch.full(x.shape, kind)) @ self.spread
            error = (taken - self._weights(self._landing(x, kind))) @ narrow
            if not error.abs().max() <= JUMP:
                return False
        return True


@lru_cache(maxsize=32)
def line_of(plan: Plan, far: bool) -> Line:
    """Return the grid of a plan; models that are built one after another share it."""
    return Line(plan, far)


def _grid(low: float, high: float, far: bool) -> Float[Tensor, " m"]:
    """Return points around all executed inputs, evenly spaced near the unit cube."""
    margin = STENCIL / 2 * SPACING
    start, end = max(min(low, 0.0) - margin, EVEN[0]), min(max(high, 1.0) + margin, EVEN[1])
    Z = torch.arange(start, end + SPACING, SPACING, dtype=torch.float64)
    if not far and low >= Z[0] and high <= Z[-1]:
        return Z
    steps = [SPACING * GROWTH]
    while sum(steps) < END_OF_LINE + EVEN[1]:
        steps.append(steps[-1] * GROWTH)
    beyond = torch.tensor(steps, dtype=torch.float64).cumsum(0)
    return torch.cat([Z[0] - beyond.flip(0), Z, Z[-1] + beyond])


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
