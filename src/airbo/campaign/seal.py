"""The seal of a storage file: what it must still hold, in a small file beside it.

A journal that was cut at the end of a line, or a database in which one bit is another, looks
healthy by itself. The seal has a line for every fact that was acknowledged and can never change:
what the campaign is about, the design of a trial, a finished trial with all that was told, a mark
that commits rows. A fact is written to the storage first, then here, and only then reported to the
user. So the seal may lack what was never acknowledged, for instance after a crash or where Optuna's
own tools wrote; it never knows more than the storage did.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from optuna import Study
from optuna.trial import FrozenTrial

from airbo.campaign.errors import DamageError
from airbo.campaign.optuna.counting import CHANGE, STAGED, Counted

SUFFIX = ".seal"
_HEADER = b"airbo seal 1\n"
_CAMPAIGN, _DESIGN, _TRIAL, _MARK = "campaign", "design", "trial", "mark"

Facts = dict[str, str]
"""Digests by the name of what they are about, such as ``trial 3``."""


@dataclass(frozen=True)
class Held:
    """What a storage holds now."""

    about: Any
    """What the campaign is about."""
    marks: Mapping[str, Any]
    """Attributes of the study that commit rows."""
    trials: Mapping[int, FrozenTrial]
    names: Sequence[str]
    """The parameters of a design."""

    @classmethod
    def of(cls, counted: Counted, study: Study, about: str, names: Sequence[str]) -> "Held":
        """Take what was read; ``about`` is the attribute that says what the campaign is about."""
        marks = {k: v for k, v in counted.marks.items() if k.startswith("airbo:") and k != about}
        said = [study.study_name, study.direction.name, counted.marks.get(about)]
        return cls(said, marks, counted.by_number, names)

    def facts(self, known: Mapping[str, str]) -> Facts:
        """Return what can be sealed and is not known yet."""
        keys = [_CAMPAIGN, *(f"{_MARK} {key}" for key in self.marks)]
        for number, trial in self.trials.items():
            if trial.state.is_finished():
                keys.append(f"{_TRIAL} {number}")
            elif trial.datetime_start is not None and set(self.names) <= set(trial.params):
                keys.append(f"{_DESIGN} {number}")
        found = {key: self.fact(key) for key in keys if key not in known}
        return {key: fact for key, fact in found.items() if fact is not None}

    def fact(self, key: str) -> str | None:
        """Return the digest of something; None if it is not there."""
        what, _, name = key.partition(" ")
        if what == _CAMPAIGN:
            return _digest(self.about)
        if what == _MARK:
            return self._rows(name)
        trial = self.trials.get(int(name))
        if trial is None or (what == _TRIAL and not trial.state.is_finished()):
            return None
        return _digest(_told(trial) if what == _TRIAL else self._asked(trial))

    def _asked(self, trial: FrozenTrial) -> list[Any]:
        """Return what of a pending trial can no longer change."""
        return [_moment(trial.datetime_start), *(trial.params.get(n) for n in sorted(self.names))]

    def _rows(self, key: str) -> str | None:
        """Say what a mark commits; one that replaces an import's commits as many rows."""
        mark = self.marks.get(key)
        if not isinstance(mark, dict):
            return None
        n = self._n_rows.get((key, str(mark.get("token"))), 0)
        if key.startswith(CHANGE):  # it is never replaced
            return _digest([n, mark])
        first = self.trials.get(mark.get("trial", -1))
        staged = {} if first is None else first.user_attrs.get(STAGED, {})
        return _digest(n) if n and staged.get("token") == mark.get("token") else None

    @cached_property
    def _n_rows(self) -> dict[tuple[str, str], int]:
        counts: dict[tuple[str, str], int] = {}
        for trial in self.trials.values():
            if STAGED in trial.user_attrs:
                note = trial.user_attrs[STAGED]
                pair = note["key"], note["token"]
                counts[pair] = counts.get(pair, 0) + 1
        return counts


def _told(trial: FrozenTrial) -> list[Any]:
    times = [_moment(trial.datetime_start), _moment(trial.datetime_complete)]
    return [trial.state.name, trial.values, trial.params, trial.user_attrs, times]


def _moment(local: datetime | None) -> str:
    """Write a time so that it reads the same in every time zone; Optuna gives local times."""
    return "" if local is None else local.astimezone(UTC).isoformat()


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


