"""The ledger of a campaign: its experiments, as the storage holds them, and how they get there.

A finished trial cannot be changed. Outcomes that belong together, or that replace others, are
therefore written in steps, so that they count together or not at all, whenever the process is
killed:

1. Every outcome becomes a running trial that holds it as an attribute: to everybody else a pending
   design, without a value.
2. One attribute of the study, the mark, commits them all: from then on they count, whatever else
   happens.
3. The trials are finished, each with the outcome that it holds. Whoever reads the campaign next
   does so too, if the process that began was killed.

Rows that were never committed are discarded. A change without rows, such as a note or an exclusion,
is a mark alone. An undo names what it takes back. Where an experiment becomes pending again, a new
pending trial stands in for the one that was told.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from airbo.campaign.bulk import add_all, close_all
from airbo.campaign.errors import CampaignError
from airbo.campaign.experiment import (
    Experiment,
    Record,
    Stage,
    elapsed,
    experiment_of,
    record_of,
)
from airbo.campaign.history import in_short
from airbo.campaign.optuna.attributes import EXECUTED, GAVE_UP, STAMP, UNCERTAINTY
from airbo.campaign.optuna.counting import (
    CHANGE,
    CORRECT,
    GIVEN_UP,
    PENDING,
    STAGED,
    UNDO,
    Counted,
)
from airbo.campaign.optuna.search_space import distributions_of
from airbo.campaign.outcome import Done, Outcome, Told
from airbo.space import Design, Space

STALE = timedelta(minutes=10)
"""After this time, rows that were not committed belong to a process that is gone."""

Mark = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A trial to be written, that counts with a mark."""

    design: Design
    attributes: Mapping[str, Any]
    outcome: Stage
    value: float | None = None
    asked: datetime | None = None
    """When its experiment was asked for; None: now."""

    @classmethod
    def of(cls, outcome: Outcome, asked: datetime | None = None) -> "Row":
        """Hold an outcome."""
        return cls(outcome.design, outcome.attributes, outcome.outcome, outcome.value, asked)

    @property
    def note(self) -> dict[str, Any]:
        """What the trial says of its outcome."""
        said = {"outcome": self.outcome} if self.outcome in (PENDING, GIVEN_UP) else {}
        return {"value": self.value, **said}


