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

Rows that were never committed are discarded.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from airbo.campaign.bulk import add_all, close_all
from airbo.campaign.errors import CampaignError
from airbo.campaign.experiment import Experiment, Record, elapsed, experiment_of, read_record
from airbo.campaign.outcome import Done, Outcome, Told
from airbo.integrations.optuna.attributes import EXECUTED, GAVE_UP, UNCERTAINTY
from airbo.integrations.optuna.counting import REPLACED, STAGED
from airbo.integrations.optuna.search_space import distributions_of
from airbo.space import Space

STALE = timedelta(minutes=10)
"""After this time, rows that were not committed belong to a process that is gone."""


@dataclass(frozen=True)
class Ledger:
    """Always reads experiments from the storage, and writes what becomes of them."""

    space: Space
    study: Study
    storage: BaseStorage

    # -- reading

    def record(self) -> Record:
        """Read all experiments; finish what somebody committed and could not finish."""
        record = read_record(self.study, self.space)
        left = [(t._trial_id, t.user_attrs[STAGED]["value"]) for t in record.to_finish]
        close_all(self.storage, left)
        return record

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
        if experiment.has_outcome and outcome.agrees(experiment, fully=outcome.correct):
            return Told(experiment, "already told")
        if not experiment.is_pending:
            return self._replace(outcome, experiment)
        try:
            return self._finish(outcome, experiment)
        except UpdateFinishedTrialError:  # somebody else was faster
            latest = replace(outcome, experiment=self.experiment(experiment.number))
            latest.check_free()
            return self.write(latest)

    def _add(self, outcome: Outcome) -> Told:
        state = TrialState.FAIL if outcome.value is None else TrialState.COMPLETE
        trial = self._trial(outcome, state, value=outcome.value)
        trial_id = self.storage.create_new_trial(self.study._study_id, trial)
        return Told(experiment_of(self.storage.get_trial(trial_id), self.space), "added")

    def _finish(self, outcome: Outcome, experiment: Experiment) -> Told:
        attributes = outcome.attributes
        if experiment.executed and not outcome.executed:
            attributes[EXECUTED] = {}  # of a report that was interrupted
        known = {UNCERTAINTY: experiment.uncertainty, EXECUTED: experiment.executed}
        for name, attribute in attributes.items():
            if attribute != known[name]:
                self.note(experiment.trial_id, name, attribute)
        self._close(experiment.trial_id, outcome.value)
        trial = self.storage.get_trial(experiment.trial_id)
        told = experiment_of(trial, self.space, experiment.number)
        if not outcome.agrees(told, fully=True):
            # the value is ours, and the measurement somebody else's, who was slower
            told = self.experiment(experiment.number)
            if told.trial_id == experiment.trial_id:
                told = self._replace(outcome, told).experiment
        return Told(told, "told")

    def _replace(self, outcome: Outcome, experiment: Experiment) -> Told:
        self.commit([outcome], f"{REPLACED}{experiment.trial}", {})
        done: Done = "told" if experiment.outcome == "given up" else "corrected"
        return Told(self.experiment(experiment.number), done)

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

    # -- several outcomes, all or none

    def commit(self, outcomes: Sequence[Outcome], key: str, mark: Mapping[str, Any]) -> list[int]:
        """Write outcomes, all or none; return the numbers of their trials.

        Args:
            outcomes: What is said.
            key: Attribute of the study that commits them; one that is there already is replaced.
            mark: What this attribute says, beside its token and the number of the first trial.
        """
        self._discard([t for t in self._staged() if t.user_attrs[STAGED]["key"] == key])
        token = uuid.uuid4().hex
        notes = [{"key": key, "token": token, "value": outcome.value} for outcome in outcomes]
        rows = [
            self._trial(outcome, TrialState.RUNNING, staged={STAGED: note})
            for outcome, note in zip(outcomes, notes, strict=True)
        ]
        add_all(self.storage, self.study._study_id, rows)
        mine = [t for t in self._staged() if t.user_attrs[STAGED]["token"] == token]
        if len(mine) < len(outcomes):
            self._discard(mine)
            raise CampaignError(
                "Another process wrote the same outcomes at the same time, so these were taken "
                "back; `airbo status` shows what counts."
            )
        numbers = sorted(t.number for t in mine)
        self.study.set_user_attr(key, {**mark, "token": token, "trial": numbers[0]})
        close_all(self.storage, [(t._trial_id, t.user_attrs[STAGED]["value"]) for t in mine])
        return numbers

    def discard_stale(self, record: Record, now: datetime) -> None:
        """Discard rows that were never committed and whose writer is gone."""
        self._discard([t for t in record.staged if elapsed(t.datetime_start, now) > STALE])

    def _discard(self, trials: Sequence[FrozenTrial]) -> None:
        """Take back rows that were not committed."""
        for trial in trials:
            try:
                self.note(trial._trial_id, GAVE_UP, True)
            except UpdateFinishedTrialError:
                continue  # somebody else took it back
            self._finish_row(trial, None)

    def _finish_row(self, trial: FrozenTrial, value: float | None) -> None:
        try:
            self._close(trial._trial_id, value)
        except UpdateFinishedTrialError:
            return  # somebody else finished it, with the same outcome

    def _trial(
        self,
        outcome: Outcome,
        state: TrialState,
        value: float | None = None,
        staged: Mapping[str, Any] | None = None,
    ) -> FrozenTrial:
        """Return a new trial that holds an outcome."""
        return create_trial(
            state=state,
            value=value,
            params=dict(outcome.design),
            distributions=distributions_of(self.space, outcome.design),
            user_attrs={**outcome.attributes, **(staged or {})},
        )
