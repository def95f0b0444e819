"""Machine parts that must keep limits although they cannot be made exactly.

BoTorch's constrained test functions, under tolerances in percent.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from botorch.test_functions.synthetic import (
    PressureVessel,
    SpeedReducer,
    TensionCompressionString,
    WeldedBeamSO,
)
from jaxtyping import Float
from torch import Tensor

from airbo.problems import Optimum
from airbo.uncertainty import InputUncertainty, Normal, Relative, base_draws
from experiments.subjects.internals import N_IN_PART, N_PARTS

LEVEL = 0.95
"""The probability with which every limit must hold."""


@dataclass(frozen=True)
class ReliableDesign:
    r"""A part with a cost and limits, each of which must hold in 95 of 100 parts.

    .. math:: \min_x \mathbb E \log c(x') \quad \text{such that} \quad
              P(g_k(x') \ge 0) \ge 0.95 \text{ for all } k

    Costs of designs differ by orders of magnitude, hence the logarithm. Margins :math:`g_k` are in
    units of their limit, and compressed: :math:`\pm \log(1 + |g|)`, which leaves 0 where it is.
    """

    name: str
    function: Any = field(repr=False, compare=False)
    """One of BoTorch's constrained test functions."""
    units: tuple[float, ...]
    """The unit of each limit."""
    best: tuple[float, ...]
    """The cheapest design that is reliable, found by ``python -m experiments.measures.truths``."""
    uncertainty: InputUncertainty = field(default_factory=lambda: Relative(Normal(0.02)))
    """Tolerances: by default 2% of every dimension, as a standard deviation."""

    @property
    def d(self) -> int:
        """Number of dimensions of the part."""
        return int(self.function.dim)

    @property
    def n_limits(self) -> int:
        """Number of limits."""
        return len(self.units)

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        """Bounds of the designs, low and high; executed inputs may lie outside."""
        return torch.tensor(self.function._bounds, dtype=torch.float64).mT.contiguous()

    def cost(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Return the logarithm of the cost of parts as they were made."""
        return self.function._evaluate_true(X).clamp_min(1e-12).log()

    def margins(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n k"]:
        """Return the margin of parts to every limit; negative if they violate it."""
        margin = self.function._evaluate_slack_true(X) / X.new_tensor(self.units)
        margin = margin.nan_to_num(nan=-1e6, posinf=1e6, neginf=-1e6)
        return margin.sign() * margin.abs().log1p()

    def measured(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n k1"]:
        """Return what an experiment on parts measures: the log cost, then every margin."""
        return torch.cat([self.cost(X).unsqueeze(-1), self.margins(X)], dim=-1)

    # -- the truth

    def expected_cost(self, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Return E log c(x') of designs."""
        return self._average(lambda samples: self.cost(samples).unsqueeze(-1), X).squeeze(-1)

    def reliability(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
        """Return the probability with which each limit holds, from 2²⁰ samples."""
        return self._average(lambda samples: (self.margins(samples) >= 0).double(), X)

    def is_reliable(self, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Return 1 where all limits hold with their probability, otherwise 0."""
        return (self.reliability(X).amin(-1) >= LEVEL).double()

    def cost_gap(self, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Return how much more designs cost than the cheapest reliable one, as a share."""
        return (self.expected_cost(X) - self.robust_optimum.value).expm1()

    @cached_property
    def robust_optimum(self) -> Optimum:
        """The cheapest design that keeps all limits with their probability."""
        design = torch.tensor(self.best, dtype=torch.float64)
        return Optimum(design, self.expected_cost(design.unsqueeze(0)).item())

    def _average(self, f: Any, X: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
        """Average over where designs land, part by part: a part of the samples fits in memory."""
        total = torch.zeros(())
        for seed in range(N_PARTS):
            base = base_draws(N_IN_PART, self.uncertainty.n_base(self.d), seed=seed)
            rows = [f(self.uncertainty.perturb(x[None], base)).mean(-2) for x in X]
            total = total + torch.cat(rows)
        return total / N_PARTS


WELDED_BEAM = ReliableDesign(
    "welded-beam",
    WeldedBeamSO(),
    (13600.0, 30000.0, 1.0, 5.0, 0.25, 6000.0),
    (0.172803, 4.185606, 10.0, 0.181077),
)
PRESSURE_VESSEL = ReliableDesign(
    "pressure-vessel",
    PressureVessel(),
    (1.0, 1.0, 1296000.0, 240.0),
    (0.886124, 0.438967, 43.816895, 174.230279),
)
SPEED_REDUCER = ReliableDesign(
    "speed-reducer",
    SpeedReducer(),
    (1.0, 1.0, 1.0, 1.0, 1100.0, 850.0, 40.0, 5.0, 12.0, 1.0, 1.0),
    (3.541058, 0.7, 17.0, 7.300004, 7.844311, 3.378112, 5.330659),
    Relative(Normal(0.005)),  # no design could keep all limits with 2%
)
SPRING = ReliableDesign(
    "spring", TensionCompressionString(), (1.0,) * 4, (0.055583, 0.406547, 12.054372)
)
RELIABLE: dict[str, ReliableDesign] = {
    p.name: p for p in (WELDED_BEAM, PRESSURE_VESSEL, SPEED_REDUCER, SPRING)
}
"""Parts by name."""
