r"""One column of the unit cube: P_x through its characteristic function.

Between two points of one column at most R apart, a Gaussian is a sum of few waves,

.. math:: e^{-\lambda t^2 / 2} = \sum_{k \ge 0} a_k \cos(\omega_k t), \quad \omega_k = k \Delta,
          \quad a_k = (2 - [k = 0]) \frac{\Delta}{\sqrt{2 \pi \lambda}} e^{-\omega_k^2 / 2 \lambda}

(the trapezoidal rule for its Fourier integral, which converges as fast as the Gaussian falls). So
what the base kernel sees of P_x are the values of its characteristic function,

.. math:: \Phi = \big(\mathbb E \cos(\omega_k x'), \; \mathbb E \sin(\omega_k x')\big),
          \quad x' \sim P_x, \qquad
          \iint e^{-\lambda (u - v)^2 / 2} \, dP(u) \, dQ(v) = \Phi_P \, \mathrm{diag}(a) \,
          \Phi_Q^\top

and comparing designs is a matrix product, whether P_x changes with the design or not, and however
finely it is resolved. Each term is a square, so the result is positive semi-definite.

Notation: q Gaussians, w frequencies, v = 2 w waves (cosines, then sines), n designs, j Gaussians of
P_x per design.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.uncertainty.gaussians import Mixture

MARGIN = 5.0
"""Standard deviations at which a Gaussian counts as 0: what lies beyond is 6e-7 of it."""
PER_OCTAVE = 2
"""Widths per factor of 2 that have a grid of frequencies of their own. Features then stay the same
while a fit moves the width a little; twice as many grids would save 10% of the waves."""
NARROWEST = 4e4
"""Largest precision that waves follow, a standard deviation of 1/200 of the range."""


@dataclass(frozen=True)
class Grid:
    """Frequencies for Gaussians of some widths, between points at most ``reach`` apart.

    The grid depends on the width in coarse steps; the amplitudes follow it smoothly.
    """

    frequencies: Float[Tensor, "q w"]
    """ω, rows padded with zeros to a common length."""
    steps: Float[Tensor, " q"]
    """Δ, by Gaussian; 0 for padding has no amplitude."""
    sizes: Float[Tensor, " q"]
    """How many frequencies of a row count."""

    @classmethod
    def of(cls, precisions: Float[Tensor, " q"], reach: float) -> "Grid":
        """Choose frequencies; they carry no gradient."""
        # √λ ∈ (narrow / 2^(1/PER_OCTAVE), narrow]: the widest of them sets the period, because
        # Σ repeats itself with period 2π/Δ and at 2π/Δ - t the next Gaussian must be 0;
        # the narrowest sets the last frequency
        root = precisions.detach().clamp(1e-12, NARROWEST).sqrt()
        narrow = torch.exp2(torch.ceil(PER_OCTAVE * root.log2()) / PER_OCTAVE)
        wide = narrow * 2 ** (-1 / PER_OCTAVE)
        steps = 2 * math.pi / (reach + MARGIN / wide)
        sizes = torch.ceil(MARGIN * narrow / steps) + 1
        k = torch.arange(int(sizes.max())).to(steps)
        return cls(k * steps.unsqueeze(-1), steps, sizes)

    @property
    def key(self) -> Tensor:
        """Equal for equal grids."""
        return torch.cat([self.steps, self.sizes])

    def amplitudes(self, precisions: Float[Tensor, " q"]) -> Float[Tensor, "q v"]:
        """Return a for cosines and sines; it is smooth in the precisions."""
        lam, w = precisions.clamp_max(NARROWEST).unsqueeze(-1), self.frequencies
        height = self.steps.unsqueeze(-1) / (2 * math.pi * lam).sqrt()
        k = torch.arange(w.shape[-1]).to(w)
        twice = torch.where(k < self.sizes.unsqueeze(-1), 2.0, 0.0).to(w)
        twice[:, 0] = 1.0
        a = height * twice * (-0.5 * w.square() / lam).exp()
        return torch.cat([a, a], dim=-1)


@dataclass(frozen=True)
class Deviations:
    """Features of designs whose deviation depends on nothing but the number of their uncertainty.

    E e^{iω(x + δ)} = e^{iωx} φ(ω): a factor |φ| and an angle per wave.
    """

    grid: Grid
    factors: Float[Tensor, "kinds q w"]
    angles: Float[Tensor, "kinds q w"]

    @classmethod
    def of(cls, deviations: Sequence[Mixture], grid: Grid) -> "Deviations":
        """Take one deviation per uncertainty."""
        parts = [_characteristic(d, grid.frequencies) for d in deviations]
        factors, angles = (torch.stack(v) for v in zip(*parts, strict=True))
        return cls(grid, factors, angles)

    def __call__(
        self, x: Float[Tensor, "*batch n"], kind: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "q *batch n v"]:
        """Return the features Φ of designs."""
        factor, angle = (_spread(v[0], x.dim()) for v in (self.factors, self.angles))
        if len(self.factors) > 1:
            factor, angle = (v[kind].movedim(-2, 0) for v in (self.factors, self.angles))
        phase = x.unsqueeze(-1) * _spread(self.grid.frequencies, x.dim()) + angle
        return torch.cat([phase.cos() * factor, phase.sin() * factor], dim=-1)


def landing_features(landing: Mixture, grid: Grid) -> Float[Tensor, "q *batch n v"]:
    """Return the features Φ of designs that come with a distribution of their own."""
    w = _spread(grid.frequencies, landing.weights.dim() - 1)
    cosines, sines = torch.zeros_like(w), torch.zeros_like(w)
    for j in range(landing.n_components):
        # Σ_j w_j exp(-½ v_j ω²) e^{i ω m_j}
        phase, height = landing.means[..., j, :] * w, landing.weights[..., j].unsqueeze(-1)
        if landing.spread is not None:
            height = height * (-0.5 * landing.variances[..., j, :] * w.square()).exp()
        cosines, sines = cosines + height * phase.cos(), sines + height * phase.sin()
    return torch.cat([cosines, sines], dim=-1)


def _characteristic(deviation: Mixture, w: Float[Tensor, "q w"]) -> tuple[Tensor, Tensor]:
    """Return absolute value and angle of φ(ω) = Σ_j w_j exp(iωm_j - ½ω²v_j)."""
    mixture = deviation.to(w)
    m, v = (t[0, :, 0, None, None] for t in (mixture.means, mixture.variances))
    height = mixture.weights[0, :, None, None] * (-0.5 * v * w.square()).exp()  # (j, q, w)
    re, im = ((height * (m * w).cos()).sum(0), (height * (m * w).sin()).sum(0))
    return torch.hypot(re, im), torch.atan2(im, re)


def _spread(v: Float[Tensor, "q w"], n_batch: int) -> Float[Tensor, "q *ones w"]:
    """Make room for designs between Gaussians and waves."""
    return v.reshape(v.shape[0], *[1] * n_batch, v.shape[-1])
