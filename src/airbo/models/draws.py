r"""Many draws of f at many executed inputs, for measures of f(x') over P_x.

A draw is the posterior mean plus a deviation. As in :mod:`airbo.models.paths`, Matheron's rule
makes a deviation from a sum of random waves g and draws ε of the noise:

.. math:: f = \mu + e, \qquad e(x) = g(x) - K_{xX} (K_{XX} + \Sigma)^{-1} (g(X) + \varepsilon)

All draws share their waves, so a point costs one row of cosines, however many draws there are.
Deviations come in pairs, e and -e, so the mean over all draws is exactly the posterior mean.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

import torch
from botorch.models.transforms import Standardize
from gpytorch.kernels import ScaleKernel
from jaxtyping import Float, Int64
from torch import Size, Tensor

from airbo.embeddings.base_kernels import GaussianSum, gaussian_sum
from airbo.embeddings.features import MAX_DESIGNS, Features
from airbo.embeddings.kernels import IntegralKernel, MMDKernel
from airbo.models import rows
from airbo.models.conditioned import Conditioned
from airbo.models.gp import UncertainInputGP
from airbo.models.paths import NormalCovariance, RandomWaves, normal_landing
from airbo.uncertainty import Exact, InputUncertainty, base_draws

N_SHARED = 512
"""Number of waves that all draws share."""
N_LANDED, MAX_SAMPLED = 32, 512
"""Samples of each executed input, and the number of points compared with them at a time."""


@dataclass(frozen=True)
class Drawn:
    """Draws of f at some executed inputs: ``mean ± deviations``, two for each of p pairs."""

    mean: Float[Tensor, "*batch s"]
    """Posterior mean of f."""
    deviations: Float[Tensor, "p *batch s"]
    """Deviations of the draws from the mean; each counts with both signs."""
    prior: Float[Tensor, "p *batch s"]
    """The same draws under the prior."""
    near: Float[Tensor, "*batch s 2"]
    """How many observations are near, and the sum of their surprises: see ``Surprises``."""


@dataclass(frozen=True)
class Surprises:
    r"""How far observations lie from what all the others say of them, and which of them are near.

    With errors :math:`y - m` and :math:`A = K + \Sigma`, an observation left out lies

    .. math:: z_j = \frac{[A^{-1} (y - m)]_j}{\sqrt{[A^{-1}]_{jj}}}

    standard deviations from its prediction. On a plateau all :math:`z_j` are small, at a cliff some
    are large, although the prior is as rough here as there.
    """

    sizes: Float[Tensor, " n"]
    """:math:`|z_j|`, so scaled that normal numbers have a mean of 1."""
    scales: Float[Tensor, " n"]
    """Product of the variances of f at a point and of the observed expected value, without data."""

    @classmethod
    def of(
        cls,
        L: Float[Tensor, "n n"],
        errors: Float[Tensor, " n"],
        scales: Float[Tensor, " n"],
    ) -> "Surprises":
        """Leave out one observation at a time.

        Args:
            L: Cholesky factor of the covariance of the observations, noise included.
            errors: Observations minus the prior mean.
            scales: See above.
        """
        # [A⁻¹ (y - m)]_j / √[A⁻¹]_jj
        inverse = torch.cholesky_inverse(L)
        z = (inverse @ errors) / inverse.diagonal().sqrt()
        # √(π/2) |z_j| / √mean z²: E |z| = √(2/π) for a standard normal z
        rms = z.square().mean().sqrt()
        sizes = math.sqrt(math.pi / 2) * z.abs() / rms if rms > 0 else torch.ones_like(z)
        return cls(sizes, scales)

    def near(self, covariance: Float[Tensor, "k m"]) -> Float[Tensor, "k 2"]:
        r"""Return how many observations are near to points, and the sum of their surprises.

        Observation j counts :math:`w_j = \mathrm{Corr}(f(x'), F_j)^4`.

        Args:
            covariance: Of f at points with the observed expected values, and possibly others.
        """
        # Corr⁴ = (Cov² / (Var Var))²
        w = (covariance[:, : len(self.sizes)].square() / self.scales).square()
        return w @ torch.stack([torch.ones_like(self.sizes), self.sizes], -1)


class FunctionDraws:
    """Draws of f from the posterior of a model, with torch's random numbers."""

    def __init__(
        self,
        model: UncertainInputGP,
        n_pairs: int,
        n_believed: int = 0,
    ) -> None:
        """Draw deviations.

        Args:
            model: The fitted model.
            n_pairs: How many deviations; each counts with both signs.
            n_believed: How many observations, the last ones, nobody made: they surprise nobody.
        """
        self.model = check_has_function(model).eval()
        self.n_pairs = n_pairs
        self._known: dict[InputUncertainty, tuple[UncertainInputGP, Tensor]] = {}
        with torch.no_grad():
            self._shifts = all(u.is_additive for u in model.features.uncertainties)
            self._observed = X = rows.packed(model.train_inputs)
            self._normal = self._normal_covariance()
            self.waves = _shared_waves(model)
            # g(X) = Φ θ with θ ~ N(0, 1): the prior paths at the observations
            phi = self.waves(X)  # (n, m)
            self.coefficients = torch.randn(phi.shape[-1], n_pairs).to(phi)
            known = Conditioned(model)
            # weights: (K + Σ)⁻¹ (y - μ) for the mean, -(K + Σ)⁻¹ (g(X) + ε) for each deviation
            n, errors = len(known.errors), known.errors.unsqueeze(-1)
            epsilon = known.noise.sqrt().unsqueeze(-1) * torch.randn(n, n_pairs).to(errors)
            g = phi @ self.coefficients
            self.weights = known.solve(torch.cat([errors, -g - epsilon], -1))
            # Var f(x) Var F_i, to turn covariances into correlations
            m, scales = n - n_believed, _variance_at_a_point(model) * known.K.diagonal()
            self.surprises = Surprises.of(known.L[:m, :m], errors[:m, 0], scales[:m])

    def __call__(self, X: Float[Tensor, "*batch s d"]) -> "Drawn":
        """Return draws at executed inputs, in the units of the observed values."""
        model, shape = self.model, X.shape[:-1]
        flat = X.reshape(-1, X.shape[-1])
        by_samples = self._normal is None and not self._shifts
        covariance = self._covariance_by_samples if by_samples else self._covariance
        size = MAX_SAMPLED if by_samples else MAX_DESIGNS
        # K_xX w for the mean and for every deviation, portion by portion of the points
        rows_of_K = (covariance(some) for some in flat.split(size))
        parts = [(K @ self.weights, self.surprises.near(K)) for K in rows_of_K]
        update, near = (torch.cat(each) for each in zip(*parts, strict=True))
        mean = model.mean_module(flat) + update[:, 0]
        # g(x) = φ(x) θ
        waves = (self.waves.at_points(some) for some in flat.split(MAX_DESIGNS))
        prior = torch.cat([some @ self.coefficients for some in waves])
        scale, shift = self._units
        return Drawn(
            (shift + scale * mean).reshape(shape),
            scale * (prior + update[:, 1:]).mT.reshape(-1, *shape),
            scale * prior.mT.reshape(-1, *shape),
            near.reshape(*shape, 2),
        )

    def expected(
        self, X: Float[Tensor, "*batch q d"], uncertainty: InputUncertainty
    ) -> Float[Tensor, "S *batch q"] | None:
        """Return draws of the expected values of designs; None if they have no closed form.

        Expected waves take the place of waves at executed inputs, so a design costs one row.
        """
        model, shape = self.model, X.shape[:-1]
        if not (self._shifts and uncertainty.is_additive) and not self._lands_normally(uncertainty):
            return None
        flat = X.reshape(-1, X.shape[-1])
        covariances = (self._covariance_of(some, uncertainty) for some in flat.split(MAX_DESIGNS))
        # E f = m + k w, and the deviations E g - k (K + Σ)⁻¹ (g(X) + ε)
        update = torch.cat([K @ self.weights for K in covariances])
        mean = model.mean_module(flat) + update[:, 0]
        larger, _ = self._under(uncertainty)
        waves = self.waves(larger.numbered(flat, uncertainty), larger.features)
        e = (waves @ self.coefficients + update[:, 1:]).mT
        scale, shift = self._units
        level, e = (shift + scale * mean).reshape(shape), (scale * e).reshape(-1, *shape)
        return torch.cat([level + e, level - e])

    @property
    def _units(self) -> tuple[Tensor, Tensor]:
        """Scale and shift from the units of the model to those of the values."""
        transform: Any = getattr(self.model, "outcome_transform", None)
        if transform is None:
            one = self.weights.new_ones(())
            return one, 0 * one
        if not isinstance(transform, Standardize):
            name = type(transform).__name__
            raise ValueError(f"Draws of f need standardized values, not {name}.")
        return transform.stdvs.squeeze(), transform.means.squeeze()

    def _covariance(self, X: Float[Tensor, "k d"]) -> Float[Tensor, "k n"]:
        """Return the covariance of f at points with the observed expected values."""
        if self._normal is None:
            return self._covariance_of(X, Exact())
        features = self.model.features
        scale: Any = getattr(self.model.covar_module, "outputscale", 1.0)
        return scale * self._normal((X - features.low) / features.width)

    def _normal_covariance(self) -> NormalCovariance | None:
        """Prepare the closed form, if all observations landed normally."""
        kernel: Any = self.model.covar_module
        inner = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
        if not isinstance(inner, IntegralKernel):
            return None
        features, d = self.model.features, self.model.features.d
        Z = (self._observed[:, :d] - features.low) / features.width
        mean, variance = torch.empty_like(Z), torch.empty_like(Z)
        for number in self._numbers.unique().tolist():
            mine = self._numbers == number
            landed = normal_landing(features.in_cube[number], Z[mine])
            if landed is None:
                return None
            mean[mine], variance[mine] = landed
        return NormalCovariance(_spectrum(self.model).detached(), mean, variance)

    def _lands_normally(self, uncertainty: InputUncertainty) -> bool:
        """Return whether designs land normally, so that expected waves have a closed form."""
        features = self.model.features
        middle = (features.low + features.width / 2).unsqueeze(0)
        return self._normal is not None and normal_landing(uncertainty, middle) is not None

    @property
    def _numbers(self) -> Int64[Tensor, " n"]:
        """Numbers of the uncertainties of the observations."""
        numbers = self._observed[:, self.model.features.d :]
        return numbers[:, 0].long() if numbers.shape[-1] else self._observed[:, 0].long() * 0

    def _covariance_of(
        self, X: Float[Tensor, "k d"], uncertainty: InputUncertainty
    ) -> Float[Tensor, "k n"]:
        """Return the covariance of designs under an uncertainty with the observations."""
        model, observed = self._under(uncertainty)
        f = model.features(model.numbered(X, uncertainty))
        return model.covar_module(f, observed).to_dense()

    def _under(self, uncertainty: InputUncertainty) -> tuple[UncertainInputGP, Tensor]:
        """Return a model that knows an uncertainty, and its features of the observations."""
        if uncertainty not in self._known:
            with torch.no_grad():
                model = self.model.including(uncertainty)
                self._known[uncertainty] = model, model.features(self._observed)
        return self._known[uncertainty]

    def _covariance_by_samples(self, X: Float[Tensor, "k d"]) -> Float[Tensor, "k n"]:
        """Estimate the same covariance from samples of the executed inputs.

        Points may lie anywhere, but an uncertainty that changes with the design is defined for
        designs only. Features would evaluate it at all inputs in between.
        """
        features: Any = self.model.features
        # k(x, x') for all samples x' of all observations
        points = (X - features.low) / features.width
        K = features.base_kernel(points, self._landed.flatten(0, 1)).to_dense()
        # s E_{x' ~ P_i} k(x, x') for observation i, by the mean over samples
        scale: Any = getattr(self.model.covar_module, "outputscale", 1.0)
        return scale * K.unflatten(-1, self._landed.shape[:2]).mean(-1)

    @cached_property
    def _landed(self) -> Float[Tensor, "n s d"]:
        """Samples of the executed inputs of the observations, in the unit cube."""
        features = self.model.features
        Z = (self._observed[:, : features.d] - features.low) / features.width
        samples = []
        for row, number in zip(Z.split(1), self._numbers.tolist(), strict=True):
            u = features.in_cube[number]
            samples.append(u.perturb(row, base_draws(N_LANDED, u.n_base(features.d))))
        return torch.cat(samples).detach()


