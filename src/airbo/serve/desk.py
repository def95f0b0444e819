"""The desk that all visitors share: the campaign, what is being worked out, and what came of it.

The storage is the truth. What is kept here can be read, or worked out, again at any moment; others
may change the campaign at the same time, from the command line or another machine.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from airbo.campaign import Campaign, CampaignError, Experiment, Settings, Status
from airbo.campaign.history import Change
from airbo.serve.jobs import JobError, Runner
from airbo.serve.thinking import Advice, Chart, choose_designs, look

_T = TypeVar("_T")


@dataclass(frozen=True)
class Snapshot:
    """What the storage holds at one moment."""

    settings: Settings
    status: Status
    experiments: list[Experiment]
    history: list[Change]

    @property
    def last(self) -> str:
        """The key of the change that an undo would take back; empty if there is none."""
        return name_of_last(self.history)

    @property
    def n_known(self) -> int:
        """Number of experiments with a value that the model knows."""
        return sum(e.counts and e.outcome == "ok" for e in self.experiments)

    @property
    def version(self) -> str:
        """A text that changes whenever the page has to change."""
        shown = [self.status.notes, len(self.history), *(_facts(e) for e in self.experiments)]
        return _digest([str(self.settings), *shown])

    @property
    def told(self) -> str:
        """A text that changes whenever the model would learn something."""
        told = [_facts(e) for e in self.experiments if e.counts]
        return _digest([str(self.settings), *told])


def name_of_last(history: Sequence[Change]) -> str:
    """Return the key of the change that an undo would take back; empty if there is none."""
    standing = [c for c in history if c.is_deliberate and not c.undone and c.what != "undone"]
    return (standing[-1].call or standing[-1].name) if standing else ""


def _facts(e: Experiment) -> list[Any]:
    executed = sorted(e.executed.items())
    told = [e.outcome, e.value, sorted(e.outcomes.items()), e.infeasible]
    return [e.number, list(e.design.items()), told, executed, str(e.uncertainty)]


def _digest(content: Any) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Choosing:
    """What is being asked for."""

    n: int = 0
    """Designs that are still to come."""
    error: str | None = None
    """Why the last one could not be chosen."""


@dataclass(frozen=True)
class Sight:
    """What the model concludes from the experiments."""

    told: str = ""
    """Key of the experiments that it is based on."""
    n_values: int = 0
    is_done: bool = True
    advice: Advice | None = None
    charts: dict[str, Chart] = field(default_factory=dict)
    error: str | None = None


class Desk:
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
        self._choosing, self._looked = Choosing(), Sight()
        self._next: Sight | None = None
        """What is being computed; each result is shown as soon as it is ready."""
        self._askers = ThreadPoolExecutor(1, "ask")
        self._lookers = ThreadPoolExecutor(1, "look")
        self.snapshot()

    def close(self) -> None:
        """Close the storage, when what is under way has ended."""
        self._askers.shutdown(cancel_futures=True)
        self._lookers.shutdown(cancel_futures=True)
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
        """Read what the storage holds."""
        return self.use(lambda c: Snapshot(c.settings, c.status(), c.experiments, c.history()))

    def version(self) -> str:
        """Return a text that changes whenever pages have to be renewed."""
        with self._lock:
            looked, choosing = self._looked, self._choosing
            try:
                held = self.snapshot().version
            except CampaignError as error:
                held = str(error)
        charts = [(key, chart.figure) for key, chart in looked.charts.items()]
        return _digest([held, choosing, looked.told, looked.is_done, looked.error, charts])

    # -- asking

    @property
    def choosing(self) -> Choosing:
        """What is being asked for."""
        return self._choosing

    def ask(self, n: int = 1) -> None:
        """Begin to choose the next designs, after those that others asked for."""
        with self._lock:
            self._choosing = Choosing(self._choosing.n + n)
        self._askers.submit(self._choose, n)

    def _choose(self, n: int) -> None:
        came, error = 0, None

        def count(number: int) -> None:
            nonlocal came
            came += 1
            self._came(1)

        try:
            self._run(choose_designs, (self.path, n), count)
        except JobError as failure:
            error = str(failure)
        self._came(n - came, error)

    def _came(self, n: int, error: str | None = None) -> None:
        with self._lock:
            self._choosing = Choosing(self._choosing.n - n, error or self._choosing.error)

    # -- looking

    def looked(self) -> Sight:
        """Return what the model concludes from the experiments; begin to renew it if outdated."""
        with self._lock:
            try:
                snapshot = self.snapshot()
            except CampaignError:
                return self._looked
            if not snapshot.n_known:  # also where all was taken back
                self._looked = Sight()
            elif self._looked.told != snapshot.told and self._next is None:
                self._next = Sight(snapshot.told, snapshot.n_known, is_done=False)
                self._looked = replace(self._looked, is_done=False)
                self._lookers.submit(self._look, self._next)
            return self._looked

    def look_again(self) -> None:
        """Forget a look that failed, so that the next visitor begins another one."""
        with self._lock:
            if self._looked.error is not None:
                self._looked = replace(self._looked, told="", error=None)

    def _look(self, begun: Sight) -> None:
        found = begun

        def show(new: Advice | Chart) -> None:
            nonlocal found
            if isinstance(new, Advice):
                found = replace(found, advice=new, charts=dict(self._looked.charts))
            else:
                found = replace(found, charts={**found.charts, new.key: new})
            self._show(found)

        error = None
        try:
            self._run(look, (self.path,), show)
        except JobError as failure:
            error = str(failure)
        self._show(replace(found, is_done=True, error=error), done=True)

    def _show(self, found: Sight, done: bool = False) -> None:
        with self._lock:
            self._looked = found
            if done:
                self._next = None

    # -- for tests and orderly ends

    def wait(self, seconds: float = 60) -> None:
        """Wait until nothing is being worked out."""
        deadline = time.monotonic() + seconds
        while self._choosing.n or self._next is not None:
            if time.monotonic() > deadline:
                raise TimeoutError("The jobs of the desk do not end.")
            time.sleep(0.01)
