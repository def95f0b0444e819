"""Damage to a storage file is noticed: never a silently shorter or different campaign."""

import random
import shutil
import time

import optuna
import pytest

from airbo import Campaign
from airbo.campaign import CampaignError, Settings, StorageError
from airbo.campaign.errors import DamageError
from airbo.campaign.rescue import go_back, rescue, verify
from tests.campaign.common import LINE, SQLITE, campaign, edited, with_database, write

TEXTS = {"journal": LINE, "sqlite": SQLITE}
FILES = {"journal": "campaign.journal", "sqlite": "campaign.db"}
ROWS = "x,value,executed_x\n0.25,1.0,\n0.5,2.0,0.52\n"


def content(experiments):
    """All that people see of experiments."""
    return {
        e.number: (
            (e.design["x"], e.outcome, e.value, dict(e.executed), e.asked, e.told),
            (e.excluded, e.notes, e.by),
        )
        for e in experiments
    }


@pytest.fixture(scope="module", params=TEXTS)
def whole(request, tmp_path_factory):
    """A campaign in which everything has happened, as its folder, file and content."""
    folder = tmp_path_factory.mktemp(request.param)
    path = with_database(write(folder, TEXTS[request.param]))
    (folder / "before.csv").write_text(ROWS)
    with Campaign.open(path) as c:
        c.ask(5)
        c.tell_all([(0, 1.5), (1, 2.5)])
        c.tell(2, 3.5, executed={"x": 0.4})
        c.fail(3)
        c.tell(1, 25.0, correct=True)
        c.import_table(folder / "before.csv")
        c.tell({"x": 0.125}, -4.0)
        found = content(c.experiments)
    return folder, FILES[request.param], found


def damaged(whole, folder, change):
    """Copy a campaign and change the bytes of its storage; return the file of the copy."""
    source, file, _ = whole
    shutil.copytree(source, folder)
    storage = folder / file
    storage.write_bytes(change(storage.read_bytes()))
    return folder / "campaign.toml"


def assert_noticed(whole, path):
    """Open a campaign: it is refused in words, or it is what it was; say which."""
    try:
        with Campaign.open(path) as c:
            found = content(c.experiments)
    except StorageError:
        assert_rescued(whole, path)
        return True
    assert found == whole[2]
    return False


def assert_rescued(whole, path):
    """What can be read of a damaged campaign is true."""
    try:
        found = rescue(Settings.read(path))
    except StorageError:
        return
    assert found.is_certain
    assert content(found.experiments).items() <= whole[2].items()


