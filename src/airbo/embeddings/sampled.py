"""Embeddings by samples of P_x, as the paper defines them: atoms, compared pair by pair.

Notation: j points u of a design, with weights w (n, j) and places (n, j, d) in the unit cube; s
samples, h landmarks among them; ψ_P ≈ Σ_j w_j k(u_j, ·).
"""

from abc import abstractmethod
from functools import partial

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.features import PORTION, Embedding
from airbo.uncertainty import InputUncertainty, base_draws

STEPS = 5
"""Results of single steps of the base kernel that are held at a time."""


class SampledEmbedding(Embedding):
    """Embeds P_x as weighted points: right for every uncertainty and every base kernel."""

    n_points: int
    """Points per design."""

    @abstractmethod
    def points(
        self, Z: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty
    ) -> tuple[Float[Tensor, "*batch n j"], Float[Tensor, "*batch n j d"]]:
        """Return the weights of points and the points themselves, in the unit cube."""

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Pack the points of P_x."""

        def packed(Z: Tensor, number: int) -> Tensor:
            weights, points = self.points(Z, self.in_cube[number])
            return torch.cat([weights.expand(points.shape[:-1]), points.flatten(-2)], dim=-1)

        return self.under_own((X - self.low) / self.width, choice, packed)

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch k f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Sum the base kernel over pairs of points: :math:`\sum_{jk} w_j w_k k(u_j, v_k)`."""
        batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2])
        per_row = STEPS * self.n_points**2 * batch.numel() * (1 if diag else f2.shape[-2])
        # rows of the first designs, so many at a time as fit in the cache
        parts = f1.split(max(1, PORTION // per_row), dim=-2)
        if not diag:
            return torch.cat([self._by_pairs(a, f2, diag) for a in parts], dim=-2)
        pairs = zip(parts, f2.split(parts[0].shape[-2], dim=-2), strict=True)
        return torch.cat([self._by_pairs(a, b, diag) for a, b in pairs], dim=-1)

    def _unpack(self, f: Tensor) -> tuple[Tensor, Tensor]:
        # f = (w_1 ... w_j, u_1 ... u_j)
        weights, points = f.split([self.n_points, self.n_points * self.d], dim=-1)
        return weights, points.unflatten(-1, (self.n_points, self.d))

    def _by_pairs(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        (w, u), (v, x) = self._unpack(f1), self._unpack(f2)
        if diag:
            # Σ_jk w_j v_k k(u_j, x_k), design by design
            gram = self.base_kernel(u, x).to_dense()  # (..., n, j, k)
            return torch.einsum("...j,...jk,...k->...", w, gram, v)
        gram = self.base_kernel(u.flatten(-3, -2), x.flatten(-3, -2)).to_dense()
        gram = gram.unflatten(-1, v.shape[-2:]).unflatten(-3, w.shape[-2:])
        # first Σ_j w_j, then Σ_k v_k
        half = (gram * w[..., None, None]).sum(-3)  # (..., n, q, k)
        return (half * v.unsqueeze(-3)).sum(-1)


class EmpiricalEmbedding(SampledEmbedding):
    """All samples count alike."""

    def __init__(self, n_samples: int, seed: int, *args: object) -> None:
        """Hold ``n_samples`` scrambled Sobol draws per design."""
        super().__init__(*args)  # type: ignore[arg-type]
        self.n_points, self.seed = n_samples, seed

    def points(self, Z: Tensor, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        """Draw samples."""
        samples = draw(Z, uncertainty, self.n_points, self.seed)
        return Z.new_full((self.n_points,), 1 / self.n_points), samples


class NystromEmbedding(SampledEmbedding):
    """A few samples, the landmarks, stand for all."""

    depends_on_hyperparameters = True

    def __init__(self, landmarks: Tensor, n_samples: int, seed: int, *args: object) -> None:
        """Hold the draws, and which of them are landmarks."""
        super().__init__(*args)  # type: ignore[arg-type]
        self.register_buffer("landmarks", landmarks)
        self.n_points, self.n_samples, self.seed = len(landmarks), n_samples, seed

    def points(self, Z: Tensor, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        """Return the landmarks and their weights."""
        if uncertainty.is_additive and getattr(self.base_kernel, "is_stationary", False):
            weights, deviations = self._shared(uncertainty)
            return weights, Z.unsqueeze(-2) + deviations
        return self._landmarks(Z, uncertainty)

    def _landmarks(self, Z: Tensor, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        samples = draw(Z, uncertainty, self.n_samples, self.seed)  # (..., n, m, d)
        landmarks = samples[..., self.landmarks, :]
        return nystrom_weights(self.base_kernel, landmarks, samples), landmarks

    def _shared(self, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        """Return the weights and deviations that all designs have under an additive uncertainty.

        As long as hyper-parameters are taken for given they stay the same.
        """
        hyperparameters = list(self.base_kernel.parameters())
        compute = partial(self._landmarks, self.low.new_zeros(1, self.d), uncertainty)
        if not hyperparameters or any(p.requires_grad for p in hyperparameters):
            return compute()
        key = torch.cat([p.flatten() for p in hyperparameters])
        return self.remembered(f"shared {self.in_cube.index(uncertainty)}", key, compute)


def draw(
    Z: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty, n_samples: int, seed: int
) -> Float[Tensor, "*batch n s d"]:
    """Draw samples of P_x: a fixed function of the designs."""
    n_base = uncertainty.n_base(Z.shape[-1])
    base = base_draws(n_samples, n_base, seed, dtype=Z.dtype, device=Z.device)
    return uncertainty.perturb(Z, base)


def nystrom_weights(
    kernel: Kernel, landmarks: Float[Tensor, "*batch h d"], samples: Float[Tensor, "*batch m d"]
) -> Float[Tensor, "*batch h"]:
    """Return the weights that make landmarks stand for the mean of all samples."""
    # α = (K_h + ε I)⁻¹ K_hm 1 / m
    K_h = kernel(landmarks).to_dense()
    trace = K_h.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    jitter = 1e-8 * trace * torch.eye(landmarks.shape[-2]).to(K_h)
    mean = kernel(landmarks, samples).to_dense().mean(-1, keepdim=True)
    return torch.cholesky_solve(mean, torch.linalg.cholesky(K_h + jitter)).squeeze(-1)
