"""The trials of a study: what each one measured, under which uncertainty, and what is pending.

A trial says more than its values in user attributes: the executed input where it was measured, its
own uncertainty, further outcomes.
"""

import logging
import math
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from airbo.integrations.optuna.search_space import SearchSpace
from airbo.measures import Measure
from airbo.observed import is_usable
from airbo.optimizer import Optimizer
from airbo.optimizer.search import NEARBY
from airbo.outcomes import MAX_OBJECTIVES, AtMost, Maximize, Minimize, Want, objectives
from airbo.space import Design
from airbo.space.parameters import Environment
from airbo.uncertainty.in_cube import ByName, by_columns
from airbo.uncertainty.kinds import group, read_uncertainty
from airbo.words import nearest

EXECUTED = "executed"
"""User attribute of a trial: the measured parameters of the executed input, and of the environment,
by name."""
GIVEN = "given"
"""User attribute of an enqueued trial: what is known beforehand of the environment, by name."""
UNCERTAINTY = "airbo:uncertainty"
"""User attribute of a trial: its uncertainty, if it differs from the sampler's."""
OUTCOMES = "outcomes"
"""User attribute of a trial: measured outcomes by name, beyond the values of its objectives."""
GAVE_UP = "airbo:gave_up"
"""User attribute of a trial that was not run: it says nothing about its design."""
CONSTRAINT = "constraint:"
"""Prefix of the name of an outcome that is a constraint of Optuna."""

_CHOSEN = "airbo:chosen:"
"""Prefix of user attributes of a study: parameters that were chosen and are not suggested yet."""
_N_CHOSEN = 64
"""Number of these attributes. They are reused, so that a long study does not fill up with them."""
FIXED = "fixed_params"
"""System attribute in which Optuna keeps the parameters of enqueued trials."""

_logger = logging.getLogger(__name__)


# -- what one trial says


def within(uncertainty: ByName, names: Collection[str]) -> ByName:
    """Keep the uncertainties of the named parameters only.

    Raises:
        ValueError: If ``names`` holds a part of a group.
    """
    for own in map(group, uncertainty):
        missing = [name for name in own if name not in names]
        if missing and len(missing) < len(own):
            raise ValueError(
                f"The parameters {list(own)} have a joint uncertainty, but the model cannot choose "
                f"{missing} together with the others: either it has only one value, or not every "
                "complete trial has it with the same range."
            )
    return {own: u for own, u in uncertainty.items() if group(own)[0] in names}


def executed_of(
    trial: FrozenTrial,
    environment: Mapping[str, Environment] | None = None,
    attribute: str = EXECUTED,
) -> dict[str, Any]:
    """Return the measured parameters of the executed input; None, NaN and inf are left out.

    Args:
        trial: The trial.
        environment: What no trial sets, by name, which may have been measured, too.
        attribute: The user attribute that holds them.

    Raises:
        ValueError: If it is not a dict of numbers by name, or out of bounds.
    """
    measured = trial.user_attrs.get(attribute, {})
    where = f"User attribute {attribute!r}:"
    if not isinstance(measured, Mapping):
        raise ValueError(f"{where} expected a dict of numbers by name, got {measured!r}.")
    environment = environment or {}
    known = [*trial.params, *environment] if attribute == EXECUTED else [*environment]
    for name, value in measured.items():
        if name not in known:
            raise ValueError(f"{where} unknown parameter {name!r}; there are {known}.")
        is_choice = isinstance(trial.distributions.get(name), CategoricalDistribution)
        if not (is_choice or value is None or _is_number(value)):
            raise ValueError(f"{where} {name!r} must be a number, got {value!r}.")
    found = {
        name: value
        for name, value in measured.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }
    for name, around in environment.items():
        if not around.low <= found.get(name, around.low) <= around.high:
            ends = f"{around.low:g} and {around.high:g}"
            raise ValueError(f"{where} {name!r} is {found[name]:g}, but its bounds are {ends}.")
    return found


def given_of(trial: FrozenTrial, space: SearchSpace) -> dict[str, Any]:
    """Return what was known of the environment of a trial before it ran."""
    return executed_of(trial, space.environment, GIVEN)


def measured_in(trial: FrozenTrial, space: SearchSpace) -> dict[str, Any]:
    """Return what is known of where a trial landed, and of its environment."""
    known = given_of(trial, space) | executed_of(trial, space.environment)
    around = {name: value for name, value in known.items() if name in space.environment}
    return space.design(known) | around


