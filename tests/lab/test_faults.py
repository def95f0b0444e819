"""Disks that fail at any write: all or nothing is stored, and what was not is said."""

import itertools
import os
import resource
import shutil
import signal
import sqlite3

import pandas as pd
import pytest
import sqlalchemy as sa

from airbo import Campaign
from airbo.lab import StorageError
from airbo.lab.store import Store
from airbo.lab.url import StorageURL
from tests.lab import processes
from tests.lab.common import campaign, value_of

ROWS = pd.DataFrame({"x": [i / 300 for i in range(300)], "value": [float(i) for i in range(300)]})
STEP = 1024
"""Bytes between the sizes at which files cannot grow any more."""
REFUSED = 4


def back_up(c):
    folder = c.settings.path.parent
    c.store.copy_to(Store(StorageURL("sqlite:///copy.db"), folder, c.settings.name))


ACTS = {
    "begin": lambda c: c.tell({"x": 0.5}, 1.0),
    "ask": lambda c: c.ask(2),
    "tell": lambda c: c.tell_all([(0, 1.5), (1, 2.5)]),
    "import": lambda c: c.import_table(ROWS),
    "undo": lambda c: c.undo(),
    "back up": back_up,
}


@pytest.fixture
def origin(tmp_path, request):
    """A campaign with two pending experiments and a value; or one that nobody has begun."""
    folder = tmp_path / "origin"
    folder.mkdir()
    with campaign(folder) as c:
        if request.node.callspec.params["name"] != "begin":
            c.ask(3)
            c.tell(2, 5.5)
    return folder


def state(folder):
    """All that people see; every event and the file itself are checked."""
    with Campaign.open(folder / "campaign.toml") as c:
        record = c.record()
        if record.events:
            assert c.store.check() == len(record.events)
    shown = [(e.number, e.outcome, dict(e.design), value_of(e)) for e in record.experiments]
    names = sorted(path.name for path in folder.iterdir() if not path.name.endswith("-journal"))
    return shown, len(record.history), names


def done(folder, act):
    """Do something in another process; return its exit code: 0, or that of a storage that fails."""

    def careful():
        try:
            with Campaign.open(folder / "campaign.toml") as c:
                act(c)
        except StorageError:
            os._exit(REFUSED)

    return processes.finish(processes.start(careful))


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTS)
def test_a_file_that_cannot_grow_keeps_all_or_nothing(origin, tmp_path, name):
    after = shutil.copytree(origin, tmp_path / "after")
    assert done(after, ACTS[name]) == 0
    largest = max(path.stat().st_size for path in after.iterdir())

    def limited(size):
        def act(c):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            ACTS[name](c)

        return act

    codes = []
    for size in range(0, largest + 4 * STEP, STEP):
        folder = shutil.copytree(origin, tmp_path / str(size))
        codes.append(done(folder, limited(size)))
        expected = after if codes[-1] == 0 else origin
        assert state(folder) == state(expected)
    assert (codes[0], codes[-1]) == (REFUSED, 0)
    assert set(codes) == {REFUSED, 0}


@pytest.mark.parametrize("name", ACTS)
def test_a_statement_that_fails_keeps_all_or_nothing(origin, tmp_path, name):
    for n in itertools.count():
        folder = shutil.copytree(origin, tmp_path / str(n))
        before = state(folder)
        steps = itertools.count()

        def fail(*args, n=n, steps=steps):
            if next(steps) == n:
                raise sqlite3.OperationalError("disk I/O error")

        refused = ""
        listened = [(sa.Engine, "before_cursor_execute", fail), (sa.Engine, "commit", fail)]
        with Campaign.open(folder / "campaign.toml") as c:
            for event in listened:
                sa.event.listen(*event)
            try:
                ACTS[name](c)
            except StorageError as error:
                refused = str(error)
            finally:
                for event in listened:
                    sa.event.remove(*event)
        if not refused:
            assert next(steps) <= n  # no step failed
            break
        assert "The disk reports an error" in refused
        assert state(folder) == before
    assert n > 3
