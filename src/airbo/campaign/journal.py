"""A journal: Optuna's file of JSON lines, which stays readable after an interrupted write."""

import os
from pathlib import Path

from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from airbo.campaign.errors import StorageError

LOCK_SECONDS = 15
"""Seconds after which a lock counts as left by a dead process; a write takes far less."""

_BEGINNING = b'{"op_code"'
"""How every line begins."""


def open_journal(file: Path) -> BaseStorage:
    """Open a journal, or make it; refuse a file that is something else.

    Its path is absolute: the lock is a link to it, wherever the process is started.
    """
    if file.exists():
        with file.open("rb") as stream:
            _check(file, stream.readline())
    return JournalStorage(JournalFileBackend(str(file), lock_obj=Lock(file)))


def mend_journal(file: Path) -> None:
    """Take off a last line that was cut short, once it is known that nobody misses it."""
    lock = Lock(file)
    if not _ends_well(file):
        lock.acquire()
        lock.release()


class Lock(JournalFileSymlinkLock):
    """Lets one process write at a time; its holder finds only whole lines."""

    def __init__(self, file: Path) -> None:
        """Guard a file."""
        super().__init__(str(file), grace_period=LOCK_SECONDS)
        self._file = file
        self._held: tuple[int, int] | None = None

    def acquire(self) -> bool:
        """Wait for the lock, and take off a last line that was cut short: it never counted."""
        self._held = None
        super().acquire()
        self._held = self._identity()
        try:
            _mend(self._file)
        except BaseException:
            self.release()
            raise
        return True

    def release(self) -> None:
        """Let the next one write.

        If the lock was taken from us because we were slow, it is another's now, and stays.
        """
        if self._held is None or self._held == self._identity():
            super().release()
        self._held = None

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.lstat(self._lock_file)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns


def _mend(file: Path) -> None:
    if _ends_well(file):
        return
    content = file.read_bytes()
    whole = content.rfind(b"\n") + 1
    _check(file, content[whole:])
    os.truncate(file, whole)


def _ends_well(file: Path) -> bool:
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 1))
        return size == 0 or stream.read(1) == b"\n"


def _check(file: Path, line: bytes) -> None:
    """Refuse a line that no journal has, however short it was cut."""
    if line[: len(_BEGINNING)] != _BEGINNING[: len(line)]:
        raise StorageError(f"{file.name} is not an Optuna journal; the file was not changed.")
