"""How an MMD is estimated: values that users pass to models and to ``mmd2``."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.base_kernels import gaussian_scales
from airbo.embeddings.blocks import Block
from airbo.embeddings.embedding import MAX_REMEMBERED, Embedding
from airbo.embeddings.mixtures import MixtureEmbedding
from airbo.embeddings.quadrature import QuadratureEmbedding
from airbo.embeddings.scales import GaussianScales
from airbo.uncertainty import InputUncertainty, base_draws


class Estimator(ABC):
    """A way to make features out of P_x."""

    @abstractmethod
    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding that a model uses; all its draws are fixed by ``seed``."""


@dataclass(frozen=True)
class Quadrature(Estimator):
    """Integrate over P_x in closed form where it is Gaussian, by quadrature where it is not.

    The default: there is nothing random in it, and MMD² is exactly the squared distance of two
    points in the Hilbert space of the base kernel.
    """

    n_atoms: int = 12
    """Quadrature nodes per block of dependent columns; Gaussian blocks need none."""

    def __post_init__(self) -> None:
        _check_at_least(1, n_atoms=self.n_atoms)

    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding; ``seed`` matters only where P_x has to be sampled."""
        if gaussian_scales(base_kernel) is None:
            samples = Empirical(_POINTS_PER_ATOM * self.n_atoms)
            return samples.embed(uncertainties, base_kernel, bounds, seed)
        return QuadratureEmbedding(self.n_atoms, uncertainties, base_kernel, bounds)


@dataclass(frozen=True)
class Empirical(Estimator):
    r"""Average the base kernel over all pairs of samples, as the paper's first estimator.

    ``mmd2`` gives the U-statistic of the paper. A model holds one fixed set of samples per design;
    there the U-statistic is :math:`\mathrm{MMD}^2_V - b_P - b_Q`, where the first term, the
    V-statistic, is a squared distance and :math:`b_P \ge 0` is what makes the estimate between P
    and itself negative. Dividing :math:`\exp(-\alpha\,\mathrm{MMD}^2)` by the square roots of its
    two diagonal values, so that :math:`\hat k(P, P) = 1`, cancels both: the model's kernel is that
    of the V-statistic, and positive semi-definite.
    """

    n_samples: int
    """Samples per design."""

    def __post_init__(self) -> None:
        _check_at_least(1, n_samples=self.n_samples)

    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding from ``n_samples`` scrambled Sobol draws."""
        return _SampleEmbedding(self.n_samples, seed, uncertainties, base_kernel, bounds)


@dataclass(frozen=True)
class Nystrom(Estimator):
    r"""Compress samples into landmarks among them, as the paper's second estimator.

    .. math:: \psi_P \approx \sum_i \alpha_i k(\tilde u_i, \cdot), \quad
              \alpha = K_h^{+} K_{hm} \mathbf 1_m / m

    with the ``n_landmarks`` sub-samples :math:`\tilde u` of every distribution fixed per model.
    Written as an embedding it is positive semi-definite by construction.
    """

    n_samples: int
    """Samples per design, m in the paper."""
    n_landmarks: int
    """Sub-samples per design, h in the paper."""

    def __post_init__(self) -> None:
        _check_at_least(1, n_samples=self.n_samples, n_landmarks=self.n_landmarks)
        if self.n_landmarks > self.n_samples:
            raise ValueError(
                f"n_landmarks must not exceed n_samples, got {self.n_landmarks} landmarks "
                f"for {self.n_samples} samples."
            )

    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding from fixed draws and a fixed choice of landmarks among them."""
        return _NystromEmbedding(self, seed, uncertainties, base_kernel, bounds)

    def landmarks(self, n_samples: int, seed: int = 0) -> Tensor:
        """Choose which of the samples are landmarks."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randperm(n_samples, generator=generator)[: self.n_landmarks]


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


_POINTS_PER_ATOM = 4
"""Plain samples that stand in for one quadrature node under a base kernel without closed forms."""


