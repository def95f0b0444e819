"""Which trials of a study count, and with which outcome.

Optuna cannot change a finished trial. So airbo adds a new trial for every changed outcome, in three
steps. It writes trials that hold their outcome as an attribute. It writes one attribute of the
study, the *mark*, which commits them. It sets their state and value. The mark alone decides, so a
process may be killed between any two steps. Nothing is ever overwritten: an outcome that was taken
back stays in the study, and a later mark records the undo.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from airbo.campaign.optuna.attributes import DESIGN, FIXED, GAVE_UP, STAMP, UNITS

STAGED = "airbo:staged"
"""Trial attribute: key and token of the mark that commits the trial, and its outcome."""
REPLACED = "airbo:replaced:"
"""Prefix of the mark of a correction by airbo 0.1.0; the number of the trial follows."""
CHANGE = "airbo:change:"
"""Prefix of the mark of a change: a correction, an undo, an exclusion, a note."""
UNDO, CORRECT, EXCLUDE, INCLUDE, NOTE = "undo", "correct", "exclude", "include", "note"
"""The kinds of changes."""
PENDING, GIVEN_UP = "pending", "given up"
"""Outcomes of a staged trial that are not a value."""

_CONSTRAINTS = "constraints"
"""System attribute of Optuna: a list, or, followed by a colon and a name, one constraint."""

Marks = Mapping[str, Any]


@dataclass(frozen=True)
class Counted:
    """The trials of a study and their outcomes; read-only."""

    everything: Sequence[FrozenTrial]
    marks: Marks
    """Attributes of the study, read before the trials."""

    @classmethod
    def of(cls, study: Study) -> "Counted":
        """Read a study once."""
        # Read the marks first: then every trial that a mark commits is in the storage already.
        marks = study._storage.get_study_user_attrs(study._study_id)
        trials = study._get_trials(deepcopy=False, use_cache=False)
        return cls([_as_written(trial) for trial in trials], marks)

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """The changes, oldest first."""
        found = (mark for key, mark in self.marks.items() if key.startswith(CHANGE))
        return sorted(found, key=lambda change: (change["at"], change["token"]))

    @cached_property
    def undone(self) -> frozenset[str]:
        """What was undone: tokens of marks, and ``trial N`` for the report of a trial."""
        undos = (change["of"] for change in self.changes if change["what"] == UNDO)
        return frozenset(name for names in undos for name in names)

    # -- which trial replaces which

    @cached_property
    def _candidates(self) -> dict[int, list[int | None]]:
        """The trials that replace a trial; None: the trial is removed."""
        found: dict[int, list[int | None]] = {}
        for old, new in self._pairs():
            found.setdefault(old, []).append(new)
        return found

    def _pairs(self) -> Iterable[tuple[int, int | None]]:
        for key, mark in self.marks.items():
            if key.startswith(REPLACED) and mark.get("token") not in self.undone:
                yield int(key.removeprefix(REPLACED)), mark["trial"]
        for change in self.changes:
            if change["token"] not in self.undone:
                yield from ((old, new) for old, new in change.get("replaces", ()))

    @cached_property
    def replacements(self) -> dict[int, int | None]:
        """Numbers of trials that do not count, and of those that count instead.

        If two processes changed the same trial at once, the later outcome counts. An outcome takes
        precedence over a trial that is pending again.
        """
        return {
            old: next((n for n in reversed(found) if self._has_outcome(n)), found[0])
            for old, found in self._candidates.items()
        }

    def _has_outcome(self, number: int | None) -> bool:
        trial = None if number is None else self.by_number.get(number)
        if trial is None:
            return False
        attributes = trial.user_attrs
        if trial.state.is_finished() and _outcome(trial) == PENDING:
            # a person reported it, or airbo closed it because it could not count
            return trial.state == TrialState.COMPLETE or STAMP in attributes
        return STAGED in attributes and _outcome(trial) != PENDING

    @cached_property
    def by_number(self) -> dict[int, FrozenTrial]:
        """All trials."""
        return {trial.number: trial for trial in self.everything}

    @cached_property
    def _origins(self) -> dict[int, int]:
        return {new: old for old, new in self.replacements.items() if new is not None}

    def number(self, trial: int) -> int:
        """Return the number that people use for a trial: that of the first trial it replaces."""
        while trial in self._origins:
            trial = self._origins[trial]
        return trial

    # -- what counts

    @cached_property
    def trials(self) -> list[FrozenTrial]:
        """The trials that count, and those that are running, each with its outcome."""
        found = (self.as_it_counts(t) for t in self.everything if t.number not in self._gone)
        return [trial for trial in found if trial is not None]

    @cached_property
    def _gone(self) -> set[int]:
        """Numbers of trials that were replaced, and of replacements that came too late."""
        stand_ins = {n for found in self._candidates.values() for n in found if n is not None}
        return self.replacements.keys() | (stand_ins - set(self.replacements.values()))

    @cached_property
    def told(self) -> list[FrozenTrial]:
        """The trials that a model may use: all that count, except those a person has excluded."""
        excluded = self.excluded
        return [
            trial
            for trial in self.trials
            if not trial.state.is_finished() or self.number(trial.number) not in excluded
        ]

    @cached_property
    def excluded(self) -> dict[int, str]:
        """Reasons why experiments are excluded, by the number that people use."""
        found: dict[int, str] = {}
        for change in self.standing(EXCLUDE, INCLUDE):
            for number in change["numbers"]:
                if change["what"] == EXCLUDE:
                    found[number] = change["text"]
                else:
                    found.pop(number, None)
        return found

    def standing(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the changes of these kinds that were not undone."""
        return [c for c in self.changes if c["what"] in kinds and c["token"] not in self.undone]

    # -- what was left unfinished

    @cached_property
    def to_finish(self) -> list[FrozenTrial]:
        """Trials that count but still run: their writer has not finished, or was killed."""
        return [t for t in self._running if self.is_committed(t) and _outcome(t) != PENDING]

    @cached_property
    def left_over(self) -> list[FrozenTrial]:
        """Trials that are still running although they can no longer count."""
        return [
            trial
            for trial in self.everything
            if not trial.state.is_finished() and (trial.number in self._gone or self._void(trial))
        ]

    def _void(self, trial: FrozenTrial) -> bool:
        return trial.user_attrs.get(STAGED, {}).get("token") in self.undone

    @cached_property
    def _running(self) -> list[FrozenTrial]:
        unfinished = (t for t in self.everything if not t.state.is_finished())
        return [t for t in unfinished if STAGED in t.user_attrs]

    def is_committed(self, trial: FrozenTrial) -> bool:
        """Return whether a mark commits this staged trial."""
        note = trial.user_attrs[STAGED]
        mark = self.marks.get(note["key"], {})
        return mark.get("token") == note["token"] and note["token"] not in self.undone

    def as_it_counts(self, trial: FrozenTrial) -> FrozenTrial | None:
        """Return a trial with the outcome that it holds; None if it does not count."""
        if STAGED not in trial.user_attrs:
            return trial
        if not self.is_committed(trial):
            return None if trial.state.is_finished() or self._void(trial) else trial
        return with_outcome(trial)