def uncertainty_of(trial: FrozenTrial, space: SearchSpace) -> ByName | None:
    """Return the trial's own uncertainty of the parameters of a space; None: it has none.

    Raises:
        ValueError: If it is not an uncertainty of this space.
    """
    description = trial.user_attrs.get(UNCERTAINTY)
    if description is None:
        return None
    try:
        own = within(read_uncertainty(description), space.distributions)
        by_columns(space.space, own)
    except ValueError as error:
        raise ValueError(f"User attribute {UNCERTAINTY!r}: {error}") from error
    return own


def outcomes_of(trial: FrozenTrial, names: Sequence[str]) -> dict[str, float]:
    """Return all that a trial measured, by name; ``names`` are those of its values.

    A trial that failed may have set constraints, or measured other outcomes, before it failed.
    """
    values = (trial.values or []) if trial.state == TrialState.COMPLETE else []
    others = trial.user_attrs.get(OUTCOMES)
    others = others if isinstance(others, Mapping) else {}
    found = {
        **dict(zip(names, values, strict=False)),
        **{CONSTRAINT + key: value for key, value in trial.constraints.items()},
        **{name: value for name, value in others.items() if _is_number(value)},
    }
    return {name: value for name, value in found.items() if is_usable(value)}


def odd_outcomes(trial: FrozenTrial, known: Collection[str]) -> dict[str, str]:
    """Say by name what of the user attribute with outcomes cannot be used."""
    found = trial.user_attrs.get(OUTCOMES, {})
    if not isinstance(found, Mapping):
        return {"": f"expected a dict of numbers by name, got {found!r}."}
    unknown = {n: f"unknown outcome {n!r}{nearest(n, known)}" for n in found if n not in known}
    odd = {n: v for n, v in found.items() if v is not None and not _is_number(v)}
    return {n: f"{n!r} must be a number, got {v!r}." for n, v in odd.items()} | unknown


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial, which nobody can change any more."""

    trial: FrozenTrial
    design: Design
    outcomes: dict[str, float] | None
    """What it measured; None if the experiment failed."""

    def tell(self, optimizer: Optimizer, space: SearchSpace) -> None:
        """Report the trial to an optimizer.

        A user attribute that cannot be used is left out with a warning, because a finished trial
        can no longer be corrected.
        """
        usable: list[Any] = [None, None]
        for i, (read, without) in enumerate(_READ):
            try:
                usable[i] = read(self.trial, space)
            except ValueError as error:
                number = self.trial.number
                _logger.warning("Trial %d: %s airbo uses it as if %s.", number, error, without)
        executed, under = usable
        try:
            optimizer.tell(self.design, self.outcomes, executed, under, allow_outside=True)
        except ValueError as error:
            _logger.warning("Trial %d: %s airbo counts it as failed.", self.trial.number, error)
            optimizer.tell(self.design, None, allow_outside=True)


_READ: Sequence[tuple[Callable[[FrozenTrial, SearchSpace], Any], str]] = (
    (measured_in, "nothing had been measured"),
    (uncertainty_of, "it had no uncertainty of its own"),
)
"""What a finished trial says of itself, and what is assumed where it cannot be used."""


# -- what a study wants, and what it knows


def study_outcomes(
    study: Study,
    trials: Sequence[FrozenTrial],
    given: Mapping[str, Want] | None,
    measure: Measure,
    probability: float,
) -> dict[str, Want]:
    """Return the objectives of a study and the constraints of its trials as outcomes.

    Args:
        study: The study.
        trials: Its trials.
        given: The outcomes by name, if the user gave them.
        measure: The measure of objectives, if the user did not give them.
        probability: Share of executed inputs that must keep each constraint.
    """
    maximized = [direction == StudyDirection.MAXIMIZE for direction in study.directions]
    if given is not None:
        own = [aim.direction == "maximize" for aim in objectives(given).values()]
        if maximized not in (own, own[:1]):  # the others may be in the user attribute only
            said, wanted = (
                [("minimize", "maximize")[up] for up in ups] for ups in (maximized, own)
            )
            raise ValueError(f"The study has the directions {said}, and outcomes have {wanted}.")
        return dict(given)
    if len(maximized) > MAX_OBJECTIVES:
        raise ValueError(
            f"AIRBOSampler chooses by at most {MAX_OBJECTIVES} objectives, the study has "
            f"{len(maximized)}."
        )
    names = getattr(study, "metric_names", None) or value_names(len(maximized))
    wanted_values: dict[str, Want] = {
        name: (Maximize if up else Minimize)(measure)
        for name, up in zip(names, maximized, strict=True)
    }
    keys = sorted({key for trial in trials for key in trial.constraints})
    return wanted_values | {CONSTRAINT + key: AtMost(0.0, probability) for key in keys}


def value_names(n: int) -> list[str]:
    """Return names for the values of trials that have none."""
    return ["value"] if n == 1 else [f"value:{i}" for i in range(n)]


@dataclass(frozen=True)
class Trials:
    """What a study knows at one moment about the parameters of a search space."""

    space: SearchSpace
    outcomes: Mapping[str, Want]
    told: list[FinishedTrial] = field(default_factory=list)
    """Finished trials, in the order of their numbers."""
    pending: dict[int, Design] = field(default_factory=dict)
    """Designs that are running or planned, by the number of their trial."""
    seen: frozenset[str] = frozenset()
    """Names of all parameters that any trial has."""
    given: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What is known of the environments of running trials, by their numbers."""

    @classmethod
    def of(
        cls,
        study: Study,
        trials: Sequence[FrozenTrial],
        space: SearchSpace,
        wanted: Mapping[str, Want],
        leave_out: int | None = None,
    ) -> "Trials":
        """Read the trials; those that lack a parameter of the search space are left out.

        Args:
            study: The study.
            trials: Its trials.
            space: The parameters of the designs.
            wanted: What the study wants of each outcome.
            leave_out: Number of the trial that is just being created.
        """
        names = list(objectives(wanted))
        told = []
        for trial in trials:
            design = space.design(trial.params)
            if not _counts(trial) or not space.is_whole(design):
                continue
            measured = outcomes_of(trial, names)
            known = {name: value for name, value in measured.items() if name in wanted}
            told.append(FinishedTrial(trial, design, known or None))
        pending = {n: d for n, d in _pending(study, trials, space) if n != leave_out}
        seen = frozenset(name for trial in trials for name in trial.distributions)
        running = [t for t in trials if t.number in pending and t.state == TrialState.RUNNING]
        given = {trial.number: given_of(trial, space) for trial in running}
        return cls(space, wanted, told, pending, seen, given)


