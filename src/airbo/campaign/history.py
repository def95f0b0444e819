"""Who changed what, and when: the history of a campaign, read from its trials and marks."""

import getpass
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from optuna.trial import FrozenTrial

from airbo.campaign.experiment import Experiment, Stage, experiment_of
from airbo.campaign.optuna.attributes import DESIGN, GAVE_UP, STAMP
from airbo.campaign.optuna.counting import (
    CORRECT,
    EXCLUDE,
    INCLUDE,
    NOTE,
    REPLACED,
    STAGED,
    UNDO,
    Counted,
    with_outcome,
)
from airbo.space import Space
from airbo.words import shown

if TYPE_CHECKING:
    import pandas as pd

IMPORT = "airbo:import:"
"""Beginning of the mark of an import, followed by a digest of its rows."""


def user() -> str:
    """Return the name to sign changes with: ``AIRBO_USER``, or that of the account."""
    name = os.environ.get("AIRBO_USER", "").strip()
    try:
        return name or getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
        return "unknown"


@dataclass(frozen=True)
class Stamp:
    """Who says something, and when; one for all that is said at once."""

    by: str
    at: str
    """The moment, in UTC."""
    call: str
    """Changes of one call share it, and are undone together."""

    @classmethod
    def now(cls, by: str, history: "AuditTrail") -> "Stamp":
        """Sign what is said now, with a time after all known ones, even if a clock is wrong."""
        moment = max(datetime.now(UTC), history.latest + timedelta(microseconds=1))
        return cls(by, moment.isoformat(timespec="microseconds"), uuid.uuid4().hex)

    def to_dict(self) -> dict[str, str]:
        """Describe it so that JSON can hold it."""
        return {"by": self.by, "at": self.at, "call": self.call}


@dataclass(frozen=True)
class Change:
    """One change of a campaign."""

    at: datetime
    """When, in UTC."""
    by: str | None
    """Who; None: not recorded, as in campaigns of airbo 0.1.0."""
    what: str
    """added, told, failed, given up, imported, corrected, excluded, included, noted or undone."""
    numbers: tuple[int, ...]
    """The experiments that it is about."""
    text: str
    """What it changed, in words."""
    undone: bool = False
    """Whether it was taken back."""
    name: str = ""
    """Key by which an undo names it."""
    call: str = ""
    """Changes with the same one were made at once."""
    is_deliberate: bool = True
    """Whether a person made it; airbo itself gives up what was not answered in time."""

    @property
    def about(self) -> str:
        """The experiments in short, such as ``3-5, 8``."""
        return in_short(self.numbers)

    def __str__(self) -> str:
        experiments = "experiment" if len(self.numbers) == 1 else "experiments"
        return f"{self.what} ({experiments} {self.about}): {self.text}"