def _as_written(trial: FrozenTrial) -> FrozenTrial:
    """Return a trial without attributes that neither airbo nor Optuna can have written."""
    odd = {k for k, v in trial.user_attrs.items() if k in _FITTING and not _FITTING[k](v)}
    odd_inside = {k for k, v in trial.system_attrs.items() if not _fits_inside(k, v)}
    if not odd and not odd_inside:
        return trial
    cleaned = copy.copy(trial)
    cleaned.user_attrs = {k: v for k, v in trial.user_attrs.items() if k not in odd}
    inside = {k: v for k, v in trial.system_attrs.items() if k not in odd_inside}
    cleaned.system_attrs = inside
    return cleaned


def _fits_inside(key: str, value: Any) -> bool:
    """Return whether a system attribute that airbo reads has a form that it can have."""
    if key in (DESIGN, FIXED):
        return isinstance(value, dict)
    if key == _CONSTRAINTS:
        return isinstance(value, list | tuple) and all(map(_is_value, value))
    return not key.startswith(f"{_CONSTRAINTS}:") or _is_value(value)


def _is_note(note: Any) -> bool:
    """Return whether something can be the note of a staged trial."""
    if not isinstance(note, dict):
        return False
    names = isinstance(note.get("key"), str) and isinstance(note.get("token"), str)
    says = note.get("outcome") in (PENDING, GIVEN_UP) or _is_value(note.get("value", ""))
    return names and says and ("at" not in note or _is_moment(note["at"]))


def _is_stamp(stamp: Any) -> bool:
    """Return whether something can be the signature of a report."""
    if not isinstance(stamp, dict):
        return False
    texts = all(isinstance(stamp.get(name, ""), str) for name in ("by", "call"))
    moments = [stamp.get("at", ""), *([stamp["told"]] if "told" in stamp else [])]
    return texts and all(map(_is_moment, moments))


def _is_value(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_moment(text: Any) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _are_units(given: Any) -> bool:
    return isinstance(given, dict) and all(isinstance(unit, str) for unit in given.values())


_FITTING: dict[str, Callable[[Any], bool]] = {
    STAGED: _is_note,
    STAMP: _is_stamp,
    UNITS: _are_units,
}
"""What an attribute in the name of airbo has to look like."""


def _outcome(trial: FrozenTrial) -> str | None:
    """Return ``PENDING`` or ``GIVEN_UP``; None if the outcome is a value or a failure."""
    outcome: str | None = trial.user_attrs.get(STAGED, {}).get("outcome")
    return outcome


def with_outcome(trial: FrozenTrial) -> FrozenTrial:
    """Return a staged trial as it will be once it is finished."""
    note = trial.user_attrs[STAGED]
    if _outcome(trial) == PENDING:  # a person reports it like any other trial
        return trial
    state = TrialState.FAIL if note["value"] is None else TrialState.COMPLETE
    given_up = _outcome(trial) == GIVEN_UP
    if trial.state == state and (GAVE_UP in trial.user_attrs) == given_up:
        return trial
    counted = copy.copy(trial)
    counted.state, counted.value = state, note["value"]
    attributes = {k: v for k, v in trial.user_attrs.items() if k != GAVE_UP}
    counted.user_attrs = {**attributes, **({GAVE_UP: True} if given_up else {})}
    return counted
