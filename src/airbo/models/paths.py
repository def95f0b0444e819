r"""Functions drawn from the posterior: of f itself, and of its expected values, from one draw.

A prior path of f ~ GP(0, k) is a sum of random waves,

.. math:: f(x) = \sqrt{2 / m} \sum_{j=1}^m \theta_j \cos(\omega_j^\top x + b_j)

with frequencies from the spectrum of k. Its expected value under P_x is the same sum with
:math:`\mathbb E \cos(\omega^\top x' + b)`. Matheron's rule turns prior into posterior paths:

.. math:: f(x) + K_{xX} (K_{XX} + \Sigma)^{-1} (y - f(X) - \varepsilon)

Every path has frequencies of its own, so mean and covariance over paths are those of the posterior.
"""

import math
from typing import Any

import torch
from botorch.sampling.pathwise.paths import SamplePath
from botorch.sampling.pathwise.posterior_samplers import DrawMatheronPaths
from botorch.sampling.pathwise.prior_samplers import DrawKernelFeaturePaths
from gpytorch.kernels import ScaleKernel
from jaxtyping import Float
from torch import Size, Tensor

from airbo.embeddings import Embedding
from airbo.embeddings.base_kernels import GaussianSum, gaussian_sum
from airbo.embeddings.features import Features, Moments, Nominal
from airbo.embeddings.kernels import ERBFKernel, IntegralKernel, MMDKernel
from airbo.models import rows
from airbo.models.conditioned import Conditioned
from airbo.models.gp import UncertainInputGP
from airbo.uncertainty import Exact, InputUncertainty
from airbo.uncertainty.gaussians import Resolution

N_WAVES = 512
"""Number of random waves per path."""
N_COSINES = 128
"""Cosines of Gaussian draws per path, for the kernel exp(-α MMD²)."""
MAX_WAVES, MAX_NUMBERS = 2**16, 2**24
"""Limits on random waves and numbers of all paths together; many paths get fewer each."""
RESOLUTION = Resolution(12)
"""How finely P_x is resolved where it changes with the design."""
MAX_EXPECTED = 2**22
"""Waves of single Gaussians of P_x that are worked out at a time: 32 MB."""