class _Cosines:
    r"""Features of the kernel exp(-α MMD²): cosines of paths; see ``airbo.models.paths``."""

    def __init__(self, waves: RandomWaves, kernel: MMDKernel, scale: Tensor, m: int) -> None:
        self.waves = waves
        self.g = (2 * kernel.alpha.detach()).sqrt() * torch.randn(N_SHARED, m).to(scale)
        self.phases = 2 * math.pi * torch.rand(1, m).to(scale)
        self.amplitude = (2 * scale / m).sqrt()

    def __call__(self, X: Tensor, features: Features | None = None) -> Tensor:
        # √(2 s / m) cos(√(2α) g(P) + b): their inner products are s exp(-α MMD²) on average
        return self.amplitude * torch.cos(self.waves(X, features) @ self.g + self.phases)

    def at_points(self, X: Tensor) -> Tensor:
        return self.amplitude * torch.cos(_at_points(self.waves, X) @ self.g + self.phases)


class _Waves:
    """Features of the integral kernel: expected waves."""

    def __init__(self, waves: RandomWaves, scale: Tensor) -> None:
        self.waves, self.amplitude = waves, scale.sqrt()

    def __call__(self, X: Tensor, features: Features | None = None) -> Tensor:
        return self.amplitude * self.waves(X, features)

    def at_points(self, X: Tensor) -> Tensor:
        return self.amplitude * _at_points(self.waves, X)


