"""Experiments that a program does."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from airbo import Campaign
from airbo.lab import CampaignError
from airbo.lab import run as module
from airbo.lab.run import Command, CommandResult, answer_in, run_unattended, this_process
from tests.lab.common import MILL, campaign, settings, value_of, values
from tests.lab.test_outcomes import SEAM

MILL_SPACE = settings(MILL).space


def go(c, template, budget=3, timeout=None, **options):
    return run_unattended(c, Command(template, c.settings.space, timeout), budget, **options)


def test_the_last_line_is_the_value(tmp_path):
    c = campaign(tmp_path)
    seen = []
    steps = go(c, "printf 'hello\\n%s\\n\\n' {x}", on_step=lambda *step: seen.append(step))
    assert [n_done for *_, n_done in seen] == [1, 2, 3]
    assert [tuple(step) for *step, _ in seen] == steps
    assert all(value_of(e) == e.design["x"] for e in c.experiments)
    assert go(c, "echo {x}") == []


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ('{"a": 1, "b": 2.5}', {"a": 1.0, "b": 2.5}),
        ('{"a": null, "b": -2e3}', {"b": -2000.0}),
        ("1.5", 'must be JSON such as {"a": 1.25, "b": 1.25}, got \'1.5\''),
        ('{"a": 1, "c": 2}', "names 'c'"),
        ('{"a": "warm"}', "a must be a finite number, got 'warm'"),
        ('{"a": NaN}', "a must be a finite number"),
    ],
)
def test_a_program_names_the_outcomes_that_it_measured(line, answer):
    if isinstance(answer, dict):
        assert answer_in(line, ["a", "b"]) == answer
    else:
        with pytest.raises(ValueError, match=re.escape(answer)):
            answer_in(line, ["a", "b"])


def test_a_line_that_cannot_be_read_is_kept_as_a_note(tmp_path):
    c = campaign(tmp_path, SEAM)
    command = Command("""echo '{{"strenth": 3}}'""", c.settings.space, outcomes=c.settings.outcomes)
    run_unattended(c, command, 1)
    assert c.experiment(0).outcome == "failed"
    assert c.experiment(0).notes == (
        "its last line names 'strenth'; did you mean 'strength'? ({\"strenth\": 3})",
    )


def test_no_shell_sees_the_command():
    design = {"speed": 1.0, "depth": 2.0, "passes": 3, "tool": "$(rm -rf a) 'b' {depth}"}
    command = Command("do --s={speed} '{tool}; ls' {passes}", MILL_SPACE)
    assert command.arguments(design) == [
        "do", "--s=1.0", "$(rm -rf a) 'b' {depth}; ls", "3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("do {sped}", "names {sped} or formats it; there are {speed}"),
        ("do {}", "names {}"),
        ("do {speed.__class__}", "names {speed.__class__}"),
        ("do 'a", "not readable"),
        ("do {speed", "not readable"),
        ("", "empty"),
        ("do {speed:.1f}", "names {speed} or formats it; there are {speed}"),
        ("do {tool!r}", "names {tool} or formats it"),
    ],
)
def test_commands_that_name_something_else_are_refused(template, message):
    with pytest.raises(CampaignError, match=message):
        Command(template, MILL_SPACE)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("sh -c 'echo 1; echo no chips >&2; exit 3'", "exit code 3: no chips"),
        ("echo fast", "must be a number, got 'fast'"),
        ("echo inf", "must be a finite number"),
        ("echo 1e200", "must not exceed 1e+100"),
        ("true", "must be a number, got ''"),
    ],
)
def test_experiments_without_a_value_have_failed(tmp_path, template, reason):
    c = campaign(tmp_path)
    [(_, result)] = go(c, template, budget=1)
    assert reason in result.reason
    assert [e.outcome for e in c.experiments] == ["failed"]


def test_an_experiment_that_takes_too_long_is_ended_with_all_it_started(tmp_path):
    c = campaign(tmp_path)
    begin = time.monotonic()
    [(_, result)] = go(c, "sh -c 'sleep 77.7 & sleep 77.7'", budget=1, timeout=0.3)
    assert "took longer than 0.3 s" in result.reason
    assert time.monotonic() - begin < 60
    assert "sleep 77.7" not in subprocess.run(["ps", "-ax"], capture_output=True, text=True).stdout


def test_a_broken_command_stops_the_run(tmp_path):
    c = campaign(tmp_path)
    with pytest.raises(CampaignError, match=r"The last 2 experiments failed.*exit code 1"):
        go(c, "false", budget=50, max_failures=2)
    assert [e.outcome for e in c.experiments] == ["failed", "failed"]
    with pytest.raises(CampaignError, match="cannot be started: No such file"):
        go(c, "./no-such-program", budget=50)
    assert [e.outcome for e in c.experiments] == ["failed", "failed", "given up"]


def test_the_command_knows_the_experiment(tmp_path):
    c = campaign(tmp_path)
    script = "from os import environ as e; import json; json.loads(e['AIRBO_DESIGN'])['x']; "
    script += "print(e['AIRBO_TRIAL'])"
    go(c, f'{sys.executable} -c "{script}"', budget=2)
    assert [value_of(e) for e in c.experiments] == [0.0, 1.0]


@pytest.fixture
def _interruptible():
    """Let Ctrl-C interrupt also where tests run in the background, whose programs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_ctrl_c_gives_the_experiment_up(tmp_path):
    c = campaign(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        go(c, "sh -c 'kill -INT $PPID; sleep 20'", budget=1)
    assert [e.outcome for e in c.experiments] == ["given up"]


def test_what_a_dead_run_left_behind_is_done_first(tmp_path):
    c = campaign(tmp_path)
    c.ask(3)
    dead = subprocess.Popen(["true"])
    dead.wait()
    c.claim(0, {"host": socket.gethostname(), "pid": dead.pid}, None)
    c.claim(1, {"host": socket.gethostname(), "pid": os.getppid()}, None)
    c.claim(2, {"host": "elsewhere", "pid": dead.pid}, None)
    steps = go(c, "echo {x}", budget=4)
    assert [e.number for e, _ in steps] == [0, 3]
    assert [e.outcome for e in c.experiments] == ["ok", "pending", "pending", "ok"]


def test_somebody_else_may_answer_first(tmp_path, monkeypatch):
    c = campaign(tmp_path)

    def answered(self, experiment):
        c.tell(experiment.number, 7.0)
        return CommandResult({"value": 1.0})

    monkeypatch.setattr(Command, "run", answered)
    go(c, "echo 1", budget=1)
    assert [value_of(e) for e in c.experiments] == [7.0]


def test_an_experiment_that_ends_in_an_unknown_error_is_given_up(tmp_path, monkeypatch):
    def broken(self, experiment):
        raise ZeroDivisionError

    monkeypatch.setattr(Command, "run", broken)
    c = campaign(tmp_path)
    with pytest.raises(ZeroDivisionError):
        go(c, "true")
    assert [e.outcome for e in c.experiments] == ["given up"]


def test_runs_that_choose_together_share_the_last_place_of_a_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "is_orphan", lambda experiment: False)  # one process here
    c = campaign(tmp_path)
    together = threading.Barrier(4)
    choose = Campaign._choose

    def all_at_once(self, *args):
        designs = choose(self, *args)
        together.wait(timeout=60)
        return designs

    monkeypatch.setattr(Campaign, "_choose", all_at_once)

    def work():
        with Campaign.open(c.settings.path) as other:
            go(other, "echo {x}", budget=1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.outcome for e in c.experiments] == ["ok"]


