"""A model given its observations: what follows from one factorization.

Notation, in the units of the model (its values are standardized):

- ``n`` observations, ``f`` numbers that describe P_x (the features of a design);
- ``K`` (n, n): covariances k̂(P_i, P_j) of the observed expected values;
- ``noise`` (n,): variances Σ of the observations around these;
- ``L`` (n, n): L Lᵀ = K + Σ;
- ``errors`` (n,): y − m, observed values minus the prior mean;
- ``weights`` (n,): (K + Σ)⁻¹ (y − m);
- ``k`` (..., q, n): covariances of q designs with the observations.
"""

from typing import Any

import torch
from gpytorch import settings
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from airbo.models.gp import UncertainInputGP
from airbo.models.noise import unseen_input_noise
from airbo.models.rows import packed
from airbo.uncertainty import InputUncertainty


class Conditioned:
    """The posterior of a fitted model, from one factorization of its observations.

    Whoever needs more than ``model.posterior`` gives asks this object: covariances between designs
    under different uncertainties, what one more experiment would change, draws of functions.
    """

    def __init__(self, model: UncertainInputGP, *uncertainties: InputUncertainty) -> None:
        """Factorize, for designs under the model's own uncertainties and under some others."""
        self.model: Any = model.including(*uncertainties).eval()
        self._last: tuple[Tensor, Tensor] | None = None
        with torch.no_grad():
            # K, Σ and y - m of the observations, then L Lᵀ = K + Σ
            rows, y = self.model.train_inputs, self.model.train_targets
            prior = self.model.forward(*rows)  # with whatever the surrogate does to repair K
            noise = self.model.likelihood.noise_covar([*rows], shape=y.shape)

            self.f: Float[Tensor, "*batch n f"] = self.model.features(packed(rows))
            self.K: Float[Tensor, "*batch n n"] = prior.covariance_matrix
            self.noise: Float[Tensor, "*batch n"] = noise.diagonal(dim1=-2, dim2=-1).expand_as(y)
            self.errors: Float[Tensor, "*batch n"] = y - prior.mean
            unseen = unseen_input_noise(self.model.likelihood)
            # s k(x', x') and σ²: the variance of f at a point, and that of the noise alone
            self._at_a_point = None if unseen is None else (unseen.at_a_point, unseen.noise)
            self.L = psd_safe_cholesky(self.K + torch.diag_embed(self.noise))
            self.weights = self.solve(self.errors.unsqueeze(-1)).squeeze(-1)

    def features(
        self, X: Float[Tensor, "*batch q d"], uncertainty: InputUncertainty | None = None
    ) -> Float[Tensor, "*batch q f"]:
        """Return the features of designs; by default under the uncertainty of ``posterior``."""
        # f = f(x, number of P)
        f: Tensor = self.model.features(self.model.numbered(X, uncertainty))
        return f

    def prior(
        self, f1: Float[Tensor, "*#batch q f"], f2: Float[Tensor, "*#batch p f"]
    ) -> Float[Tensor, "*batch q p"]:
        """Return the prior covariances k̂ between designs, by their features."""
        # GPyTorch's objects for lazy evaluation take 80 µs; comparing 8 designs with 60, 150 µs
        with settings.lazily_evaluate_kernels(False):
            k: Tensor = self.model.covar_module(f1, f2).to_dense()
        return k

    def prior_variance(self, f: Float[Tensor, "*batch q f"]) -> Float[Tensor, "*batch q"]:
        """Return the prior variances k̂(P, P); of the same features, once."""
        # the gain of an experiment needs k̂(P, P) twice: for its variance and for its noise
        if self._last is None or self._last[0] is not f:
            self._last = f, self.model.covar_module(f, diag=True)
        return self._last[1]

    def to_observed(self, f: Float[Tensor, "*batch q f"]) -> Float[Tensor, "*batch q n"]:
        """Return the prior covariances k of designs with the observations."""
        return self.prior(f, self.f)

    def solve(self, B: Float[Tensor, "*#batch n p"]) -> Float[Tensor, "*batch n p"]:
        """Return (K + Σ)⁻¹ B."""
        # (L Lᵀ)⁻¹ B
        return torch.cholesky_solve(B, self.L)

    def whiten(self, k: Float[Tensor, "*batch q n"]) -> Float[Tensor, "*batch n q"]:
        """Return L⁻¹ kᵀ: its columns' inner products are what the observations explain."""
        if self.L.dim() > 2:
            return torch.linalg.solve_triangular(self.L, k.mT, upper=False)
        # L V = kᵀ; a batch of designs is one long list, else PyTorch copies L for each: 2 GB at
        # n = 1,000
        flat = k.reshape(-1, k.shape[-1])
        return torch.linalg.solve_triangular(self.L, flat.mT, upper=False).mT.reshape(k.shape).mT

    def mean(self, X: Float[Tensor, "*batch q d"], k: Float[Tensor, "*batch q n"]) -> Tensor:
        """Return the posterior means of designs: m + k (K + Σ)⁻¹ (y − m)."""
        # m + k w with the weights w = (K + Σ)⁻¹ (y - m)
        m: Tensor = self.model.mean_module(X)
        return m + (k @ self.weights.unsqueeze(-1)).squeeze(-1)

    def variance(
        self, f: Float[Tensor, "*batch q f"], k: Float[Tensor, "*batch q n"]
    ) -> Float[Tensor, "*batch q"]:
        """Return the posterior variances of designs: k̂(P, P) − |L⁻¹ kᵀ|², at least 0."""
        # k (K + Σ)⁻¹ kᵀ = |L⁻¹ kᵀ|²
        explained = self.whiten(k).square().sum(-2)
        return (self.prior_variance(f) - explained).clamp_min(0)

    def covariance(
        self,
        prior: Float[Tensor, "*batch q p"],
        k1: Float[Tensor, "*batch q n"],
        k2: Float[Tensor, "*batch p n"],
    ) -> Float[Tensor, "*batch q p"]:
        """Return posterior covariances: k̂(P, Q) − (L⁻¹ k₁ᵀ)ᵀ (L⁻¹ k₂ᵀ)."""
        # k₁ (K + Σ)⁻¹ k₂ᵀ = (L⁻¹ k₁ᵀ)ᵀ (L⁻¹ k₂ᵀ)
        return prior - self.whiten(k1).mT @ self.whiten(k2)

    def noise_of(
        self,
        X: Float[Tensor, "*batch q d"],
        f: Float[Tensor, "*batch q f"],
        uncertainty: InputUncertainty | None = None,
    ) -> Float[Tensor, "*batch q"]:
        """Return the variances of experiments around the expected values of their designs.

        Args:
            X: Designs.
            f: Their features under the uncertainty of the experiments.
            uncertainty: That of the experiments; by default that of most observations.
        """
        if self._at_a_point is not None:
            # s (k(x', x') - k̂(P, P)) + σ²
            point, noise = self._at_a_point
            return (point - self.prior_variance(f)).clamp_min(0) + noise
        uncertainty = uncertainty or self.model.features.uncertainties[0]
        rows = self.model.numbered(X, uncertainty)
        noise = self.model.likelihood.noise_covar([rows], shape=rows.shape[:-1])
        variance: Tensor = noise.diagonal(dim1=-2, dim2=-1)
        return variance
