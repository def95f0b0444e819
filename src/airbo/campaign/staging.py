"""Several outcomes that count together or not at all, whenever the process is killed.

1. Every row becomes a running trial that holds its outcome as an attribute: to everybody else a
   pending design, without a value.
2. One attribute of the study commits them all: from then on they count, whatever else happens.
3. The trials are finished, each with the outcome that it holds. Whoever opens the campaign next
   does so too, if the process that began was killed.

Rows that were never committed are discarded.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import optuna
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from airbo.campaign.errors import CampaignError
from airbo.campaign.experiments import elapsed
from airbo.integrations.optuna import GAVE_UP
from airbo.integrations.optuna.counting import STAGED, is_committed
from airbo.space import Design

STALE = timedelta(minutes=10)
"""After this time, rows that were not committed belong to a process that is gone."""


@dataclass(frozen=True)
class Row:
    """One outcome to be written."""

    design: Design
    distributions: Mapping[str, BaseDistribution]
    """What the design was chosen from; wide enough to hold it."""
    value: float | None
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Ledger:
    """Writes outcomes that belong together."""

    study: Study
    storage: BaseStorage

    def write(self, rows: Sequence[Row], key: str, mark: Mapping[str, Any]) -> list[int]:
        """Write outcomes, all or none; return the numbers of their trials.

        Args:
            rows: The outcomes.
            key: Attribute of the study that commits them; one that is there already is replaced.
            mark: What this attribute says, beside its token and the number of the first trial.
        """
        self.discard([t for t in self.staged() if t.user_attrs[STAGED]["key"] == key])
        token = uuid.uuid4().hex
        for row in rows:
            self._stage(row, key, token)
        mine = [t for t in self.staged() if t.user_attrs[STAGED]["token"] == token]
        if len(mine) < len(rows):
            self.discard(mine)
            raise CampaignError(
                "Another process wrote the same outcomes at the same time, so these were taken "
                "back; `airbo status` shows what counts."
            )
        numbers = sorted(t.number for t in mine)
        self.study.set_user_attr(key, {**mark, "token": token, "trial": numbers[0]})
        self.finish_committed()
        return numbers

    def _stage(self, row: Row, key: str, token: str) -> None:
        note = {"key": key, "token": token, "value": row.value}
        self.study.add_trial(
            create_trial(
                state=TrialState.RUNNING,
                params=dict(row.design),
                distributions=dict(row.distributions),
                user_attrs={**row.attributes, STAGED: note},
            )
        )

    def staged(self) -> list[FrozenTrial]:
        """Return rows that are not finished."""
        running = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return [t for t in running if STAGED in t.user_attrs]

    def finish_committed(self) -> None:
        """Finish the rows of all batches that were committed."""
        rows = self.staged()
        if not rows:
            return
        marks = self.study.user_attrs
        for trial in rows:
            if is_committed(trial, marks):
                self._finish(trial, trial.user_attrs[STAGED]["value"])

    def discard_stale(self, now: datetime) -> None:
        """Discard rows that were never committed and whose writer is gone."""
        self.discard([t for t in self.staged() if elapsed(t.datetime_start, now) > STALE])

    def discard(self, trials: Sequence[FrozenTrial]) -> None:
        """Take back rows that were not committed."""
        for trial in trials:
            try:
                self.storage.set_trial_user_attr(trial._trial_id, GAVE_UP, True)
            except optuna.exceptions.UpdateFinishedTrialError:
                continue  # somebody else took it back
            self._finish(trial, None)

    def _finish(self, trial: FrozenTrial, value: float | None) -> None:
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        values = None if value is None else [value]
        try:
            self.storage.set_trial_state_values(trial._trial_id, state, values)
        except optuna.exceptions.UpdateFinishedTrialError:
            return  # somebody else finished it, with the same outcome
