r"""What a design adds to the ones that are known: by a measure, with limits, on a front.

It is read off joint draws of the outcomes. A draw says of every design what it is worth by each
objective, and by how much it keeps its limits.

Notation
    s draws, n designs, k objectives, c limits, b boxes
    Y (s n k)            objectives of designs, in units of what designs differ by
    margins (s n c)      >= 0 where a limit is kept
    lower, upper (s b k) boxes that fill what the known designs leave undominated
"""

import math
from dataclasses import dataclass
from typing import cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.multi_objective.box_decompositions import (
    BoxDecompositionList,
    FastNondominatedPartitioning,
)
from botorch.utils.multi_objective.pareto import is_non_dominated
from botorch.utils.safe_math import fatmin, log_fatmoid, log_fatplus, logmeanexp, logsumexp
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import Module, ModuleList

from airbo.measures.posterior import MeasureModel

SMOOTH = 0.01
"""How far improvements and feasibility are smoothed, in units of what designs differ by."""

PENALTY = 10.0
"""What a design loses that is e times less likely to keep its limits than it should be, in units of
what designs differ by."""

AT_A_TIME = 256
"""Known designs to draw at in one portion, so that memory stays bounded."""


@dataclass(frozen=True)
class Sampled:
    """Draws of all outcomes at designs; larger is better."""

    objectives: Float[Tensor, "s *batch n k"]
    """What designs are worth by each objective."""
    margins: Float[Tensor, "s *batch n c"]
    """How far each limit is kept; negative where it is not."""

    @property
    def feasible(self) -> Bool[Tensor, "s *batch n"]:
        """Where all limits are kept."""
        return (self.margins >= 0).all(-1)


class Draws(Module):
    """Maps designs (*batch n m) to :class:`Sampled`, the same draws for all designs."""

    models: ModuleList
    """A model of each outcome."""

    def forward(self, Z: Float[Tensor, "*batch n m"]) -> Sampled:
        """Return draws at designs."""
        raise NotImplementedError


class MeasureDraws(Draws):
    """Draws of one measure, without limits."""

    def __init__(self, model: MeasureModel) -> None:
        """Take the draws of the model."""
        super().__init__()
        self.models = ModuleList([model])

    def forward(self, Z: Float[Tensor, "*batch n m"]) -> Sampled:
        """Return draws at designs."""
        drawn = cast(MeasureModel, self.models[0]).posterior(Z).draws
        return Sampled(drawn, drawn[..., :0])


