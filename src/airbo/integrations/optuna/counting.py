"""Which trials of a study count, and with which outcome.

A finished trial cannot be changed in Optuna. Whatever changes an outcome is therefore added: trials
that hold their outcome as an attribute, then one attribute of the study, the mark, that commits
them, then their state and value. The mark alone decides; a process may be killed between any two
steps. Nothing is ever overwritten: what is taken back stays in the study, and a later mark says so.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from airbo.integrations.optuna.attributes import GAVE_UP, STAMP

STAGED = "airbo:staged"
"""Trial attribute: key and token of the mark with which it counts, and its outcome."""
REPLACED = "airbo:replaced:"
"""Beginning of the mark of a correction by airbo 0.1.0, followed by the number of the trial."""
CHANGE = "airbo:change:"
"""Beginning of the mark of a change: a correction, an undo, an exclusion, a note."""
UNDO, CORRECT, EXCLUDE, INCLUDE, NOTE = "undo", "correct", "exclude", "include", "note"
"""What a change can be."""
PENDING, GIVEN_UP = "pending", "given up"
"""Outcomes of a staged trial that are not its value."""

Marks = Mapping[str, Any]


@dataclass(frozen=True)
class Counted:
    """The trials of a study, and what became of them; not to be changed."""

    everything: Sequence[FrozenTrial]
    marks: Marks
    """Attributes of the study, read before the trials."""

    @classmethod
    def of(cls, study: Study) -> "Counted":
        """Read a study once."""
        # First the marks: every trial that one of them commits is there by then.
        marks = study._storage.get_study_user_attrs(study._study_id)
        return cls(study._get_trials(deepcopy=False, use_cache=False), marks)

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """The changes, in their order."""
        found = (mark for key, mark in self.marks.items() if key.startswith(CHANGE))
        return sorted(found, key=lambda change: (change["at"], change["token"]))

    @cached_property
    def undone(self) -> frozenset[str]:
        """What was taken back: tokens of marks, and ``trial N`` where a trial was told."""
        undos = (change["of"] for change in self.changes if change["what"] == UNDO)
        return frozenset(name for names in undos for name in names)

    # -- what stands in for what

    @cached_property
    def _candidates(self) -> dict[int, list[int | None]]:
        """The trials that stand in for a trial; None: it is taken away."""
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

        Where two processes changed the same trial at once, the later outcome counts; a trial that
        is pending again gives way to an outcome.
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
            # closed by somebody, or only because it could not count
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
        """Return what people call a trial by: the number of the first one that it stands in for."""
        while trial in self._origins:
            trial = self._origins[trial]
        return trial

    # -- what counts

    @cached_property
    def trials(self) -> list[FrozenTrial]:
        """The trials that count, and those that are under way, each with its outcome."""
        found = (self.as_it_counts(t) for t in self.everything if t.number not in self._gone)
        return [trial for trial in found if trial is not None]

    @cached_property
    def _gone(self) -> set[int]:
        """Numbers of trials that another one stands in for, or that came too late to do so."""
        stand_ins = {n for found in self._candidates.values() for n in found if n is not None}
        return self.replacements.keys() | (stand_ins - set(self.replacements.values()))

    @cached_property
    def told(self) -> list[FrozenTrial]:
        """The trials that a model may know: without those that somebody has excluded."""
        excluded = self.excluded
        return [
            trial
            for trial in self.trials
            if not trial.state.is_finished() or self.number(trial.number) not in excluded
        ]

    @cached_property
    def excluded(self) -> dict[int, str]:
        """Why experiments are excluded, by the number that people call them by."""
        found: dict[int, str] = {}
        for change in self.standing(EXCLUDE, INCLUDE):
            for number in change["numbers"]:
                if change["what"] == EXCLUDE:
                    found[number] = change["text"]
                else:
                    found.pop(number, None)
        return found

    def standing(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the changes of some kinds that nobody has taken back."""
        return [c for c in self.changes if c["what"] in kinds and c["token"] not in self.undone]

    # -- what was left unfinished

    @cached_property
    def to_finish(self) -> list[FrozenTrial]:
        """Rows that count and are still running: who wrote them has not finished, or was killed."""
        return [t for t in self._running if self.is_committed(t) and _outcome(t) != PENDING]

    @cached_property
    def left_over(self) -> list[FrozenTrial]:
        """Trials that are still running, although they cannot count any more."""
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
        """Say whether a row counts."""
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


def _outcome(trial: FrozenTrial) -> str | None:
    """Return what a row holds, unless that is a value or none."""
    outcome: str | None = trial.user_attrs.get(STAGED, {}).get("outcome")
    return outcome


def with_outcome(trial: FrozenTrial) -> FrozenTrial:
    """Return a row as it is once it is finished."""
    note = trial.user_attrs[STAGED]
    if _outcome(trial) == PENDING:  # it was told like any other, or will be
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