@dataclass(frozen=True)
class Ledger:
    """Always reads experiments from the storage, and writes what becomes of them."""

    space: Space
    study: Study
    storage: BaseStorage

    # -- reading

    def record(self) -> Record:
        """Read all experiments; finish what somebody committed and could not finish."""
        counted = Counted.of(self.study)
        self._finish_rows(counted.to_finish)
        for trial in counted.left_over:
            self.give_up(trial._trial_id)
        return record_of(counted, self.space)

    def experiment(self, number: int) -> Experiment:
        """Read the experiment with a number."""
        return self.record().get(number)

    def _staged(self) -> list[FrozenTrial]:
        """Read the rows that are not finished."""
        running = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return [t for t in running if STAGED in t.user_attrs]

    # -- one outcome

    def write(self, outcome: Outcome) -> Told:
        """Write an outcome; the same one twice counts once."""
        experiment = outcome.experiment
        if experiment is None:
            return self._add(outcome)
        if not experiment.is_pending and outcome.agrees(experiment, fully=outcome.correct):
            return Told(experiment, "already told")
        if not experiment.is_pending or outcome.moves:
            return self._replace(outcome, experiment)
        try:
            return self._finish(outcome, experiment)
        except UpdateFinishedTrialError:  # somebody else was faster
            return self._write_after_another(outcome, experiment)

    def _write_after_another(self, outcome: Outcome, experiment: Experiment) -> Told:
        latest = replace(outcome, experiment=self.experiment(experiment.number))
        latest.check_free()
        return self.write(latest)

    def _add(self, outcome: Outcome) -> Told:
        state = TrialState.FAIL if outcome.value is None else TrialState.COMPLETE
        trial = self._trial(Row.of(outcome), state)
        trial_id = self.storage.create_new_trial(self.study._study_id, trial)
        return Told(experiment_of(self.storage.get_trial(trial_id), self.space), "added")

    def _finish(self, outcome: Outcome, experiment: Experiment) -> Told:
        self._write_attributes(outcome, experiment)
        if outcome.gave_up:
            self.note(experiment.trial_id, GAVE_UP, True)
        self._close(experiment.trial_id, outcome.value)
        trial = self.storage.get_trial(experiment.trial_id)
        told = experiment_of(trial, self.space, experiment.number)
        told = replace(told, excluded=experiment.excluded, notes=experiment.notes)
        theirs = trial.user_attrs.get(STAMP, {}).get("call") != outcome.stamp.get("call")
        if theirs or not outcome.agrees(told, fully=True):
            # the value is ours, and the measurement or the name somebody else's, who was slower
            told = self.experiment(experiment.number)
            if told.trial_id == experiment.trial_id:
                told = self._replace(outcome, told).experiment
        return Told(told, "told")

    def _write_attributes(self, outcome: Outcome, experiment: Experiment) -> None:
        attributes = outcome.attributes
        if experiment.executed and not outcome.executed:
            attributes[EXECUTED] = {}  # of a report that was interrupted
        under = experiment.uncertainty
        if under is not None and under != attributes[UNCERTAINTY]:
            attributes[STAMP] = {**attributes.get(STAMP, {}), "asked_under": under}
        known = {UNCERTAINTY: under, EXECUTED: experiment.executed}
        for name, attribute in attributes.items():
            if attribute != known.get(name):
                self.note(experiment.trial_id, name, attribute)

    def _replace(self, outcome: Outcome, experiment: Experiment) -> Told:
        """Let another trial count in the place of one that has an outcome, or another design."""
        kept = {"told": _utc(experiment.told)} if experiment.has_outcome else {}
        ours = replace(outcome, stamp={**outcome.stamp, **kept})
        token = self.change(
            CORRECT,
            outcome.stamp,
            [experiment.number],
            [Row.of(ours, experiment.asked)],
            [experiment.trial],
            was=experiment.outcome,
        )
        if experiment.is_pending and not self.give_up(experiment.trial_id):
            self._check_not_told(experiment, outcome, token)
        done: Done = "corrected" if experiment.has_outcome else "told"
        return Told(self.experiment(experiment.number), done, experiment)

    def _check_not_told(self, experiment: Experiment, outcome: Outcome, token: str) -> None:
        """Take back what replaced a pending experiment if somebody has told it meanwhile."""
        trial = self.storage.get_trial(experiment.trial_id)
        theirs = experiment_of(trial, self.space, experiment.number)
        if not theirs.has_outcome:
            return  # closed, because ours counts
        try:
            replace(outcome, experiment=theirs).check_free()
        except CampaignError:
            self.change(UNDO, outcome.stamp, [experiment.number], of=[token])
            raise

    def note(self, trial_id: int, name: str, value: Any) -> None:
        """Write an attribute of a trial."""
        self.storage.set_trial_user_attr(trial_id, name, value)

    def give_up(self, trial_id: int) -> bool:
        """Close a trial that nobody will do; False if somebody else has closed it."""
        try:
            self.note(trial_id, GAVE_UP, True)
            self._close(trial_id, None)
        except UpdateFinishedTrialError:
            return False
        return True

    def _close(self, trial_id: int, value: float | None) -> None:
        """Close a trial, with the value that it gave or without one.

        Raises:
            UpdateFinishedTrialError: If somebody else was faster.
        """
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        values = None if value is None else [value]
        if not self.storage.set_trial_state_values(trial_id, state, values):
            raise UpdateFinishedTrialError(f"Trial {trial_id} is being finished elsewhere.")

    # -- changes

    def change(
        self,
        what: str,
        stamp: Mapping[str, Any],
        numbers: Sequence[int],
        rows: Sequence[Row] = (),
        replaces: Sequence[int] = (),
        **said: Any,
    ) -> str:
        """Write a change, with one mark: it counts whole, or not at all; return its token.

        Args:
            what: A correction, an undo, an exclusion, a note.
            stamp: Who makes it, and when.
            numbers: The experiments that it is about.
            rows: Trials that count with it.
            replaces: Numbers of the trials that they stand in for, in the same order; those that
                are left over are taken away.
            **said: What else is to be remembered.
        """
        token = uuid.uuid4().hex
        key = f"{CHANGE}{in_short(numbers)[:200]}:{token}"

        def mark(new: Sequence[int | None]) -> Mark:
            stand_ins = [*new, *[None] * (len(replaces) - len(new))]
            pairs = [list(pair) for pair in zip(replaces, stand_ins, strict=True)]
            common = {"what": what, "numbers": list(numbers), "replaces": pairs}
            return {**common, **stamp, **said}

        self.commit(rows, key, mark, token)
        return token

    # -- several rows, all or none

    def commit(
        self,
        rows: Sequence[Row],
        key: str,
        mark: Callable[[list[int]], Mark],
        token: str | None = None,
    ) -> list[int]:
        """Write rows, all or none; return the numbers of their trials.

        Args:
            rows: What is said.
            key: Attribute of the study that commits them.
            mark: What this attribute says, given the numbers, beside its token and the first one.
            token: What tells this mark from all others; None: a new one.
        """
        token = token or uuid.uuid4().hex
        mine = self._stage(rows, key, token) if rows else []
        numbers = sorted(t.number for t in mine)
        first = {"trial": numbers[0]} if numbers else {}
        self.study.set_user_attr(key, {**mark(numbers), **first, "token": token})
        self._finish_rows(mine)
        return numbers

    def _stage(self, rows: Sequence[Row], key: str, token: str) -> list[FrozenTrial]:
        self._discard([t for t in self._staged() if _is_left(t, key)])
        at = datetime.now(UTC).isoformat()
        notes = [{"key": key, "token": token, "at": at, **row.note} for row in rows]
        staged = [
            self._trial(row, TrialState.RUNNING, {STAGED: note})
            for row, note in zip(rows, notes, strict=True)
        ]
        add_all(self.storage, self.study._study_id, staged)
        mine = [t for t in self._staged() if t.user_attrs[STAGED]["token"] == token]
        if len(mine) < len(rows):
            self._discard(mine)
            raise CampaignError(
                "Another process wrote the same outcomes at the same time, so these were taken "
                "back; `airbo status` shows what counts."
            )
        return mine

    def discard_stale(self, record: Record, now: datetime) -> None:
        """Discard rows that were never committed and whose writer is gone."""
        self._discard([t for t in record.staged if elapsed(_staged_at(t), now) > STALE])

    def _discard(self, trials: Sequence[FrozenTrial]) -> None:
        """Take back rows that were not committed."""
        for trial in trials:
            self.give_up(trial._trial_id)

    def _finish_rows(self, trials: Sequence[FrozenTrial]) -> None:
        """Finish rows as their notes say; who else did so wrote the same."""
        notes = [(trial._trial_id, trial.user_attrs[STAGED]) for trial in trials]
        for trial_id, note in notes:
            if note.get("outcome") == GIVEN_UP:
                self.give_up(trial_id)
        told = [(i, note["value"]) for i, note in notes if "outcome" not in note]
        close_all(self.storage, told)

    def _trial(
        self, row: Row, state: TrialState, staged: Mapping[str, Any] | None = None
    ) -> FrozenTrial:
        """Return a new trial that holds a row."""
        trial = create_trial(
            state=state,
            value=row.value if state == TrialState.COMPLETE else None,
            params=dict(row.design),
            distributions=distributions_of(self.space, row.design),
            user_attrs={**row.attributes, **(staged or {})},
        )
        if row.asked is not None:
            trial.datetime_start = row.asked
        return trial


def _is_left(trial: FrozenTrial, key: str) -> bool:
    """Say whether a row was staged for the same mark before."""
    note = trial.user_attrs[STAGED]
    return bool(note["key"] == key) and note.get("outcome") != PENDING


def _staged_at(trial: FrozenTrial) -> datetime | None:
    at = trial.user_attrs[STAGED].get("at")
    return trial.datetime_start if at is None else datetime.fromisoformat(at)


def _utc(local: datetime | None) -> str | None:
    return None if local is None else local.astimezone(UTC).isoformat()
