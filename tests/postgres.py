"""A PostgreSQL server of our own, on loopback, for as long as a block of code runs."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl")


def missing() -> str:
    """Say why there can be no server; nothing if there can."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"PostgreSQL is not installed: no {' and no '.join(absent)} on the PATH"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL does not run as root, and there is no runuser to become somebody else"
    return ""


@contextmanager
def server() -> Iterator[str]:
    """Start a server; yield the URL of an empty database."""
    folder = Path(tempfile.mkdtemp(prefix="airbo-postgres-"))
    folder.chmod(0o755)
    as_user = []
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        as_user = ["runuser", "-u", "nobody", "--"]
    data = folder / "data"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder}"

    def run(*command: str | Path) -> None:
        subprocess.run(
            [*as_user, *map(str, command)], check=True, cwd=folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=120,
        )  # fmt: skip

    try:
        run("initdb", "-D", data, "-U", "lab", "-A", "trust", "-E", "UTF8", "--no-sync")
        run("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://lab@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
