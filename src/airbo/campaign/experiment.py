"""Trials of a study, seen as the experiments of a campaign; and where the campaign stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from optuna.trial import FrozenTrial, TrialState

from airbo.campaign.errors import CampaignError
from airbo.campaign.optuna.attributes import (
    EXECUTED,
    GAVE_UP,
    INFEASIBLE_DESIGN,
    STAMP,
    UNCERTAINTY,
    UNITS,
    outcomes_of,
)
from airbo.campaign.optuna.counting import NOTE, STAGED, Counted
from airbo.space import Design, Space

RUN = "airbo:run"
"""Trial attribute: the process that runs this experiment unattended."""

Stage = Literal["pending", "ok", "failed", "given up"]


@dataclass(frozen=True)
class Experiment:
    """A design and what became of it."""

    number: int
    """What people call it by: the number of the trial that was asked or told first."""
    design: Design
    outcome: Stage
    value: float | None = None
    executed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the executed input, where they were measured."""
    asked: datetime | None = None
    told: datetime | None = None
    uncertainty: Any = None
    """Description of what it was made under; None: not recorded."""
    outcomes: Mapping[str, float] = field(default_factory=dict)
    """Measured outcomes by name, where there are several."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units in which it was told, by the name of the outcome; that of ``value`` is ``value``."""
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""
    run: Mapping[str, Any] | None = None
    """The process that runs it unattended."""
    excluded: str | None = None
    """Why it is left out of the model; None if it is not."""
    notes: tuple[str, ...] = ()
    """What people wrote about it."""
    by: str | None = None
    """Who told it; None: not recorded."""
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

    @property
    def counts(self) -> bool:
        """Whether the model knows its outcome."""
        return self.has_outcome and self.excluded is None

    def measured(self, name: str) -> Mapping[str, float]:
        """Return what was measured, by name; a value that was told without one is of ``name``."""
        if self.outcomes or self.value is None:
            return self.outcomes
        return {name: self.value}

    def age(self, now: datetime | None = None) -> timedelta:
        """Return how long ago it was asked."""
        return elapsed(self.asked, now or datetime.now())


def elapsed(since: datetime | None, now: datetime) -> timedelta:
    """Return how long ago something was, even if clocks were changed in between."""
    return timedelta(0) if since is None else now.astimezone(UTC) - since.astimezone(UTC)


@dataclass(frozen=True)
class Record:
    """All experiments, and what was left unfinished."""

    experiments: list[Experiment]
    unfinished_asks: list[FrozenTrial]
    """Trials without a whole design: somebody is choosing it, or was interrupted."""
    staged: list[FrozenTrial]
    """Rows of imports and corrections that were not committed."""
    counted: Counted
    """What was read."""

    def named(self, name: str) -> "Record":
        """Give values that were told before outcomes had names the name of the first objective."""
        named = [replace(e, outcomes=e.measured(name)) for e in self.experiments]
        return replace(self, experiments=named)

    def get(self, number: int) -> Experiment:
        """Return the experiment that people call ``number``."""
        found = next((e for e in self.experiments if e.number == number), None)
        if found is None:
            numbers = [e.number for e in self.experiments if e.is_pending]
            pending = f"pending: {', '.join(map(str, numbers))}" if numbers else "none is pending"
            raise CampaignError(f"There is no experiment {number} ({pending}).")
        return found


def record_of(counted: Counted, space: Space) -> Record:
    """Sort the trials of a study."""
    record = Record([], [], [], counted)
    notes = notes_of(counted)
    for trial in counted.trials:
        if _is_staged(counted, trial):
            record.staged.append(trial)
        elif set(space.names) <= set(trial.params):
            number = counted.number(trial.number)
            found = experiment_of(trial, space, number)
            why = counted.excluded.get(number)
            record.experiments.append(replace(found, excluded=why, notes=notes.get(number, ())))
        elif not trial.state.is_finished() and GAVE_UP not in trial.user_attrs:
            record.unfinished_asks.append(trial)
    record.experiments.sort(key=lambda e: e.number)
    return record


def _is_staged(counted: Counted, trial: FrozenTrial) -> bool:
    unfinished = STAGED in trial.user_attrs and not trial.state.is_finished()
    return unfinished and not counted.is_committed(trial)


def notes_of(counted: Counted) -> dict[int, tuple[str, ...]]:
    """Return what people wrote, by the number of the experiment."""
    found: dict[int, tuple[str, ...]] = {}
    for change in counted.standing(NOTE):
        for number in change["numbers"]:
            found[number] = (*found.get(number, ()), change["text"])
    return found