def in_short(numbers: Sequence[int]) -> str:
    """Write numbers so that ranges are short.

    >>> in_short([3, 4, 5, 8])
    '3-5, 8'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)


def numbers_in(text: str) -> list[int]:
    """Read what ``in_short`` wrote, as far as it is whole.

    >>> numbers_in("3-5, 8")
    [3, 4, 5, 8]
    """
    found: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found += range(int(first), int(last or first) + 1)
    return found


@dataclass(frozen=True)
class AuditTrail:
    """Every change of a campaign."""

    counted: Counted
    space: Space

    @cached_property
    def changes(self) -> list[Change]:
        """All changes, the oldest first."""
        known = [*self._told(), *self._imported(), *self._corrected_before(), *self._changed()]
        known = [replace(c, undone=c.name in self.counted.undone) for c in known]
        found = [*known, *self._undone({c.name: c for c in known})]
        return sorted(found, key=lambda c: (c.at, c.numbers, c.name))

    @cached_property
    def latest(self) -> datetime:
        """When the last change was signed."""
        marks = (m["at"] for m in self.counted.marks.values() if isinstance(m, dict) and "at" in m)
        stamps = (t.user_attrs[STAMP]["at"] for t in self._stamped)
        return max(map(datetime.fromisoformat, (*marks, *stamps)), default=_moment(None))

    @property
    def _stamped(self) -> Iterator[FrozenTrial]:
        return (t for t in self.counted.everything if STAMP in t.user_attrs)

    @property
    def last(self) -> list[Change]:
        """What an undo takes back: the last change, and what was said in the same call."""
        standing = [c for c in self.changes if not c.undone and c.what != "undone"]
        standing = [c for c in standing if c.is_deliberate]
        if not standing:
            return []
        last = standing[-1]
        return [c for c in standing if c is last or (last.call and c.call == last.call)]

    def trials_of(self, token: str) -> list[FrozenTrial]:
        """Return the trials that one mark commits."""
        rows = (t for t in self.counted.everything if STAGED in t.user_attrs)
        return [t for t in rows if t.user_attrs[STAGED]["token"] == token]

    def was_asked(self, trial: FrozenTrial) -> bool:
        """Say whether a trial was pending before it was told; otherwise it came with its value."""
        is_open = STAGED in trial.user_attrs
        return is_open or DESIGN in trial.system_attrs or trial.datetime_start != _end(trial)

    # -- from trials

    def _told(self) -> Iterator[Change]:
        whole = set(self.space.names)
        for trial in self.counted.everything:
            if trial.state.is_finished() and whole <= set(trial.params) and self._is_own(trial):
                yield self._told_in(trial)

    def _is_own(self, trial: FrozenTrial) -> bool:
        """Say whether a report closed this trial; rows of imports have a mark instead."""
        stamp = trial.user_attrs.get(STAMP)
        if STAGED in trial.user_attrs:  # pending again after an undo, and told since
            return stamp is not None and trial.number in self._reopened
        was_closed = GAVE_UP in trial.user_attrs and stamp is None
        return not (was_closed and trial.number in self.counted.replacements)

    @cached_property
    def _reopened(self) -> set[int]:
        undos = (c for c in self.counted.changes if c["what"] == UNDO)
        return {new for change in undos for _, new in change["replaces"] if new is not None}

    def _told_in(self, trial: FrozenTrial) -> Change:
        stamp = trial.user_attrs.get(STAMP, {})
        e = self._experiment(trial)
        what = {"ok": "told", "failed": "failed", "given up": "given up"}[e.outcome]
        what = what if self.was_asked(trial) else "added"
        said = outcome_words(e) + _measured(e)
        return Change(
            at=_moment(stamp.get("at"), _end(trial)),
            by=stamp.get("by"),
            what=what,
            numbers=(e.number,),
            text=said,
            name=f"trial {trial.number}",
            call=stamp.get("call", ""),
            is_deliberate=e.outcome != "given up" or bool(stamp),
        )

    def _experiment(self, trial: FrozenTrial) -> Experiment:
        shown_trial = with_outcome(trial) if STAGED in trial.user_attrs else trial
        return experiment_of(shown_trial, self.space, self._number(trial.number))

    @cached_property
    def _first(self) -> dict[int, int]:
        """Which trial every other one stood in for, once or now."""
        found = {}
        for key, mark in self.counted.marks.items():
            if key.startswith(REPLACED):
                found[mark["trial"]] = int(key.removeprefix(REPLACED))
        for change in self.counted.changes:
            found |= {new: old for old, new in change.get("replaces", ()) if new is not None}
        return found

    def _number(self, trial: int) -> int:
        while trial in self._first:
            trial = self._first[trial]
        return trial

    # -- from marks

    def _imported(self) -> Iterator[Change]:
        for key, mark in self.counted.marks.items():
            if key.startswith(IMPORT):
                rows = self.trials_of(mark["token"])
                last = max((_end(t) or datetime.min for t in rows), default=datetime.min)
                yield Change(
                    at=_moment(mark.get("at"), last),
                    by=mark.get("by"),
                    what="imported",
                    numbers=tuple(t.number for t in rows),
                    text=f"{mark['rows']} rows of {mark['file']}",
                    name=mark["token"],
                )

    def _corrected_before(self) -> Iterator[Change]:
        """Yield the corrections that airbo 0.1.0 made."""
        for key, mark in self.counted.marks.items():
            if key.startswith(REPLACED):
                old, new = int(key.removeprefix(REPLACED)), mark["trial"]
                end = _end(self.counted.by_number[new])
                yield self._correction(old, new, None, None, end, mark.get("token", key))

    def _changed(self) -> Iterator[Change]:
        words = {EXCLUDE: "excluded", INCLUDE: "included", NOTE: "noted"}
        for c in self.counted.changes:
            if c["what"] == CORRECT:
                [[old, new]] = c["replaces"]
                found = self._correction(
                    old, new, c["at"], c["by"], None, c["token"], was=c.get("was")
                )
                yield replace(found, call=c.get("call", ""))
            elif c["what"] in words:
                yield Change(
                    at=_moment(c["at"]),
                    by=c["by"],
                    what=words[c["what"]],
                    numbers=tuple(c["numbers"]),
                    text=c["text"],
                    name=c["token"],
                )

    def _correction(
        self,
        old: int,
        new: int,
        at: str | None,
        by: str | None,
        end: datetime | None,
        token: str,
        was: Stage | None = None,
    ) -> Change:
        before, after = (self._experiment(self.counted.by_number[n]) for n in (old, new))
        before = replace(before, outcome=was or before.outcome)
        what = "corrected" if before.has_outcome else "told"
        changed = ", ".join(differences(before, after)) or "nothing"
        return Change(_moment(at, end), by, what, (before.number,), changed, name=token)

    def _undone(self, known: Mapping[str, Change]) -> Iterator[Change]:
        for c in self.counted.changes:
            if c["what"] == UNDO:
                what = [known[name] for name in c["of"] if name in known]
                numbers = {n for change in what for n in change.numbers}
                yield Change(
                    at=_moment(c["at"]),
                    by=c["by"],
                    what="undone",
                    numbers=tuple(sorted(numbers)),
                    text="; ".join(f"{change.what}: {change.text}" for change in what),
                    name=c["token"],
                )


def _end(trial: FrozenTrial) -> datetime | None:
    return trial.datetime_complete


def _moment(text: str | None, local: datetime | None = None) -> datetime:
    if text is not None:
        return datetime.fromisoformat(text)
    return datetime.fromtimestamp(0, UTC) if local in (None, datetime.min) else _utc(local)


def _utc(local: datetime | None) -> datetime:
    assert local is not None
    return local.astimezone(UTC)


def table_of_changes(changes: Sequence[Change]) -> "pd.DataFrame":
    """Put the history into a table."""
    import pandas as pd

    rows = [
        {
            "at": change.at.astimezone().isoformat(sep=" ", timespec="seconds"),
            "by": change.by,
            "what": change.what,
            "experiments": change.about,
            "text": change.text,
            "undone": change.undone,
        }
        for change in changes
    ]
    return pd.DataFrame(rows, columns=["at", "by", "what", "experiments", "text", "undone"])


# -- in words


def outcome_words(experiment: Experiment) -> str:
    """Say what came of an experiment, in short."""
    if experiment.outcomes:
        return ", ".join(f"{name} = {shown(value)}" for name, value in experiment.outcomes.items())
    if experiment.infeasible:
        return f"{experiment.outcome}, its design cannot be used"
    return experiment.outcome if experiment.value is None else shown(experiment.value)


def _measured(experiment: Experiment) -> str:
    said = ", ".join(f"{name} = {shown(value)}" for name, value in experiment.executed.items())
    return f", measured {said}" if said else ""


def _came_of(experiment: Experiment) -> tuple[object, ...]:
    infeasible = experiment.infeasible
    return experiment.outcome, experiment.value, dict(experiment.outcomes), infeasible


def differences(before: Experiment, after: Experiment) -> list[str]:
    """Say what a correction changed."""
    found = []
    if _came_of(before) != _came_of(after):
        found.append(f"{outcome_words(before)} → {outcome_words(after)}")
    for name, value in after.design.items():
        if before.design[name] != value:
            found.append(f"{name} {shown(before.design[name])} → {shown(value)}")
    for name in dict.fromkeys([*before.executed, *after.executed]):
        old, new = before.executed.get(name), after.executed.get(name)
        if old != new:
            was, now = ("not measured" if v is None else shown(v) for v in (old, new))
            found.append(f"executed {name} {was} → {now}")
    if before.uncertainty != after.uncertainty and before.has_outcome:
        found.append("made under another uncertainty")
    return found
