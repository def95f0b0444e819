"""Packing keeps every finished repeat once, whatever happens meanwhile."""

import itertools
import lzma
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.__main__ import app, main
from experiments.harness import packed
from experiments.harness.packed import DamagedResultsError
from experiments.harness.store import Folded, Store, UnknownCodeError
from experiments.registry import KNOWN
from tests.experiments.toy import Toy

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, str(ROOT / "tests" / "experiments" / "packing.py")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
TASKS = Toy().tasks(4)


def filled(folder, tasks=TASKS):
    store = Store(folder)
    for task in tasks:
        store.write(task, {"value": task.seed**2}, {"commit": "abc"})
    return store


def values(store, tasks=TASKS):
    return {task.seed: result["value"] for task, result in store.results(tasks)}


def spooled(store):
    return sorted(path.name for path in store.spool.rglob("*.json"))


def test_what_is_packed_reads_as_what_was_spooled(tmp_path):
    store = filled(tmp_path)
    before = [store.read(task) for task in TASKS]
    assert store.pack() == [Folded("toy", 4, 4)]
    assert spooled(store) == []
    assert [store.read(task) for task in TASKS] == before
    assert all(map(store.has, TASKS))
    assert store.commits(TASKS) == ["abc"]


def test_results_come_from_the_packed_file_and_the_spool_together(tmp_path):
    store = filled(tmp_path, TASKS[:2])
    store.pack()
    filled(tmp_path)
    assert len(spooled(store)) == 2  # what is packed is not written again
    assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert store.pack() == [Folded("toy", 2, 4)]
    assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}


def test_the_same_repeats_give_the_same_bytes_in_any_order(tmp_path):
    at_once, one_by_one = filled(tmp_path / "a"), Store(tmp_path / "b")
    at_once.pack()
    for task in reversed(TASKS):
        filled(tmp_path / "b", [task]).pack()
    one, other = (store.packed_path("toy").read_bytes() for store in (at_once, one_by_one))
    assert one == other


def test_packing_twice_changes_nothing(tmp_path):
    store = filled(tmp_path)
    store.pack()
    before = store.packed_path("toy").stat()
    assert store.pack() == []
    assert store.packed_path("toy").stat() == before
    assert Store(tmp_path / "nothing").pack() == []


def test_a_pack_that_is_killed_at_any_step_loses_and_doubles_nothing(tmp_path):
    for step in itertools.count():
        folder = tmp_path / str(step)
        filled(folder, TASKS[:2]).pack()
        store = filled(folder)
        done = subprocess.run([*PROGRAM, "pack", folder, str(step)], env=ENVIRONMENT)
        assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        store.pack()
        assert spooled(store) == []
        assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
        assert len(packed.read(store.packed_path("toy"))) == 4
    # file and folder are synchronized, the file gets its name, two files leave the spool
    assert step == 5


def test_two_writers_and_a_packer_keep_every_repeat_once(tmp_path):
    store, tasks = Store(tmp_path), Toy().tasks(60)
    writers = [
        subprocess.Popen([*PROGRAM, "write", tmp_path, "60", name], env=ENVIRONMENT)
        for name in ("one", "other")
    ]
    seen = {}
    while any(writer.poll() is None for writer in writers):
        now = values(store, tasks)
        assert now.items() >= seen.items()  # nothing is lost, and the first result stays
        seen = now
        store.pack()
    assert [writer.returncode for writer in writers] == [0, 0]
    store.pack()
    assert spooled(store) == []
    assert values(store, tasks).items() >= seen.items()
    assert set(values(store, tasks)) == set(range(60))


def test_a_result_that_was_packed_meanwhile_is_not_doubled(tmp_path):
    store, [task] = Store(tmp_path), TASKS[:1]
    filled(tmp_path / "other", [task])
    filled(tmp_path, [task]).pack()
    store.spool_path(task).write_text(
        packed.line_of(task, {"value": "late"}, {"commit": "abc"}), encoding="utf-8"
    )
    assert values(store) == {0: 0}
    assert store.pack() == [Folded("toy", 0, 1)]
    assert values(store) == {0: 0}


def test_another_configuration_is_another_set_of_results(tmp_path):
    cubes = Toy(power=3).tasks(4)
    store = filled(tmp_path)
    store.write(cubes[2], {"value": 8}, {"commit": "abc"})
    assert store.pack() == [Folded("toy", 5, 5)]
    assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert values(store, cubes) == {2: 8}


