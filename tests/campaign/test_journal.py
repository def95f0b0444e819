"""Journals: lines that were cut short, locks, and files that are something else."""

import os
import sqlite3

import pytest

from airbo import Campaign
from airbo.campaign import StorageError
from tests.campaign.common import LINE, SQLITE, edited, reopened, values, write

HALF = b'{"op_code":6,"wor'


def test_a_line_that_was_cut_short_does_not_spoil_the_next_one(tmp_path):
    path = write(tmp_path)
    ours, theirs = Campaign.open(path), Campaign.open(path)
    ours.ask(2)
    with (tmp_path / "campaign.journal").open("ab") as file:
        file.write(HALF)  # and its writer is gone
    assert theirs.tell(0, 1.0).done == "told"
    assert ours.tell(1, 2.0).done == "told"
    assert values(reopened(ours)) == {0: 1.0, 1: 2.0}


@pytest.mark.parametrize("content", [b"notes without a newline", b"a,b\n1,2", b"\x00\n\xff"])
def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path, content):
    file = tmp_path / "campaign.journal"
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"campaign\.journal is not an Optuna journal"):
        Campaign.open(write(tmp_path))
    assert file.read_bytes() == content


def test_a_database_is_not_opened_as_a_journal(tmp_path):
    with Campaign.open(write(tmp_path, SQLITE)) as c:
        c.tell({"x": 0.5}, 1.0)
    wrong = write(tmp_path, edited(LINE, "campaign.journal", "campaign.db"))
    with pytest.raises(StorageError, match="not an Optuna journal"):
        Campaign.open(wrong)
    with sqlite3.connect(tmp_path / "campaign.db") as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_a_damaged_journal_is_named(tmp_path):
    c = Campaign.open(write(tmp_path))
    with (tmp_path / "campaign.journal").open("ab") as file:
        file.write(HALF + b"\n")
    c.storage._backend.append_logs([{"op_code": 99}])
    with pytest.raises(StorageError, match="is damaged: one of its lines is no JSON"):
        reopened(c)


def test_a_lock_can_be_found_from_every_folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub")
    monkeypatch.chdir(tmp_path)
    c = Campaign.open("sub/campaign.toml")
    c.storage._backend._lock.acquire()
    assert (tmp_path / "sub" / "campaign.journal.lock").exists()  # else it is never taken over
    c.storage._backend._lock.release()
    monkeypatch.chdir(tmp_path.parent)
    assert c.tell({"x": 0.5}, 1.0).done == "added"


def test_a_slow_writer_does_not_take_the_lock_of_the_next_one(tmp_path):
    c = Campaign.open(write(tmp_path))
    slow, quick = (Campaign.open(c.settings.path).storage._backend._lock for _ in range(2))
    slow.acquire()
    os.unlink(tmp_path / "campaign.journal.lock")  # taken from it
    quick.acquire()
    slow.release()
    assert os.path.lexists(tmp_path / "campaign.journal.lock")
    quick.release()
    assert not os.path.lexists(tmp_path / "campaign.journal.lock")
