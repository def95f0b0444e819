"""Distributions spread over a grid that all designs share: the fast way on a line."""

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.blocks import Block, choose, to_atoms
from airbo.embeddings.components import components
from airbo.embeddings.mixtures import ComponentEmbedding
from airbo.uncertainty import InputUncertainty

SPACING = 1 / 100
"""Of the grid, in model coordinates: resolves length scales down to 0.03."""
STENCIL = 8
"""Points of the grid that stand for a point between them."""
FINE = (-1.5, 2.5)
"""The grid is even here at most; beyond, it gets coarser."""
GROWTH, FARTHEST = 1.3, 1e3


class GridEmbedding(ComponentEmbedding):
    r"""Writes P_x as weights of the points of a grid.

    .. math:: \psi_P \approx \sum_g \omega_g(P) \, k(z_g, \cdot), \qquad
              \langle\psi_P, \psi_Q\rangle \approx \omega(P)^\top K_{ZZ} \, \omega(Q)

    A quadrature node of P_x between points of the grid is shared among the nearest of them as
    polynomial interpolation of the base kernel demands. Features do not depend on hyper-parameters,
    and comparing designs is a matrix product, however finely P_x is resolved.
    """

    def __init__(self, n_atoms: int, *args: object) -> None:
        """Resolve P_x with ``n_atoms`` quadrature nodes."""
        super().__init__(n_atoms, *args)
        self._goes_far = False

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Tensor
    ) -> Float[Tensor, "*batch n m"]:
        """Return the weights of the points of the grid."""
        atoms = self._atoms(X, choice)
        points = atoms.means.squeeze(-1)  # (..., n, j)
        Z = self._grid()
        if not self._goes_far and bool((points < Z[0]).any() or (points > Z[-1]).any()):
            self._goes_far = True
            self._changes += 1
            Z = self._grid()
        first, shares = _interpolation(Z, points.clamp(-FARTHEST, FARTHEST))
        index = first.unsqueeze(-1) + torch.arange(STENCIL, device=X.device)
        weights = atoms.weights.unsqueeze(-1) * shares  # (..., n, j, stencil)
        empty = weights.new_zeros(*X.shape[:-1], len(Z))
        return empty.scatter_add(-1, index.flatten(-2), weights.flatten(-2))

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        """Multiply weights with the base kernel between the points of the grid."""
        half = f1 @ self._gram(f1.shape[-1])
        return (half * f2).sum(-1) if diag else half @ f2.mT

    def _gram(self, n: int) -> Float[Tensor, "m m"]:
        """Return the base kernel between all points of the grid; once while it is not fitted."""

        def work_out() -> Tensor:
            Z = self._grid(n).unsqueeze(-1)
            return self.base_kernel(Z).to_dense()

        if self.training:
            return work_out()
        key = torch.cat([p.detach().flatten() for p in self.base_kernel.parameters()])
        with torch.no_grad():
            return self.remembered(f"gram of {n}", key, work_out)

    def _atoms(self, X: Tensor, choice: Tensor) -> Block:
        options = [self._in_model_coordinates(X, u) for u in self.uncertainties]
        return choose(choice, [[to_atoms(block, self.n_atoms)] for [block] in options])[0]

    def _grid(self, n: int | None = None) -> Float[Tensor, " m"]:
        """Return the even grid, or, if that has not ``n`` points, the one that goes far."""

        def even() -> Tensor:
            X = self.low + self.width * torch.linspace(0, 1, 33).to(self.low).unsqueeze(-1)
            with torch.no_grad():
                options = [self._in_model_coordinates(X, u) for u in self.uncertainties]
                atoms = torch.cat([to_atoms(b, self.n_atoms).means.flatten() for [b] in options])
            margin = STENCIL / 2 * SPACING
            low = max(min(atoms.min().item(), 0.0) - margin, FINE[0])
            high = min(max(atoms.max().item(), 1.0) + margin, FINE[1])
            return torch.arange(low, high + SPACING, SPACING).to(self.low)

        def far() -> Tensor:
            Z = self.remembered("even grid", self.low, even)
            steps = [SPACING * GROWTH]
            while sum(steps) < FARTHEST + FINE[1]:
                steps.append(steps[-1] * GROWTH)
            beyond = torch.tensor(steps).to(Z).cumsum(0)
            return torch.cat([Z[0] - beyond.flip(0), Z, Z[-1] + beyond])

        Z = self.remembered("even grid", self.low, even)
        goes_far = self._goes_far if n is None else n != len(Z)
        return self.remembered("far grid", self.low, far) if goes_far else Z


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


def suits_grid(uncertainty: InputUncertainty, bounds: Float[Tensor, "2 d"], n_atoms: int) -> bool:
    """Say whether P_x lives on a line and takes more than one component to describe."""
    if bounds.shape[-1] != 1:
        return False
    X = bounds.mean(dim=0, keepdim=True)
    return components(uncertainty, X, n_atoms)[0].weights.shape[-1] > 1
