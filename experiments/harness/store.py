"""Finished repeats on disk, as JSON lines: never lost, never doubled, never mixed.

A run adds every repeat to a file of the spool, which git ignores. ``pack`` folds the spool into one
compressed file per experiment; ``xzcat experiments/results/dilemma.jsonl.xz`` shows it. The same
repeats give the same bytes. Readers use both.
"""

import fcntl
import json
import lzma
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.harness.experiment import Results, Task
from experiments.harness.places import RESULTS

SUFFIX = ".jsonl.xz"
FIELDS = {"experiment", "label", "seed", "config", "provenance", "result"}

Key = tuple[str, int]
"""A set of results, whose name says the configuration, and the number of the repeat."""
Content = dict[str, Any]
"""Everything that is stored of a repeat: ``FIELDS``."""


class DamagedResultsError(ValueError):
    """A file of results cannot be read, or contains something that does not belong there."""


class UnknownCodeError(ValueError):
    """A result was made with files that are in no commit, so nobody can make it again."""


@dataclass(frozen=True)
class Store:
    """A folder with one packed file per experiment, and a spool of newer results."""

    folder: Path = RESULTS

    def packed_path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}{SUFFIX}"

    def spool_path(self, experiment: str) -> Path:
        return self.folder / "spool" / f"{experiment}.jsonl"

    def has(self, task: Task) -> bool:
        """Return whether a repeat is finished."""
        return _key(task) in self._all(task.experiment)

    def read(self, task: Task) -> Content:
        """Return everything that is stored of a finished repeat."""
        found = self._all(task.experiment).get(_key(task))
        if found is None:
            raise KeyError(f"{task.experiment}, {task.label}, repeat {task.seed}: no result.")
        return found

    def results(self, tasks: Sequence[Task]) -> Results:
        """Read the results of some tasks, as far as they are finished."""
        return Results([(task, self.read(task)["result"]) for task in tasks if self.has(task)])

    def commits(self, tasks: Sequence[Task]) -> list[str]:
        """Return which versions of the code the results were made with."""
        return sorted({self.read(t)["provenance"]["commit"] for t in tasks if self.has(t)})

    def hours(self, tasks: Sequence[Task]) -> tuple[int, float, float | None]:
        """Return how many runs are finished, their processor hours, and those of the others.

        A run that is missing costs what the finished ones of its label cost on average, or of all
        labels if there are none; None if no run is finished.
        """
        spent: dict[str, list[float]] = {}
        for task in filter(self.has, tasks):
            seconds = self.read(task)["provenance"].get("processor_seconds", 0.0)
            spent.setdefault(task.label, []).append(seconds)
        every = [seconds for each in spent.values() for seconds in each]
        if not every:
            return 0, 0.0, None
        missing = [spent.get(task.label, every) for task in tasks if not self.has(task)]
        left = sum(sum(each) / len(each) for each in missing)
        return len(every), sum(every) / 3600, left / 3600

    def write(self, task: Task, result: dict[str, Any], provenance: Mapping[str, Any]) -> None:
        """Keep a result, unless there is one already."""
        content = {
            "experiment": task.experiment, "label": task.label, "seed": task.seed,
            "config": task.config, "provenance": provenance, "result": result,
        }  # fmt: skip
        line = json.dumps(content, separators=(",", ":"), allow_nan=False)
        with self._alone():
            if self.has(task):
                return
            with self.spool_path(task.experiment).open("a", encoding="utf-8") as file:
                file.write(f"\n{line}\n")  # a line that a kill has cut off stays alone
                file.flush()
                os.fsync(file.fileno())

    def pack(self, only: str | None = None) -> dict[str, tuple[int, int]]:
        """Fold the spool, or that of one experiment; return how many were added, and all.

        A file leaves the spool when the packed file that holds its repeats is on the disk. If
        packing stops in between, they are in both and count once.
        """
        done = {}
        with self._alone():
            for spooled in sorted((self.folder / "spool").glob(f"{only or '*'}.jsonl")):
                name = spooled.stem
                kept, everything = _packed(self.packed_path(name)), self._all(name)
                _refuse_unknown_code(spooled, everything.values())
                _replace(self.packed_path(name), everything)
                spooled.unlink()
                done[name] = (len(everything) - len(kept), len(everything))
        return done

    def _all(self, experiment: str) -> Mapping[Key, Content]:
        """Return all repeats of an experiment; the packed one, if there are two."""
        packed = _packed(self.packed_path(experiment))
        return {**_spooled(self.spool_path(experiment)), **packed}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process writes or packs."""
        (self.folder / "spool").mkdir(parents=True, exist_ok=True)
        with (self.folder / "spool" / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _key(task: Task) -> Key:
    return task.set_name, task.seed


def _packed(path: Path) -> Mapping[Key, Content]:
    """Return the repeats of a packed file; none, if there is no file."""
    return _read_packed(path, *_version(path)) if path.exists() else {}


def _spooled(path: Path) -> Mapping[Key, Content]:
    return _read_spooled(path, *_version(path)) if path.exists() else {}


def _version(path: Path) -> tuple[int, int, int]:
    """Return what changes with a file, so that it is read only once."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _read_packed(path: Path, *version: int) -> Mapping[Key, Content]:
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise DamagedResultsError(
            f"{path} is damaged: {error}. `git checkout -- {path}` restores what was committed."
        ) from None
    found: dict[Key, Content] = {}
    for number, line in enumerate(text.splitlines(), 1):
        where = f"Line {number} of {path}"
        content = _content(line)
        if content is None:
            raise DamagedResultsError(f"{where} is damaged: it is not a finished repeat.")
        if content["experiment"] != path.name.removesuffix(SUFFIX):
            raise DamagedResultsError(f"{where} belongs to {content['experiment']!r}.")
        if _key_of(content) in found:
            raise DamagedResultsError(f"{where} is there twice.")
        found[_key_of(content)] = content
    return found


@lru_cache(maxsize=64)
def _read_spooled(path: Path, *version: int) -> Mapping[Key, Content]:
    lines = map(_content, path.read_text(encoding="utf-8").splitlines())
    # a line that is not whole was cut off by a kill: its repeat is run again
    return {_key_of(content): content for content in lines if content is not None}


def _content(line: str) -> Content | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) and set(content) == FIELDS else None


def _key_of(content: Content) -> Key:
    return _key(Task(*(content[name] for name in ("experiment", "label", "seed", "config"))))


def _refuse_unknown_code(path: Path, contents: Any) -> None:
    made = [content["provenance"].get("commit", "") for content in contents]
    dirty = sum(commit.endswith("-dirty") for commit in made)
    if dirty:
        raise UnknownCodeError(
            f"{dirty} results of {path} were made with uncommitted changes. Delete them, commit, "
            "and run again."
        )


def _replace(path: Path, contents: Mapping[Key, Content]) -> None:
    """Replace a packed file at once: the new one takes its name when it is on the disk."""
    lines = (json.dumps(contents[key], separators=(",", ":")) for key in sorted(contents))
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
