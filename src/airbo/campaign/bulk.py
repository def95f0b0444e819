"""Many trials at once: Optuna writes each on its own, which takes minutes for thousands of rows.

A database gets all of them in one transaction, a journal in one piece.
"""

import json
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages._rdb import models
from optuna.storages._rdb.storage import _create_scoped_session
from optuna.storages.journal._storage import JournalOperation
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from airbo.campaign.sqlite import SQLiteStorage

Closed = tuple[int, float | None]
"""The id of a trial, and the value that it gave; None: it failed."""

_FEW = 10
"""Up to this many rows, Optuna's own way is as fast."""
_AT_ONCE = 500
"""Ids per query: databases limit their number."""


def add_all(storage: BaseStorage, study_id: int, trials: Sequence[FrozenTrial]) -> None:
    """Add running trials to a study."""
    backend = getattr(storage, "_backend", None)  # what Optuna's cache is in front of
    if len(trials) > _FEW and isinstance(storage, JournalStorage):
        _append(storage, [_created(study_id, trial) for trial in trials])
    elif len(trials) > _FEW and isinstance(backend, RDBStorage):
        with _changing(backend), _create_scoped_session(backend.scoped_session) as session:
            _insert(session, study_id, trials)
    else:
        for trial in trials:
            storage.create_new_trial(study_id, trial)


def close_all(storage: BaseStorage, closed: Sequence[Closed]) -> None:
    """Close running trials; those that somebody else has closed stay as they are."""
    backend = getattr(storage, "_backend", None)
    if len(closed) > _FEW and isinstance(storage, JournalStorage):
        _append(storage, [_finished(trial_id, value) for trial_id, value in closed])
    elif len(closed) > _FEW and isinstance(backend, RDBStorage):
        with _changing(backend), _create_scoped_session(backend.scoped_session) as session:
            for i in range(0, len(closed), _AT_ONCE):
                _close(session, dict(closed[i : i + _AT_ONCE]))
    else:
        for trial_id, value in closed:
            with suppress(UpdateFinishedTrialError):
                values = None if value is None else [value]
                storage.set_trial_state_values(trial_id, _state(value), values)


def _state(value: float | None) -> TrialState:
    return TrialState.FAIL if value is None else TrialState.COMPLETE


# -- a database


def _changing(backend: RDBStorage) -> Any:
    """SQLite has to be told that a transaction writes before it reads."""
    return backend.change() if isinstance(backend, SQLiteStorage) else nullcontext()


def _insert(session: Session, study_id: int, trials: Sequence[FrozenTrial]) -> None:
    models.StudyModel.find_or_raise_by_id(study_id, session, for_update=True)
    of_study = models.TrialModel.study_id == study_id
    n_before = session.scalar(select(func.count()).where(of_study)) or 0
    rows = [
        models.TrialModel(
            study_id=study_id,
            number=n_before + i,
            state=trial.state,
            datetime_start=trial.datetime_start,
        )
        for i, trial in enumerate(trials)
    ]
    session.add_all(rows)
    session.flush()  # gives them their ids
    written = _Written()
    with_ids = list(zip((row.trial_id for row in rows), trials, strict=True))
    parameters = [
        {
            "trial_id": trial_id,
            "param_name": name,
            "param_value": trial.distributions[name].to_internal_repr(value),
            "distribution_json": written.json_of(trial.distributions[name]),
        }
        for trial_id, trial in with_ids
        for name, value in trial.params.items()
    ]
    attributes = [
        {"trial_id": trial_id, "key": key, "value_json": json.dumps(value)}
        for trial_id, trial in with_ids
        for key, value in trial.user_attrs.items()
    ]
    if parameters:
        session.execute(insert(models.TrialParamModel), parameters)
    if attributes:
        session.execute(insert(models.TrialUserAttributeModel), attributes)


def _close(session: Session, closed: dict[int, float | None]) -> None:
    trial = models.TrialModel
    running = select(trial.trial_id).where(
        trial.trial_id.in_(closed), trial.state == TrialState.RUNNING
    )
    ours = list(session.scalars(running.with_for_update()))
    values = [
        {
            "trial_id": trial_id,
            "objective": 0,
            "value": stored,
            "value_type": kind,
        }
        for trial_id in ours
        if (value := closed[trial_id]) is not None
        for stored, kind in [models.TrialValueModel.value_to_stored_repr(value)]
    ]
    if values:
        session.execute(insert(models.TrialValueModel), values)
    now = datetime.now(UTC).replace(tzinfo=None)  # as Optuna keeps times
    for state in (TrialState.COMPLETE, TrialState.FAIL):
        own = [trial_id for trial_id in ours if _state(closed[trial_id]) == state]
        if own:
            changed = {"state": state, "_datetime_complete_utc": now}
            session.execute(update(trial).where(trial.trial_id.in_(own)).values(changed))


class _Written:
    """Distributions as JSON; thousands of rows share a few."""

    def __init__(self) -> None:
        self._known: list[tuple[BaseDistribution, str]] = []

    def json_of(self, distribution: BaseDistribution) -> str:
        for known, text in self._known:
            if known == distribution:
                return text
        text = distribution_to_json(distribution)
        if len(self._known) < 100:
            self._known.append((distribution, text))
        return text


# -- a journal


def _append(storage: JournalStorage, logs: Sequence[dict[str, Any]]) -> None:
    with storage._thread_lock:
        worker = storage._replay_result.worker_id
        storage._backend.append_logs([{**log, "worker_id": worker} for log in logs])
        while True:
            try:
                storage._sync_with_backend()
            except UpdateFinishedTrialError:
                continue  # somebody else closed one of them; the lines after it are still to read
            return


def _created(study_id: int, trial: FrozenTrial) -> dict[str, Any]:
    internal = {
        name: trial.distributions[name].to_internal_repr(value)
        for name, value in trial.params.items()
    }
    start = trial.datetime_start
    return {
        "op_code": JournalOperation.CREATE_TRIAL,
        "study_id": study_id,
        "datetime_start": None if start is None else _utc(start),
        "state": trial.state,
        "value": None,
        "values": None,
        "distributions": {n: distribution_to_json(d) for n, d in trial.distributions.items()},
        "params": internal,
        "user_attrs": trial.user_attrs,
        "system_attrs": {},
        "intermediate_values": {},
    }


def _finished(trial_id: int, value: float | None) -> dict[str, Any]:
    return {
        "op_code": JournalOperation.SET_TRIAL_STATE_VALUES,
        "trial_id": trial_id,
        "state": _state(value),
        "values": None if value is None else [value],
        "datetime_complete": _utc(datetime.now()),
    }


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
