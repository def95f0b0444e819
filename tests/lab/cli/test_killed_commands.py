"""Whole commands, killed at any moment: nothing told is lost, doubled or half-written."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from airbo import Campaign
from tests.lab.common import LINE, campaign, edited, told

pytestmark = pytest.mark.slow

N_KILLS = 10
ROWS = 200
TABLE = "x,value\n" + "".join(f"{i / ROWS},{i}\n" for i in range(ROWS))
COMMANDS = {
    "report": ["report", "-o", "page.html", "--history", "3"],
    "export": ["export", "-o", "out.csv"],
    "import": ["import", "table.csv"],
    "tell": ["tell", "0=1.5", "1=2.5", "--yes"],
    "undo": ["undo"],
    "exclude": ["exclude", "2", "the probe was dirty"],
    "note": ["note", "2", "a new batch"],
}


def prepared(folder, url=None, name="line"):
    """A campaign with three values and two pending experiments, and files that commands replace."""
    folder.mkdir()
    text = edited(LINE, '"line"', f'"{name}"')
    with campaign(folder, edited(text, "sqlite:///campaign.db", url) if url else text) as c:
        c.ask(5)
        c.tell_all([(2, 5.5), (3, 6.5), (4, 7.5)])
    (folder / "table.csv").write_text(TABLE)
    for page in ("page.html", "out.csv"):
        (folder / page).write_text("old")
    return folder


def started(folder, words):
    return subprocess.Popen(
        [sys.executable, "-m", "airbo.lab.cli", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def state(folder):
    """All that people see: experiments, changes and files."""
    with Campaign.open(folder / "campaign.toml") as c:
        shown = [(e.number, e.outcome, e.value, e.excluded, e.notes) for e in c.experiments]
        changes = len(c.history())
    page, table = (folder / "page.html").read_text(), (folder / "out.csv").read_text()
    return shown, changes, _whole(page, "</html>"), _whole(table, "\n")


def _whole(text, end):
    return "old" if text == "old" else text.endswith(end)


@pytest.mark.parametrize("storage", ["journal", "server"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_was_done_or_was_not(tmp_path, request, storage, command):
    url = request.getfixturevalue("postgres_url") if storage == "server" else None
    words, rng = COMMANDS[command], random.Random(0)
    before = state(prepared(tmp_path / "before", url, f"{tmp_path.name} before"))
    times = []
    for name in ("first", "done"):  # the first run may take longer
        done = prepared(tmp_path / name, url, f"{tmp_path.name} {name}")
        begin = time.monotonic()
        assert started(done, words).wait() == 0
        times.append(time.monotonic() - begin)
    seconds, after = min(times), state(done)
    codes = []
    for i in range(N_KILLS):
        folder = prepared(tmp_path / str(i), url, f"{tmp_path.name} {i}")
        process = started(folder, words)
        # most of the time a command only starts: the second half is where it works
        time.sleep(rng.uniform(0.2, 1.0) * seconds)
        process.kill()
        codes.append(process.wait())
        for now, was, is_ in zip(state(folder), before, after, strict=True):
            assert now in (was, is_)
        assert started(folder, ["tell", "0=1.5", "--yes"]).wait() == 0  # it goes on
        assert state(folder)[0][0][2] == 1.5
        shutil.rmtree(folder)
    assert -signal.SIGKILL in codes
    assert set(codes) <= {-signal.SIGKILL, 0}
    with Campaign.open(done / "campaign.toml") as c:
        assert told(c) or command == "undo"  # it takes back all that was imported
