"""Count what ``airbo tell 0 1.25`` walks through: ``python -m tests.tools.walk_tell``."""

import os
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from airbo.lab.cli.app import app
from tests.tools.walk import walk

FILE = """\
name = "milling"
[parameters.speed]
low = 50
high = 200
unit = "m/min"
uncertainty = { kind = "normal", std = 5 }
[parameters.depth]
low = 0.1
high = 2.0
uncertainty = { kind = "uniform", low = -0.05, high = 0.1 }
[parameters.tool]
choices = ["A", "B"]
"""


def airbo(*words: str) -> None:
    """Run a command of airbo in this process."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output


def main() -> None:
    """Print the walk, in all and per package."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("campaign.toml").write_text(FILE, encoding="utf-8")
        airbo("ask", "-n", "2")
        found = walk(lambda: airbo("tell", "0", "1.25"))
        os.chdir("/")
    print(f"{'all':12} {found}")
    for package in found.packages:
        print(f"{package:12} {found.inside(package)}")


if __name__ == "__main__":
    main()
