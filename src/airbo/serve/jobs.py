"""Work that takes seconds, in processes of its own: the page goes on meanwhile.

The fork server imports PyTorch once, in the background; a process then starts in milliseconds, and
shares that memory. A process that dies takes nothing with it: the storage is the truth.
"""

import multiprocessing
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

SECONDS = 900
"""A job that takes longer hangs."""
_PRELOADED = ["airbo.serve.thinking", "airbo.campaign.optuna.sampler", "airbo.report"]
"""What the fork server imports."""

Deliver = Callable[[Any], None]
"""Takes what a job finds, as soon as it is found."""


Runner = Callable[[Callable[..., None], tuple[Any, ...], Deliver], None]
"""Runs ``work(*args, report)`` somewhere, returns when it has ended, and raises a ``JobError`` if
it fails."""


class JobError(Exception):
    """A job failed; the message is for users."""


def here(work: Callable[..., None], args: tuple[Any, ...], report: Deliver) -> None:
    """Run a job in this process and thread."""
    try:
        work(*args, report)
    except Exception as error:
        raise JobError(_in_words(error)) from None


def elsewhere(work: Callable[..., None], args: tuple[Any, ...], report: Deliver) -> None:
    """Run a job in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, args, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        _listen(ours, report)
    finally:
        ours.close()
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()


def warm_up() -> None:
    """Start the fork server, which then imports PyTorch, without waiting for it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_nothing, daemon=True)
    threading.Thread(target=process.start, daemon=True).start()


def _nothing() -> None:
    """Do nothing."""


def _run(work: Callable[..., None], args: tuple[Any, ...], pipe: Connection) -> None:
    """Run a job at the other end of the pipe; the last message says how it ended."""
    try:
        work(*args, lambda found: pipe.send(("found", found)))
        pipe.send(("done", ""))
    except Exception as error:
        pipe.send(("failed", _in_words(error)))


def _listen(pipe: Connection, report: Deliver) -> None:
    while pipe.poll(SECONDS):
        try:
            kind, content = pipe.recv()
        except EOFError:
            raise JobError("The process that worked on this was ended. Try again.") from None
        if kind == "failed":
            raise JobError(content)
        if kind == "done":
            return
        report(content)
    raise JobError("This took too long and was stopped. Try again.")


def _in_words(error: Exception) -> str:
    from airbo.campaign.errors import CampaignError

    if isinstance(error, CampaignError):
        return str(error)
    traceback.print_exception(error)
    return f"This went wrong inside airbo ({type(error).__name__}); the terminal says more."
