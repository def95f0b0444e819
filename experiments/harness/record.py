"""The provenance of a result, stored with it so that it can be judged later."""

import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from experiments.harness.places import ROOT

CODE = ("src", "experiments", "constraints.txt", ":!experiments/results")
"""What results depend on."""
PACKAGES = ("airbo", "torch", "gpytorch", "botorch", "numpy", "scipy")


def provenance() -> dict[str, Any]:
    """Describe the code that is running; to be called at the start, before the files change."""
    return {
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "seed": 0,
        "threads": 1,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def describe(where: Mapping[str, Any]) -> str:
    """Describe in one line where numbers come from."""
    versions = ", ".join(f"{k} {v}" for k, v in where["versions"].items())
    return (
        f"Commit {where['commit']}, {where['date']}, seed {where['seed']}, one thread, "
        f"{where['machine']}, Python {where['python']}, {versions}."
    )


@cache
def _commit() -> str:
    """Return the commit that the process was started with, even if there are newer ones.

    It is ``-dirty`` if code has changed since then; tables and pictures do not count.
    """
    try:
        commit = _git("describe", "--always", "--exclude=*")
        changed = _git("status", "--porcelain", "--", *CODE)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
