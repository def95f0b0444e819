"""The objectives and constraints of a study, as outcomes of an optimizer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from airbo.campaign.optuna.attributes import STAMP, outcomes_of
from airbo.measures import Mean, Measure
from airbo.observed import Direction, is_usable
from airbo.outcomes import MAX_OBJECTIVES, AtMost, Maximize, Minimize, Want, objectives

CONSTRAINT = "constraint:"
"""Prefix of the name of an outcome that is a constraint of Optuna."""


@dataclass(frozen=True)
class Wants:
    """The settings of a sampler for the outcomes of a study."""

    given: Mapping[str, Want] | None = None
    """The outcomes by name, if they were given."""
    probability: float = 0.95
    """Share of executed inputs that must keep each constraint."""
    measure: Measure = field(default_factory=Mean)
    """The measure of objectives without a name."""


@dataclass(frozen=True)
class Wanted:
    """The objectives and limits of a study."""

    direction: Direction = "minimize"
    """Direction of the first objective."""
    names: tuple[str, ...] = ("value",)
    """Names of the objectives, in the order of the values of a trial."""
    outcomes: Mapping[str, Want] | None = None
    """None: a trial has a single value."""

    @classmethod
    def of(cls, study: Study, trials: Iterable[FrozenTrial], wants: Wants) -> "Wanted":
        """Read the objectives of a study, and the constraints from its trials."""
        directions: list[Direction] = [
            "maximize" if d == StudyDirection.MAXIMIZE else "minimize" for d in study.directions
        ]
        given = wants.given
        if given is not None:
            return cls(_checked(directions, given), tuple(objectives(given)), given)
        if len(directions) > MAX_OBJECTIVES:
            raise ValueError(
                f"AIRBOSampler chooses by at most {MAX_OBJECTIVES} objectives, the study has "
                f"{len(directions)}."
            )
        constraints = sorted({key for trial in trials for key in trial.constraints})
        if len(directions) == 1 and not constraints:
            return cls(directions[0])
        kinds = {"maximize": Maximize, "minimize": Minimize}
        names = study.metric_names or [f"value:{i}" for i in range(len(directions))]
        pairs = zip(names, directions, strict=True)
        wanted: dict[str, Want] = {n: kinds[d](wants.measure) for n, d in pairs}
        limits = {CONSTRAINT + key: AtMost(0.0, wants.probability) for key in constraints}
        return cls(directions[0], tuple(names), {**wanted, **limits})

    def told(self, trial: FrozenTrial, use_pruned: bool) -> Any:
        """Return the result of a trial in the form of ``Optimizer.tell``; None if it failed.

        What else was measured in a trial that failed is known all the same. A campaign names every
        outcome, and its value is one of them, perhaps under a name or in an order of objectives
        that the file no longer has. A trial in which only outcomes were measured that nobody names
        any more gave nothing: an empty dict.
        """
        counts = (TrialState.COMPLETE, TrialState.PRUNED) if use_pruned else (TrialState.COMPLETE,)
        values = (trial.values or []) if trial.state in counts else []
        if self.outcomes is None:
            return values[0] if values and is_usable(values[0]) else None
        named = outcomes_of(trial)
        is_complete = bool(named) and STAMP in trial.user_attrs
        given = {} if is_complete else dict(zip(self.names, values, strict=False))
        given |= {CONSTRAINT + key: value for key, value in trial.constraints.items()} | named
        usable = {n: v for n, v in given.items() if n in self.outcomes and is_usable(v)}
        return usable or ({} if named.keys() - self.outcomes.keys() else None)


def _checked(directions: list[Direction], given: Mapping[str, Want]) -> Direction:
    """Return the first direction, if the outcomes have the directions of the study."""
    own = [aim.direction for aim in objectives(given).values()]
    if directions not in (own, own[:1]):  # the others may be in the attribute only
        raise ValueError(f"The study has the directions {directions}, and outcomes have {own}.")
    return own[0]