def test_a_campaign_that_is_whole_is_opened(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    assert not assert_noticed(whole, path)
    assert verify(Settings.read(path)) == 9


def places(whole, n, seed):
    size = (whole[0] / whole[1]).stat().st_size
    return random.Random(seed).sample(range(size), n)


def test_every_truncation_is_noticed(whole, tmp_path):
    source, file, _ = whole
    data = (source / file).read_bytes()
    ends = [i + 1 for i, byte in enumerate(data[:-1]) if byte == ord("\n")]
    cuts = ends if file.endswith("journal") else range(0, len(data), 4096 * 3)
    cuts = [*cuts, *places(whole, 10, seed=1), 0, 1, len(data) - 1]
    for i, cut in enumerate(sorted(set(cuts))):
        path = damaged(whole, tmp_path / str(i), lambda data, cut=cut: data[:cut])
        assert_noticed(whole, path)
        shutil.rmtree(tmp_path / str(i))


def test_a_journal_that_was_cut_is_refused_wherever_something_told_is_missing(whole, tmp_path):
    source, file, _ = whole
    if not file.endswith("journal"):
        pytest.skip("a journal is meant")
    lines = (source / file).read_bytes().splitlines(keepends=True)
    for n in (1, len(lines) // 2, len(lines) - 1):
        cut = b"".join(lines[:n])
        path = damaged(whole, tmp_path / str(n), lambda data, cut=cut: cut)
        with pytest.raises(DamageError, match=r"is damaged.*airbo export --damaged.*airbo restore"):
            Campaign.open(path)
        assert (path.parent / file).read_bytes() == cut


def flipped(data, place, bit):
    changed = bytearray(data)
    changed[place] ^= 1 << bit
    return bytes(changed)


def test_a_change_that_is_lost_is_noticed(tmp_path):
    folder = tmp_path / "whole"
    folder.mkdir()
    with Campaign.open(write(folder)) as c:
        c.ask()
        c.tell_all([(0, 1.5), ({"x": 0.5}, 2.5)])
        n_lines = [len((folder / FILES["journal"]).read_bytes().splitlines())]
        for change in (
            lambda: c.exclude(0, "loose"),
            lambda: c.note(1, "new batch"),
            lambda: c.tell(1, 30.0, correct=True),
            c.undo,
            lambda: c.tell(0, 6.0, correct=True, design={"x": 0.4}),
            lambda: c.give_up(1, correct=True),
        ):
            change()
            n_lines.append(len((folder / FILES["journal"]).read_bytes().splitlines()))
        whole = folder, FILES["journal"], content(c.experiments)
    for n in range(n_lines[0], n_lines[-1]):
        cut = lambda text, n=n: b"".join(text.splitlines(keepends=True)[:n])  # noqa: E731
        assert assert_noticed(whole, damaged(whole, tmp_path / str(n), cut))


def test_single_bits_that_flip_change_nothing_or_are_noticed(whole, tmp_path):
    for i, place in enumerate(places(whole, 60 if whole[1].endswith("journal") else 25, seed=2)):
        path = damaged(whole, tmp_path / str(i), lambda d, p=place, i=i: flipped(d, p, i % 8))
        assert_noticed(whole, path)
        shutil.rmtree(tmp_path / str(i))


@pytest.mark.slow
def test_many_bits_that_flip_change_nothing_or_are_noticed(whole, tmp_path):
    n_noticed = 0
    for i, place in enumerate(places(whole, 1000 if "journal" in whole[1] else 200, seed=3)):
        path = damaged(whole, tmp_path / str(i), lambda d, p=place, i=i: flipped(d, p, i % 8))
        n_noticed += assert_noticed(whole, path)
        shutil.rmtree(tmp_path / str(i))
    assert n_noticed > 20


@pytest.mark.parametrize("fill", [b"", b"\x00"])
def test_half_copies_are_noticed(whole, tmp_path, fill):
    for share in (0.3, 0.5, 0.9):

        def half(data, share=share):
            kept = data[: int(share * len(data))]
            return kept + fill * (len(data) - len(kept))

        path = damaged(whole, tmp_path / str(share), half)
        assert assert_noticed(whole, path)


def test_a_value_that_was_changed_is_named(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    change_value(path.parent / whole[1])
    with pytest.raises(DamageError, match=r"trial 0 is not what was told\. 8 of 9 trials are"):
        Campaign.open(path)
    with pytest.raises(DamageError, match="trial 0 is not what was told"):
        verify(Settings.read(path))
    found = rescue(Settings.read(path))
    assert found.n_lost == 1
    assert content(found.experiments) == {n: v for n, v in whole[2].items() if n != 0}


def change_value(file):
    if file.suffix == ".journal":
        file.write_bytes(file.read_bytes().replace(b'"values":[1.5]', b'"values":[7.5]'))
        return
    import sqlite3

    with sqlite3.connect(file) as database:
        database.execute("UPDATE trial_values SET value = 7.5 WHERE value = 1.5")
    database.close()


def test_a_backup_is_restored_by_one_command(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    file = path.parent / whole[1]
    backup = tmp_path / "backup"
    shutil.copyfile(file, backup)
    with Campaign.open(path) as c:
        c.tell({"x": 0.9}, 9.0)
    shutil.copyfile(backup, file)
    with pytest.raises(DamageError, match="trial 9 is missing"):
        Campaign.open(path)
    done = go_back(Settings.read(path), None)
    assert [p.name for p in done.kept] == [f"{file.name}.seal.before-restore-1"]
    assert not assert_noticed(whole, path)
    with Campaign.open(path) as c:
        c.tell({"x": 0.9}, 9.0)
    done = go_back(Settings.read(path), backup)
    assert (done.n_experiments, len(done.kept)) == (len(whole[2]), 2)
    assert not assert_noticed(whole, path)


def test_a_backup_of_something_else_is_refused_and_nothing_changes(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    before = sorted(p.name for p in path.parent.iterdir())
    (tmp_path / "other").write_text("something else, and long enough to be looked at " * 9)
    with pytest.raises(StorageError, match=r"something else|not an Optuna journal"):
        go_back(Settings.read(path), tmp_path / "other")
    with pytest.raises(StorageError, match="There is no file"):
        go_back(Settings.read(path), tmp_path / "nowhere")
    assert sorted(p.name for p in path.parent.iterdir()) == before
    assert not assert_noticed(whole, path)


def test_a_storage_that_is_gone_is_not_begun_anew(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    (path.parent / whole[1]).unlink()
    with pytest.raises(StorageError, match=r"is gone, and it held 9 trials.*To start over, delete"):
        Campaign.open(path)
    assert not (path.parent / whole[1]).exists()
    (path.parent / f"{whole[1]}.seal").unlink()
    assert Campaign.open(path).experiments == []


def test_a_campaign_without_a_seal_gets_one(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    seal = path.parent / f"{whole[1]}.seal"
    lines = seal.read_text().splitlines()
    seal.unlink()
    assert not assert_noticed(whole, path)
    told = [line for line in lines if " design " not in line or line.endswith("design 4")]
    assert sorted(seal.read_text().splitlines()) == sorted(told)


def test_a_seal_may_be_shorter_than_the_storage(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    seal = path.parent / f"{whole[1]}.seal"
    data = seal.read_bytes()
    for cut in (0, 5, 40, len(data) // 2, len(data) - 1):
        seal.write_bytes(data[:cut] if cut != 5 else b"")
        assert not assert_noticed(whole, path)
        assert set(seal.read_bytes().splitlines()) >= set(data[:cut].splitlines()[:-1])


def test_a_seal_that_cannot_be_read_is_named(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    seal = path.parent / f"{whole[1]}.seal"
    data = seal.read_bytes()
    for place in (2, 30, len(data) // 2):
        seal.write_bytes(flipped(data, place, 1))
        with pytest.raises(DamageError, match=r"seal is damaged: line \d+ cannot be read.*whole"):
            Campaign.open(path)
    go_back(Settings.read(path), None)
    assert not assert_noticed(whole, path)


def test_what_optuna_itself_writes_is_legal_and_sealed_from_then_on(whole, tmp_path):
    path = damaged(whole, tmp_path / "copy", lambda data: data)
    with Campaign.open(path) as c:
        study = optuna.load_study(study_name="line", storage=c.storage)
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        study.tell(trial, 8.0)
        study.tell(4, 4.5)
    with Campaign.open(path) as c:
        assert c.experiment(trial.number).value == 8.0
        assert c.experiment(4).value == 4.5
        assert c.seal.broken(c.held()) == []
        assert f"trial {trial.number}" in c.seal.facts


def test_a_server_looks_after_itself():
    settings = campaign_settings("postgresql://ann@host/lab")
    for act in (verify, rescue, lambda s: go_back(s, None)):
        with pytest.raises(CampaignError, match="is a server, which keeps and checks its files"):
            act(settings)


def campaign_settings(url):
    from tests.campaign.common import settings

    return settings(edited(LINE, "journal:///campaign.journal", url))


def test_two_processes_seal_side_by_side(tmp_path):
    ours, theirs = campaign(tmp_path), Campaign.open(tmp_path / "campaign.toml")
    ours.ask(2)
    theirs.tell(0, 1.0)
    ours.tell(1, 2.0)
    theirs.tell(1, 2.5, correct=True)
    ours.tell({"x": 0.5}, 3.0)
    with Campaign.open(tmp_path / "campaign.toml") as c:
        assert [e.value for e in c.experiments] == [1.0, 2.5, 3.0]


def test_a_campaign_is_whole_in_another_time_zone(whole, tmp_path, monkeypatch):
    path = damaged(whole, tmp_path / "copy", lambda content: content)
    try:
        for zone in ("America/New_York", "Asia/Kolkata"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            with Campaign.open(path) as c:
                assert len(c.experiments) == len(whole[2])
    finally:
        monkeypatch.undo()
        time.tzset()