class RandomWaves:
    """Random waves, and their expected values under every uncertainty of some features."""

    def __init__(self, features: Features, base: GaussianSum, shape: Size, m: int) -> None:
        """Draw ``m`` waves for each of ``shape`` paths from the spectrum of a base kernel."""
        d = features.d
        # a wave belongs to Gaussian q with probability c_q / k(0); the constant has ω = 0
        weights = torch.cat([base.weights, base.constant.reshape(1)]).detach()
        which = torch.multinomial(weights, shape.numel() * m, replacement=True).reshape(*shape, m)
        precisions = torch.cat([base.by_column(d), base.relevances.new_zeros(1, d)]).detach()
        self.features = features
        # (*shape, d, m): a Gaussian kernel of precision λ has the frequencies N(0, λ)
        frequencies = torch.randn(*shape, m, d).to(precisions) * precisions[which].sqrt()
        self.frequencies = frequencies.mT
        self.phases = 2 * math.pi * torch.rand(*shape, 1, m).to(precisions)
        # √(2 k(0) / m), so that Σ_j cos² has the mean k(0)
        self.amplitude = (2 * weights.sum() / m).sqrt()
        self._spread: dict[InputUncertainty, Tensor] = {}

    def __call__(
        self, X: Float[Tensor, "*batch n c"], features: Features | None = None
    ) -> Float[Tensor, "*paths n m"]:
        """Return the expected waves at designs, with the numbers of their uncertainties.

        Args:
            X: Designs.
            features: What the numbers stand for, if it is more than the waves were drawn for.
        """
        features, d = features or self.features, self.features.d
        designs, numbers = X[..., :d], X[..., d:]
        Z = (designs - features.low) / features.width
        if isinstance(features, Moments):
            return self.amplitude * self._of_gaussians(X)
        if isinstance(features, Nominal):
            return self.amplitude * torch.cos(Z @ self.frequencies + self.phases)
        kinds = numbers.unique().long().tolist() or [0]
        waves = self._under(features.in_cube[kinds[0]], Z)
        for kind in kinds[1:]:
            waves = torch.where(numbers == kind, self._under(features.in_cube[kind], Z), waves)
        return self.amplitude * waves

    def _under(
        self, uncertainty: InputUncertainty, Z: Float[Tensor, "*batch n d"]
    ) -> Float[Tensor, "*paths n m"]:
        """Return E cos(ω·z' + b)."""
        # ω·z + b
        phase = Z @ self.frequencies + self.phases
        if isinstance(uncertainty, Exact):
            return torch.cos(phase)
        if uncertainty.is_additive:
            # E cos(φ + ω·δ) = cos φ E cos ω·δ - sin φ E sin ω·δ, with E e^{iω·δ} for all designs
            if uncertainty not in self._spread:
                self._spread[uncertainty] = uncertainty.characteristic(self.frequencies)
            expected = self._spread[uncertainty]
            return torch.cos(phase) * expected.real - torch.sin(phase) * expected.imag
        # E cos(ω·z' + b) = Re e^{ib} φ(ω), and φ is a product over independent columns
        size = max(1, MAX_EXPECTED // (RESOLUTION.fine_nodes * self.frequencies[..., 0, :].numel()))
        parts = [self._landing(uncertainty, some) for some in Z.split(size, dim=-2)]
        expected = torch.cat(parts, dim=-2)
        return self.phases.cos() * expected.real - self.phases.sin() * expected.imag

    def _landing(self, uncertainty: InputUncertainty, Z: Tensor) -> Tensor:
        """Return E exp(i ω·z') where P_x changes with the design."""
        W = self.frequencies
        total = torch.ones((), dtype=torch.complex128, device=Z.device)
        for part in uncertainty.landing(Z, RESOLUTION):
            total = total * part.characteristic(W[..., list(part.columns), :])
        return total

    def _of_gaussians(self, X: Tensor) -> Tensor:
        """Return E cos(ω·z' + b) = exp(-½ ωᵀ C ω) cos(ω·m + b) for Gaussians."""
        assert isinstance(self.features, Moments)
        mean, covariance = self.features.unpack(self.features(X))
        W = self.frequencies
        # ωᵀ C ω for every design and wave
        variance = torch.einsum("...dm,...nde,...em->...nm", W, covariance, W)
        return torch.exp(-0.5 * variance) * torch.cos(mean @ W + self.phases)


class Expected:
    """Paths of E f under the integral kernel: sums of expected waves."""

    def __init__(
        self, scale: Tensor, features: Features, base: GaussianSum, shape: Size, n: int
    ) -> None:
        """Draw paths of variance ``scale`` times that of the base kernel."""
        m = max(32, min(N_WAVES, MAX_WAVES // shape.numel()))
        self.waves = RandomWaves(features, base, shape, m)
        # θ ~ N(0, s)
        self.coefficients = scale.sqrt() * torch.randn(*shape, m, n).to(scale)

    def __call__(
        self, X: Float[Tensor, "*batch k c"], features: Features | None = None
    ) -> Float[Tensor, "*paths k n"]:
        """Return the values at designs; ``features`` as for ``RandomWaves``."""
        # E f(x') = Σ_j θ_j E cos(ω_j·x' + b_j)
        return self.waves(X, features) @ self.coefficients


class OfDistances:
    r"""Paths under :math:`\exp(-\alpha\,\mathrm{MMD}^2)`: sums of cosines of paths of E g.

    With g ~ GP(0, k), the difference :math:`\Delta = \mathbb E_P g - \mathbb E_Q g` has the
    variance MMD², and :math:`\mathbb E \cos\sqrt{2\alpha}\Delta = \exp(-\alpha\,\mathrm{MMD}^2)`.
    """

    def __init__(
        self, scale: Tensor, kernel: MMDKernel, base: GaussianSum, shape: Size, n: int
    ) -> None:
        """Draw paths of variance ``scale``."""
        room = MAX_NUMBERS // shape.numel()
        most = N_COSINES if n == 1 else N_WAVES  # paths that share cosines need more of them
        h = max(16, min(most, math.isqrt(room // 2)))
        m = max(64, min(N_WAVES, room // h, MAX_WAVES // shape.numel()))
        self.waves = RandomWaves(kernel.embedding, base, shape, m)
        # √(2α) g: h paths of E g, each a sum of m waves
        self.g = (2 * kernel.alpha.detach()).sqrt() * torch.randn(*shape, m, h).to(scale)
        self.phases = 2 * math.pi * torch.rand(*shape, 1, h).to(scale)
        self.coefficients = (2 * scale / h).sqrt() * torch.randn(*shape, h, n).to(scale)

    def __call__(
        self, X: Float[Tensor, "*batch k c"], features: Features | None = None
    ) -> Float[Tensor, "*paths k n"]:
        """Return the values at designs; ``features`` as for ``RandomWaves``."""
        # √(2 s / h) Σ_i θ_i cos(√(2α) E g_i + b_i)
        return torch.cos(self.waves(X, features) @ self.g + self.phases) @ self.coefficients


def draw_prior(model: UncertainInputGP, shape: Size, n: int = 1) -> Expected | OfDistances:
    """Draw paths of a model's prior, without its mean; ``n`` share each set of waves."""
    kernel: Any = model.covar_module
    scale = kernel.outputscale.detach() if isinstance(kernel, ScaleKernel) else torch.ones(())
    scale = scale.to(model.train_targets)
    inner = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    base = gaussian_sum(_base_kernel(inner, model.features))
    if base is None:
        raise NotImplementedError(
            f"Function draws need a base kernel that is a sum of Gaussians; {type(model).__name__} "
            f"has {type(inner).__name__}."
        )
    with torch.no_grad():
        if isinstance(inner, MMDKernel):
            return OfDistances(scale, inner, base, shape, n)
        return Expected(scale, model.features, base, shape, n)


def _base_kernel(kernel: Any, features: Features) -> Any:
    """Return the kernel of f itself."""
    if isinstance(kernel, IntegralKernel | MMDKernel) and isinstance(features, Embedding):
        return features.base_kernel
    if isinstance(kernel, ERBFKernel):
        return kernel.at_points
    return kernel


class PriorPaths(SamplePath):
    """Functions drawn from the prior of a surrogate, in the units of the model."""

    def __init__(self, model: UncertainInputGP, shape: Size) -> None:
        """Draw as many as ``shape`` says."""
        super().__init__()
        self.model, self.prior = model.eval(), draw_prior(model, shape)

    def forward(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*paths n"]:
        """Return the values of all paths at designs."""
        return self.model.mean_module(x) + self.prior(self.model.numbered(x, None)).squeeze(-1)

    def set_ensemble_as_batch(self, ensemble_as_batch: bool) -> None:
        """Do nothing: there is only one model."""


class Paths(PriorPaths):
    """Functions drawn from the posterior of a surrogate, in the units of the values."""

    def __init__(self, model: UncertainInputGP, shape: Size) -> None:
        """Draw as many as ``shape`` says; only designs get gradients."""
        super().__init__(model, shape)
        with torch.no_grad():
            known = Conditioned(model)
            n = known.errors.shape[-1]
            # (K + Σ)⁻¹ (y - μ - f(X) - ε)
            epsilon = known.noise.sqrt() * torch.randn(*shape, n).to(known.noise)
            f = self.prior(rows.packed(model.train_inputs)).squeeze(-1)
            errors = known.errors - f - epsilon
            self.weights = known.solve(errors.unsqueeze(-1))

    def forward(
        self, x: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty | None = None
    ) -> Float[Tensor, "*paths n"]:
        """Return the values of all paths at designs.

        Args:
            x: Designs; dimensions before the last two are matched with those of the paths.
            uncertainty: Where designs land; ``Exact()`` gives paths of f itself. By default as for
                ``posterior``.
        """
        model = self.model if uncertainty is None else self.model.including(uncertainty)
        X = model.numbered(x, uncertainty)
        known = model.features(rows.packed(model.train_inputs))
        # K_xX (K_XX + Σ)⁻¹ (y - f(X) - ε)
        update = model.covar_module(model.features(X), known).to_dense() @ self.weights
        values = model.mean_module(x) + (self.prior(X, model.features) + update).squeeze(-1)
        transform: Any = getattr(model, "outcome_transform", None)
        if transform is None:
            return values
        untransformed: Tensor = transform.untransform(values.unsqueeze(-1))[0]
        return untransformed.squeeze(-1)


@DrawMatheronPaths.register(UncertainInputGP)  # type: ignore[untyped-decorator]
def _draw_matheron_paths(model: UncertainInputGP, sample_shape: Size, **_: Any) -> Paths:
    return Paths(model, sample_shape)


@DrawKernelFeaturePaths.register(UncertainInputGP)  # type: ignore[untyped-decorator]
def _draw_kernel_feature_paths(model: UncertainInputGP, sample_shape: Size, **_: Any) -> PriorPaths:
    return PriorPaths(model, sample_shape)
