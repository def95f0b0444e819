"""A damaged storage file: what can be read of it, and the way back to a backup."""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from optuna.storages.journal._storage import JournalStorageReplayResult

from airbo.campaign.campaign import Campaign
from airbo.campaign.config import Settings
from airbo.campaign.errors import CampaignError, DamageError, StorageError
from airbo.campaign.experiment import Experiment
from airbo.campaign.history import numbers_in
from airbo.campaign.optuna.counting import CHANGE, REPLACED
from airbo.campaign.seal import SUFFIX, Facts, Held, Seal
from airbo.campaign.storage import copy_whole
from airbo.campaign.storage_url import JOURNAL, SQLITE, StorageURL

_BESIDE = ("-journal", "-wal", "-shm")
"""Files with which SQLite completes a database; those of another one would spoil it."""
_UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, AssertionError, OverflowError)


def storage_file(settings: Settings) -> Path:
    """Return the file of a campaign, or say that there is none."""
    file = settings.storage.file(settings.path.parent)
    if file is None:
        raise CampaignError(
            f"The storage {settings.storage} is a server, which keeps and checks its files itself; "
            "its own tools make and restore backups."
        )
    return file


# -- what can be read


@dataclass(frozen=True)
class Rescued:
    """What could be read of a damaged file."""

    experiments: list[Experiment]
    n_lost: int
    """Trials that were acknowledged and are missing, or are not what was told."""
    is_certain: bool
    """Whether a seal vouches for what was read."""


def rescue(settings: Settings) -> Rescued:
    """Read what can be read of a storage file, without changing it.

    What the seal contradicts is left out. Where there is no seal, a journal is read up to the first
    line that cannot be understood: after it, trials may have got other numbers.
    """
    file = storage_file(settings)
    if not file.exists():
        raise StorageError(f"There is no storage {file.name}, so nothing can be read.")
    try:
        seal: Seal | None = Seal(file)
    except DamageError:
        seal = None
    facts = {} if seal is None else seal.facts
    try:
        with _copied(settings, file, bool(facts)) as copy, Campaign.open_copy(copy) as found:
            lost = _lost(facts, found.held())
            good = [e for e in found.experiments if not {e.trial, e.number} & lost]
    except StorageError as error:
        raise StorageError(
            f"Nothing of {file.name} can be read by airbo. "
            f"For SQLite, its own tool may get more out: sqlite3 {file.name} .recover"
        ) from error
    if facts:  # what was never sealed may be anything
        sealed = {key.partition(" ")[2] for key in facts}
        good = [e for e in good if str(e.trial) in sealed]
    return Rescued(good, len(lost), bool(facts))


def _lost(facts: Facts, held: Held) -> set[int]:
    """Return the numbers of trials that are missing, changed, or replaced by what is missing."""
    lost: set[int] = set()
    for key in (key for key, fact in facts.items() if held.fact(key) != fact):
        name = key.partition(" ")[2].removeprefix(REPLACED)
        if name.isdigit():
            lost.add(int(name))
        elif name.startswith(CHANGE):
            lost.update(numbers_in(name.removeprefix(CHANGE).partition(":")[0]))
    return lost


@contextmanager
def _copied(settings: Settings, file: Path, skip_bad: bool) -> Iterator[Settings]:
    """Copy a storage file, without lines that cannot be read; yield settings that name the copy."""
    with tempfile.TemporaryDirectory(prefix="airbo-") as folder:
        copy = Path(folder) / file.name
        if settings.storage.is_journal:
            copy.write_bytes(b"".join(_readable(file, skip_bad)))
        else:
            for suffix in ("", *_BESIDE):
                part = file.with_name(file.name + suffix)
                if part.exists():
                    shutil.copyfile(part, copy.with_name(copy.name + suffix))
        scheme = JOURNAL if settings.storage.is_journal else SQLITE
        yield replace(settings, storage=StorageURL(f"{scheme}{copy}"))


def _readable(file: Path, skip_bad: bool) -> Iterator[bytes]:
    """Yield the lines of a journal that Optuna can apply."""
    replay = JournalStorageReplayResult("")
    with file.open("rb") as stream:
        for line in stream:
            try:
                replay.apply_logs([json.loads(line)])
            except _UNREADABLE:
                if not skip_bad:
                    return
            else:
                yield line.rstrip(b"\n") + b"\n"


# -- looking at all of it


def verify(settings: Settings) -> int:
    """Read everything and compare it with the seal; return the number of trials that it knows.

    Raises:
        DamageError: If anything is missing, or is not what it was.
    """
    file = storage_file(settings)
    if not file.exists() and not Seal(file).facts:
        return 0
    if file.exists() and not settings.storage.is_journal:
        _check_pages(file)
    with Campaign.open(settings.path) as campaign:
        return 0 if campaign.seal is None else campaign.seal.n_trials


def _check_pages(file: Path) -> None:
    """Let SQLite look at every page."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            [[answer], *_] = database.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.DatabaseError as error:
        answer = str(error)
    if answer != "ok":
        raise DamageError(file.name, f"SQLite says: {answer.splitlines()[-1]}", "")


# -- the way back


@dataclass(frozen=True)
class Restored:
    """What a restored campaign holds."""

    n_experiments: int
    kept: list[Path]
    """Where the files are that were in its place."""


def go_back(settings: Settings, backup: Path | None) -> Restored:
    """Let a backup count, or the storage as it is now.

    The seal is replaced last: whenever this is interrupted, it can be repeated, and until then the
    campaign is refused rather than opened with less.

    Args:
        settings: The campaign.
        backup: A copy of the storage file; None: what is there now.
    """
    file = storage_file(settings)
    source = file if backup is None else backup
    if not source.is_file():
        raise StorageError(f"There is no file {source}.")
    # whole and of this campaign? `check` opens a copy, without a seal
    with _whole_copy(settings, source) as copy, Campaign.open_copy(copy) as found:
        n = len(found.experiments)
    kept: list[Path] = []
    if backup is not None and not (file.exists() and file.samefile(backup)):
        kept += [_put_aside(part) for part in _parts(file)]
        copy_whole(backup, file)
    seal = file.with_name(file.name + SUFFIX)
    kept += [_put_aside(seal)] if seal.exists() else []
    Campaign.open(settings.path).close()
    return Restored(n, kept)


@contextmanager
def _whole_copy(settings: Settings, source: Path) -> Iterator[Settings]:
    with tempfile.TemporaryDirectory(prefix="airbo-") as folder:
        copy = Path(folder) / "backup"
        shutil.copyfile(source, copy)
        scheme = JOURNAL if settings.storage.is_journal else SQLITE
        yield replace(settings, storage=StorageURL(f"{scheme}{copy}"))


def _parts(file: Path) -> list[Path]:
    parts = [file, *(file.with_name(file.name + suffix) for suffix in _BESIDE)]
    return [part for part in parts if part.exists()]


def _put_aside(file: Path) -> Path:
    """Rename a file to a name that no file has."""
    for i in range(1, 10_000):
        aside = file.with_name(f"{file.name}.before-restore-{i}")
        if not aside.exists():
            os.rename(file, aside)
            return aside
    raise StorageError(f"There are too many files {file.name}.before-restore-...")
