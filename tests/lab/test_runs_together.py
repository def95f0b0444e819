"""Unattended runs that meet others, or Ctrl-C, in the worst moment."""

import os
import socket
import subprocess

import pytest

from airbo import Campaign
from airbo.lab import runner
from airbo.lab.run import this_process
from airbo.lab.run import Command, CommandResult
from tests.lab.common import meanwhile, values, write


def go(campaign, budget=1, template="echo {x}"):
    return runner.run_unattended(campaign, Command(template, campaign.settings.space), budget)


@pytest.fixture
def _quick(monkeypatch):
    monkeypatch.setattr(runner, "GIVE_WAY_SECONDS", 0.01)


@pytest.mark.usefixtures("_quick")
def test_a_dead_run_is_known_by_more_than_its_number(tmp_path):
    c = Campaign.open(write(tmp_path))
    c.ask(2)
    c.claim(0, {**this_process(), "pid": os.getppid(), "began": "at another time"})
    c.claim(1, {"host": socket.gethostname(), "pid": os.getppid()})
    assert [s.experiment.number for s in go(c, 2)] == [0]


@pytest.mark.usefixtures("_quick")
def test_of_two_runs_one_takes_over_what_was_left_behind(two, monkeypatch):
    ours, theirs = two
    dead = subprocess.Popen(["true"])
    dead.wait()
    ours.ask()
    ours.claim(0, {"host": socket.gethostname(), "pid": dead.pid})
    [left] = ours.experiments
    taken = []

    def take():
        taken.append(theirs.claim(0, this_process()))

    meanwhile(monkeypatch, ours.storage, "set_trial_user_attr", take, after=True)
    assert not runner._takes_over(ours, left)
    assert taken == [True]
    assert runner._takes_over(ours, left)


@pytest.mark.usefixtures("_quick")
def test_a_run_goes_on_where_somebody_gives_up_its_experiment(two, monkeypatch):
    ours, theirs = two
    meanwhile(monkeypatch, ours, "claim", lambda: theirs.give_up(0))
    assert [s.experiment.number for s in go(ours)] == [1]
    assert not runner._keeps_to(ours, 0, 0)


def test_ctrl_c_is_not_lost_where_somebody_has_answered(two, monkeypatch):
    ours, theirs = two

    def run(command, experiment):
        theirs.tell(experiment.number, 7.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(Command, "run", run)
    with pytest.raises(KeyboardInterrupt):
        go(ours)
    assert values(ours) == {0: 7.0}


@pytest.mark.parametrize("moment", ["claim", "_keeps_to"])
def test_ctrl_c_before_the_command_gives_the_experiment_up(tmp_path, monkeypatch, moment):
    c = Campaign.open(write(tmp_path))
    monkeypatch.setattr(c if moment == "claim" else runner, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        go(c)
    assert [e.outcome for e in c.experiments] == ["given up"]


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def test_ctrl_c_waits_until_a_value_is_told(tmp_path, monkeypatch):
    c = Campaign.open(write(tmp_path))
    monkeypatch.setattr(Command, "run", lambda *args: CommandResult(5.0))
    meanwhile(monkeypatch, c, "tell", interrupt)
    with pytest.raises(KeyboardInterrupt):
        go(c)
    assert values(c) == {0: 5.0}
