"""Predictions of all outcomes of designs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from airbo.measures import Mean
from airbo.measures.capability import Capability
from airbo.measures.posterior import FINE
from airbo.optimizer.goals import Goals, OutcomeGoal
from airbo.optimizer.recommendation import OutcomeEstimate, Recommendation
from airbo.optimizer.record import History
from airbo.outcomes import FEASIBLE, Limit, objectives
from airbo.space import Design

MAX_VALUES = 2**22
"""Number of values of f that fit into memory."""


@dataclass(frozen=True)
class Judged:
    """One design and the predictions of its outcomes."""

    design: Design
    worth: tuple[float, ...]
    """The objectives; larger is better."""
    outcomes: Mapping[str, OutcomeEstimate]
    holds: float
    """Probability that every limit is kept with its required probability."""


def recommended(
    goals: Goals, history: History, chosen: Sequence[Judged], reason: str
) -> list[Recommendation]:
    """Turn designs into recommendations, with what quality people ask for where there are limits.

    That takes many executed inputs, so it is worked out for the chosen designs only.
    """
    if not chosen:
        return []
    used = [goal for goal in goals.used(history) if goal.name != FEASIBLE]
    designs = [judged.design for judged in chosen]
    columns = {goal.name: goal.predictor(history).capabilities(designs) for goal in used}
    first = next(iter(objectives(goals.outcomes)))
    found = []
    for i, judged in enumerate(chosen):
        known = {name: _with(judged.outcomes[name], column[i]) for name, column in columns.items()}
        outcomes = {**judged.outcomes, **known}
        own = outcomes[first]
        holds = judged.holds if len(outcomes) > len(judged.worth) else None
        found.append(
            Recommendation(
                judged.design, own.mean, own.std, own.capability, outcomes, holds, reason
            )
        )
    return found


def _with(estimate: OutcomeEstimate, capability: Capability | None) -> OutcomeEstimate:
    """Add how well a limit is kept; its share replaces the one of fewer executed inputs."""
    if capability is None:
        return estimate
    within = None if estimate.within is None else capability.share
    return replace(estimate, within=within, capability=capability)


def judge(goals: Goals, history: History, designs: Sequence[Design]) -> list[Judged]:
    """Predict the outcomes of designs in use."""
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
    """For a limit: the draws in which it is kept with its required probability."""

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
