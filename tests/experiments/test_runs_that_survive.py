"""Finished repeats are kept whatever happens, and nothing is repeated or mixed."""

import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from experiments.harness import runner
from experiments.harness.store import Store
from tests.experiments.toy import Toy

ROOT = Path(__file__).parents[2]
SILENT = Console(file=io.StringIO())


def values(store, toy, repeats):
    tasks = toy.tasks(repeats)
    return {task.seed: result["value"] for task, result in store.results(tasks)}


def test_every_repeat_is_written_with_where_it_comes_from(tmp_path):
    store, toy = Store(tmp_path), Toy()
    assert runner.run(toy, toy.tasks(4), store, console=SILENT) == []
    assert values(store, toy, 4) == {0: 0, 1: 1, 2: 4, 3: 9}
    content = store.read(toy.tasks(4)[3])
    assert content["config"] == {"power": 2}
    assert content["seed"] == 3
    assert {"commit", "versions", "date"} <= set(content["provenance"])


@pytest.mark.slow
def test_processes_give_what_one_process_gives(tmp_path):
    toy = Toy()
    for jobs in (1, 2):
        runner.run(toy, toy.tasks(3), Store(tmp_path / str(jobs)), jobs, console=SILENT)
    one, two = (values(Store(tmp_path / str(jobs)), toy, 3) for jobs in (1, 2))
    assert one == two


def test_what_is_there_is_not_run_again(tmp_path):
    store, toy = Store(tmp_path), Toy()
    runner.run(toy, toy.tasks(2), store, console=SILENT)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    all_fail = replace(toy, bad=(0, 1))
    assert runner.run(all_fail, toy.tasks(3), store, console=SILENT) == []
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert values(store, toy, 3) == {0: 0, 1: 1, 2: 4}


def test_another_configuration_is_another_set_of_results(tmp_path):
    store = Store(tmp_path)
    for toy in (Toy(power=2), Toy(power=3)):
        runner.run(toy, toy.tasks(3), store, console=SILENT)
    assert values(store, Toy(power=2), 3) == {0: 0, 1: 1, 2: 4}
    assert values(store, Toy(power=3), 3) == {0: 0, 1: 1, 2: 8}


def test_the_first_result_stays(tmp_path):
    store, [task] = Store(tmp_path), Toy().tasks(1)
    store.write(task, {"value": 1}, {})
    store.write(task, {"value": 2}, {})
    assert store.read(task)["result"] == {"value": 1}
    assert list(tmp_path.rglob("*.part")) == []


def test_a_repeat_that_fails_is_told_and_does_not_stop_the_others(tmp_path):
    store, toy, screen = Store(tmp_path), Toy(bad=(1,)), io.StringIO()
    [failed] = runner.run(toy, toy.tasks(4), store, console=Console(file=screen))
    assert failed.task.seed == 1
    assert "ArithmeticError: no square of 1" in failed.traceback
    assert "ArithmeticError: no square of 1" in screen.getvalue()
    assert values(store, toy, 4) == {0: 0, 2: 4, 3: 9}


def test_a_result_that_is_not_a_number_is_no_result(tmp_path):
    store, [task] = Store(tmp_path), Toy().tasks(1)
    with pytest.raises(ValueError, match="JSON"):
        store.write(task, {"value": float("nan")}, {})
    assert not store.has(task)


def test_a_result_that_cannot_be_kept_does_not_stop_the_others(tmp_path):
    store, toy = Store(tmp_path), Toy(odd=(1,))
    [failed] = runner.run(toy, toy.tasks(3), store, console=SILENT)
    assert failed.task.seed == 1
    assert "not JSON compliant" in failed.traceback
    assert values(store, toy, 3) == {0: 0, 2: 4}
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write(failed.task, {"value": float("nan")}, {})
    assert list(tmp_path.rglob("*.part")) == []


@pytest.mark.slow
def test_killed_and_started_again_is_as_never_killed(tmp_path):
    program = ROOT / "tests" / "experiments" / "toy.py"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, str(program), str(tmp_path)]
    running = subprocess.Popen(
        [*command, "0.9"], env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = {path: path.stat().st_ino for path in tmp_path.rglob("*.json")}
    assert 0 < len(kept) < 6
    subprocess.run([*command, "0"], env=environment, check=True, stderr=subprocess.DEVNULL)
    assert values(Store(tmp_path), Toy(), 6) == {i: i**2 for i in range(6)}
    assert {path: path.stat().st_ino for path in kept} == kept
