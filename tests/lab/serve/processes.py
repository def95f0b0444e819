"""Servers as users start them: processes that listen."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

PROGRAM = [sys.executable, "-m", "airbo.lab.cli", "serve", "--port", "0", "--json"]


def _end_with_the_tests():
    """Let Linux end the server when the tests are gone, even if they were killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextmanager
def serving(file, *options, **environment):
    """Start a server; give its process and the link that it prints."""
    process = subprocess.Popen(
        [*PROGRAM, "--file", str(file), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        text=True,
        start_new_session=True,  # its jobs are found by their group
        preexec_fn=_end_with_the_tests,
    )
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)["url"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