def test_a_packed_result_of_another_configuration_is_refused(tmp_path):
    store, task = Store(tmp_path), TASKS[0]
    other = replace(task, config={"power": 9})
    line = packed.line_of(other, {"value": 0}, {})
    packed.replace(store.packed_path("toy"), {packed.key_of(other): line})
    clash = {packed.key_of(task): line}  # as if the hashes were the same
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packed, "read", lambda path: clash)
        with pytest.raises(DamagedResultsError, match="another configuration"):
            store.read(task)


def test_a_spooled_result_under_the_name_of_another_configuration_is_refused(tmp_path):
    store, task = Store(tmp_path), TASKS[0]
    other = replace(task, config={"power": 9})
    store.write(other, {"value": 0}, {})
    store.spool_path(other).rename(store.spool_path(task))
    for refused in (lambda: store.read(task), store.pack):
        with pytest.raises(DamagedResultsError, match="another configuration"):
            refused()
    assert store.spool_path(task).exists()


def test_a_result_of_code_that_is_in_no_commit_is_not_packed(tmp_path):
    store = filled(tmp_path, TASKS[:2])
    store.write(TASKS[2], {"value": 4}, {"commit": "abc-dirty"})
    with pytest.raises(UnknownCodeError, match="1 results of toy were made with uncommitted"):
        store.pack()
    assert len(spooled(store)) == 3
    assert not store.packed_path("toy").exists()


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, emptied, flipped])
def test_a_damaged_file_is_noticed_and_left_alone(tmp_path, damage):
    filled(tmp_path, TASKS[:3]).pack()
    store = filled(tmp_path)
    path = store.packed_path("toy")
    damage(path)
    broken = path.read_bytes()
    for refused in (lambda: store.results(TASKS[:3]), store.pack, lambda: store.has(TASKS[0])):
        with pytest.raises(DamagedResultsError, match=r"toy\.jsonl\.xz is damaged.*git checkout"):
            refused()
    assert path.read_bytes() == broken
    assert len(spooled(store)) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [lines[0][:-5], *lines[1:]], "Line 1 of .*is damaged"),
        (lambda lines: [*lines, "{}"], "Line 5 of .*not a finished repeat"),
        (lambda lines: [*lines, lines[1]], "Line 5 of .*is there twice"),
        (lambda lines: [lines[0].replace('"toy"', '"rkhs"'), *lines[1:]], "belongs to 'rkhs'"),
    ],
    ids=["cut", "not a repeat", "twice", "of another experiment"],
)
def test_a_line_that_does_not_belong_there_is_named(tmp_path, change, message):
    store = filled(tmp_path)
    store.pack()
    path = store.packed_path("toy")
    lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(lzma.compress("\n".join(change(lines)).encode()))
    with pytest.raises(DamagedResultsError, match=message):
        store.results(TASKS)


def test_a_damaged_file_of_the_spool_is_named_and_nothing_is_packed(tmp_path):
    store = filled(tmp_path)
    path = store.spool_path(TASKS[1])
    path.write_text(path.read_text()[:-10])
    for refused in (lambda: store.read(TASKS[1]), store.pack):
        with pytest.raises(DamagedResultsError, match=rf"{path.name} is damaged"):
            refused()
    assert not store.packed_path("toy").exists()
    assert len(spooled(store)) == 4


def test_the_command_says_what_was_packed_and_what_is_damaged(tmp_path, monkeypatch, capsys):
    store = filled(tmp_path)
    command = ["pack", "--results", str(tmp_path)]
    assert "toy: 4 repeats added, 4 in all" in CliRunner().invoke(app, command).output
    assert "nothing to pack" in CliRunner().invoke(app, command).output
    emptied(store.packed_path("toy"))
    filled(tmp_path / "more", TASKS[:1])
    (tmp_path / "more" / "spool").rename(tmp_path / "again")
    shutil.copytree(tmp_path / "again", store.spool, dirs_exist_ok=True)
    monkeypatch.setattr(sys, "argv", ["experiments", *command])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert "toy.jsonl.xz is damaged" in " ".join(capsys.readouterr().out.split())


def test_every_stored_result_belongs_to_an_experiment_and_is_complete():
    store, missing = Store(), []
    known = {}
    for name, experiment in KNOWN.items():
        for task in experiment.tasks(experiment.repeats):
            known.setdefault(task.experiment, name)
    files = sorted(path.name for path in store.folder.glob(f"*{packed.SUFFIX}"))
    assert files
    for file in files:
        name = file.removesuffix(packed.SUFFIX)
        assert name in known
        assert packed.read(store.packed_path(name))
    complete = ("modelling", "dilemma", "surrogates", "regret-growth")
    for name in complete:
        experiment = KNOWN[name]
        missing += [t for t in experiment.tasks(experiment.repeats) if not store.has(t)]
    assert not missing
