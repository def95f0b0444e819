"""Processes that work on a campaign and may be killed at any moment."""

import os
import signal
import traceback
from collections.abc import Callable

import sqlalchemy as sa


def start(act: Callable[[], object]) -> int:
    """Do something in another process; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        act()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def finish(child: int) -> int:
    """Wait for a process; return its exit code, negative if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill(child: int) -> None:
    """Kill a process; it is still waited for."""
    os.kill(child, signal.SIGKILL)


def was_killed_at(n: int, act: Callable[[], object]) -> bool:
    """Do something in another process that is killed before its n-th step towards a disk.

    A step is a statement or a commit of a database, a sync of a file, or a change of its name.

    Returns:
        Whether it came that far.
    """
    count = [n]

    def step(*args: object) -> None:
        count[0] -= 1
        if count[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def after_step(change: Callable[..., object]) -> Callable[..., object]:
        return lambda *args, **options: (step(), change(*args, **options))[1]

    def counted() -> None:
        for event in ("before_cursor_execute", "commit"):
            sa.event.listen(sa.Engine, event, step)
        for name in ("fsync", "replace", "link", "rename"):
            setattr(os, name, after_step(getattr(os, name)))
        act()

    code = finish(start(counted))
    assert code in (0, -signal.SIGKILL)
    return code != 0
