"""A PostgreSQL server for the tests: started on loopback, and stopped with them."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MISSING = next((f"{tool} is not installed" for tool in ("initdb", "pg_ctl", "psql")
                if shutil.which(tool) is None), "")  # fmt: skip
"""Why there can be no server; empty if there can."""


@contextmanager
def server() -> Iterator[str]:
    """Start a server; give the URL of an empty database."""
    folder = Path(tempfile.mkdtemp(prefix="airbo-pg-"))
    as_user = _other_user(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder}"
    try:
        _run([*as_user, "initdb", "-D", data, "-U", "lab", "-A", "trust", "-E", "UTF8"])
        _run([*as_user, "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"])
        try:
            yield f"postgresql://lab@127.0.0.1:{port}/postgres"
        finally:
            _run([*as_user, "pg_ctl", "-D", data, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _other_user(folder: Path) -> list[str]:
    """Return what runs a command as somebody else: the server refuses to be run by root."""
    if os.name == "nt" or os.geteuid() != 0:
        return []
    shutil.chown(folder, "nobody")
    return ["runuser", "-u", "nobody", "--"]


def _run(words: list[object]) -> None:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
