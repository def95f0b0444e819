"""Finished repeats are kept once, whatever happens, and nothing is repeated or mixed."""

import io
import lzma
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from experiments.__main__ import _run, app, main
from experiments.harness import runner
from experiments.harness.store import SUFFIX, DamagedResultsError, Store, UnknownCodeError
from experiments.registry import KNOWN
from tests.experiments.toy import Toy

ROOT = Path(__file__).parents[2]
SILENT = Console(file=io.StringIO())
TASKS = Toy().tasks(4)


def filled(folder, tasks=TASKS, commit="abc"):
    store = Store(folder)
    for task in tasks:
        store.write(task, {"value": task.seed**2}, {"commit": commit})
    return store


def values(store, tasks=TASKS):
    return {task.seed: result["value"] for task, result in store.results(tasks)}


# -- runs


def test_every_repeat_is_written_with_where_it_comes_from(tmp_path):
    store, toy = Store(tmp_path), Toy()
    assert runner.run(toy, toy.tasks(4), store, console=SILENT) == []
    assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
    content = store.read(TASKS[3])
    assert content["config"] == {"power": 2}
    assert content["seed"] == 3
    assert {"commit", "versions", "date"} <= set(content["provenance"])


def test_what_is_there_is_not_run_again(tmp_path):
    store, toy = Store(tmp_path), Toy()
    runner.run(toy, TASKS[:2], store, console=SILENT)
    before = store.read(TASKS[0])
    all_fail = replace(toy, bad=(0, 1))
    assert runner.run(all_fail, TASKS[:3], store, console=SILENT) == []
    assert store.read(TASKS[0]) == before
    assert values(store) == {0: 0, 1: 1, 2: 4}


def test_another_configuration_is_another_set_of_results(tmp_path):
    store = Store(tmp_path)
    for toy in (Toy(power=2), Toy(power=3)):
        runner.run(toy, toy.tasks(3), store, console=SILENT)
    assert values(store, Toy(power=2).tasks(3)) == {0: 0, 1: 1, 2: 4}
    assert values(store, Toy(power=3).tasks(3)) == {0: 0, 1: 1, 2: 8}


def test_a_repeat_that_fails_is_told_and_does_not_stop_the_others(tmp_path):
    store, toy, screen = Store(tmp_path), Toy(bad=(1,), odd=(2,)), io.StringIO()
    failed = runner.run(toy, toy.tasks(4), store, console=Console(file=screen))
    assert [outcome.task.seed for outcome in failed] == [1, 2]
    assert "ArithmeticError: no square of 1" in screen.getvalue()
    assert "not JSON compliant" in failed[1].traceback
    assert values(store) == {0: 0, 3: 9}


@pytest.mark.slow
def test_killed_and_started_again_is_as_never_killed(tmp_path):
    program = ROOT / "tests" / "experiments" / "toy.py"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, str(program), str(tmp_path)]
    running = subprocess.Popen(
        [*command, "0.9"], env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    )
    store, tasks = Store(tmp_path), Toy().tasks(6)
    deadline = time.monotonic() + 120
    while not values(store, tasks) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = values(store, tasks)
    assert 0 < len(kept) < 6
    subprocess.run([*command, "0"], env=environment, check=True, stderr=subprocess.DEVNULL)
    assert values(store, tasks) == {i: i**2 for i in range(6)}


# -- the spool and the packed file


def test_the_first_result_stays(tmp_path):
    store, task = Store(tmp_path), TASKS[0]
    store.write(task, {"value": 1}, {})
    store.write(task, {"value": 2}, {})
    assert store.read(task)["result"] == {"value": 1}
    with pytest.raises(ValueError, match="JSON"):
        store.write(TASKS[1], {"value": float("nan")}, {})
    assert not store.has(TASKS[1])


def test_a_line_that_a_kill_has_cut_off_is_run_again_and_harms_no_other(tmp_path):
    store = filled(tmp_path, TASKS[:2])
    path = store.spool_path("toy")
    path.write_text(path.read_text()[:-20])  # the second one is not whole
    assert values(store) == {0: 0}
    filled(tmp_path)
    assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert store.pack() == {"toy": (4, 4)}


