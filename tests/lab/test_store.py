"""Events in a database: all or nothing, in order, and damage is noticed."""

import errno
import os
import pickle
import random
import signal
import sqlite3
import time
import uuid
from datetime import UTC, datetime

import pytest
from sqlalchemy.event import listen
from sqlalchemy.exc import OperationalError

from airbo import uncertainty as unc
from airbo.lab import Campaign, DamageError, Settings, StorageError, tables
from airbo.lab import store as module
from airbo.lab.events import Begun, Event, Noted
from airbo.lab.record import fold
from airbo.lab.store import Outdated, Store, explained
from airbo.lab.tables import write_whole
from airbo.lab.url import StorageURL
from tests.lab import processes
from tests.lab.common import LINE, MILL, campaign, edited, value_of
from tests.lab.processes import was_killed_at

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
    return Event(0, datetime.now(UTC), "ann", key or uuid.uuid4().hex, Noted(0, text))


def begun(store):
    return store.append([Event(0, datetime.now(UTC), "ann", "begun", Begun({}))], None)[-1]


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


def test_an_optuna_study_is_not_a_campaign(tmp_path):
    path = written(tmp_path)
    with sqlite3.connect(tmp_path / "campaign.db") as database:
        database.execute("CREATE TABLE studies (study_id INTEGER)")
    with pytest.raises(StorageError, match="import --study"):
        Campaign.open(path)


# -- killed


def test_a_campaign_whose_beginning_was_killed_can_begin(tmp_path):
    path, n = written(tmp_path), 0
    while was_killed_at(n, lambda: told(path, [1.0])):
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
                {"x": 0.5}, float(100 * who + i), key=f"{who}-{i}", sure=True
            )


def test_reports_with_keys_survive_kills_and_count_once(tmp_path, storage):
    path, n = written(tmp_path, storage), 6
    told(path, [1.0])
    clock = random.Random(3)
    for _ in range(2):  # everybody who was killed begins again
        children = []
        for who in range(1, 9):
            children.append(processes.start(lambda who=who: work(path, who, n)))
            if who % 2:
                time.sleep(clock.uniform(0, 0.05))
                processes.kill(children[-1])
        assert set(map(processes.finish, children)) <= {0, -signal.SIGKILL}
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
    for i in range(150):
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
    assert noticed > 50


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
    found, n_lost = Store(settings.storage, tmp_path, settings.name).salvage()
    assert n_lost == 1
    assert fold(found).experiments == [record.get(0), record.get(2)]


# -- copies


def test_a_backup_of_a_campaign_in_use_is_the_campaign(tmp_path, storage):
    path = written(tmp_path, storage)
    record = told(path, [1.0, 2.0])
    with Campaign.open(path) as campaign:
        copy = Store(StorageURL("sqlite:///copy.db"), tmp_path, campaign.settings.name)
        assert campaign.store.copy_to(copy) == 3
        with pytest.raises(StorageError, match="exists already"):
            campaign.store.copy_to(copy)
        assert copy.check() == 3
        assert fold(copy.read()) == record


def test_a_campaign_moves_to_a_server_with_its_whole_history(tmp_path, postgres_url):
    path = written(tmp_path)
    record = told(path, [1.0, 2.0])
    with Campaign.open(path) as campaign:
        campaign.undo()
        record = campaign.record()
        server = Store(StorageURL(postgres_url), tmp_path, campaign.settings.name)
        assert campaign.store.copy_to(server) == 4
        with pytest.raises(StorageError, match=r"holds a campaign .* already"):
            campaign.store.copy_to(server)
        server.close()
    path.write_text(f'storage = "{postgres_url}"\n' + path.read_text())
    with Campaign.open(path) as moved:
        assert moved.record() == record
        moved.tell({"x": 0.9}, 3.0)


