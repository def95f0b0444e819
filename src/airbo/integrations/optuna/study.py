"""A study in plain values, for programs that take it over from Optuna."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from airbo.integrations.optuna.search_space import SearchSpace
from airbo.integrations.optuna.trials import (
    CONSTRAINT,
    FIXED,
    GAVE_UP,
    UNCERTAINTY,
    executed_of,
    outcomes_of,
    uncertainty_of,
    value_names,
)

State = Literal["told", "failed", "abandoned", "pending"]


@dataclass(frozen=True)
class StudyTrial:
    """One trial."""

    number: int
    design: dict[str, Any]
    state: State
    """``failed``: it measured nothing; ``abandoned``: it was not run."""
    values: tuple[float | None, ...] = ()
    """Values of the objectives, in the order of the study; empty if it has none."""
    outcomes: dict[str, float] = field(default_factory=dict)
    """What else was measured, by name, constraints among it."""
    executed: dict[str, Any] = field(default_factory=dict)
    """The measured part of the executed input."""
    uncertainty: list[dict[str, Any]] | None = None
    """Its own uncertainty, as ``describe_uncertainty`` writes it; None: that of all trials."""
    asked: datetime | None = None
    told: datetime | None = None


def read_study(url: str, name: str) -> list[StudyTrial]:
    """Return the trials of a study that have parameters, in the order of their numbers.

    Args:
        url: The storage as for ``optuna.load_study``, or ``journal:///file`` for a journal.
        name: The name of the study.

    Raises:
        ValueError: If there is no such study, or a trial has a user attribute that cannot be used.
    """
    try:
        study = optuna.load_study(study_name=name, storage=_storage(url))
        trials = study.get_trials(deepcopy=False)
    except KeyError:
        raise ValueError(f"There is no study {name!r} in {_shown(url)}.") from None
    except (OptunaError, SQLAlchemyError, OSError, RuntimeError, ImportError) as error:
        reason = str(error.__cause__ or error).partition("\n")[0]
        raise ValueError(f"The storage {_shown(url)} cannot be read: {reason}") from None
    return [_plain(trial) for trial in trials if trial.params or FIXED in trial.system_attrs]


def _storage(url: str) -> BaseStorage:
    """Open a storage that exists: Optuna would create one."""
    kind, _, place = url.partition("://")
    if not place:
        raise ValueError(f"A storage is written like sqlite:///study.db, got {url!r}.")
    is_journal, is_sqlite = kind == "journal", kind.startswith("sqlite")
    path = place.removeprefix("/") if is_journal else make_url(url).database or ""
    if (is_journal or is_sqlite) and not Path(path).is_file():
        raise ValueError(f"There is no file {path}.")
    return JournalStorage(JournalFileBackend(path)) if is_journal else RDBStorage(url)


def _shown(url: str) -> str:
    """Write a storage without its password."""
    return url if url.startswith("journal:") else make_url(url).render_as_string(hide_password=True)


def _plain(trial: FrozenTrial) -> StudyTrial:
    try:
        executed = executed_of(trial)
        uncertainty_of(trial, SearchSpace.of(trial.distributions).with_choice())
    except ValueError as error:
        raise ValueError(f"Trial {trial.number}: {error}") from error
    names = value_names(len(trial.values or []))
    measured = outcomes_of(trial, names)
    values = tuple(measured.pop(name, None) for name in names)
    known = any(value is not None for value in values)
    return StudyTrial(
        trial.number,
        {**trial.system_attrs.get(FIXED, {}), **trial.params},
        _state(trial, known or bool(measured)),
        values if known else (),
        {name.removeprefix(CONSTRAINT): value for name, value in measured.items()},
        executed,
        trial.user_attrs.get(UNCERTAINTY),
        _utc(trial.datetime_start),
        _utc(trial.datetime_complete),
    )


def _state(trial: FrozenTrial, is_measured: bool) -> State:
    if is_measured and trial.state.is_finished():
        return "told"
    if GAVE_UP in trial.user_attrs:
        return "abandoned"
    return "failed" if trial.state.is_finished() else "pending"


def _utc(moment: datetime | None) -> datetime | None:
    """Optuna writes the time on the wall."""
    return None if moment is None else moment.astimezone(UTC)
