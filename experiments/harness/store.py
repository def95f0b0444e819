"""Finished repeats on disk: never lost, never doubled, never mixed with another configuration.

A run writes each repeat to a file of its own in the spool, which git ignores. ``pack`` folds the
spool into one packed file per experiment. Readers use both.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.harness import packed
from experiments.harness.experiment import Results, Task
from experiments.harness.packed import DamagedResultsError, Key
from experiments.harness.places import RESULTS


class UnknownCodeError(ValueError):
    """A result was made with files that are in no commit, so nobody can make it again."""


@dataclass(frozen=True)
class Folded:
    """What packing did to one experiment."""

    experiment: str
    n_added: int
    n_all: int


@dataclass(frozen=True)
class Store:
    """A folder with one packed file per experiment, and a spool of newer results."""

    folder: Path = RESULTS

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    def packed_path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}{packed.SUFFIX}"

    def spool_path(self, task: Task) -> Path:
        return self.spool / task.experiment / f"{task.set_name}-{task.seed:03d}.json"

    def has(self, task: Task) -> bool:
        """Return whether a repeat is finished.

        The spool is checked first: a repeat that leaves it meanwhile is in the packed file by then.
        """
        if self.spool_path(task).exists():
            return True
        return packed.key_of(task) in packed.read(self.packed_path(task.experiment))

    def write(self, task: Task, result: dict[str, Any], provenance: dict[str, Any]) -> None:
        """Keep a result, unless there is one already.

        The file appears under its name only when all of it is on the disk.
        """
        line = packed.line_of(task, result, provenance)
        if self.has(task):
            return
        path = self.spool_path(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.stem}.{os.getpid()}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            os.link(part, path)
            packed.sync_folder(path.parent)
        except FileExistsError:
            pass  # another process was faster
        finally:
            part.unlink(missing_ok=True)  # a full disk may have refused it

    def read(self, task: Task) -> dict[str, Any]:
        """Return everything that is stored of a finished repeat."""
        content = self._find(task)
        if content is None:
            raise KeyError(f"{task.experiment}, {task.label}, repeat {task.seed}: no result.")
        return content

    def results(self, tasks: Sequence[Task]) -> Results:
        """Read the results of some tasks, as far as they are finished."""
        found = ((task, self._find(task)) for task in tasks)
        return Results([(task, content["result"]) for task, content in found if content])

    def commits(self, tasks: Sequence[Task]) -> list[str]:
        """Return which versions of the code the results were made with."""
        found = (self._find(task) for task in tasks)
        return sorted({content["provenance"]["commit"] for content in found if content})

    def pack(self) -> list[Folded]:
        """Fold the spool into the packed files; return what was done to which experiment.

        A repeat leaves the spool when the packed file that holds it is on the disk. If packing
        stops in between, the repeat is in both, counts once, and the next pack removes it.
        """
        if not self.spool.is_dir():
            return []
        with self._alone():
            folders = sorted(path for path in self.spool.iterdir() if path.is_dir())
            done = [self._fold(folder) for folder in folders]
        return [folded for folded in done if folded is not None]

    def _fold(self, folder: Path) -> Folded | None:
        spooled = {path: self._spooled(path) for path in sorted(folder.glob("*.json"))}
        if not spooled:
            return None
        dirty = [path for path, (_, line) in spooled.items() if _is_dirty(line)]
        if dirty:
            raise UnknownCodeError(
                f"{len(dirty)} results of {folder.name} were made with uncommitted changes, such "
                f"as {dirty[0]}. Delete them, commit, and run again."
            )
        path = self.packed_path(folder.name)
        kept = packed.read(path)
        new = {key: line for key, line in spooled.values() if key not in kept}
        if new:
            packed.replace(path, {**kept, **new})
        for file in spooled:  # not before: the packed file is on the disk by now
            file.unlink()
        return Folded(folder.name, len(new), len(kept) + len(new))

    def _find(self, task: Task) -> dict[str, Any] | None:
        """Return a finished repeat, if there is one; the packed one, if there are two."""
        path, where = self.spool_path(task), self.packed_path(task.experiment)
        try:
            _, spooled = self._spooled(path)
        except FileNotFoundError:
            spooled = None  # not there, or packed this very moment
        line = packed.read(where).get(packed.key_of(task), spooled)
        if line is None:
            return None
        _, content = packed.read_line(line, str(where))
        if content["config"] != task.config:
            raise DamagedResultsError(f"{where} was made with another configuration.")
        return content

    def _spooled(self, path: Path) -> tuple[Key, str]:
        """Read a file of the spool; its name must match its content."""
        line = path.read_text(encoding="utf-8")
        task, _ = packed.read_line(line, str(path))
        if self.spool_path(task) != path:
            raise DamagedResultsError(f"{path} was made with another configuration.")
        return packed.key_of(task), line

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process packs."""
        with (self.spool / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _is_dirty(line: str) -> bool:
    commit: str = json.loads(line)["provenance"].get("commit", "")
    return commit.endswith("-dirty")
