"""Events in a database: all or nothing, in order, and damage is noticed."""

import os
import random
import signal
import sqlite3
import time
import uuid
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from airbo.lab import Campaign, DamageError, Settings, StorageError
from airbo.lab.events import Begun, Noted
from airbo.lab.record import fold
from airbo.lab.store import NewEvent, Outdated, Store
from airbo.lab.url import StorageURL

FILE = """\
name = "{name}"
surrogate = "nominal"
n_initial = 1000
{storage}[parameters.x]
low = 0.0
high = 1.0
uncertainty = {{ kind = "normal", std = 0.05 }}
"""


def written(folder, storage=""):
    path = folder / "campaign.toml"
    path.write_text(FILE.format(name=f"line {uuid.uuid4().hex}", storage=storage), "utf-8")
    return path


def told(path, values):
    """Open a campaign and tell designs that nobody asked for; close it."""
    with Campaign.open(path) as campaign:
        for i, value in enumerate(values):
            campaign.tell({"x": round(0.001 * (i + 1), 3)}, value)
        return campaign.record()


def noted(text, key=None):
    return NewEvent(datetime.now(UTC), "ann", key or uuid.uuid4().hex, Noted(0, text))


def begun(store):
    return store.append([NewEvent(datetime.now(UTC), "ann", "begun", Begun({}))], None)[-1]


# -- order


def test_events_are_read_as_they_were_written(tmp_path, storage):
    path = written(tmp_path, storage)
    record = told(path, [1.0, 2.0])
    with Campaign.open(path) as campaign:
        assert campaign.record() == record
        assert campaign.store.check() == 3


def test_an_event_decided_before_another_was_written_is_refused(tmp_path, storage):
    settings = Settings.read(written(tmp_path, storage))
    store = Store(settings.storage, tmp_path, settings.name)
    first = begun(store)
    store.append([noted("a")], first)
    with pytest.raises(Outdated):
        store.append([noted("b")], first)
    assert len(store.read()) == 2
    store.close()


def test_times_are_utc_and_never_run_backwards(tmp_path, monkeypatch):
    path = written(tmp_path)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    told(path, [1.0])
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    record = told(path, [1.0, 2.0])
    monkeypatch.undo()
    time.tzset()
    times = [event.at for event in record.events]
    assert times == sorted(times)
    assert all(at.utcoffset().total_seconds() == 0 for at in times)
    assert Campaign.open(path).record() == record


def test_a_file_that_holds_another_campaign_is_refused(tmp_path):
    told(written(tmp_path), [1.0])
    with pytest.raises(StorageError, match="belongs to another campaign"):
        Campaign.open(written(tmp_path))  # another name, the same file


def test_an_optuna_study_is_not_a_campaign(tmp_path):
    path = written(tmp_path)
    with sqlite3.connect(tmp_path / "campaign.db") as database:
        database.execute("CREATE TABLE studies (study_id INTEGER)")
    with pytest.raises(StorageError, match="import --study"):
        Campaign.open(path)


# -- killed


