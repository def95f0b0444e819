"""Which process runs an experiment unattended, and whether it still does."""

import os
import socket
import time
import uuid
from pathlib import Path
from typing import Any

from airbo.campaign.experiment import Experiment


def this_process() -> dict[str, Any]:
    """Describe this process; every claim gets its own description."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": _beginning(os.getpid()),
        "since": time.time(),
        "token": uuid.uuid4().hex,
    }


def is_orphan(experiment: Experiment) -> bool:
    """Say whether the run on this machine that began an experiment is gone."""
    run = experiment.run or {}
    if run.get("host") != socket.gethostname():
        return False
    pid = int(run["pid"])
    if pid == os.getpid():
        return True
    return not _is_alive(pid) or run.get("began") not in (None, _beginning(pid))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is somebody else's, and alive
    return True


def _beginning(pid: int) -> str | None:
    """Return when a process and the machine were started; None if the system hides it.

    After a restart of the machine, another process soon has the same number.
    """
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        process = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return f"{machine} {process[19]}"
