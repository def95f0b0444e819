"""How an MMD is estimated: values that users pass to models and to ``mmd2``."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.base_kernels import gaussian_sum
from airbo.embeddings.features import Embedding
from airbo.embeddings.inner_product import GaussianEmbedding
from airbo.embeddings.sampled import EmpiricalEmbedding, NystromEmbedding
from airbo.uncertainty import InputUncertainty


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
        if gaussian_sum(base_kernel) is None:
            samples = Empirical(_POINTS_PER_ATOM * self.n_atoms)
            return samples.embed(uncertainties, base_kernel, bounds, seed)
        return GaussianEmbedding(self.n_atoms, uncertainties, base_kernel, bounds)


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
        return EmpiricalEmbedding(self.n_samples, seed, uncertainties, base_kernel, bounds)


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
        landmarks = self.landmarks(self.n_samples, seed)
        return NystromEmbedding(landmarks, self.n_samples, seed, uncertainties, base_kernel, bounds)

    def landmarks(self, n_samples: int, seed: int = 0) -> Tensor:
        """Choose which of the samples are landmarks."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randperm(n_samples, generator=generator)[: self.n_landmarks]


_POINTS_PER_ATOM = 4
"""Plain samples that stand in for one quadrature node under a base kernel without closed forms."""


def _check_at_least(least: int, **counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {count!r}.")