def test_a_dead_run_is_known_by_more_than_its_number(tmp_path):
    c = campaign(tmp_path)
    c.ask(2)
    c.claim(0, {**this_process(), "pid": os.getppid(), "began": "at another time"}, None)
    c.claim(1, {"host": socket.gethostname(), "pid": os.getppid()}, None)
    assert [e.number for e, _ in go(c, "echo {x}", budget=2)] == [0]


def test_of_two_runs_one_takes_over_what_was_left_behind(two):
    ours, theirs = two
    ours.ask()
    dead = {"host": socket.gethostname(), "pid": 1}
    assert ours.claim(0, dead, None)
    assert theirs.claim(0, this_process(), dead)
    assert not ours.claim(0, this_process(), dead)


def test_a_value_counts_although_somebody_gave_its_experiment_up(two, monkeypatch):
    ours, theirs = two
    run = Command.run

    def given_up(command, experiment):
        theirs.give_up(experiment.number)
        return run(command, experiment)

    monkeypatch.setattr(Command, "run", given_up)
    go(ours, "echo 7", budget=1)
    assert values(ours) == {0: 7.0}


def test_ctrl_c_is_not_lost_where_somebody_has_answered(two, monkeypatch):
    ours, theirs = two

    def run(command, experiment):
        theirs.tell(experiment.number, 7.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(Command, "run", run)
    with pytest.raises(KeyboardInterrupt):
        go(ours, "true")
    assert values(ours) == {0: 7.0}


def test_ctrl_c_waits_until_a_value_is_told(tmp_path, monkeypatch):
    c = campaign(tmp_path)
    tell, interruptions = Campaign.tell, iter([KeyboardInterrupt])

    def interrupted(*args, **kwargs):
        for interruption in interruptions:
            raise interruption
        return tell(*args, **kwargs)

    monkeypatch.setattr(Campaign, "tell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        go(c, "echo 5")
    assert values(c) == {0: 5.0}
