"""The trials of a study as an optimizer sees them: observations and pending designs."""

import logging
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from airbo.campaign.optuna.attributes import (
    DESIGN,
    EXECUTED,
    FIXED,
    GAVE_UP,
    INFEASIBLE_DESIGN,
    UNCERTAINTY,
    executed_of,
    uncertainty_of,
)
from airbo.campaign.optuna.counting import Counted
from airbo.campaign.optuna.search_space import SearchSpace
from airbo.campaign.optuna.wanted import Wanted, Wants
from airbo.optimizer import Optimizer
from airbo.optimizer.search import NEARBY
from airbo.space import Design

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial; two equal ones have the same effect on an optimizer."""

    trial: FrozenTrial = field(compare=False)
    design: Design
    value: Any
    """What it gave, as an optimizer is told it; None if the experiment failed."""
    executed: Any
    """The user attribute with the executed input, as stored; likewise ``uncertainty``."""
    uncertainty: Any
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""

    def tell(self, optimizer: Optimizer, space: SearchSpace) -> None:
        """Report the trial to an optimizer.

        User attributes that cannot be used are left out with a warning, because a finished trial
        can no longer be corrected.
        """
        number, errors = self.trial.number, []
        infeasible = self.infeasible and optimizer.outcomes is not None
        for with_executed, with_uncertainty, missing in _ATTEMPTS:
            try:
                executed = space.design(executed_of(self.trial)) if with_executed else None
                names = space.distributions
                under = uncertainty_of(self.trial, names) if with_uncertainty else None
                told = (self.design, self.value, executed, under)
                optimizer.tell(*told, allow_outside=True, infeasible=infeasible)
            except ValueError as error:
                errors.append(error)
                continue
            if errors:
                _logger.warning("Trial %d: %s airbo uses it as if %s.", number, errors[0], missing)
            return
        raise ValueError(f"Trial {number}: {errors[0]}") from errors[0]


_ATTEMPTS = (
    (True, True, ""),
    (False, True, "nothing had been measured"),
    (True, False, "it had no uncertainty of its own"),
    (False, False, "it had neither an executed input nor an uncertainty of its own"),
)
"""Whether to use the executed input and the uncertainty, and words for what is left out."""


@dataclass(frozen=True)
class Trials:
    """What a study knows at one moment about the parameters of a search space."""

    space: SearchSpace
    wanted: Wanted = field(default_factory=Wanted)
    """What the study wants of its trials."""
    told: list[FinishedTrial] = field(default_factory=list)
    """Finished trials, in the order of their numbers."""
    pending: dict[int, Design] = field(default_factory=dict)
    """Designs that are running or planned, by the number of their trial."""
    seen: frozenset[str] = frozenset()
    """Names of all parameters that any trial has."""

    @classmethod
    def of(
        cls,
        study: Study,
        space: SearchSpace,
        wants: Wants | None = None,
        use_pruned: bool = False,
        leave_out: int | None = None,
    ) -> "Trials":
        """Read the trials; those that lack a parameter of the search space are left out.

        Args:
            study: The study.
            space: The parameters of the designs.
            wants: What the sampler says of outcomes.
            use_pruned: Whether the last value of a pruned trial counts; otherwise it has failed.
            leave_out: Number of the trial that is just being created.
        """
        told: list[FinishedTrial] = []
        seen: set[str] = set()
        trials = Counted.of(study).told
        wanted = Wanted.of(study, trials, wants or Wants())
        for trial in trials:
            seen |= trial.distributions.keys()
            if trial.state.is_finished() and (design := _design(trial, space)):
                value = wanted.told(trial, use_pruned)
                told += [] if value == {} else [_told(trial, design, value)]
        pending = _pending(trials, space)
        if leave_out is not None:
            pending.pop(leave_out, None)
        return cls(space, wanted, told, pending, frozenset(seen))


def has_rival(
    study: Study,
    space: SearchSpace,
    design: Design,
    besides: Container[int],
) -> bool:
    """Return whether a design, or one near it, is pending in another trial.

    Args:
        study: The study.
        space: The parameters of the design.
        design: The design.
        besides: Numbers of trials to ignore.
    """
    pending = _pending(Counted.of(study).told, space).items()
    rivals = (d for n, d in pending if n not in besides)
    return any(space.space.distance(design, rival) < NEARBY for rival in rivals)


def _pending(trials: list[FrozenTrial], space: SearchSpace) -> dict[int, Design]:
    unfinished = (trial for trial in trials if not trial.state.is_finished())
    designs = ((trial.number, _design(trial, space)) for trial in unfinished)
    return {number: design for number, design in designs if design is not None}


def _design(trial: FrozenTrial, space: SearchSpace) -> Design | None:
    """Return the design of a trial; None if it does not count, or is not of this search space.

    A value of an experiment that was given up does count.
    """
    if GAVE_UP in trial.user_attrs and trial.state != TrialState.COMPLETE:
        return None
    design = space.design(trial.params)
    if not trial.state.is_finished():
        chosen = space.possible(trial.system_attrs.get(DESIGN, {}))
        design = chosen | space.design(trial.system_attrs.get(FIXED, {})) | design
    return design if space.is_whole(design) else None


def _told(trial: FrozenTrial, design: Design, value: Any) -> FinishedTrial:
    attributes = trial.user_attrs
    return FinishedTrial(
        trial,
        design,
        value,
        attributes.get(EXECUTED),
        attributes.get(UNCERTAINTY),
        value is None and bool(attributes.get(INFEASIBLE_DESIGN)),
    )
