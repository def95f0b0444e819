"""Storages that cannot be used, or belong to somebody else: one message, nothing half-written."""

import errno
import os
import sqlite3

import optuna
import pytest
from sqlalchemy.event import listen
from sqlalchemy.exc import OperationalError

from airbo import Campaign
from airbo import uncertainty as unc
from airbo.lab import StorageError, storage
from airbo.lab.storage import explained, open_storage, write_whole
from airbo.lab.url import StorageURL
from tests.lab.common import JOURNAL, LINE, MILL, LINE, campaign, edited, write


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Do not wait for locks, and let Optuna try again without a pause."""
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr(optuna.storages._rdb.storage.random, "random", lambda: 0.0)


def test_a_locked_database_is_named(tmp_path):
    c = campaign(tmp_path, LINE)
    c.ask()
    with sqlite3.connect(tmp_path / "campaign.db") as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="is locked: another program"):
            c.tell(0, 1.0)
        other.rollback()
    other.close()
    assert c.experiment(0).is_pending
    assert c.tell(0, 1.0).done == "told"


def with_limit(c, pragma):
    """Set up all further connections to the database of a campaign."""
    engine = c.storage._backend.engine
    engine.dispose()
    listen(engine, "connect", lambda connection, _: connection.execute(f"PRAGMA {pragma}"))


def test_a_read_only_database_is_named(tmp_path):
    c = campaign(tmp_path, LINE)
    c.ask()
    with_limit(c, "query_only = true")
    with pytest.raises(StorageError, match="is read-only"):
        c.tell(0, 1.0)
    assert c.experiment(0).is_pending


def test_a_full_disk_loses_nothing_that_was_told_on_sqlite(tmp_path):
    c = campaign(tmp_path, LINE)
    c.ask(2)
    c.tell(0, 1.0)
    pages = (tmp_path / "campaign.db").stat().st_size // 4096
    with_limit(c, f"max_page_count = {pages}")
    log = unc.Empirical([i / 1000 for i in range(3000)])
    with pytest.raises(StorageError, match="The disk is full"):
        c.tell(1, 2.0, uncertainty={"x": log})
    with pytest.raises(StorageError, match="The disk is full"):
        c.tell({"x": 0.5}, 2.0, uncertainty={"x": log})
    c.close()
    again = Campaign.open(c.settings.path)
    assert [e.value for e in again.experiments] == [1.0, None]
    assert again.experiment(1).is_pending
    assert again.tell(1, 2.0).done == "told"


def test_a_full_disk_loses_nothing_that_was_told_in_a_journal(tmp_path, monkeypatch):
    c = campaign(tmp_path)
    c.ask()
    journal = tmp_path / "campaign.journal"
    before = journal.read_bytes()

    def cut_short(backend, logs):
        with journal.open("ab") as file:
            file.write(b'{"op_code": 6, "wor')
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(optuna.storages.journal.JournalFileBackend, "append_logs", cut_short)
        with pytest.raises(StorageError, match="The disk is full"):
            c.tell(0, 1.0)
    assert journal.read_bytes() != before
    again = Campaign.open(c.settings.path)
    assert journal.read_bytes() == before
    assert again.experiment(0).is_pending
    again.tell(0, 1.0)
    assert Campaign.open(c.settings.path).experiment(0).value == 1.0


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_whole(path, "old")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(StorageError, match=r"page.html cannot be written: No space left"):
        write_whole(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://localhost", "storage must be a URL such as sqlite"),
        ("campaign.db", "storage must be a URL such as sqlite"),
        ("sqlite:///", "storage must be a URL such as sqlite"),
        ("sqlite:///nowhere/a.db", "There is no folder"),
        ("postgresql+pg9://a:b@c/d", "driver is not installed"),
        ("postgresql://a:b@c:port/d", "not a valid URL"),
    ],
)
def test_urls_that_lead_nowhere_are_refused(tmp_path, url, message):
    with pytest.raises(StorageError, match=message):
        open_storage(StorageURL(url), tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "campaign.db").write_text(
        "something else, that is long enough to be looked at " * 9
    )
    with pytest.raises(StorageError, match="not an SQLite database"):
        campaign(tmp_path, LINE)


@pytest.mark.parametrize(
    ("said", "told"),
    [("odd thing at c\nmore", r"odd thing at c\.$"), ("no host b%40d@c", "holds the password")],
)
def test_what_is_not_known_is_passed_on_without_passwords(said, told):
    def fail():
        with explained(StorageURL("postgresql://a:b@d@c/d")):
            raise OperationalError("SELECT", {}, Exception(said))

    with pytest.raises(StorageError, match=told):
        fail()


def test_a_storage_belongs_to_one_campaign(tmp_path):
    campaign(tmp_path).tell({"x": 0.5}, 1.0)
    with pytest.raises(
        StorageError, match=r"belongs to another campaign: it holds 'line'.*'other'"
    ):
        campaign(tmp_path, edited(LINE, '"line"', '"other"'))
    with pytest.raises(StorageError, match="belongs to another campaign"):
        campaign(tmp_path, MILL)


def test_a_study_that_no_campaign_made_is_refused(tmp_path):
    path = write(tmp_path, LINE)
    study = optuna.create_study(
        storage=f"sqlite:///{tmp_path / 'campaign.db'}", study_name="line", direction="maximize"
    )
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(StorageError, match="a study 'line' that no campaign made"):
        Campaign.open(path)


def test_relative_files_lie_beside_the_campaign_file(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    campaign(tmp_path / "a").close()
    campaign(tmp_path / "a", edited(LINE, JOURNAL, "")).close()
    assert {p.name for p in (tmp_path / "a").iterdir()} == {
        "campaign.toml", "campaign.journal", "campaign.db", "campaign.journal.seal",
        "campaign.db.seal",
    }  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_nothing_that_is_read_is_unpickled(tmp_path, monkeypatch):
    import pickle

    def refuse(*args, **kwargs):
        raise AssertionError("something is unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    for text in (LINE):
        c = campaign(tmp_path, text)
        c.ask()
        c.tell(0, 1.0, correct=True)
        c.import_table(c.export(), again=True)
        assert Campaign.open(c.settings.path).status().n_ok == 2
        assert not hasattr(getattr(c.storage, "_backend", None), "load_snapshot")
