"""What a fit works out once: one column, all pairs of observations, Gaussians of all widths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.columns import MARGIN, Shifted, Waves, landing_features
from airbo.embeddings.plan import Group, Plan
from airbo.embeddings.terms import NARROWEST_WAVE
from airbo.uncertainty.gaussians import Mixture

FLAT, WIDE, NARROW = 0.05, 25.0, NARROWEST_WAVE
"""Precisions up to which two moments say all, waves of a long period do, and waves go at all."""
LOG_STEP, TAPS = 0.25, 6
"""Spacing of tabulated log precisions, and how many of them stand for one between: 1e-5."""
LOWEST = -9.5
"""Log precision below which a Gaussian is flat."""


@dataclass(frozen=True)
class PairTables:
    """Inner products of all pairs of observations in single columns, for a grid of precisions.

    While hyper-parameters move, the observations stay. So each step of a fit only interpolates
    between precisions, whatever P_x looks like.
    """

    values: Float[Tensor, "c s p"]
    """By column, precision and pair of observations; of (i, j) and (j, i) only one."""

    @classmethod
    def of(
        cls, plan: Plan, f: Float[Tensor, "n f"], reaches: Sequence[float], pairs: Tensor
    ) -> "PairTables":
        """Tabulate single columns for all precisions that a fit may come to."""
        n = math.ceil((math.log(NARROW) - LOWEST) / LOG_STEP) + TAPS
        grid = torch.exp(LOWEST + LOG_STEP * (torch.arange(n).to(f) - TAPS // 2))
        i, j = pairs
        columns = zip(plan.waves, reaches, strict=True)
        return cls(torch.stack([products(plan, g, f, grid, r)[:, i, j] for g, r in columns]))

    def only(self, pairs: Tensor) -> "PairTables":
        """Return the tables of some of the pairs."""
        return PairTables(self.values[..., pairs])

    def __call__(self, precisions: Float[Tensor, "q c"]) -> Float[Tensor, "q p"]:
        """Multiply over columns; the result is differentiable in the precisions."""
        # T(λ) ≈ Σ_k L_k(u) T(λ_k): Lagrange's polynomial in log λ through TAPS neighbours
        n_columns, n_precisions, _ = self.values.shape
        place = (precisions.mT.log() - LOWEST) / LOG_STEP + TAPS // 2  # (c, q)
        first = place.detach().floor().long() - TAPS // 2 + 1
        first = first.clamp(0, n_precisions - TAPS)
        u = (place - first).clamp(0, TAPS - 1).unsqueeze(-1)
        others = torch.tensor([[j for j in range(TAPS) if j != k] for k in range(TAPS)]).to(u)
        gaps = torch.arange(TAPS).to(u).unsqueeze(-1) - others
        shares = ((u.unsqueeze(-1) - others) / gaps).prod(-1)  # Lagrange, (c, q, taps)

        start = torch.arange(n_columns, device=first.device).unsqueeze(-1) * n_precisions
        index = (first + start).unsqueeze(-1) + torch.arange(TAPS, device=first.device)
        rows = self.values.flatten(0, 1)[index.flatten()].unflatten(0, index.shape)
        return (shares.unsqueeze(-2) @ rows).squeeze(-2).prod(0)


def products(
    plan: Plan,
    group: Group,
    f: Float[Tensor, "n f"],
    precisions: Float[Tensor, " q"],
    reach: float,
) -> Float[Tensor, "q n n"]:
    """Integrate Gaussians of many precisions between all pairs of observations, in one column.

    The waves of all precisions share their frequencies, so that the characteristic functions of
    P_x are worked out once.
    """
    x, kind = f[:, list(group.columns)], f[:, plan.d].long()
    landing = None if group.deviations else plan.landing(group, f)
    wide, narrow = (
        _Frequencies.of(group, x, kind, landing, reach, ends)
        for ends in ((FLAT, WIDE), (WIDE, NARROW))
    )
    mean, variance = _moments(plan, group, f)
    t2 = (mean - mean.mT).square() + variance + variance.mT  # E (u - v)²
    result = []
    for precision in precisions.clamp_max(NARROW):
        if precision <= FLAT:  # E exp(-½ λ t²) = exp(-½ λ E t²) + O(λ²)
            result.append(torch.exp(-0.5 * precision * t2))
        else:
            result.append((wide if precision < WIDE else narrow).product(precision))
    return torch.stack(result)


@dataclass(frozen=True)
class _Frequencies:
    """Values of characteristic functions at multiples of one frequency."""

    step: float
    cosines: Float[Tensor, "n k"]
    sines: Float[Tensor, "n k"]

    @classmethod
    def of(
        cls,
        group: Group,
        x: Tensor,
        kind: Tensor,
        landing: Mixture | None,
        reach: float,
        ends: Sequence[float],
    ) -> "_Frequencies":
        # as in ``columns``: the widest Gaussian sets the period, the narrowest the last frequency
        lowest, highest = (math.sqrt(end) for end in ends)
        step = 2 * math.pi / (reach + MARGIN / lowest)
        w = step * torch.arange(math.ceil(MARGIN * highest / step) + 1).to(x)
        both = []
        for phase in (0.0, -math.pi / 2):
            waves = Waves(w, torch.full_like(w, phase), torch.ones_like(w), (len(w),))
            if landing is None:
                assert group.deviations is not None
                both.append(Shifted.of(group.deviations, waves)(x.squeeze(-1), kind))
            else:
                both.append(landing_features(landing, waves))
        return cls(step, *both)

    def product(self, precision: Float[Tensor, ""]) -> Float[Tensor, "n n"]:
        # exp(-½ λ (u - v)²) = Σ_k a_k (cos ω_k u cos ω_k v + sin ω_k u sin ω_k v)
        root = math.sqrt(precision.item())
        n = min(math.ceil(MARGIN * root / self.step) + 1, self.cosines.shape[-1])
        k = torch.arange(n).to(precision)
        a = torch.exp(-0.5 * (k * self.step / root).square())
        a = a * torch.where(k > 0, 2.0, 1.0) * self.step / (math.sqrt(2 * math.pi) * root)
        c, s = self.cosines[:, :n], self.sines[:, :n]
        return (c * a) @ c.mT + (s * a) @ s.mT


def _moments(plan: Plan, group: Group, f: Tensor) -> tuple[Tensor, Tensor]:
    return plan.landing(group, f).moments()
