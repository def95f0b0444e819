"""Mean embeddings projected on shared landmarks: the fast way on a line."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.blocks import Block, choose, to_atoms
from airbo.embeddings.components import components
from airbo.embeddings.embedding import Embedding
from airbo.uncertainty import InputUncertainty

SPACING = 1 / 80
"""Distance of landmarks in model coordinates: resolves length scales down to 0.03."""
MARGIN = 8 * SPACING
MAX_LANDMARKS = 400
JITTER = 1e-9


class LandmarkEmbedding(Embedding):
    r"""Projects :math:`\psi_{P_x}` on the base kernels at landmarks along a line.

    .. math:: \psi_P \approx L^{-1} \, \mathbb E_{u \sim P}\, k(Z, u), \quad L L^\top = K_{ZZ}

    The features are coordinates in a Euclidean space, so that comparing designs is a matrix
    product, however finely P_x is resolved. Landmarks stand on an even grid that covers all
    executed inputs, and more are added where a design outside the bounds needs them, up to one
    width of the domain: a design far off must not thin out the landmarks of all others.
    """

    depends_on_hyperparameters = True

    def __init__(self, n_atoms: int, *args: object) -> None:
        """Resolve P_x with ``n_atoms`` quadrature nodes."""
        super().__init__(*args)  # type: ignore[arg-type]
        self.n_atoms = n_atoms
        self._reach = (0.0, 1.0)

    def blocks(self, X: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty) -> list[Block]:
        """Write P_x as the nodes and weights of its Gauss rule."""
        return components(uncertainty, X, self.n_atoms)

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Tensor
    ) -> Float[Tensor, "*batch n m"]:
        """Return the coordinates of P_x with respect to the landmarks."""
        if X.requires_grad:
            atoms = self._atoms(X, choice)
        else:
            key = torch.cat([X, choice.unsqueeze(-1)], dim=-1)
            atoms = self.remembered("atoms", key, lambda: self._atoms(X, choice))
        Z = self._landmarks(atoms.means)  # (m, 1)

        mean = self._mean(atoms, Z)  # E k(Z, u)

        # ψ = L⁻¹ E k(Z, u), all designs at once
        K_ZZ = self.base_kernel(Z).to_dense()
        jitter = max(JITTER, 100 * torch.finfo(K_ZZ.dtype).eps) * K_ZZ[0, 0].detach()
        K_ZZ = K_ZZ + jitter * torch.eye(len(Z)).to(K_ZZ)
        L = torch.linalg.cholesky(K_ZZ)
        return torch.linalg.solve_triangular(L, mean.flatten(0, -2).mT, upper=False).mT.view_as(
            mean
        )

    def _mean(self, atoms: Block, Z: Float[Tensor, "m 1"]) -> Float[Tensor, "*batch n m"]:
        """Sum the base kernel over the nodes of each design."""
        if atoms.weights.dim() == 2 and bool((atoms.weights == 0).any()):
            # designs with fewer nodes than others: leave out what only fills up
            used = atoms.weights != 0
            rows = used.nonzero()[:, 0]
            K_uZ = (
                atoms.weights[used].unsqueeze(-1)
                * self.base_kernel(atoms.means[used], Z).to_dense()
            )
            return K_uZ.new_zeros(len(used), len(Z)).index_add(0, rows, K_uZ)
        K_uZ = self.base_kernel(atoms.means.flatten(-3, -2), Z).to_dense()
        K_uZ = K_uZ.unflatten(-2, atoms.weights.shape[-2:])  # (..., n, j, m)
        return (atoms.weights.unsqueeze(-2) @ K_uZ).squeeze(-2)

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        """Multiply coordinates."""
        return (f1 * f2).sum(-1) if diag else f1 @ f2.mT

    def _atoms(self, X: Tensor, choice: Tensor) -> Block:
        options = [self._in_model_coordinates(X, u) for u in self.uncertainties]
        return choose(choice, [[to_atoms(block, self.n_atoms)] for [block] in options])[0]

    def _landmarks(self, atoms: Tensor) -> Float[Tensor, "m 1"]:
        nearest, farthest = self._limits()
        low = max(atoms.detach().amin().item(), nearest)
        high = min(atoms.detach().amax().item(), farthest)
        if low < self._reach[0] or high > self._reach[1]:
            self._reach = (min(low - MARGIN, self._reach[0]), max(high + MARGIN, self._reach[1]))
            self.version += 1
        m = math.ceil((self._reach[1] - self._reach[0]) / SPACING) + 1
        Z = torch.linspace(*self._reach, min(m, MAX_LANDMARKS), dtype=atoms.dtype)
        return Z.to(atoms).unsqueeze(-1)

    def _limits(self) -> tuple[float, float]:
        """Return where the executed inputs of all designs in the bounds lie, and 1 beyond."""

        def find() -> tuple[float, float]:
            X = self.low + self.width * torch.linspace(0, 1, 33).to(self.low).unsqueeze(-1)
            with torch.no_grad():
                options = [self._in_model_coordinates(X, u) for u in self.uncertainties]
                atoms = [to_atoms(block, self.n_atoms).means for [block] in options]
            return min(a.amin().item() for a in atoms) - 1, max(a.amax().item() for a in atoms) + 1

        return self.remembered("limits", self.low, find)


def suits_landmarks(
    uncertainty: InputUncertainty, bounds: Float[Tensor, "2 d"], n_atoms: int
) -> bool:
    """Say whether P_x lives on a line and takes more than one component to describe."""
    if bounds.shape[-1] != 1:
        return False
    X = bounds.mean(dim=0, keepdim=True)
    return components(uncertainty, X, n_atoms)[0].weights.shape[-1] > 1