class _SampleEmbedding(MixtureEmbedding):
    def __init__(self, n_samples: int, seed: int, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.n_samples, self.seed = n_samples, seed

    def samples(self, X: Tensor, uncertainty: InputUncertainty) -> Float[Tensor, "*batch n s d"]:
        base = base_draws(
            self.n_samples, uncertainty.n_base(self.d), self.seed, dtype=X.dtype, device=X.device
        )
        return uncertainty.perturb(X, base)

    def blocks(self, X: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty) -> list[Block]:
        samples = self.samples(X, uncertainty)
        weights = samples.new_full(samples.shape[:-1], 1 / self.n_samples)
        return [_atoms(weights, samples)]

    def _grams(self, precisions: Tensor, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        """Average Gaussians over pairs of samples, which all weigh the same."""
        if bool((precisions != precisions[:, :1]).any()):
            return super()._grams(precisions, f1, f2, diag)
        u, v = (self._unpack(f)[0].means for f in (f1, f2))  # (..., n, j, d), (..., q, k, d)
        if not diag:
            u, v = u.unsqueeze(-3), v.unsqueeze(-4)
        exponents = torch.cdist(u, v).square().mul(-0.5).flatten(-2)
        return torch.stack([(exponents * c).exp().mean(-1) for c in precisions[:, 0]], dim=-1)


class _NystromEmbedding(_SampleEmbedding):
    depends_on_hyperparameters = True

    def __init__(self, estimator: Nystrom, seed: int, *args: object) -> None:
        super().__init__(estimator.n_samples, seed, *args)
        self.register_buffer("landmarks", estimator.landmarks(estimator.n_samples, seed))
        self._designs_move = False

    def blocks(self, X: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty) -> list[Block]:
        if uncertainty.is_additive and getattr(self.base_kernel, "is_stationary", False):
            deviations, weights = self._shared(uncertainty)
            landmarks = X.unsqueeze(-2) + deviations
            return [_atoms(weights.expand(landmarks.shape[:-1]), landmarks)]
        landmarks, weights = self._landmarks(X, uncertainty)
        return [_atoms(weights, landmarks)]

    def _landmarks(self, X: Tensor, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        """Return where the landmarks of designs are, and their weights."""
        samples = self.samples(X, uncertainty)  # (..., n, m, d)
        landmarks = samples[..., self.landmarks, :]
        return landmarks, nystrom_weights(
            self.base_kernel, landmarks / self.width, samples / self.width
        )

    def _shared(self, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        """Return the deviations and weights that all designs have under an additive uncertainty.

        As long as hyper-parameters are taken for given they stay the same.
        """
        hyperparameters = list(self.base_kernel.parameters())
        compute = partial(self._landmarks, self.low.new_zeros(1, self.d), uncertainty)
        if not hyperparameters or any(p.requires_grad for p in hyperparameters):
            return compute()
        key = torch.cat([p.flatten() for p in hyperparameters])
        return self.remembered(f"shared {self.uncertainties.index(uncertainty)}", key, compute)

    def compute(self, X: Tensor, choice: Tensor) -> Tensor:
        """Pack landmarks and weights."""
        self._designs_move = X.requires_grad
        return super().compute(X, choice)

    def inner(self, f1: Tensor, f2: Tensor, diag: bool = False) -> Tensor:
        """Compare landmarks; while a model is fitted they stay, and only their weights change."""
        scales = gaussian_scales(self.base_kernel) if self.training else None
        if scales is None or not self._landmarks_stay(scales, f1, f2):
            return super().inner(f1, f2, diag)
        n, [block] = len(f1), self._unpack(f1)
        i, j = torch.arange(n).expand(2, -1) if diag else torch.triu_indices(n, n)
        points, weights = block.means.detach(), block.weights
        each = self.remembered(
            f"landmarks {diag}",
            torch.cat([points.flatten(), scales.precisions.flatten()]),
            lambda: _gaussians(points[i], points[j], scales.precisions),
        )
        gram = scales.constant + (scales.weights @ each.flatten(1)).reshape(each.shape[1:])
        inner = torch.einsum("pj,pjk,pk->p", weights[i], gram, weights[j])
        if diag:
            return inner
        K = inner.new_zeros(n, n).index_put((i, j), inner)
        return K + K.triu(1).mT

    def _landmarks_stay(self, scales: GaussianScales, f1: Tensor, f2: Tensor) -> bool:
        """Say whether all that changes between two calls is the hyper-parameters."""
        if self._designs_move or scales.precisions.requires_grad or scales.precisions.dim() > 1:
            return False
        n_pairs = len(f1) * (len(f1) + 1) // 2
        size = n_pairs * len(self.landmarks) ** 2 * len(scales.weights)
        alike = f1.dim() == 2 and f1.shape == f2.shape and size <= MAX_REMEMBERED
        return alike and torch.equal(f1, f2)


def _gaussians(
    u: Float[Tensor, "p j d"], v: Float[Tensor, "p k d"], precisions: Float[Tensor, " q"]
) -> Float[Tensor, "q p j k"]:
    exponents = torch.cdist(u, v).square().mul(-0.5)
    return torch.stack([(exponents * c).exp() for c in precisions])


def _atoms(weights: Tensor, points: Tensor) -> Block:
    columns = tuple(range(points.shape[-1]))
    return Block(columns, weights, points)


def _check_at_least(least: int, **counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {count!r}.")