def _at_points(waves: RandomWaves, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m"]:
    """Return waves at executed inputs."""
    points = (X - waves.features.low) / waves.features.width
    return waves.amplitude * torch.cos(points @ waves.frequencies + waves.phases)


def _shared_waves(model: UncertainInputGP) -> _Waves | _Cosines:
    """Draw features whose inner products are, on average, the covariance of the model."""
    kernel: Any = model.covar_module
    scale = kernel.outputscale.detach() if isinstance(kernel, ScaleKernel) else torch.ones(())
    scale = scale.to(model.train_targets)
    inner = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    waves = RandomWaves(model.features, _spectrum(model), Size(), N_SHARED)
    if isinstance(inner, MMDKernel):
        if not all(u.is_additive for u in model.features.uncertainties):
            raise ValueError(
                f"{type(model).__name__} can draw f only if the uncertainty does not change with "
                "the design. Use surrogate='default'."
            )
        return _Cosines(waves, inner, scale, N_SHARED)
    return _Waves(waves, scale)


def _variance_at_a_point(model: UncertainInputGP) -> Float[Tensor, ""]:
    """Return the prior variance of f."""
    kernel: Any = model.covar_module
    scaled = isinstance(kernel, ScaleKernel)
    inner, scale = (kernel.base_kernel, kernel.outputscale) if scaled else (kernel, 1.0)
    # exp(-α MMD²) is 1 at a point
    at_a_point = inner.at_a_point if isinstance(inner, IntegralKernel) else 1.0
    return torch.as_tensor(scale * at_a_point).to(model.train_targets).squeeze()


def _spectrum(model: UncertainInputGP) -> GaussianSum:
    features: Any = model.features
    base = gaussian_sum(features.base_kernel)
    if base is None:
        raise ValueError(
            f"Draws of f need a base kernel that is a sum of Gaussians; {type(model).__name__} has "
            f"{type(features.base_kernel).__name__}."
        )
    return base


def has_function(model: Any) -> TypeGuard[UncertainInputGP]:
    """Whether a model is one of f itself, and not only of expected values of f."""
    kernel: Any = getattr(model, "covar_module", None)
    inner = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    return isinstance(model, UncertainInputGP) and isinstance(inner, IntegralKernel | MMDKernel)


def check_has_function(model: Any) -> UncertainInputGP:
    """Return the model if it models f itself, and not only expected values of f."""
    if has_function(model):
        return model
    raise ValueError(
        f"{type(model).__name__} has no model of f itself, which every measure but the mean needs. "
        "Use surrogate='default', 'ugp' or 'mmd'."
    )
