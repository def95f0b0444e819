"""What the models hold of designs, over all outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from airbo.measures import Mean
from airbo.measures.posterior import FINE
from airbo.optimizer.goals import Goals, OutcomeGoal
from airbo.optimizer.recommendation import OutcomeEstimate, Recommendation
from airbo.optimizer.record import History
from airbo.outcomes import Limit, objectives
from airbo.space import Design

MAX_VALUES = 2**22
"""Values of f that fit into memory."""


@dataclass(frozen=True)
class Judged:
    """One design, and what the models hold of it."""

    design: Design
    worth: tuple[float, ...]
    """The objectives, larger is better."""
    outcomes: Mapping[str, OutcomeEstimate]
    holds: float
    """Probability that all limits are kept as often as they were asked to be."""

    def recommended(self, goals: Goals, reason: str) -> Recommendation:
        """Recommend the design."""
        first = self.outcomes[next(iter(objectives(goals.outcomes)))]
        holds = self.holds if len(self.outcomes) > len(self.worth) else None
        return Recommendation(
            self.design,
            first.mean,
            first.std,
            outcomes=self.outcomes,
            holds=holds,
            reason=reason,
        )


def judge(goals: Goals, history: History, designs: Sequence[Design]) -> list[Judged]:
    """Say what the models hold of designs when they are used."""
    Z = history.points.of(designs)
    columns = [_Column.of(goal, history, Z) for goal in goals.used(history)]
    limits = [c.kept for c in columns if c.kept is not None]
    kept = torch.stack(limits).all(0) if limits else torch.ones(1, len(Z))  # (draws, n)
    holds = kept.double().mean(0)
    found = []
    for i, design in enumerate(designs):
        worth = tuple(c.worth[i].item() for c in columns if c.worth is not None)
        outcomes = {c.name: c.estimates[i] for c in columns}
        found.append(Judged(dict(design), worth, outcomes, holds[i].item()))
    return found


@dataclass(frozen=True)
class _Column:
    """One outcome at all designs."""

    name: str
    estimates: list[OutcomeEstimate]
    worth: Float[Tensor, " n"] | None = None
    kept: Bool[Tensor, "draws n"] | None = None
    """Of a limit: in which draws it is kept as often as it was asked to be."""

    @classmethod
    def of(cls, goal: OutcomeGoal, history: History, Z: Float[Tensor, "n m"]) -> "_Column":
        outcome = goal.outcome
        if not isinstance(outcome, Limit):
            means, stds = goal.predictor(history).predict(Z)
            worth = goal.objective.factor(1.0) * means
            return cls(goal.name, _estimates([means, stds]), worth=worth)
        means, stds = goal.predictor(history, Mean()).predict(Z)
        shares = _shares(goal, history, Z)
        kept = shares >= outcome.probability
        columns = [means, stds, shares.mean(0), shares.std(0), kept.double().mean(0)]
        return cls(goal.name, _estimates(columns), kept=kept)


def _estimates(columns: list[Tensor]) -> list[OutcomeEstimate]:
    return [OutcomeEstimate(*row) for row in torch.stack(columns).T.tolist()]


def _shares(
    goal: OutcomeGoal, history: History, Z: Float[Tensor, "n m"]
) -> Float[Tensor, "draws n"]:
    """Return draws of the share of executed inputs that keep a limit."""
    measured = goal.measured(history, FINE)
    at_a_time = max(1, MAX_VALUES // FINE.n_values)
    with torch.no_grad():
        parts = [measured.posterior(some).draws.squeeze(-1) for some in Z.split(at_a_time)]
    return torch.cat(parts, dim=-1)
