"""One file with all finished repeats of an experiment: JSON lines, compressed.

``xzcat experiments/results/rkhs.jsonl.xz`` shows them. The same repeats give the same bytes,
regardless of the order in which they were finished.
"""

import json
import lzma
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.harness.experiment import Task

SUFFIX = ".jsonl.xz"
FIELDS = {"experiment", "label", "seed", "config", "provenance", "result"}

Key = tuple[str, int]
"""A set of results, whose name says the configuration, and the number of the repeat."""


class DamagedResultsError(ValueError):
    """A file of results cannot be read, or contains something that does not belong there."""


def key_of(task: Task) -> Key:
    return task.set_name, task.seed


def line_of(task: Task, result: Mapping[str, Any], provenance: Mapping[str, Any]) -> str:
    """Write a finished repeat with everything that it depends on."""
    content = {
        "experiment": task.experiment,
        "label": task.label,
        "seed": task.seed,
        "config": task.config,
        "provenance": provenance,
        "result": result,
    }
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def read_line(text: str, where: str) -> tuple[Task, dict[str, Any]]:
    """Return the task and the whole content of a line; ``where`` is named if it is damaged."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise DamagedResultsError(f"{where} is damaged: {error}") from None
    if not isinstance(content, dict) or set(content) != FIELDS:
        raise DamagedResultsError(f"{where} is damaged: it is not a finished repeat.")
    task = Task(content["experiment"], content["label"], content["seed"], content["config"])
    return task, content


def read(path: Path) -> dict[Key, str]:
    """Return the lines of a packed file by key; none, if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return {}
    return _read(path, status.st_ino, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, *version: int) -> dict[Key, str]:
    """Read a file; read it again only after it has changed."""
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise DamagedResultsError(
            f"{path} is damaged: {error}. `git checkout -- {path}` restores what was committed."
        ) from None
    lines: dict[Key, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        task, _ = read_line(line, f"Line {number} of {path}")
        if task.experiment != path.name.removesuffix(SUFFIX):
            raise DamagedResultsError(f"Line {number} of {path} belongs to {task.experiment!r}.")
        if key_of(task) in lines:
            raise DamagedResultsError(f"Line {number} of {path} is there twice.")
        lines[key_of(task)] = line
    return lines


def replace(path: Path, lines: Mapping[Key, str]) -> None:
    """Replace all lines of a packed file at once.

    The new file takes the name of the old one when all of it is on the disk. To be called by one
    process at a time.
    """
    text = "".join(f"{lines[key]}\n" for key in sorted(lines))
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(lzma.compress(text.encode(), preset=9))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new and changed names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