class Seal:
    """The facts that were acknowledged, and the file that keeps them."""

    def __init__(self, storage: Path) -> None:
        """Read the seal of a storage file, if it has one."""
        self.storage = storage
        self.file = storage.with_name(storage.name + SUFFIX)
        self.facts: Facts = dict(_read(self.file)) if self.file.exists() else {}

    @property
    def n_trials(self) -> int:
        """Number of trials that it knows."""
        return len({key.partition(" ")[2] for key in self.facts if _is_trial(key)})

    def broken(self, held: Held) -> list[str]:
        """Return what the storage no longer holds as it was acknowledged."""
        return [key for key, fact in self.facts.items() if held.fact(key) != fact]

    def check(self, held: Held) -> None:
        """Refuse a storage that lacks something, or has it otherwise."""
        broken = self.broken(held)
        if broken:
            raise DamageError(self.storage.name, _in_words(broken, held), self._rest(broken))

    def _rest(self, broken: Sequence[str]) -> str:
        bad = {key.partition(" ")[2] for key in broken if _is_trial(key)}
        return f"{self.n_trials - len(bad)} of {self.n_trials} trials are as they were told."

    def add(self, held: Held) -> None:
        """Write down what the storage holds by now; it is on the disk when this returns."""
        new = held.facts(self.facts)
        if new:
            _sync(self.storage)  # what another process wrote a moment ago may not be there yet
            _append(self.file, new)
            self.facts.update(new)


def _is_trial(key: str) -> bool:
    return key.startswith((_TRIAL + " ", _DESIGN + " "))


def _in_words(broken: Sequence[str], held: Held) -> str:
    """Say what is wrong, by the numbers of trials."""
    numbers = sorted({int(key.partition(" ")[2]) for key in broken if _is_trial(key)})
    unfinished = {int(k.partition(" ")[2]) for k in broken if k.startswith(_TRIAL)}
    missing = [n for n in numbers if n not in held.trials]
    untold = [
        n
        for n in numbers
        if n in unfinished and n in held.trials and not held.trials[n].state.is_finished()
    ]
    changed = [n for n in numbers if n not in missing and n not in untold]
    said = [
        _some("missing", missing),
        _some("without the outcome that was told", untold),
        _some("not what was told", changed),
        "imports, corrections or other changes are lost"
        if any(k.startswith(_MARK) for k in broken)
        else "",
        "it is not about the same campaign" if _CAMPAIGN in broken else "",
    ]
    return "; ".join(filter(None, said))


def _some(what: str, numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    shown = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"trial {shown} is {what}" if len(numbers) == 1 else f"trials {shown} are {what}"


# -- the file


def _line(key: str, fact: str) -> bytes:
    check = hashlib.sha256(f"{fact} {key}".encode()).hexdigest()[:8]
    return f"{check} {fact} {key}\n".encode()


def _read(file: Path) -> Iterator[tuple[str, str]]:
    """Read whole lines; a last one that was cut short was never acknowledged."""
    content = file.read_bytes()
    lines = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
    if lines and lines[0] != _HEADER:
        raise _unreadable(file, 1)
    for number, line in enumerate(lines[1:], start=2):
        parts = line.decode("utf-8", "replace").rstrip("\n").split(" ", 2)
        if len(parts) != 3 or _line(parts[2], parts[1]) != line:
            raise _unreadable(file, number)
        yield parts[2], parts[1]


def _unreadable(file: Path, line: int) -> DamageError:
    storage = file.name.removesuffix(SUFFIX)
    return DamageError(file.name, f"line {line} cannot be read", f"{storage} itself may be whole.")


def _append(file: Path, facts: Facts) -> None:
    is_new = not file.exists()
    with file.open("ab+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # let go when the file is closed, or its process dies
        _mend(stream)
        header = b"" if stream.tell() else _HEADER
        stream.write(header + b"".join(_line(key, fact) for key, fact in facts.items()))
        stream.flush()
        os.fsync(stream.fileno())
    if is_new:
        _sync(file.parent)


def _mend(stream: IO[bytes]) -> None:
    """Take off a last line that was cut short; leave the stream at its end."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - 1))
    if size and stream.read(1) != b"\n":
        stream.seek(0)
        stream.truncate(stream.read().rfind(b"\n") + 1)
    stream.seek(0, os.SEEK_END)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
