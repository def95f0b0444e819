"""Work that takes seconds, in processes of its own: the page goes on meanwhile.

The fork server imports PyTorch once, in the background; a process then starts in milliseconds, and
shares that memory. A process that dies takes nothing with it: the storage is the truth. A process
ends with the server, whichever way that ends: it watches its parent. Ctrl-C reaches the whole group
of processes; only the server minds it, and ends the others.
"""

import datetime
import multiprocessing
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airbo.lab import Campaign

SECONDS = 900
"""A job that takes longer hangs."""
_PRELOADED = ["airbo.lab.campaign", "airbo.optimizer", "airbo.lab.report"]
"""What the fork server imports."""

Deliver = Callable[[Any], None]
"""Takes what a job finds, as soon as it is found."""


Runner = Callable[[Callable[..., None], tuple[Any, ...], Deliver], None]
"""Runs ``work(*args, report)`` somewhere, returns when it has ended, and raises a ``JobError`` if
it fails."""


_ENDED = "The process that worked on this was ended. Try again."


class JobError(Exception):
    """A job failed; the message is for users."""

    def __init__(self, text: str, is_refused: bool = False) -> None:
        """Say what went wrong; ``is_refused``: the campaign did not allow it."""
        super().__init__(text)
        self.is_refused = is_refused


class Workers:
    """Runs each job in a process of its own, until it is stopped."""

    def __init__(self) -> None:
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context(
            "forkserver" if "forkserver" in methods else "spawn"
        )
        self._lock = threading.Lock()
        self._running: set[BaseProcess] = set()
        self._is_stopped = False

    def __call__(self, work: Callable[..., None], args: tuple[Any, ...], report: Deliver) -> None:
        """Run a job; see ``Runner``."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_run, args=(work, args, theirs), daemon=True)
        try:
            self._start(process)
            theirs.close()
            _listen(ours, report)
        finally:
            ours.close()
            self._end(process)

    def warm_up(self) -> None:
        """Start the fork server, which then imports PyTorch; call it in the main thread."""
        if self._context.get_start_method() != "forkserver":
            return
        from multiprocessing.forkserver import ensure_running

        self._context.set_forkserver_preload(_PRELOADED)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which processes inherit
        try:
            ensure_running()
        finally:
            signal.signal(signal.SIGINT, before)

    def stop(self) -> None:
        """End all jobs, and let no other begin."""
        with self._lock:
            self._is_stopped = True
            for process in self._running:
                process.kill()
        for process in list(self._running):
            process.join(5)

    def _start(self, process: BaseProcess) -> None:
        with self._lock:
            if self._is_stopped:
                raise JobError(_ENDED)
            process.start()
            self._running.add(process)

    def _end(self, process: BaseProcess) -> None:
        if process.pid is None:
            return
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()
        with self._lock:
            self._running.discard(process)


def _run(work: Callable[..., None], args: tuple[Any, ...], pipe: Connection) -> None:
    """Run a job at the other end of the pipe; the last message says how it ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(*args, lambda found: pipe.send(("found", found)))
        pipe.send(("done", ""))
    except Exception as error:
        pipe.send(("failed", in_words(error)))


def _end_with_parent() -> None:
    """End this process at once when the server is gone: nobody waits for its job any more."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _listen(pipe: Connection, report: Deliver) -> None:
    while pipe.poll(SECONDS):
        try:
            kind, content = pipe.recv()
        except EOFError:
            raise JobError(_ENDED) from None
        if kind == "failed":
            raise JobError(*content)
        if kind == "done":
            return
        report(content)
    raise JobError("This took too long and was stopped. Try again.")


def in_words(error: Exception) -> tuple[str, bool]:
    """Say what went wrong, and whether the campaign did not allow it; see ``JobError``."""
    from airbo.lab.errors import CampaignError

    if isinstance(error, CampaignError):
        return str(error), True
    traceback.print_exception(error)
    text = f"This went wrong inside airbo ({type(error).__name__}); the terminal says more."
    return text, False


# -- what is worked out there: choosing designs, what was found, and files to save


def choose_designs(
    path: Path, n: int, by: str, key: str | None, given: Mapping[str, Any], report: Deliver
) -> None:
    """Choose the next designs, which are then pending, and report their numbers.

    Args:
        path: The campaign file.
        n: How many.
        by: Who asks.
        key: Of the form: designs of one key are chosen once.
        given: What is known beforehand.
        report: Takes each number as soon as its design is stored.
    """
    with opened(path) as campaign:
        for i in range(n):
            own = None if key is None else f"{key}:{i}"
            [asked] = campaign.signed(by).ask(key=own, given=given)
            report(asked.number)


def find(path: Path, report: Deliver) -> None:
    """Work out the sections of the report, and report the key and the HTML of each."""
    from airbo.lab.advice import check_given
    from airbo.lab.report import Findings, sections

    with opened(path) as campaign:
        settings, record = campaign.settings, campaign.record()
        check_given(settings, None)
        numbers = [e.number for e in campaign.modelled(record)]
        optimizer = campaign.optimizer(record)
        findings = Findings(optimizer, settings.units, numbers, plausible=settings.plausible)
        for found in sections(findings, record):
            report(found)


def make_table(path: Path, kind: str, report: Deliver) -> None:
    """Make a file of all experiments, or of all changes, and report its bytes.

    Args:
        path: The campaign file.
        kind: ``experiments.csv``, ``experiments.xlsx`` or ``history.csv``.
        report: Takes the bytes.
    """
    from airbo.lab.tables import to_csv, to_excel

    with opened(path) as campaign:
        table = campaign.export_history() if kind == "history.csv" else campaign.export()
    report(to_excel(table) if kind.endswith(".xlsx") else to_csv(table).encode())


def make_report(path: Path, sections: Mapping[str, str], report: Deliver) -> None:
    """Make the file of the report from the sections that were found, and report its bytes.

    The history is the latest one: what changes it need not change what the model says.
    """
    from airbo.lab.report.report import section, whole_page

    with opened(path) as campaign:
        record = campaign.record()
        shown = {**sections, "history": section("history", record)}
        title, today = campaign.settings.name, datetime.date.today()
        report(whole_page(campaign.optimizer(record), shown.values(), title, today).encode())


def opened(path: Path) -> "Campaign":
    """Open a campaign in a process that needs nothing but it."""
    import torch

    from airbo.lab import Campaign

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return Campaign.open(path)