def test_what_is_packed_reads_as_what_was_spooled(tmp_path):
    store = filled(tmp_path, TASKS[:2])
    before = [store.read(task) for task in TASKS[:2]]
    assert store.pack() == {"toy": (2, 2)}
    assert not store.spool_path("toy").exists()
    assert [store.read(task) for task in TASKS[:2]] == before
    filled(tmp_path)
    assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert store.pack() == {"toy": (2, 4)}
    assert store.pack() == {}
    assert store.commits(TASKS) == ["abc"]


def test_a_pack_that_stopped_before_the_spool_was_empty_doubles_nothing(tmp_path):
    store = filled(tmp_path)
    left = store.spool_path("toy").read_text()
    store.pack()
    store.spool_path("toy").write_text(left)
    assert values(store) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert store.pack() == {"toy": (0, 4)}


def test_the_same_repeats_give_the_same_bytes_in_any_order(tmp_path):
    for name, tasks in (("a", TASKS), ("b", TASKS[::-1])):
        filled(tmp_path / name, tasks).pack()
    one, other = ((tmp_path / name / f"toy{SUFFIX}").read_bytes() for name in "ab")
    assert one == other


def test_a_result_of_code_that_is_in_no_commit_is_not_packed(tmp_path):
    store = filled(tmp_path, commit="abc-dirty")
    with pytest.raises(UnknownCodeError, match=r"4 results of .* uncommitted changes"):
        store.pack()
    assert not store.packed_path("toy").exists()
    assert len(values(store)) == 4


def test_a_stopped_run_packs_what_is_finished_and_goes_on(tmp_path, monkeypatch):
    toy, tasks = Toy(), Toy().tasks(4)

    def stop_after_two(experiment, tasks, store, jobs):
        for task in [t for t in tasks if not store.has(t)][:2]:
            store.write(task, experiment.run(task), {"commit": "abc"})
        if not all(map(store.has, tasks)):
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(runner, "run", stop_after_two)
    with pytest.raises(typer.Exit):
        _run(toy, 4, 1, None, tmp_path)
    assert Store(tmp_path).packed_path("toy").exists()
    assert sum(map(Store(tmp_path).has, tasks)) == 2
    _run(toy, 4, 1, None, tmp_path)
    assert all(map(Store(tmp_path).has, tasks))


def rewrite(store, change):
    path = store.packed_path("toy")
    lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(lzma.compress("\n".join(change(lines)).encode()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, lines[0]], "Line 5 of .* is there twice"),
        (lambda lines: [lines[0][:-9]], "Line 1 of .* is not a finished repeat"),
        (lambda lines: [lines[0].replace("toy", "boy", 1)], "Line 1 of .* belongs to 'boy'"),
    ],
)
def test_a_line_that_does_not_belong_there_is_named(tmp_path, change, message):
    store = filled(tmp_path)
    store.pack()
    rewrite(store, change)
    with pytest.raises(DamagedResultsError, match=message):
        store.has(TASKS[0])


def test_the_command_says_what_was_packed_and_what_is_damaged(tmp_path, monkeypatch, capsys):
    store = filled(tmp_path)
    done = CliRunner().invoke(app, ["pack", "--results", str(tmp_path)])
    assert "toy: 4 runs added, 4 in all" in done.output
    store.packed_path("toy").write_bytes(b"not this")
    filled(tmp_path / "more").spool_path("toy").rename(store.spool_path("toy"))
    monkeypatch.setattr(sys, "argv", ["experiments", "pack", "--results", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "is damaged" in capsys.readouterr().out


def test_every_stored_result_belongs_to_an_experiment():
    store = Store()
    for path in store.folder.glob(f"*{SUFFIX}"):
        experiment = KNOWN[path.name.removesuffix(SUFFIX)]
        tasks = experiment.tasks(experiment.repeats)
        n_lines = len(lzma.decompress(path.read_bytes()).splitlines())
        assert n_lines == sum(map(store.has, tasks))
