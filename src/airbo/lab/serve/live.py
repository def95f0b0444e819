"""The campaign that all visitors share, what is being worked out, and what the model found.

The storage is the truth. What is kept here can be read, or worked out, again at any moment; others
may change the campaign at the same time, from the command line or another machine.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from airbo.lab import Campaign, Record, Settings, Status
from airbo.lab.advice import Given
from airbo.lab.events import new_key
from airbo.lab.serve.jobs import JobError, Runner, choose_designs, find, make_report, make_table
from airbo.lab.serve.models import Models

_T = TypeVar("_T")


@dataclass(frozen=True)
class Snapshot:
    """What the storage holds at one moment."""

    settings: Settings
    record: Record
    status: Status

    @cached_property
    def n_known(self) -> int:
        """Number of experiments with a value that the model knows."""
        return sum(e.counts and e.outcome == "ok" for e in self.record.experiments)

    @cached_property
    def known(self) -> str:
        """A text that changes whenever the model would learn something."""
        facts = [
            (e.number, e.design, e.outcomes, e.noise, e.infeasible, e.executed, e.uncertainty)
            for e in self.record.experiments
            if e.counts
        ]
        return _digest([str(self.settings), facts])


def _digest(content: Any) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Found:
    """What the model concludes from the experiments: the sections of the report."""

    known: str = ""
    """Key of the experiments that it is based on."""
    n_values: int = 0
    is_done: bool = True
    sections: Mapping[str, str] = field(default_factory=dict)
    """HTML of the sections of the report by key."""
    error: str | None = None


@dataclass(frozen=True)
class View:
    """All that a page shows, at one moment."""

    snapshot: Snapshot
    n_choosing: int
    """Designs that were asked for and are still to come."""
    choosing_error: str | None
    """Why the last one could not be chosen."""
    found: Found
    version: str
    """Changes whenever the page has to be renewed."""


class LiveCampaign:
    """One campaign, worked on by several visitors at once."""

    def __init__(self, path: str | Path, run: Runner) -> None:
        """Open the campaign of a file.

        Args:
            path: The campaign file.
            run: How work that takes seconds is done.
        """
        self.path = Path(path)
        self._run = run
        self._lock = threading.RLock()
        self._campaign: Campaign | None = None
        self._read: tuple[int, int] | None = None
        self._snapshot: Snapshot | None = None
        self._n_choosing, self._found = 0, Found()
        self._choosing_error: str | None = None
        self._is_finding = False
        self._began, self._n_shown = new_key(), 0
        """Tell apart what this server showed from what another one did, or this one earlier."""
        self._askers = ThreadPoolExecutor(1, "ask")
        self._finders = ThreadPoolExecutor(1, "find")
        self._models = Models(self.path, run)
        self.snapshot()

    def close(self) -> None:
        """Close the storage, when what is under way has ended."""
        self._askers.shutdown(cancel_futures=True)
        self._finders.shutdown(cancel_futures=True)
        self._models.close()
        with self._lock:
            if self._campaign is not None:
                self._campaign.close()
                self._campaign = None

    # -- the campaign

    def use(self, act: Callable[[Campaign], _T]) -> _T:
        """Use the campaign, one visitor at a time; other processes are not locked out."""
        with self._lock:
            return act(self._opened())

    def _opened(self) -> Campaign:
        """Open the campaign; reopen it if its file has changed."""
        try:
            about = self.path.stat()
        except OSError:
            about = None
        read = None if about is None else (about.st_mtime_ns, about.st_size)
        if self._campaign is None or read != self._read:
            opened = Campaign.open(self.path)
            if self._campaign is not None:
                self._campaign.close()
            self._campaign, self._read = opened, read
        return self._campaign

    def snapshot(self) -> Snapshot:
        """Return what the storage holds; only what is new is read."""
        with self._lock:
            campaign = self._opened()
            record, last = campaign.record(), self._snapshot
            is_last = last is not None and last.record is record
            if last is None or not is_last or last.settings is not campaign.settings:
                status = campaign.status(record)
                last = self._snapshot = Snapshot(campaign.settings, record, status)
            return last

    def look(self) -> View:
        """Return what a page shows; begin to renew what the model says, if that is outdated.

        Raises:
            CampaignError: If the campaign cannot be read.
        """
        with self._lock:
            snapshot = self.snapshot()
            self._renew(snapshot)
            shown = [self._began, self._n_shown, self._read, snapshot.record.version]
            return View(
                snapshot, self._n_choosing, self._choosing_error, self._found, _digest(shown)
            )

    # -- asking

    def ask(
        self, n: int = 1, by: str = "", key: str | None = None, given: Given = None
    ) -> "Future[list[int]]":
        """Begin to choose the next designs, after those that others asked for.

        Args:
            n: How many.
            by: Who asks.
            key: Of the form: the same form twice asks once.
            given: What is known beforehand.

        Returns:
            Their numbers, when they are chosen; or a ``JobError`` that says why not.
        """
        with self._lock:
            self._n_choosing, self._choosing_error = self._n_choosing + n, None
            self._n_shown += 1
        return self._askers.submit(self._choose, n, by, key, dict(given or {}))

    def _choose(self, n: int, by: str, key: str | None, given: Mapping[str, Any]) -> list[int]:
        came, error = list[int](), None

        def count(number: int) -> None:
            came.append(number)
            self._came(1)

        try:
            self._run(choose_designs, (self.path, n, by, key, given), count)
        except JobError as failure:
            error = str(failure)
            raise
        finally:
            self._came(n - len(came), error)
        return came

    def work_out(self, work: Callable[..., None], *args: Any) -> Any:
        """Work out one answer in a process of its own."""
        found: list[Any] = []
        self._run(work, (self.path, *args), found.append)
        return found[0]

    def _came(self, n: int, error: str | None = None) -> None:
        with self._lock:
            self._n_choosing, self._n_shown = self._n_choosing - n, self._n_shown + 1
            self._choosing_error = error or self._choosing_error

    # -- what the model says

    def _renew(self, snapshot: Snapshot) -> None:
        if not snapshot.n_known:  # also where all was taken back
            self._found = Found()
        elif self._found.known != snapshot.known and not self._is_finding:
            self._is_finding = True
            begun = Found(snapshot.known, snapshot.n_known, False, self._found.sections)
            self._show(replace(self._found, is_done=False, error=None))
            self._finders.submit(self._find, begun)

    def find_again(self) -> None:
        """Forget a search that failed, so that the next visitor begins another one."""
        with self._lock:
            if self._found.error is not None:
                self._show(replace(self._found, known="", error=None))

    def _find(self, begun: Found) -> None:
        found, new, error = begun, dict[str, str](), None

        def show(section: tuple[str, str]) -> None:
            nonlocal found
            new[section[0]] = section[1]
            found = replace(found, sections={**found.sections, **new})
            self._show(found)

        try:
            self._run(find, (self.path,), show)
        except JobError as failure:
            error = str(failure)
        sections = found.sections if error else new
        self._show(replace(found, sections=sections, is_done=True, error=error))
        self._is_finding = False

    def _show(self, found: Found) -> None:
        with self._lock:
            self._found = found
            self._n_shown += 1

    def ask_models(self, find: Callable[..., Any], *about: Any) -> Any:
        """Return what the models say; see ``Models.ask``."""
        return self._models.ask(self.snapshot().known, find, *about)

    # -- files to save

    def make_file(self, name: str) -> bytes:
        """Make a file: ``report.html``, or a table as ``make_table`` knows them.

        Raises:
            JobError: If that is not possible.
        """
        found = self._found
        if name != "report.html":
            return bytes(self.work_out(make_table, name))
        if not found.sections or not found.is_done:
            raise JobError("There is no report yet. Try again when the model has done its work.")
        return bytes(self.work_out(make_report, dict(found.sections)))