@pytest.fixture
def killed_at(monkeypatch):
    """Run something in another process that is killed before its n-th SQL statement."""

    def run(n, act):
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            return os.WIFSIGNALED(status)
        count = [n]

        def statement(*args):
            count[0] -= 1
            if count[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sa.event.listen(sa.Engine, "before_cursor_execute", statement)
        sa.event.listen(sa.Engine, "commit", statement)
        try:
            act()
        finally:
            os._exit(0)

    return run


CHANGES = {
    "tell": lambda c: c.tell_all([({"x": 0.5}, 7.0), ({"x": 0.6}, 8.0)]),
    "correct": lambda c: c.tell(0, 9.0, correct=True),
    "exclude": lambda c: c.exclude(0, "loose", key="form 1"),
    "note": lambda c: c.note(1, "hot", key="form 2"),
    "fail": lambda c: c.tell_all([(0, None), (1, None)], correct=True),
    "undo": lambda c: c.undo(key="form 3"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_killed_change_is_whole_or_nothing_and_counts_once(tmp_path, storage, killed_at, change):
    done = 0
    for n in range(60):
        path = written(tmp_path / str(n), storage) if (tmp_path / str(n)).mkdir() is None else None
        before = told(path, [1.0, 2.0]).experiments

        def act(path=path):
            with Campaign.open(path) as campaign:
                change(campaign)

        was_killed = killed_at(n, act)
        with Campaign.open(path) as campaign:
            after = campaign.experiments
            assert campaign.store.check() == len(campaign.record().events)
            change(campaign)  # the same command again
            again = campaign.experiments
        assert again != before
        if after != before:
            assert _facts(after) == _facts(again)  # it was whole, and counts once
        if not was_killed:
            done = n
            break
    assert done > 3


def _facts(experiments):
    return [(e.number, e.design, e.outcome, e.outcomes, e.excluded, e.notes) for e in experiments]


def test_a_campaign_whose_beginning_was_killed_can_begin(tmp_path, killed_at):
    path, n = written(tmp_path), 0
    while killed_at(n, lambda: told(path, [1.0])):
        if (tmp_path / "campaign.db").exists():
            assert Campaign.open(path).experiments
        n += 1
    assert n > 3
    assert [e.outcomes for e in Campaign.open(path).experiments] == [{"value": 1.0}]


# -- several at once


def work(path, who, n):
    with Campaign.open(path) as campaign:
        for i in range(n):
            campaign.signed(f"worker {who}").tell(
                {"x": 0.5}, float(100 * who + i), key=f"{who}-{i}"
            )


def test_eight_workers_with_kills_lose_nothing_and_double_nothing(tmp_path, storage):
    path, n = written(tmp_path, storage), 6
    told(path, [1.0])
    clock, children = random.Random(3), []
    for who in (*range(1, 9), *range(1, 9)):  # everybody who was killed begins again
        child = os.fork()
        if not child:
            try:
                work(path, who, n)
            finally:
                os._exit(0)
        children.append(child)
        if who % 2:
            time.sleep(clock.uniform(0, 0.05))
            os.kill(child, signal.SIGKILL)
        if who == 8:
            for child in children:
                os.waitpid(child, 0)
            children.clear()
    for who in range(1, 9):
        work(path, who, n)
    with Campaign.open(path) as campaign:
        record = campaign.record()
        assert campaign.store.check() == len(record.events)
    values = [e.outcomes["value"] for e in record.experiments]
    assert sorted(values) == [1.0, *(100.0 * who + i for who in range(1, 9) for i in range(n))]
    assert [e.number for e in record.experiments] == list(range(1 + 8 * n))


# -- damage


def test_damage_at_random_offsets_is_never_silent(tmp_path):
    path = written(tmp_path)
    record = told(path, [float(i) for i in range(30)])
    file, chance = tmp_path / "campaign.db", random.Random(0)
    whole = file.read_bytes()
    noticed = 0
    for i in range(300):
        damaged = bytearray(whole)
        if i % 10 == 0:
            del damaged[chance.randrange(len(damaged)) :]
        else:
            at = chance.randrange(len(damaged))
            for j in range(at, min(len(damaged), at + chance.choice([1, 1, 8, 512]))):
                damaged[j] ^= chance.randrange(1, 256)
        file.write_bytes(damaged)
        try:
            with Campaign.open(path) as campaign:
                assert campaign.record() == record  # where nothing was hit that counts
        except StorageError:
            noticed += 1
    assert noticed > 100


def edit(folder, statement):
    database = sqlite3.connect(folder / "campaign.db")
    database.execute(statement)
    database.commit()
    database.close()


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        (
            "UPDATE event SET body = replace(body, '2.0', '3.0') WHERE seq = 3",
            "event 3 was changed",
        ),
        ("UPDATE event SET at = '2020-01-01T00:00:00+00:00' WHERE seq = 2", "event 2 was changed"),
        ("DELETE FROM event WHERE seq = 2", "event 2 is lost"),
        ("DELETE FROM event WHERE seq = 4", "should hold 4 events, and has 3"),
        ("DELETE FROM event", "should hold 4 events, and has 0"),
        ("DROP TABLE event", "no table of events"),
    ],
)
def test_a_damaged_event_is_named(tmp_path, statement, what):
    path = written(tmp_path)
    told(path, [1.0, 2.0, 3.0])
    edit(tmp_path, statement)
    with pytest.raises(DamageError, match=what):
        Campaign.open(path)


def test_an_emptied_file_is_damage(tmp_path):
    path = written(tmp_path)
    told(path, [1.0])
    (tmp_path / "campaign.db").write_bytes(b"")
    with pytest.raises(DamageError, match="empty"):
        Campaign.open(path)


def test_what_is_lost_while_a_campaign_is_open_is_noticed(tmp_path):
    path = written(tmp_path)
    told(path, [1.0, 2.0])
    with Campaign.open(path) as campaign:
        edit(tmp_path, "DELETE FROM event WHERE seq = 3")
        with pytest.raises(DamageError, match="event 3"):
            campaign.note(0, "hot")


def test_what_can_be_read_of_a_damaged_file_comes_out(tmp_path):
    path = written(tmp_path)
    record = told(path, [1.0, 2.0, 3.0])
    edit(tmp_path, "UPDATE event SET body = '{' WHERE seq = 3")
    settings = Settings.read(path)
    found = Store(settings.storage, tmp_path, settings.name).salvage()
    assert found.n_lost == 1
    assert fold(found.events).experiments == [record.get(0), record.get(2)]


# -- copies


def test_a_backup_of_a_campaign_in_use_is_the_campaign(tmp_path, storage):
    path = written(tmp_path, storage)
    record = told(path, [1.0, 2.0])
    with Campaign.open(path) as campaign:
        assert campaign.store.backup(tmp_path / "copy.db") == 3
        with pytest.raises(StorageError, match="exists already"):
            campaign.store.backup(tmp_path / "copy.db")
        copy = Store(StorageURL("sqlite:///copy.db"), tmp_path, campaign.settings.name)
        assert copy.check() == 3
        assert fold(copy.read()) == record


def test_no_file_is_left_beside_the_database(tmp_path):
    path = written(tmp_path)
    told(path, [1.0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["campaign.db", "campaign.toml"]
