"""Where the events of a campaign are kept: one table that only grows, in SQLite or PostgreSQL.

A change is one transaction: ``append`` writes all its events, or none. It says which event it was
decided after. If somebody else was faster, nothing is written (``Outdated``), and the caller
decides again; so nobody waits for a decision, and no position is taken twice.

Every event has a digest over itself and the digest of the event before. So whoever reads the events
notices a part that was changed or lost. SQLite also keeps the number of events in the head of the
file (``user_version``), in the same transaction: a lost end is noticed, too.

SQLite has a rollback journal (``journal_mode=DELETE``), because the file alone is then the whole
campaign between two commands: it can be copied, and it works on network drives. (With a
write-ahead log, a copy would lack the last changes.) ``synchronous=EXTRA`` is ``FULL``
and a sync of the folder when the journal is gone: what was reported survives a power cut.
"""

import contextlib
import errno
import hashlib
import os
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from airbo.lab.errors import DamageError, StorageError
from airbo.lab.events import Event, body_of, fact_from
from airbo.lab.url import StorageURL
from airbo.words import quoted

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine, Row

BUSY_SECONDS = 20
"""How long to wait for a database that another process is writing to."""

_TABLE = sa.Table(
    "event",
    sa.MetaData(),
    sa.Column("campaign", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.UniqueConstraint("campaign", "key"),
)
_COLUMNS = ("campaign", "seq", "at", "by", "key", "kind", "body")
"""What a digest is over."""

_NO_SUCH_TABLE = "42P01"
"""What PostgreSQL calls it."""
_MAKING_TABLES = 0x61697262
"""The advisory lock of a server while its table is made."""


class Outdated(Exception):
    """Somebody else has written events since those that a change was decided after."""


class Store:
    """The events of one campaign."""

    def __init__(self, url: StorageURL, folder: Path, campaign: str) -> None:
        """Name a storage; nothing is opened yet.

        Args:
            url: Where it is.
            folder: Where relative paths count from.
            campaign: The name of the campaign.
        """
        self.url, self.campaign = url, campaign
        self.path = url.file(folder)
        if self.path is not None and not self.path.parent.is_dir():
            raise StorageError(
                f"There is no folder {self.path.parent} for the storage {self.path.name}."
            )
        self._opened: Engine | None = None

    def __str__(self) -> str:
        return str(self.url) if self.path is None else self.path.name

    def close(self) -> None:
        """Close all connections."""
        if self._opened is not None:
            self._opened.dispose()
            self._opened = None

    # -- reading

    @property
    def is_there(self) -> bool:
        """Whether the storage may hold the campaign: a file that exists, or a server."""
        return self.path is None or self.path.exists()

    def read(self, after: Event | None = None) -> list[Event]:
        """Return all events after one that is known, or all; every digest is compared.

        Raises:
            DamageError: If one was changed or lost.
        """
        with self._connected() as connection:
            rows = self._rows(connection, 0 if after is None else after.seq)
            n = None  # servers do not count
            if self.path is not None:
                n = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        if after is not None:
            if not rows or rows[0].digest != after.digest:
                raise self._damaged(f"event {after.seq} is not there any more, or was changed")
            rows = rows[1:]
        found, last = [], after
        for row in rows:
            expected = 1 if last is None else last.seq + 1
            if row.seq != expected:
                raise self._damaged(f"event {expected} is lost")
            try:
                last = _event(row, "" if last is None else last.digest)
            except ValueError as error:
                raise self._damaged(f"event {row.seq} was changed: {error}") from None
            found.append(last)
        if n is not None and n != (0 if last is None else last.seq):
            raise self._damaged(f"it should hold {n} events, and has {last.seq if last else 0}")
        return found

    def _rows(self, connection: "Connection", first: int = 0) -> "Sequence[Row[Any]]":
        query = sa.select(_TABLE).where(_TABLE.c.campaign == self.campaign, _TABLE.c.seq >= first)
        try:
            rows = connection.execute(query.order_by(_TABLE.c.seq)).all()
        except sa.exc.DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _NO_SUCH_TABLE:
                return []  # nobody has begun a campaign on this server
            raise
        if not rows and not first and self.path is not None:  # servers hold many campaigns
            others = connection.execute(sa.select(_TABLE.c.campaign).distinct()).scalars().all()
            if others:
                raise StorageError(
                    f"The storage {self} belongs to another campaign: it holds {quoted(others)}, "
                    f"and the file is about {self.campaign!r}. Put the old name back if you only "
                    "renamed it, or give the new campaign a storage of its own."
                )
        return rows

    def _damaged(self, what: str) -> DamageError:
        return DamageError(str(self), what)

    # -- writing

    def append(self, new: Sequence[Event], after: Event | None) -> list[Event]:
        """Write events after the last known one: all of them, or none.

        Args:
            new: Without positions and digests, which they get here.
            after: The last known one; None: there is none.

        Returns:
            The same with positions and digests.

        Raises:
            Outdated: If it is not the last one any more.
        """
        rows, events, before = [], list[Event](), after
        for event in new:
            # times never run backwards
            at = max([event.at.astimezone(UTC), *([] if before is None else [before.at])])
            event = replace(event, seq=1 if before is None else before.seq + 1, at=at)
            row: dict[str, Any] = {
                "campaign": self.campaign,
                "seq": event.seq,
                "at": at.isoformat(timespec="microseconds"),
                "by": event.by,
                "key": event.key,
                "kind": event.fact.kind,
                "body": body_of(event.fact),
            }
            row["digest"] = _digest(row, "" if before is None else before.digest)
            before = replace(event, digest=row["digest"])
            rows.append(row)
            events.append(before)
        if after is None and not self.is_there:
            self._create(rows)
        else:
            self._insert(rows, after)
        return events

    def _insert(self, rows: Sequence[dict[str, Any]], after: Event | None) -> None:
        """Write rows after the last known event into a database that is there."""
        with self._connected(writing=True) as connection:
            if self.path is None and after is None:
                # Two programs that make one table at the same moment fail: one waits.
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING_TABLES)))
                _TABLE.metadata.create_all(connection)
            last = connection.execute(
                sa.select(sa.func.max(_TABLE.c.seq)).where(_TABLE.c.campaign == self.campaign)
            ).scalar_one()
            if (last or 0) != (0 if after is None else after.seq):
                raise Outdated
            try:
                connection.execute(_TABLE.insert(), list(rows))
            except sa.exc.IntegrityError:  # at the same moment: the primary key lets one of two in
                raise Outdated from None
            if self.path is not None:
                connection.exec_driver_sql(f"PRAGMA user_version = {rows[-1]['seq']:d}")

    def _create(self, rows: Sequence[dict[str, Any]]) -> None:
        """Make a file with its first events; it is there whole, or not at all."""
        assert self.path is not None
        new = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:8]}")
        try:
            with self._explained(), sqlite(new).begin() as connection:
                _TABLE.metadata.create_all(connection)
                connection.execute(_TABLE.insert(), list(rows))
                connection.exec_driver_sql(f"PRAGMA user_version = {rows[-1]['seq']:d}")
            with self._explained():
                put(new, self.path)
        except FileExistsError:  # somebody else began the campaign at the same moment
            raise Outdated from None
        finally:
            new.unlink(missing_ok=True)

    # -- care

    def check(self) -> int:
        """Verify all events, and let SQLite check its file; return the number of events.

        Raises:
            DamageError: If something is wrong.
        """
        if self.path is not None:
            with self._connected() as connection:
                said = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
            if said != ["ok"]:
                raise self._damaged(f"SQLite says: {said[0]}")
        return len(self.read())

    def copy_to(self, other: "Store") -> int:
        """Write a copy into another storage, also while others write; return its events.

        Raises:
            StorageError: If there is such a file, or the server has such a campaign already.
        """
        events = self.read()
        with self._connected() as connection:
            rows = [dict(row._mapping) for row in self._rows(connection)][: len(events)]
        if not rows:
            raise StorageError(f"The storage {self} holds no campaign {self.campaign!r} yet.")
        try:
            other._insert(rows, None) if other.path is None else other._create(rows)
        except Outdated:
            what = "exists" if other.path is not None else f"holds a campaign {self.campaign!r}"
            raise StorageError(f"{other} {what} already; give the copy another place.") from None
        return len(rows)

    def salvage(self) -> tuple[list[Event], int]:
        """Return the events that are as they were written, each by its own digest.

        An event whose predecessor is lost cannot be compared. It counts if it can be read.

        Returns:
            The events, and how many were changed or lost, as far as can be told.
        """
        rows, n = self._readable()
        events, before = [], ""
        last = 0
        for row in rows:
            with contextlib.suppress(ValueError, TypeError):
                is_next = row["seq"] == last + 1
                events.append(_event(SimpleNamespace(**row), before if is_next else None))
                last = row["seq"]
            before = row["digest"]
        whole = max([n, *(row["seq"] for row in rows if isinstance(row["seq"], int))])
        return events, max(0, whole - len(events))

    def _readable(self) -> tuple[list[dict[str, Any]], int]:
        """Return the rows that can be read at all, one by one, and how many there should be."""
        if self.path is None:
            with self._connected() as connection:
                return [dict(row._mapping) for row in self._rows(connection)], 0
        if not self.path.exists():
            raise StorageError(f"The storage {self} is not there.")
        to_read = f"{self.path.as_uri()}?mode=ro"
        with (
            self._explained(),
            contextlib.closing(sqlite3.connect(to_read, BUSY_SECONDS, uri=True)) as connection,
        ):
            connection.row_factory = sqlite3.Row
            try:
                [n] = connection.execute("PRAGMA user_version").fetchone()
                [most] = connection.execute("SELECT max(rowid) FROM event").fetchone()
            except sqlite3.DatabaseError:
                n, most = 0, None
            numbers = range(1, (most or max(n, MOST_SALVAGED)) + 1)
            found = [row for i in numbers if (row := _row_at(connection, i)) is not None]
        return [row for row in found if row["campaign"] == self.campaign], min(n, len(numbers))

    # -- connections

    @contextmanager
    def _connected(self, writing: bool = False) -> "Iterator[Connection]":
        """Give a connection, with a transaction around it."""
        with self._explained():
            if self.path is not None and not self.path.exists():
                raise StorageError(f"The storage {self} is gone.")
            if self.path is not None and not self.path.stat().st_size:
                raise self._damaged("the file is empty")
            if self._opened is None and self.path is not None:
                self._opened = sqlite(self.path)
            elif self._opened is None:
                url = sa.make_url(self.url.text)
                if url.drivername == "postgresql":  # the driver that `airbo[postgres]` installs
                    url = url.set(drivername="postgresql+psycopg")
                self._opened = sa.create_engine(url, pool_pre_ping=True)
            with self._opened.connect() as connection:
                if self.path is not None:
                    kind = "IMMEDIATE" if writing else "DEFERRED"
                    connection.info["begin"] = f"BEGIN {kind}"
                with connection.begin():
                    yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what databases and disks raise into one paragraph for the user."""
        try:
            yield
        except FileExistsError:
            raise
        except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError, ImportError, UnicodeError) as error:
            raise explained(error, self.url) from None


MOST_SALVAGED = 100_000
"""How many events to look for where nothing says how many there are."""


def _row_at(connection: sqlite3.Connection, rowid: int) -> dict[str, Any] | None:
    """Return one row of a file that may be damaged, or nothing if it cannot be read."""
    try:
        row = connection.execute("SELECT * FROM event WHERE rowid = ?", (rowid,)).fetchone()
    except (sqlite3.Error, UnicodeError):
        return None
    return None if row is None else dict(row)


def sqlite(path: Path) -> "Engine":
    """Open an SQLite file as campaigns need it; see the top of this file."""
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        connect_args={"timeout": BUSY_SECONDS},
        poolclass=sa.pool.NullPool,  # an idle connection would keep Windows from moving the file
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        connection.execute("PRAGMA synchronous = EXTRA")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: "Connection") -> None:
        connection.exec_driver_sql(connection.info.get("begin", "BEGIN IMMEDIATE"))

    return engine


def put(new: Path, path: Path) -> None:
    """Give a whole new file its name, unless there is one with that name.

    Raises:
        FileExistsError: If there is.
    """
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(errno.EEXIST, "there is such a file", str(path)) from None
        os.rename(new, path)


def _digest(row: dict[str, Any], before: str) -> str:
    """Return the digest over an event and the digest of the one before."""
    parts = [before, *(str(row[name]) for name in _COLUMNS)]
    text = "".join(f"{len(part)}:{part}" for part in parts)  # no two rows have the same text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _event(row: Any, before: str | None) -> Event:
    """Read a row.

    Args:
        row: With all columns.
        before: Digest of the event before; None: that is not known, and nothing is compared.

    Raises:
        ValueError: If it is not as it was written.
    """
    if before is not None:
        values = {name: getattr(row, name) for name in _COLUMNS}
        if _digest(values, before) != row.digest:
            raise ValueError("its digest does not fit")
    at = datetime.fromisoformat(row.at)
    return Event(row.seq, at, row.by, row.key, fact_from(row.kind, row.body), row.digest)


# -- what is wrong with a storage, in words

_REASONS = {
    "database is locked": "It is locked: another program is writing to it and keeps it locked. "
    "Close that program (a database browser, a copy in progress) and try again.",
    "readonly database": "It is read-only. Make the file and its folder writable.",
    "read-only": "It is read-only. Make the file and its folder writable.",
    "disk is full": "The disk is full. Make room and try again; what was reported before is kept.",
    "unable to open database file": "The file cannot be opened: is the folder there, and writable?",
    "file name too long": "Its name is too long.",
    "disk i/o error": "The disk reports an error, or the folder is not writable.",
    "permission denied": "You may not read or write it: permission denied.",
    "could not be loaded": "The database driver is not installed; "
    "for PostgreSQL: pip install 'airbo[postgres]'.",
    "connection refused": "The server does not answer: is it running, at this host and port?",
    "password authentication failed": "The server refused user name or password.",
}
_DAMAGED = {
    "file is not a database": "it is not an SQLite database",
    "malformed": "SQLite cannot read it",
    "no such table": "it has no table of events; if it is an Optuna study, airbo import --study "
    "URL NAME brings it into a campaign with another storage",
    "no such column": "its table of events lacks a column",
    "could not decode": "a text in it is not UTF-8",
    "codec can't decode": "a text in it is not UTF-8",
    "unsupported file format": "it is not an SQLite database",
}


def explained(error: BaseException, url: StorageURL) -> StorageError:
    """Say what is wrong with a storage, without a traceback."""
    about = f"The storage {url} cannot be used. "
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(about + _REASONS["disk is full"])
    if isinstance(error, ImportError | sa.exc.NoSuchModuleError):
        return StorageError(about + _REASONS["could not be loaded"])
    if isinstance(error, sa.exc.ArgumentError):
        return StorageError(about + "It is not a valid URL.")
    text = str(getattr(error, "orig", None) or error)
    for sign, what in _DAMAGED.items():
        if url.is_file and sign in text.lower():
            return DamageError(str(url), what)
    for sign, reason in _REASONS.items():
        if sign in text.lower():
            return StorageError(about + reason)
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return StorageError(about + f"{first.strip().rstrip('.')}.")