class LogImprovement(AcquisitionFunction):
    r"""Log of the hypervolume that a design is expected to add to the front of known ones.

    .. math:: \log \frac1S \sum_s \mathbb 1[\text{limits are kept}]_s
        \sum_k \prod_j \min\bigl((y_{sj}(x) - l_{skj})_+,\; u_{skj} - l_{skj}\bigr)

    where boxes k from l to u fill what the designs known and pending leave undominated in draw s.
    With one objective there is one box, above the best of these designs, and this is the log of the
    noisy expected improvement. In draws in which no known design keeps all limits, every design
    that keeps them gains 1: as long as none is known, what counts is to find one. Steps are
    smoothed as in BoTorch's LogEI, so that gradients never vanish.
    """

    lower: Tensor
    upper: Tensor
    unit: Tensor
    first: Tensor

    def __init__(self, draws: Draws, known: Float[Tensor, "n m"]) -> None:
        """Compare with ``known`` designs, those with values and those under way."""
        super().__init__(model=cast(Model, draws.models[0]))
        self.draws = draws
        with torch.no_grad():
            drawn = _in_portions(draws, known)
            Y = drawn.objectives  # (s, n, k)
            unit = _span(Y)
            # the front counts from a little below the worst known design, as expected
            reference = Y.mean(0).amin(0) / unit - 0.1
            lower, upper = boxes(Y / unit, drawn.feasible, reference)
        # draws in which no known design keeps all limits: there, any that does gains 1
        first = ~drawn.feasible.any(-1)
        buffers = {"unit": unit, "lower": lower, "upper": upper, "first": first}
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return the log of the expected gain for every single design of a batch."""
        drawn = self.draws(X)
        batch = [1] * (X.dim() - 2)
        lower, upper = (b.reshape(len(b), *batch, *b.shape[1:]) for b in (self.lower, self.upper))
        y = drawn.objectives / self.unit  # (s, *batch, 1, k)

        # log min((y - l)₊, u - l), for all boxes at once: (s, *batch, boxes, k)
        gains = log_fatplus(y - lower, tau=1e-6)
        sides = torch.stack(torch.broadcast_tensors(gains, (upper - lower).log()))
        areas = logsumexp(fatmin(sides, dim=0, tau=SMOOTH).sum(-1), dim=-1)
        areas = torch.where(self.first.reshape(-1, *batch), 0.0, areas)

        # log Π_c 1[margin_c >= 0], smoothed
        kept = log_fatmoid(drawn.margins.squeeze(-2), tau=SMOOTH).sum(-1)

        # log (1/S) Σ_s area_s kept_s
        return logmeanexp(areas + kept, dim=0)


class FeasibleValue(AcquisitionFunction):
    """Expected objective of a design, less a penalty where a limit may not be kept."""

    unit: Tensor

    def __init__(self, draws: Draws, known: Float[Tensor, "n m"], confidence: float) -> None:
        """Ask for limits to be kept in this share of draws; ``known`` designs give the unit."""
        super().__init__(model=cast(Model, draws.models[0]))
        self.draws, self.confidence = draws, confidence
        with torch.no_grad():
            self.register_buffer("unit", _span(_in_portions(draws, known).objectives))

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return the value of every single design of a batch."""
        drawn = self.draws(X)
        # log confidence - log P(limits are kept), where that is positive
        kept = log_fatmoid(drawn.margins, tau=SMOOTH).sum(-1)  # (s, *batch, 1)
        lack = math.log(self.confidence) - logmeanexp(kept, dim=0)
        missing = lack.clamp_min(0)
        # E y / unit, less the penalty
        worth = drawn.objectives.mean(0)[..., 0] / self.unit[0]
        return (worth - PENALTY * missing).squeeze(-1)


def _in_portions(draws: Draws, known: Float[Tensor, "n m"]) -> Sampled:
    """Draw at many designs; the draws are the same for all, so portions change nothing."""
    parts = [draws(some) for some in known.split(AT_A_TIME)]
    objectives, margins = ([getattr(p, name) for p in parts] for name in ("objectives", "margins"))
    return Sampled(torch.cat(objectives, dim=-2), torch.cat(margins, dim=-2))


def _span(Y: Float[Tensor, "s n k"]) -> Float[Tensor, " k"]:
    """Return by how much designs differ in each objective; if they do not, how much draws do."""
    # max_i E y_i - min_i E y_i, unless that is rounding
    expected = Y.mean(0)
    span = expected.amax(0) - expected.amin(0)
    scatter = (Y - expected).square().mean((0, 1)).sqrt()
    rounding = torch.maximum(1e-6 * scatter, 1e-12 * expected.abs().amax(0))
    return torch.where(
        span > rounding, span, torch.where(scatter > 0, scatter, torch.ones_like(span))
    )


def boxes(
    Y: Float[Tensor, "s n k"], feasible: Bool[Tensor, "s n"], reference: Float[Tensor, "k"]
) -> tuple[Float[Tensor, "s b k"], Float[Tensor, "s b k"]]:
    """Return lower and upper corners of what feasible designs leave undominated in each draw."""
    # one objective: everything above the best feasible design
    if Y.shape[-1] == 1:
        worth = torch.where(feasible, Y.squeeze(-1), reference).amax(-1)
        lower = worth.clamp(min=reference.item()).reshape(-1, 1, 1)
        return lower, torch.full_like(lower, 1e8)
    # several: the hypercells that the feasible front of each draw leaves
    parts = [
        FastNondominatedPartitioning(ref_point=reference, Y=y[kept])
        for y, kept in zip(Y, feasible, strict=True)
    ]
    lower, upper = BoxDecompositionList(*parts).get_hypercell_bounds()
    return lower, upper.clamp(max=1e8)


def undominated(Y: Float[Tensor, "n k"]) -> Bool[Tensor, "n"]:
    """Say which designs no other one equals or beats by all objectives; the first of equals."""
    return is_non_dominated(Y, deduplicate=True)
