r"""One column of the unit cube: P_x through its characteristic function.

Between two points of one column, a Gaussian is a sum of few waves,

.. math:: e^{-\lambda t^2 / 2} = \sum_k a_k \cos(\omega_k t), \quad \omega_k = k \Delta, \quad
          a_k = \frac{\Delta}{\sqrt{2 \pi \lambda}} e^{-\omega_k^2 / 2 \lambda}

(the trapezoidal rule for its Fourier integral, which converges as fast as the Gaussian falls). So
what the base kernel sees of P_x are the values of its characteristic function,

.. math:: \mathbb E \cos(\omega_k x'), \; \mathbb E \sin(\omega_k x'), \quad x' \sim P_x

and comparing designs is a matrix product, whether P_x changes with the design or not, and however
finely it is resolved. Each term is a square, so the result is positive semi-definite.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.uncertainty.gaussians import Mixture

MARGIN = 5.5
"""Standard deviations at which a Gaussian counts as 0: e^(-MARGIN²/2) = 3e-7."""


@dataclass(frozen=True)
class Waves:
    """The waves that stand for several Gaussians in one column, one after the other."""

    frequencies: Float[Tensor, " w"]
    phases: Float[Tensor, " w"]
    """0 for a cosine, -π/2 for a sine."""
    amplitudes: Float[Tensor, " w"]
    """Square roots of what the waves count; they may move with the precision."""
    sizes: tuple[int, ...]
    """Number of waves per Gaussian."""

    @classmethod
    def of(cls, precisions: Float[Tensor, " q"], reach: float, margin: float = MARGIN) -> "Waves":
        """Find the waves of Gaussians for points at most ``reach`` apart."""
        parts = [_waves(precision, reach, margin) for precision in precisions]
        frequencies, phases, amplitudes = (torch.cat(v) for v in zip(*parts, strict=True))
        return cls(frequencies, phases, amplitudes, tuple(len(part[0]) for part in parts))


def _waves(
    precision: Float[Tensor, ""], reach: float, margin: float
) -> tuple[Tensor, Tensor, Tensor]:
    # the sum repeats itself with the period T = 2π/Δ; at T - t the next Gaussian must be 0
    root = math.sqrt(max(precision.item(), 1e-12))
    step = 2 * math.pi / (reach + margin / root)
    k = torch.arange(math.ceil(margin * root / step) + 1).to(precision)
    w = k * step
    a = step * (-0.5 * w.square() / precision).exp() / (2 * math.pi * precision).sqrt()
    a = torch.where(k > 0, 2 * a, a).sqrt()
    zero = torch.zeros_like(w)
    return (
        torch.cat([w, w[1:]]),
        torch.cat([zero, zero[1:] - math.pi / 2]),
        torch.cat([a, a[1:]]),
    )


def characteristic(
    deviation: Mixture, w: Float[Tensor, " w"]
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """Return the absolute value and the angle of φ(ω) = Σ w_j exp(iωm_j - ω²v_j/2)."""
    mixture = deviation.to(w)
    m, v = mixture.means[0, :, 0], mixture.variances[0, :, 0]
    angle = m.unsqueeze(-1) * w  # (j, w)
    height = mixture.weights[0].unsqueeze(-1) * (-0.5 * v.unsqueeze(-1) * w.square()).exp()
    re, im = (height * angle.cos()).sum(0), (height * angle.sin()).sum(0)
    return torch.hypot(re, im), torch.atan2(im, re)


@dataclass(frozen=True)
class Shifted:
    """Features of designs whose deviation depends on nothing but the kind of their uncertainty.

    E e^{iω(x + δ)} = e^{iωx} φ(ω): a factor and a phase per wave.
    """

    waves: Waves
    factors: Float[Tensor, "kinds w"]
    phases: Float[Tensor, "kinds w"]

    @classmethod
    def of(cls, deviations: Sequence[Mixture], waves: Waves) -> "Shifted":
        """Take one deviation per kind."""
        parts = [characteristic(d, waves.frequencies) for d in deviations]
        factors, angles = (torch.stack(v) for v in zip(*parts, strict=True))
        return cls(waves, factors * waves.amplitudes, angles + waves.phases)

    def __call__(
        self, x: Float[Tensor, "*batch n"], kind: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n w"]:
        """Return the features of designs."""
        factor, phase = self.factors[0], self.phases[0]
        if len(self.factors) > 1:
            factor, phase = self.factors[kind], self.phases[kind]
        return (x.unsqueeze(-1) * self.waves.frequencies + phase).cos() * factor


def landing_features(landing: Mixture, waves: Waves) -> Float[Tensor, "*batch n w"]:
    """Return the features of designs that come with a distribution of their own."""
    total: Tensor | None = None
    w = waves.frequencies
    for j in range(landing.n_components):
        m, share = landing.means[..., j, :], landing.weights[..., j].unsqueeze(-1)
        term = (m * w + waves.phases).cos()  # (..., n, w)
        if landing.spread is not None:
            term = term * (-0.5 * landing.variances[..., j, :] * w.square()).exp()
        total = share * term if total is None else total + share * term
    assert total is not None
    return total * waves.amplitudes