def _counts(trial: FrozenTrial) -> bool:
    """Return whether a trial is finished and was run."""
    is_complete = trial.state == TrialState.COMPLETE
    return trial.state.is_finished() and (is_complete or GAVE_UP not in trial.user_attrs)


def _pending(
    study: Study, trials: Sequence[FrozenTrial], space: SearchSpace
) -> Iterator[tuple[int, Design]]:
    """Return the designs of unfinished trials, each with the number of its trial."""
    chosen = dict(_chosen(study))
    for trial in trials:
        if trial.state.is_finished() or GAVE_UP in trial.user_attrs:
            continue
        fixed = trial.system_attrs.get(FIXED, {})
        design = space.design({**chosen.get(trial.number, {}), **fixed, **trial.params})
        if space.is_whole(design):
            yield trial.number, design


def fixed_design(trial: FrozenTrial, space: SearchSpace) -> Design:
    """Return the parameters with which a trial was enqueued."""
    return space.design(trial.system_attrs.get(FIXED, {}))


# -- workers that choose at the same time; Hyperband shows samplers a study without attributes


def publish(study: Study, number: int, params: Mapping[str, Any]) -> None:
    """Tell other workers which parameters were chosen for a trial, before it suggests them."""
    if hasattr(study, "set_user_attr"):
        chosen = {"trial": number, "params": dict(params)}
        study.set_user_attr(f"{_CHOSEN}{number % _N_CHOSEN}", chosen)


def _chosen(study: Study) -> Iterator[tuple[int, dict[str, Any]]]:
    for key, value in getattr(study, "user_attrs", {}).items():
        if key.startswith(_CHOSEN):
            yield value["trial"], value["params"]


def has_rival(study: Study, space: SearchSpace, design: Design, besides: Container[int]) -> bool:
    """Return whether a design, or one near it, is pending in another trial.

    Args:
        study: The study.
        space: The parameters of the design.
        design: The design.
        besides: Numbers of trials to ignore.
    """
    pending = _pending(study, study.get_trials(deepcopy=False), space)
    rivals = (rival for number, rival in pending if number not in besides)
    return any(space.space.distance(design, rival) < NEARBY for rival in rivals)


# -- a study in plain values, for programs that take it over from Optuna

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
