"""Where a campaign is kept: an Optuna storage, opened with care; and files written whole."""

import errno
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import optuna
from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from airbo.campaign.errors import DamageError, StorageError
from airbo.campaign.journal import open_journal
from airbo.campaign.sqlite import SQLiteStorage
from airbo.campaign.storage_url import SQLITE, StorageURL

BUSY_SECONDS = 20
"""How long to wait for a database that another process is writing to."""

N_TRIES = 10
"""How often to look again while others make the tables of a new database."""

_MADE_BY_OTHERS = ("already exists", "duplicate", "unique constraint", "tuple concurrently")


def open_storage(url: StorageURL, folder: Path) -> BaseStorage:
    """Open a storage, and make it if it is a file that does not exist.

    Nothing that these storages read is unpickled: Optuna keeps JSON in them. (Its Redis journal
    does keep a pickle, and is not among them.)
    """
    with explained(url):
        file = url.file(folder)
        if file is None:
            return _database(RDBStorage, url.to_connect(), {"pool_pre_ping": True})
        if not file.parent.is_dir():
            raise StorageError(f"There is no folder {file.parent} for the storage {file.name}.")
        if url.is_journal:
            with reading(url):
                return open_journal(file)
        waiting = {"connect_args": {"timeout": BUSY_SECONDS}}
        return _database(SQLiteStorage, f"{SQLITE}{file}", waiting)


def _database(kind: type[RDBStorage], url: str, engine: dict[str, Any]) -> BaseStorage:
    """Open a database; make its tables, also while another process does the same."""
    for attempt in range(1, N_TRIES):
        try:
            return optuna.storages.get_storage(kind(url, engine_kwargs=engine))
        except SQLAlchemyError as error:
            if not any(sign in str(error).lower() for sign in _MADE_BY_OTHERS):
                raise
            time.sleep(0.1 * attempt)
    return optuna.storages.get_storage(kind(url, engine_kwargs=engine))


def close_storage(storage: BaseStorage) -> None:
    """Close the connections to a database."""
    storage.remove_session()
    backend = getattr(storage, "_backend", None)  # what Optuna's cache is in front of
    if isinstance(backend, RDBStorage):
        backend.engine.dispose()


@contextmanager
def explained(url: StorageURL) -> Iterator[None]:
    """Turn what databases and disks raise into one paragraph for the user."""
    try:
        yield
    except optuna.exceptions.StorageInternalError as error:
        raise StorageError(_reason(error.__cause__ or error, url)) from None
    except (SQLAlchemyError, OSError, ImportError) as error:
        raise StorageError(_reason(error, url)) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamageError(str(url), f"one of its lines is no JSON ({error})", "") from None
    except RuntimeError as error:
        if "lock" not in str(error) and "version" not in str(error):
            raise
        raise StorageError(_reason(error, url)) from None


@contextmanager
def reading(url: StorageURL) -> Iterator[None]:
    """Turn what Optuna raises on content that it cannot read into a message."""
    try:
        yield
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError, OverflowError) as e:
        what = f"something in it cannot be read ({type(e).__name__}: {str(e)[:80]})"
        raise DamageError(str(url), what, "") from e


Method = TypeVar("Method", bound=Callable[..., Any])


def explains(method: Method) -> Method:
    """Let a method of something with a ``url`` say in words what is wrong with the storage."""

    @wraps(method)
    def explaining(self: Any, *args: Any, **kwargs: Any) -> Any:
        with explained(self.url):
            return method(self, *args, **kwargs)

    return cast(Method, explaining)


_REASONS = {
    "database is locked": "It is locked: another program is writing to it and does not let go. "
    "Close that program (a database browser, a copy in progress) and try again.",
    "readonly database": "It is read-only. Make the file and its folder writable.",
    "read-only": "It is read-only. Make the file and its folder writable.",
    "disk is full": "The disk is full. Make room and try again; what was told before is kept.",
    "unable to open database file": "The file cannot be opened: is the folder there, and writable?",
    "file is not a database": "The file is something else, not an SQLite database, or it is "
    "damaged. To go back to a backup: airbo restore BACKUP.",
    "malformed": "The file is damaged. To see what can be read: airbo export --damaged -o "
    "rescued.csv. To go back to a backup: airbo restore BACKUP.",
    "no such table": "The file is damaged: a table is not there. To go back to a backup: airbo "
    "restore BACKUP.",
    "disk i/o error": "The disk reports an error, or the folder is not writable.",
    "permission denied": "You may not read or write it: permission denied.",
    "could not be loaded": "The database driver is not installed; "
    "for PostgreSQL: pip install 'airbo[postgres]'.",
    "connection refused": "The server does not answer: is it running, at this host and port?",
    "password authentication failed": "The server refused user name or password.",
}


def _reason(error: BaseException, url: StorageURL) -> str:
    """Say what is wrong with a storage, without passwords and without a traceback."""
    about = f"The storage {url} cannot be used. "
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return about + _REASONS["disk is full"]
    if isinstance(error, ImportError | NoSuchModuleError):
        return about + _REASONS["could not be loaded"]
    if isinstance(error, ArgumentError):
        return about + "It is not a valid URL."
    text = str(getattr(error, "orig", None) or error)
    for sign, reason in _REASONS.items():
        if sign in text.lower():
            return about + reason
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    if not url.is_safe(first):
        return about + "What the driver says about it holds the password and is left out."
    return about + f"{first.strip().rstrip('.')}."


def copy_whole(source: Path, path: Path) -> None:
    """Copy a file so that it is there whole or not at all."""
    write_whole(path, source.read_bytes())


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that is there whole or not at all, by way of a temporary one beside it."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
