r"""P_x through its characteristic function, for one to three columns of the unit cube.

Between points at most R apart, a Gaussian in one column is a sum of few waves,

.. math:: e^{-\lambda t^2 / 2} = \sum_{k \ge 0} a_k \cos(\omega_k t), \quad \omega_k = k \Delta,
          \quad a_k = (2 - [k = 0]) \frac{\Delta}{\sqrt{2 \pi \lambda}} e^{-\omega_k^2 / 2 \lambda}

(the trapezoidal rule for its Fourier integral, which converges as fast as the Gaussian falls). In
several columns the frequencies are vectors and the amplitudes products. So what the base kernel
sees of P_x are the values of its characteristic function,

.. math:: \Phi = \big(\mathbb E \cos(\omega_k^\top x'), \; \mathbb E \sin(\omega_k^\top x')\big),
          \quad x' \sim P_x, \qquad
          \iint e^{-(u - v)^\top \Lambda (u - v) / 2} \, dP(u) \, dQ(v) = \Phi_P \,
          \mathrm{diag}(a) \, \Phi_Q^\top

and comparing designs is a matrix product, whether P_x changes with the design or not, and however
finely it is resolved. Each term is a square, so the result is positive semi-definite.

Notation:

- ``q`` Gaussians, ``b`` columns, ``w`` frequencies, ``v`` = 2 w waves: cosines, then sines;
- ``n`` designs, ``j`` Gaussians of P_x per design;
- ``lam`` (q, b): precisions λ; ``W`` (q, w, b): frequencies ω; ``a`` (q, v): amplitudes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.features import PORTION
from airbo.uncertainty.gaussians import Mixture

MARGIN = {1: 5.0, 2: 4.5, 3: 3.75}
"""Standard deviations at which a Gaussian counts as 0, by the number of columns. What lies beyond 5
is 6e-7 of it. In three columns, 3.75 makes g wrong by up to 4e-4, where cutting a log of 1,000 rows
into 16 cells costs between 1e-4 and 2e-3; it takes about a third of the waves of 5."""
PER_OCTAVE = {1: 2, 2: 4, 3: 8}
"""Widths per factor of 2 that have a grid of frequencies of their own, by the number of columns.
Features then stay the same while a fit moves the width a little. Twice as many grids would save 10%
of the waves of one column. In three columns, two per octave would take twice as many waves."""
NARROWEST = 4e4
"""Largest precision that waves follow, a standard deviation of 1/200 of the range."""


def n_waves(lam: Sequence[float], reach: Sequence[float]) -> float:
    """Return about how many waves a Gaussian of some precisions takes."""
    # the frequencies fill an ellipsoid, of which one half is needed, with two waves each
    ball = {1: 2.0, 2: math.pi, 3: 4 * math.pi / 3}[len(lam)]
    m, pairs = MARGIN[len(lam)], zip(lam, reach, strict=True)
    radii = [m * (r * math.sqrt(x) + m) / (2 * math.pi) for x, r in pairs]
    return ball * math.prod(radii)


@dataclass(frozen=True, eq=False)
class Grid:
    """Frequencies for Gaussians of some widths, between points at most ``reach`` apart.

    The grid depends on the width in coarse steps; the amplitudes follow it smoothly.
    """

    frequencies: Float[Tensor, "q w b"]
    """ω; of several Gaussians, rows are padded to a common length."""
    steps: Float[Tensor, "q b"]
    """Δ."""
    counts: Float[Tensor, "q w"]
    """How often a wave counts: 1 for the frequency 0, 2 for the others, 0 for padding."""
    largest: Float[Tensor, "q b"]
    """The largest λ of the coarse step, for bounds on amplitudes."""

    @property
    def size(self) -> int:
        """Waves of a design, cosines and sines."""
        return 2 * self.counts.numel()

    @classmethod
    def of(
        cls, narrow: Float[Tensor, "q b"], period: Float[Tensor, "*q b"], margin: float
    ) -> "Grid":
        """Choose frequencies for √λ up to ``narrow``; in several columns, for one Gaussian.

        Args:
            narrow: The largest √λ. It sets the last frequency.
            period: Where waves repeat themselves.
            margin: Standard deviations of a Gaussian's spectrum beyond which it counts as 0.
        """
        # ω = k Δ with Δ = 2π / period, up to margin √λ
        narrow = narrow.clamp_max(math.sqrt(NARROWEST))
        steps = (2 * math.pi / period).expand_as(narrow)
        sizes = torch.ceil(margin * narrow / steps)  # (q, b)
        if narrow.shape[-1] == 1:
            # k = 0, 1, ..., as many for all Gaussians as the narrowest needs
            k = torch.arange(int(sizes.max()) + 1).to(steps).reshape(1, -1, 1)
            counts = torch.where(k.squeeze(-1) > sizes, 0.0, 2.0).to(steps)
            counts[:, 0] = 1.0
            return cls(k * steps.unsqueeze(-2), steps, counts, narrow.square())
        # all vectors of whole numbers in an ellipsoid; of k and -k, which make the same waves, one
        size = [int(s) for s in sizes[0].tolist()]
        axes = [torch.arange(0 if c == 0 else -s, s + 1) for c, s in enumerate(size)]
        k = torch.cartesian_prod(*axes).to(steps)  # (w, b)
        first = (k * torch.tensor([1e8**-c for c in range(len(size))]).to(k)).sum(-1)
        inside = (k * steps / narrow).square().sum(-1) <= margin**2
        k = k[(first >= 0) & inside]
        counts = torch.where(k.any(-1), 2.0, 1.0).to(steps).unsqueeze(0)
        return cls((k * steps).unsqueeze(0), steps, counts, narrow.square())

    def amplitudes(self, lam: Float[Tensor, "q b"]) -> Float[Tensor, "q v"]:
        """Return a for cosines and sines; it is smooth in the precisions."""
        lam = lam.clamp_max(NARROWEST)
        # a_k = count Π_c Δ_c (2π λ_c)^-½ exp(-ω_kc² / 2 λ_c)
        height = (self.steps / (2 * math.pi * lam).sqrt()).prod(-1, keepdim=True)
        exponent = (self.frequencies.square() @ (-0.5 / lam).unsqueeze(-1)).squeeze(-1)
        a = height * self.counts * exponent.exp()
        return torch.cat([a, a], dim=-1)

    def bounds(self) -> Float[Tensor, "q w"]:
        """Return what the amplitudes stay below while the grid is the same."""
        return self.amplitudes(self.largest)[..., : self.counts.shape[-1]]

    def only(self, kept: Int64[Tensor, " kept"]) -> "Grid":
        """Return some of the waves of a grid for one Gaussian, by their numbers."""
        # Σ_k over some k
        return Grid(self.frequencies[:, kept], self.steps, self.counts[:, kept], self.largest)


def widest(narrow: Float[Tensor, "q b"]) -> Float[Tensor, "q b"]:
    """Return the smallest √λ of the coarse steps that end at ``narrow``: it sets the period."""
    return narrow.clamp_max(math.sqrt(NARROWEST)) * 2 ** (-1 / PER_OCTAVE[narrow.shape[-1]])


def narrowest(lam: Float[Tensor, "q b"]) -> tuple[tuple[float, ...], ...]:
    """Return √λ, rounded up in coarse steps: the same numbers while a fit moves λ a little.

    The first Gaussian sets the step, and the grids of all change with it.
    """
    # 2^(⌈k log₂ √λ⌉ / k), with k steps per octave
    root = lam.detach().clamp_min(1e-12).sqrt()
    per_octave = PER_OCTAVE[lam.shape[-1]]
    up = torch.exp2(torch.ceil(per_octave * root[0].log2()) / per_octave)
    rows: list[list[float]] = (root / root[0] * up).tolist()
    return tuple(tuple(float(f"{value:.5g}") for value in row) for row in rows)


def shifted(
    x: Float[Tensor, "n b"],
    factor: Float[Tensor, "q w"],
    angle: Float[Tensor, "q w"],
    W: Float[Tensor, "q w b"],
) -> Float[Tensor, "q n v"]:
    """Return the features Φ of designs that all deviate alike.

    E e^{iω·(x + δ)} = e^{iω·x} φ(ω): a factor |φ| and an angle per wave.
    """
    # |φ| cos(ω·x + arg φ) and |φ| sin(ω·x + arg φ)
    phase = x @ W.mT + angle.unsqueeze(-2)
    factor = factor.unsqueeze(-2)
    return torch.cat([phase.cos() * factor, phase.sin() * factor], dim=-1)


def landing_waves(landing: Mixture, grid: Grid) -> Float[Tensor, "q n v"]:
    """Return the features Φ of designs that come with a distribution of their own."""
    # the frequencies of all Gaussians in one row, without padding
    used = grid.counts > 0  # (q, w)
    W = grid.frequencies[used].unsqueeze(0)  # (1, u, b)
    n, j = landing.weights.shape
    size = max(1, PORTION // (j * W.shape[1]))
    if n <= size or landing.means.requires_grad:
        rows = _landing_waves(landing, W)
    else:
        spreads = [None] * n if landing.spread is None else landing.spread.split(size)
        parts = zip(landing.weights.split(size), landing.means.split(size), spreads, strict=False)
        some = (replace(landing, weights=w, means=m, spread=s) for w, m, s in parts)
        rows = torch.cat([_landing_waves(part, W) for part in some], dim=1)
    if len(used) == 1:
        return rows
    # back to a row per Gaussian; where it is padded any wave will do, as its amplitude is 0
    place = (used.flatten().cumsum(0) - 1).unflatten(0, used.shape)  # (q, w)
    both = torch.cat([place, place + W.shape[1]], dim=-1)  # cosines, sines
    return rows[0][:, both].movedim(0, 1)


def _landing_waves(landing: Mixture, W: Tensor) -> Tensor:
    # E cos ω·x' and E sin ω·x'
    phi = landing.characteristic(W.mT)  # (q, n, w)
    return torch.cat([phi.real, phi.imag], dim=-1)


def characteristic(
    deviation: Mixture, W: Float[Tensor, "q w b"]
) -> tuple[Float[Tensor, "q w"], Float[Tensor, "q w"]]:
    """Return absolute value and angle of φ(ω) = E e^{iω·δ}."""
    # φ = re + i im = |φ| e^{i arg φ}
    phi = deviation.to(W).characteristic(W.mT).squeeze(1)  # (q, w)
    return torch.hypot(phi.real, phi.imag), torch.atan2(phi.imag, phi.real)