def experiment_of(trial: FrozenTrial, space: Space, number: int | None = None) -> Experiment:
    """Return the experiment that a trial is; by default it is called by the trial's number."""
    outcome = _outcome(trial)
    is_known = outcome != "pending"
    stamp = trial.user_attrs.get(STAMP, {}) if is_known else {}
    return Experiment(
        number=trial.number if number is None else number,
        design={name: trial.params[name] for name in space.names},
        outcome=outcome,
        value=trial.value if outcome == "ok" else None,
        executed=_measured(trial, space),
        asked=trial.datetime_start,
        told=_local(stamp["told"]) if "told" in stamp else trial.datetime_complete,
        uncertainty=trial.user_attrs.get(UNCERTAINTY),
        outcomes=outcomes_of(trial) if outcome == "ok" else {},
        units=(trial.user_attrs.get(UNITS) or {}) if outcome == "ok" else {},
        infeasible=outcome == "failed" and bool(trial.user_attrs.get(INFEASIBLE_DESIGN)),
        run=trial.user_attrs.get(RUN),
        by=stamp.get("by"),
        trial=trial.number,
        trial_id=trial._trial_id,
    )


def _measured(trial: FrozenTrial, space: Space) -> Mapping[str, Any]:
    """Return the measured values; anything else under this name is ignored."""
    found = trial.user_attrs.get(EXECUTED)
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if name in space.names}


def _local(text: str) -> datetime:
    """Read a time as Optuna gives times: local ones."""
    return datetime.fromisoformat(text).astimezone().replace(tzinfo=None)


def _outcome(trial: FrozenTrial) -> Stage:
    if trial.state == TrialState.COMPLETE:
        return "ok"
    if GAVE_UP in trial.user_attrs:
        return "given up"
    if not trial.state.is_finished():
        return "pending"
    # a trial of Optuna has no value, where the first objective was not measured
    return "ok" if outcomes_of(trial) else "failed"


@dataclass(frozen=True)
class Status:
    """Where a campaign stands."""

    n_ok: int
    n_failed: int
    n_given_up: int
    n_excluded: int
    """Those among them that somebody excluded from the model."""
    pending: list[Experiment]
    overdue: list[Experiment]
    """Those of the pending ones that the next ask gives up."""
    best: Experiment | None
    """The experiment with the best observed value: the luckiest, not the recommended one."""
    notes: list[str]
    """What has changed in the file, and what was interrupted."""


def status_of(
    record: Record,
    sign: int,
    under: list[dict[str, Any]],
    overdue: list[Experiment],
    changes: list[str],
    several: bool = False,
) -> Status:
    """Count experiments and say what is unusual.

    Args:
        record: What the storage holds.
        sign: 1 if large values are good, -1 if small ones are.
        under: Description of the uncertainty that the file names.
        overdue: Pending experiments that the next ask gives up.
        changes: What else has changed in the file.
        several: Whether there are several outcomes, of which no single one says what is best.
    """
    outcomes = [e.outcome for e in record.experiments]
    ok = [e for e in record.experiments if e.outcome == "ok"]
    known = [e for e in ok if e.counts]
    return Status(
        n_ok=len(ok),
        n_failed=outcomes.count("failed"),
        n_given_up=outcomes.count("given up"),
        n_excluded=sum(e.excluded is not None for e in record.experiments),
        pending=[e for e in record.experiments if e.is_pending],
        overdue=overdue,
        best=None if several else max(known, key=lambda e: sign * (e.value or 0.0), default=None),
        notes=[
            *_about_uncertainty(under, record),
            *changes,
            *_about_interruptions(record),
        ],
    )


def _about_uncertainty(now: list[dict[str, Any]], record: Record) -> list[str]:
    others = [
        e.number
        for e in record.experiments
        if e.outcome != "given up" and e.uncertainty is not None and e.uncertainty != now
    ]
    if not others:
        return []
    were = "experiment was" if len(others) == 1 else "experiments were"
    return [
        f"{len(others)} {were} made under another uncertainty than the file says now "
        f"({_numbers(others)}); each keeps its own, and the model uses that."
    ]


def _about_interruptions(record: Record) -> list[str]:
    notes = []
    if record.unfinished_asks:
        numbers = _numbers([t.number for t in record.unfinished_asks])
        notes.append(f"A design is being chosen, or an ask was interrupted ({numbers}).")
    if record.staged:
        notes.append(
            f"An import of {len(record.staged)} or more rows is under way, or was interrupted: "
            "its rows do not count. Import the file again to complete it."
        )
    return notes


def _numbers(numbers: Sequence[int], most: int = 6) -> str:
    shown = ", ".join(map(str, numbers[:most]))
    return f"{shown}, ..." if len(numbers) > most else shown
