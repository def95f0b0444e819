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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.mixture import Mixture

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
    def of(cls, precisions: Float[Tensor, " q"], reach: float) -> "Waves":
        """Find the waves of Gaussians for points at most ``reach`` apart."""
        parts = [_waves(precision, reach) for precision in precisions]
        frequencies, phases, amplitudes = (torch.cat(v) for v in zip(*parts, strict=True))
        return cls(frequencies, phases, amplitudes, tuple(len(part[0]) for part in parts))


def _waves(precision: Float[Tensor, ""], reach: float) -> tuple[Tensor, Tensor, Tensor]:
    # the sum repeats itself with the period T = 2π/Δ; at T - t the next Gaussian must be 0
    root = math.sqrt(max(precision.item(), 1e-12))
    step = 2 * math.pi / (reach + MARGIN / root)
    k = torch.arange(math.ceil(MARGIN * root / step) + 1).to(precision)
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


@dataclass(frozen=True)
class Polynomials:
    """Features of several columns at once, as polynomials of the designs.

    As long as hyper-parameters stay, what waves say about a design is a smooth function of it, and
    of much lower rank than the number of waves. Polynomials of few degrees give it by one matrix
    product.
    """

    low: Float[Tensor, " c"]
    high: Float[Tensor, " c"]
    coefficients: Float[Tensor, "kinds c degree r"]

    @classmethod
    def of(cls, tables: Sequence["Compressed"]) -> "Polynomials":
        """Take one table per column."""
        n = max(table.coefficients.shape[-2] for table in tables)
        r = max(table.coefficients.shape[-1] for table in tables)
        padded = [
            F.pad(
                t.coefficients, (0, r - t.coefficients.shape[-1], 0, n - t.coefficients.shape[-2])
            )
            for t in tables
        ]
        like = padded[0]
        low, high = (like.new_tensor([getattr(t, k) for t in tables]) for k in ("low", "high"))
        return cls(low, high, torch.stack(padded, dim=1))

    def __call__(
        self, x: Float[Tensor, "*batch n c"], kind: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "c *batch n r"]:
        """Evaluate T_0(z), T_1(z), ... and combine them."""
        z = (2 * x - self.low - self.high) / (self.high - self.low)
        # T_k(z) = cos(k arccos z); a hair within ±1, so that the slope of arccos is finite
        within = 1 - torch.finfo(z.dtype).eps ** 0.75
        angle = z.clamp(-within, within).acos().movedim(-1, 0)  # (c, *batch, n)
        k = torch.arange(self.coefficients.shape[-2]).to(z)
        powers = (angle.unsqueeze(-1) * k).cos().flatten(1, -2)
        result: Tensor | None = None
        for number, own in enumerate(self.coefficients):
            value = (powers @ own).unflatten(1, angle.shape[1:])
            mine = (kind == number).unsqueeze(-1)
            result = value if result is None else torch.where(mine, value, result)
        assert result is not None
        return result


@dataclass(frozen=True)
class Compressed:
    """The features of one column: few smooth functions of the design."""

    low: float
    high: float
    coefficients: Float[Tensor, "kinds degree r"]
    ranks: tuple[int, ...]
    """How many of the functions belong to each Gaussian."""

    @classmethod
    def of(
        cls,
        features: Callable[[Tensor, int], Tensor],
        n_kinds: int,
        seen: tuple[float, float],
        sizes: tuple[int, ...],
        highest: float,
    ) -> "Compressed | None":
        """Write features as polynomials, unless they have steps or kinks.

        Args:
            features: Maps designs and the number of a kind to features.
            n_kinds: How many kinds there are.
            seen: The range of designs.
            sizes: How many features belong to each Gaussian.
            highest: Largest frequency.
        """
        low, high = seen
        # a wave of frequency ω takes ω/2 polynomials per unit, and P_x may bend it further
        enough = [n for n in N_NODES if n >= 0.6 * highest * (high - low) + 12]
        for n in enough[:2]:
            nodes, to_coefficients = _chebyshev(n)
            x = (low + high) / 2 + (high - low) / 2 * nodes
            values = torch.stack([features(x, kind) for kind in range(n_kinds)])  # (kinds, n, w)
            functions, ranks = _low_rank(values, sizes)
            coefficients = to_coefficients.to(functions) @ functions
            sizes_of = coefficients.abs().amax((0, 2))
            if bool((sizes_of[-3:] < NEGLIGIBLE).all()):
                degree = max(2, int((sizes_of > NEGLIGIBLE / 10).nonzero().max().item()) + 1)
                return cls(low, high, coefficients[:, :degree], ranks)
        return None


N_NODES = (24, 48, 96, 192, 384, 768, 1536)
"""Points that polynomials go through."""
NEGLIGIBLE = 1e-6
"""Of functions whose squares sum up to 1."""


@lru_cache(maxsize=8)
def _chebyshev(n: int) -> tuple[Float[Tensor, " n"], Float[Tensor, "n n"]]:
    """Return points in [-1, 1], and what turns values there into Chebyshev coefficients."""
    angle = (torch.arange(n, dtype=torch.float64) + 0.5) * math.pi / n
    k = torch.arange(n, dtype=torch.float64).unsqueeze(-1)
    return angle.cos(), torch.where(k == 0, 1.0, 2.0) / n * (k * angle).cos()


def _low_rank(
    values: Float[Tensor, "kinds n w"], sizes: tuple[int, ...]
) -> tuple[Float[Tensor, "kinds n r"], tuple[int, ...]]:
    """Turn the features of every Gaussian so that few of them count, and keep these."""
    kept, ranks = [], []
    for part in values.split(sizes, dim=-1):
        U, S, _ = torch.linalg.svd(part.flatten(0, 1), full_matrices=False)
        # leaving out a direction changes the products by the square of its size
        rank = max(1, int((S.square() > 3 * NEGLIGIBLE * len(U)).sum()))
        kept.append((U[:, :rank] * S[:rank]).unflatten(0, values.shape[:2]))
        ranks.append(rank)
    return torch.cat(kept, dim=-1), tuple(ranks)
