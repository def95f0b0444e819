"""What a stored result has to carry so that it can be judged later."""

import json
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("airbo", "torch", "gpytorch", "botorch", "numpy", "scipy")
SEED = 0


def provenance() -> dict[str, Any]:
    """Describe the code that is running; to be called at the start, before the files change."""
    return {
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "seed": SEED,
        "threads": 1,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def store(name: str, where: Mapping[str, Any], results: Mapping[str, Any]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {"provenance": where, **results}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def publish(path: Path, text: str) -> None:
    """Write a text beside the numbers that it was made of, and show it."""
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    Console().print(text, markup=False, soft_wrap=True)


def describe(where: Mapping[str, Any]) -> str:
    """Say in one line where numbers come from."""
    versions = ", ".join(f"{k} {v}" for k, v in where["versions"].items())
    return (
        f"Commit {where['commit']}, {where['date']}, seed {where['seed']}, one thread, "
        f"{where['machine']}, Python {where['python']}, {versions}."
    )


@cache
def _commit() -> str:
    """Return the commit that the process was started with, whatever is committed meanwhile."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=RESULTS.parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
