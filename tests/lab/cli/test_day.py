"""The commands of docs/campaign.md run, in order, and print what the page says."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airbo.lab.cli.app import app
from airbo.optimizer.surrogate import SURROGATES

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "campaign.md").read_text(encoding="utf-8")
DETAILS = (DOCS / "campaign-details.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def sessions():
    """Return commands with what the page says that they print."""
    found = []
    for line in "".join(BLOCK.findall(PAGE)).splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif line.startswith("> "):
            found[-1][0] += "\n" + line[2:]
        else:
            found[-1][1].append(line)
    return found


def run(command):
    """Run a command line; those of airbo in this process, which has imported PyTorch already."""
    if not command.startswith("airbo "):
        return subprocess.run(
            command, shell=True, check=True, text=True, capture_output=True
        ).stdout
    words = shlex.split(command.replace("\\\n", " "))
    result = CliRunner().invoke(app, words[1:], env={"COLUMNS": "110"})
    assert result.exit_code == 0, f"{command}: {result.output} {result.exception!r}"
    return result.output


def words_of(text):
    """Leave out what may differ: spaces and the lines of tables."""
    return " ".join(re.sub(r"[│┃┏┓┡┩└┘━─╇┳┴]", " ", text).split())


@pytest.mark.usefixtures("as_without_shape_checks", "few_draws", "quick_search")
def test_the_day_goes_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # what is printed does not depend on the model
    monkeypatch.setitem(SURROGATES, "default", SURROGATES["nominal"])
    found = sessions()
    assert len(found) > 15
    for command, lines in found:
        printed = words_of(run(command))
        for line in lines:
            assert words_of(line) in printed, f"{command}: {line!r} is not in {printed!r}"
    page = (tmp_path / "campaign.html").read_text(encoding="utf-8")
    assert "Experiments" in page
    assert "new batch of steel" in page


def test_every_command_has_its_place_on_a_page():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert [name for name in names if f"airbo {name}" not in PAGE + DETAILS] == []
