"""Commands that are killed at any step: each was done, or was not; nothing is lost or doubled."""

import itertools
import shutil
import uuid

import pytest

from airbo import Campaign
from tests.lab.cli.common import airbo_
from tests.lab.common import LINE, campaign, edited, value_of
from tests.lab.processes import was_killed_at

ROWS = 12
TABLE = "x,value\n" + "".join(f"{i / ROWS},{i}\n" for i in range(ROWS))
AROUND = """
[environment.humidity]
low = 20
high = 90
law = { kind = "normal", std = 8.0 }
"""
COMMANDS = {
    "ask": ["ask", "-n", "2", "--given", "humidity=63"],
    "tell": ["tell", "0=1.5", "1=2.5", "humidity=63", "--noise", "0.1"],
    "tell a design": ["tell", "x=0.123", "1.5"],
    "correct": ["tell", "2", "9", "--correct"],
    "fail": ["fail", "0", "1"],
    "give up": ["fail", "0", "1", "--gave-up"],
    "import": ["import", "table.csv"],
    "undo": ["undo"],
    "exclude": ["exclude", "2", "--why", "the probe was dirty"],
    "include": ["include", "3"],
    "note": ["note", "2", "a new batch"],
    "export": ["export", "-o", "out.csv"],
    "backup": ["backup", "copy.db"],
}


class Laboratory:
    """Copies of one campaign: three values, one of them excluded, and two pending experiments."""

    def __init__(self, folder, storage):
        self.folder, self.storage, self.numbers = folder, storage, itertools.count()
        self.origin = self.made("origin")

    def made(self, name):
        folder = self.folder / name
        folder.mkdir()
        text = edited(LINE + AROUND, '"line"', f'"{uuid.uuid4().hex}"')
        with campaign(
            folder, edited(text, 'storage = "sqlite:///campaign.db"\n', self.storage)
        ) as c:
            c.ask(5)
            c.tell_all([(2, 5.5), (3, 6.5), (4, 7.5)])
            c.exclude(3, "loose")
        (folder / "table.csv").write_text(TABLE)
        (folder / "out.csv").write_text("old")
        return folder

    def copy(self):
        name = str(next(self.numbers))
        if self.storage:
            return self.made(name)
        return shutil.copytree(self.origin, self.folder / name)


@pytest.fixture
def laboratory(tmp_path, storage):
    return Laboratory(tmp_path, storage)


def state(folder):
    """All that people see: experiments, changes, and the files that commands write."""
    with Campaign.open(folder / "campaign.toml") as c:
        record = c.record()
        assert c.store.check() == len(record.events)
    shown = [
        (
            e.number,
            e.outcome,
            e.design["x"],
            value_of(e),
            e.excluded,
            e.notes,
            e.given,
            e.executed,
            e.noise,
        )
        for e in record.experiments
    ]
    copy = folder / "copy.db"
    return shown, len(record.history), (folder / "out.csv").read_text() == "old", copy.exists()


def do(folder, words, monkeypatch):
    monkeypatch.chdir(folder)
    airbo_(*words)


EVERY_STEP = ("tell", "import")
"""What is killed at every step, not at every third one."""
WAYS = ("ask", "tell", "import", "export", "backup")
"""Every way in which a command writes; others write as `tell` does, and are in the slow tier."""


@pytest.mark.parametrize("storage", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize(
    "command",
    [pytest.param(c, marks=() if c in WAYS else pytest.mark.slow) for c in COMMANDS],
)
def test_a_killed_command_was_done_or_was_not(laboratory, monkeypatch, command):
    words, done = COMMANDS[command], laboratory.copy()
    before = state(done)
    do(done, words, monkeypatch)
    after = state(done)
    assert after != before
    n_done = 0
    for n in itertools.count(step=1 if command in EVERY_STEP else 3):
        folder = laboratory.copy()
        was_killed = was_killed_at(n, lambda folder=folder: do(folder, words, monkeypatch))
        found = state(folder)
        assert found in (before, after)
        n_done += found == after
        if found == before:
            do(folder, words, monkeypatch)
            assert state(folder) == after
        if not was_killed:
            break
    assert n > 3
    assert n_done >= 1


REPEATED = ("tell", "tell a design", "correct", "fail", "give up", "import")


@pytest.mark.parametrize("command", REPEATED)
def test_a_repeated_command_counts_once(tmp_path, monkeypatch, command):
    folder = Laboratory(tmp_path, "").copy()
    do(folder, COMMANDS[command], monkeypatch)
    after = state(folder)
    do(folder, COMMANDS[command], monkeypatch)
    assert state(folder) == after


def test_a_killed_run_goes_on_where_it_was(laboratory, monkeypatch):
    words = ["run", "--command", "echo {x}", "--budget", "5"]
    for n in range(0, 60, 7):
        folder = laboratory.copy()
        was_killed_at(n, lambda folder=folder: do(folder, words, monkeypatch))
        do(folder, words, monkeypatch)
        with Campaign.open(folder / "campaign.toml") as c:
            found = c.experiments
        assert sum(e.has_outcome for e in found) == 5
        assert all(value_of(e) == e.design["x"] for e in found[5:])
        assert [e.number for e in found if e.is_pending] == [0, 1]  # those that a person has
