"""Trials of a study, seen as the experiments of a campaign."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from airbo.integrations.optuna import EXECUTED, GAVE_UP, UNCERTAINTY
from airbo.integrations.optuna.counting import STAGED, Counted
from airbo.space import Design, Space

RUN = "airbo:run"
"""Trial attribute: the process that runs this experiment unattended."""

Outcome = Literal["pending", "ok", "failed", "given up"]


@dataclass(frozen=True)
class Experiment:
    """A design and what became of it."""

    number: int
    """What people call it by: the number of the trial that was asked or told first."""
    design: Design
    outcome: Outcome
    value: float | None = None
    executed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the executed input, where they were measured."""
    asked: datetime | None = None
    told: datetime | None = None
    uncertainty: Any = None
    """Description of what it was made under; None: not recorded."""
    run: Mapping[str, Any] | None = None
    """The process that runs it unattended."""
    trial: int = -1
    """Number of the trial that counts; another one after a correction."""
    trial_id: int = -1

    @property
    def is_pending(self) -> bool:
        """Whether somebody still has to answer."""
        return self.outcome == "pending"

    @property
    def has_outcome(self) -> bool:
        """Whether it was told, as a value or as failed."""
        return self.outcome in ("ok", "failed")

    def age(self, now: datetime | None = None) -> timedelta:
        """Return how long ago it was asked."""
        return elapsed(self.asked, now or datetime.now())


def elapsed(since: datetime | None, now: datetime) -> timedelta:
    """Return how long ago something was, also in the night when clocks are changed."""
    return timedelta(0) if since is None else now.astimezone(UTC) - since.astimezone(UTC)


@dataclass(frozen=True)
class Record:
    """All experiments, and what was left unfinished."""

    experiments: list[Experiment]
    unfinished_asks: list[FrozenTrial]
    """Trials without a whole design: somebody is choosing it, or was interrupted."""
    staged: list[FrozenTrial]
    """Rows of imports and corrections that were not committed."""

    def find(self, number: int) -> Experiment | None:
        """Return the experiment that people call ``number``."""
        return next((e for e in self.experiments if e.number == number), None)


def read_record(study: Study, space: Space) -> Record:
    """Sort the trials of a study."""
    counted = Counted.of(study)
    origins = {new: old for old, new in counted.replacements.items()}
    experiments, unfinished, staged = [], [], []
    for trial in counted.trials:
        if STAGED in trial.user_attrs and trial.state == TrialState.RUNNING:
            staged.append(trial)
        elif set(space.names) <= set(trial.params):
            experiments.append(_experiment(trial, _origin(trial.number, origins), space))
        elif not trial.state.is_finished() and GAVE_UP not in trial.user_attrs:
            unfinished.append(trial)
    experiments.sort(key=lambda e: e.number)
    return Record(experiments, unfinished, staged)


def _origin(number: int, origins: Mapping[int, int]) -> int:
    while number in origins:
        number = origins[number]
    return number


def _experiment(trial: FrozenTrial, number: int, space: Space) -> Experiment:
    outcome = _outcome(trial)
    return Experiment(
        number=number,
        design={name: trial.params[name] for name in space.names},
        outcome=outcome,
        value=trial.value if outcome == "ok" else None,
        executed=trial.user_attrs.get(EXECUTED) or {},
        asked=trial.datetime_start,
        told=trial.datetime_complete,
        uncertainty=trial.user_attrs.get(UNCERTAINTY),
        run=trial.user_attrs.get(RUN),
        trial=trial.number,
        trial_id=trial._trial_id,
    )


def _outcome(trial: FrozenTrial) -> Outcome:
    if trial.state == TrialState.COMPLETE:
        return "ok"
    if GAVE_UP in trial.user_attrs:
        return "given up"
    return "failed" if trial.state.is_finished() else "pending"