def test_no_file_is_left_beside_the_database(tmp_path):
    path = written(tmp_path)
    told(path, [1.0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["campaign.db", "campaign.toml"]


# -- storages that cannot be used: one message, nothing half-written


@pytest.fixture
def c(tmp_path, monkeypatch):
    """A campaign with two pending experiments; nobody waits for locks."""
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    with campaign(tmp_path) as found:
        found.ask(2)
        yield found


def test_a_locked_database_is_named(tmp_path, c):
    other = sqlite3.connect(tmp_path / "campaign.db")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageError, match="is locked: another program"):
        c.tell(0, 1.0)
    other.rollback()
    other.close()
    assert c.experiment(0).is_pending
    assert c.tell(0, 1.0).done == "told"


def limited(monkeypatch, pragma):
    """Set up all further connections to SQLite."""
    engine_of = module.sqlite

    def sqlite(path):
        engine = engine_of(path)
        listen(engine, "connect", lambda connection, _: connection.execute(f"PRAGMA {pragma}"))
        return engine

    monkeypatch.setattr(module, "sqlite", sqlite)


def test_a_read_only_database_is_named(c, monkeypatch):
    c.close()
    with monkeypatch.context() as patch:
        limited(patch, "query_only = true")
        with pytest.raises(StorageError, match="is read-only"):
            c.tell(0, 1.0)
        c.close()
    assert c.experiment(0).is_pending


def test_a_full_disk_loses_nothing_that_was_told(tmp_path, c, monkeypatch):
    c.tell(0, 1.0)
    c.close()
    pages = (tmp_path / "campaign.db").stat().st_size // 4096
    log = unc.Empirical([i / 1000 for i in range(3000)])
    with monkeypatch.context() as patch:
        limited(patch, f"max_page_count = {pages}")
        for what in (1, {"x": 0.5}):
            with pytest.raises(StorageError, match="The disk is full"):
                c.tell(what, 2.0, uncertainty={"x": log})
    c.close()
    with Campaign.open(c.settings.path) as again:
        assert [value_of(e) for e in again.experiments] == [1.0, None]
        assert again.experiment(1).is_pending
        assert again.tell(1, 2.0).done == "told"


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_whole(path, "old")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tables.os, "fsync", full)
    with pytest.raises(StorageError, match=r"page.html cannot be written: No space left"):
        write_whole(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://localhost", "storage must be a URL such as sqlite"),
        ("campaign.db", "storage must be a URL such as sqlite"),
        ("journal:///campaign.journal", "storage must be a URL such as sqlite"),
        ("sqlite:///", "storage must be a URL such as sqlite"),
        ("sqlite:///nowhere/a.db", "There is no folder"),
        ("postgresql+pg9://a@c/d", "driver is not installed"),
        ("postgresql://a@c:port/d", "storage must be a URL such as sqlite"),
    ],
)
def test_urls_that_lead_nowhere_are_refused(tmp_path, url, message):
    with pytest.raises(StorageError, match=message):
        Store(StorageURL(url), tmp_path, "line").read()


def test_a_file_that_is_no_database_is_named(tmp_path):
    text = "something else, that is long enough to be looked at " * 9
    (tmp_path / "campaign.db").write_text(text)
    with pytest.raises(StorageError, match="not an SQLite database"):
        campaign(tmp_path)


def test_what_is_not_known_is_passed_on_in_one_line():
    error = OperationalError("SELECT", {}, Exception("odd thing at c\nmore"))
    found = explained(error, StorageURL("postgresql://a@c/d"))
    assert isinstance(found, StorageError)
    assert str(found).endswith("cannot be used. odd thing at c.")


def test_a_storage_belongs_to_one_campaign(tmp_path):
    campaign(tmp_path).tell({"x": 0.5}, 1.0)
    with pytest.raises(
        StorageError, match=r"belongs to another campaign: it holds 'line'.*'other'"
    ):
        campaign(tmp_path, edited(LINE, '"line"', '"other"'))
    with pytest.raises(StorageError, match="belongs to another campaign"):
        campaign(tmp_path, MILL)


def test_relative_files_lie_beside_the_campaign_file(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    campaign(tmp_path / "a").ask()
    assert {p.name for p in (tmp_path / "a").iterdir()} == {"campaign.toml", "campaign.db"}
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_nothing_that_is_read_is_unpickled(c, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("something is unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    c.tell(0, 1.0)
    c.tell(0, 2.0, correct=True)
    c.import_table(c.export(), again=True)
    assert Campaign.open(c.settings.path).status().n_ok == 2
