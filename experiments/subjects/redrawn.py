"""The paper's estimators as its published program uses them: independent draws, made anew."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from airbo.embeddings import Embedding, Empirical, Estimator, Nystrom
from airbo.uncertainty import InputUncertainty
from experiments.subjects.internals import SampledEmbedding, nystrom_weights


class RedrawnEmbedding(SampledEmbedding):
    """Samples that every design draws for itself, in every call; only observations keep theirs.

    Landmarks are the first of the samples: these are independent, so the choice is random. The
    contract of an embedding forbids all this, but the authors' published program does it.
    """

    def __init__(
        self, estimator: Empirical | Nystrom, observed: Tensor, random: torch.Generator, *args: Any
    ) -> None:
        """Keep the samples of the designs ``observed``; draw all others from ``random``."""
        super().__init__(estimator.n_samples, None, 0, *args)
        self.estimator, self.observed, self.random = estimator, observed, random
        if isinstance(estimator, Nystrom):
            self.depends_on_hyperparameters = True
            self.n_points = estimator.n_landmarks
        self._kept: dict[InputUncertainty, Tensor] = {}

    def compute(self, X: Tensor, choice: Tensor) -> Tensor:
        """Pack samples; a candidate of a search, which has a gradient, always gets new ones."""
        self._is_observed = (X.unsqueeze(-2) == self.observed).all(-1)  # (..., n, observations)
        if X.requires_grad:
            self._is_observed = torch.zeros_like(self._is_observed)
        return super().compute(X, choice)

    def points(self, Z: Tensor, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        """Return all samples, or landmarks and their weights."""
        if uncertainty not in self._kept:
            known = (self.observed - self.low) / self.width
            self._kept[uncertainty] = fresh(known, uncertainty, self.n_samples, self.random)
        kept = self._kept[uncertainty][self._is_observed.long().argmax(-1)]
        drawn = fresh(Z, uncertainty, self.n_samples, self.random)
        samples = torch.where(self._is_observed.any(-1)[..., None, None], kept, drawn)
        if not isinstance(self.estimator, Nystrom):
            return Z.new_full((self.n_points,), 1 / self.n_points), samples
        landmarks = samples[..., : self.n_points, :]
        return nystrom_weights(self.base_kernel, landmarks, samples), landmarks


class Redrawn(Estimator):
    """Estimates with samples that are made anew in every call."""

    def __init__(
        self, estimator: Empirical | Nystrom, observed: Tensor, random: torch.Generator
    ) -> None:
        self._given = estimator, observed, random

    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Tensor,
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding; its random numbers do not depend on ``seed``."""
        return RedrawnEmbedding(*self._given, uncertainties, base_kernel, bounds)


def redrawn(
    model: Callable[..., Any], estimator: Empirical | Nystrom, seed: int
) -> Callable[..., Any]:
    """Return a surrogate whose samples are made anew: for every model, and for every candidate."""
    random = torch.Generator().manual_seed(seed)

    def build(X: Tensor, *args: Any, **kwargs: Any) -> Any:
        return model(X, *args, estimator=Redrawn(estimator, X, random), **kwargs)

    return build


def fresh(
    Z: Tensor, uncertainty: InputUncertainty, n_samples: int, random: torch.Generator
) -> Tensor:
    """Draw independent samples, other ones for every design, under an additive uncertainty."""
    if not uncertainty.is_additive:
        raise ValueError(f"Samples are redrawn under additive uncertainties, not {uncertainty!r}.")
    origin, n = Z.new_zeros(1, Z.shape[-1]), Z.shape[:-1].numel() * n_samples
    numbers = torch.rand(n, uncertainty.n_base(Z.shape[-1]), generator=random, dtype=Z.dtype)
    deviations = uncertainty.perturb(origin, numbers.clamp(1e-12, 1 - 1e-12))[0]
    return Z.unsqueeze(-2) + deviations.reshape(*Z.shape[:-1], n_samples, Z.shape[-1])
