"""The trials of a study, as an optimizer sees them: experiments told, and designs pending."""

import logging
import math
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from airbo.integrations.optuna.attributes import (
    DESIGN,
    EXECUTED,
    GAVE_UP,
    UNCERTAINTY,
    executed_of,
    uncertainty_of,
)
from airbo.integrations.optuna.counting import Counted
from airbo.integrations.optuna.search_space import SearchSpace
from airbo.observed import LARGEST, Direction
from airbo.optimizer import Optimizer
from airbo.optimizer.search import NEARBY
from airbo.space import Design

FIXED = "fixed_params"
"""System attribute in which Optuna keeps the parameters of enqueued trials."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial: equal ones teach an optimizer the same."""

    trial: FrozenTrial = field(compare=False)
    design: Design
    value: float | None
    """None if the experiment failed."""
    executed: Any
    """What its user attributes say of the executed input, and of its uncertainty, unread."""
    uncertainty: Any

    def tell(self, optimizer: Optimizer, space: SearchSpace) -> None:
        """Report the trial to an optimizer.

        What cannot be used of its user attributes is left out, with a warning: a finished trial
        cannot be mended any more.
        """
        number, errors = self.trial.number, []
        for with_executed, with_uncertainty, missing in _ATTEMPTS:
            try:
                executed = space.design(executed_of(self.trial)) if with_executed else None
                names = space.distributions
                under = uncertainty_of(self.trial, names) if with_uncertainty else None
                optimizer.tell(self.design, self.value, executed, under, allow_outside=True)
            except ValueError as error:
                errors.append(error)
                continue
            if errors:
                _logger.warning("Trial %d: %s It is used as if %s.", number, errors[0], missing)
            return
        raise ValueError(f"Trial {number}: {errors[0]}") from errors[0]


_ATTEMPTS = (
    (True, True, ""),
    (False, True, "nothing had been measured"),
    (True, False, "it said nothing of its uncertainty"),
    (False, False, "it said nothing of its executed input and its uncertainty"),
)
"""Whether to use what is said of the executed input and of the uncertainty, and what is missing."""


@dataclass(frozen=True)
class Trials:
    """What a study knows at one moment about the parameters of a search space."""

    space: SearchSpace
    direction: Direction = "minimize"
    told: list[FinishedTrial] = field(default_factory=list)
    """Finished trials, in the order of their numbers."""
    pending: dict[int, Design] = field(default_factory=dict)
    """Designs that are under way or planned, by the number of their trial."""
    seen: frozenset[str] = frozenset()
    """Names of all parameters that any trial has."""

    @classmethod
    def of(
        cls,
        study: Study,
        space: SearchSpace,
        use_pruned: bool = False,
        leave_out: int | None = None,
    ) -> "Trials":
        """Read the trials; those that lack a parameter of the search space teach nothing.

        Args:
            study: The study.
            space: The parameters of the designs.
            use_pruned: Whether the last value of a pruned trial counts; otherwise it has failed.
            leave_out: Number of a trial that is only being made.
        """
        told: list[FinishedTrial] = []
        seen: set[str] = set()
        trials = Counted.of(study).told
        for trial in trials:
            _refuse_constraints(trial)
            seen |= trial.distributions.keys()
            if trial.state.is_finished() and (design := _design(trial, space)):
                told.append(_told(trial, design, use_pruned))
        pending = _pending(trials, space)
        if leave_out is not None:
            pending.pop(leave_out, None)
        return cls(space, _direction(study), told, pending, frozenset(seen))


def has_rival(
    study: Study,
    space: SearchSpace,
    design: Design,
    besides: Container[int],
) -> bool:
    """Say whether a design, or one near it, is pending in a trial now.

    Args:
        study: The study.
        space: The parameters of the design.
        design: The design.
        besides: Numbers of trials that do not matter.
    """
    pending = _pending(Counted.of(study).told, space).items()
    rivals = (d for n, d in pending if n not in besides)
    return any(space.space.distance(design, rival) < NEARBY for rival in rivals)


def is_usable(value: float | None) -> bool:
    """Say whether a value can be a measurement: not infinite, and no penalty."""
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def _direction(study: Study) -> Direction:
    return "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"


def _pending(trials: list[FrozenTrial], space: SearchSpace) -> dict[int, Design]:
    unfinished = (trial for trial in trials if not trial.state.is_finished())
    designs = ((trial.number, _design(trial, space)) for trial in unfinished)
    return {number: design for number, design in designs if design is not None}


def _design(trial: FrozenTrial, space: SearchSpace) -> Design | None:
    """Return the design of a trial; None if it does not count, or is not of this search space.

    A value that came although the experiment was given up does count.
    """
    if GAVE_UP in trial.user_attrs and trial.state != TrialState.COMPLETE:
        return None
    design = space.design(trial.params)
    if not trial.state.is_finished():
        chosen = space.possible(trial.system_attrs.get(DESIGN, {}))
        design = chosen | space.design(trial.system_attrs.get(FIXED, {})) | design
    return design if space.is_whole(design) else None


def _told(trial: FrozenTrial, design: Design, use_pruned: bool) -> FinishedTrial:
    counts = trial.state == TrialState.COMPLETE or (use_pruned and trial.state == TrialState.PRUNED)
    value = trial.value if counts and is_usable(trial.value) else None
    attributes = trial.user_attrs
    return FinishedTrial(
        trial, design, value, attributes.get(EXECUTED), attributes.get(UNCERTAINTY)
    )


def _refuse_constraints(trial: FrozenTrial) -> None:
    if trial.constraints:
        raise ValueError(
            f"AIRBOSampler does not support constraints, but trial {trial.number} has some: "
            f"{dict(trial.constraints)}."
        )
