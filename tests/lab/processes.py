"""Processes that work on a campaign and may be killed at any moment.

The fork server imports PyTorch once; a process then starts in milliseconds.
"""

import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import torch

from airbo.lab import Campaign, runner
from airbo.lab.run import Command
from airbo.lab.report import write_report
from airbo.space import Design

WRITES = (
    "create_new_trial",
    "set_trial_param",
    "set_trial_user_attr",
    "set_trial_system_attr",
    "set_trial_state_values",
    "set_study_user_attr",
)


def context() -> ForkServerContext:
    """Return what starts processes."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__, "airbo.integrations.optuna.sampler"])
    return server


def start(target: Callable[..., None], *args: Any) -> ForkServerProcess:
    """Start a process that calls a function of this module."""
    process = context().Process(target=target, args=args, daemon=True)
    process.start()
    return process


def finish(process: ForkServerProcess, seconds: float = 300) -> int:
    """Wait for a process to end; return its exit code."""
    process.join(seconds)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode


def killed_before_write(path: Path, operation: str, n: int) -> None:
    """Do something to a campaign, and be killed just before write number ``n`` to the storage."""
    torch.set_num_threads(1)
    campaign = Campaign.open(path)
    count = itertools.count()

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def write(*args: Any, **kwargs: Any) -> Any:
            if next(count) == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*args, **kwargs)

        return write

    for name in WRITES:
        setattr(campaign.storage, name, counted(getattr(campaign.storage, name)))
    OPERATIONS[operation](campaign)


def killed_while_reporting(path: Path, page: Path) -> None:
    """Write a report, and be killed when its page is written and not yet in place."""
    torch.set_num_threads(1)
    optimizer = Campaign.open(path).optimizer()
    os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
    write_report(optimizer, page, history=0)


def run(campaign: Campaign, budget: int = 3) -> None:
    """Do experiments whose value is their design."""
    runner.GIVE_WAY_SECONDS = 0.05
    runner.run_unattended(campaign, Command("echo {x}", campaign.settings.space), budget)


def run_on(campaign: Campaign) -> None:
    """Do more experiments than there will be time for."""
    run(campaign, budget=1000)


def work(path: Path, log: Path, budget: int, pause: float) -> None:
    """Ask and tell until the campaign has ``budget`` values; log what was told, and times."""
    torch.set_num_threads(1)
    campaign = Campaign.open(path)
    with log.open("a") as file:
        while sum(e.has_outcome for e in campaign.experiments) < budget:
            begin = time.perf_counter()
            [experiment] = campaign.ask()
            seconds = time.perf_counter() - begin
            time.sleep(pause)
            campaign.tell(experiment.number, hill(experiment.design))
            file.write(f"{experiment.number} {hill(experiment.design)!r} {seconds}\n")
            file.flush()


def hill(design: Design) -> float:
    """A function of the design alone, so that no value can be mistaken for another."""
    return 1 - (design["x"] - 0.3) ** 2


def ask(campaign: Campaign) -> None:
    campaign.ask(2)


def tell(campaign: Campaign) -> None:
    campaign.tell(0, 1.5, executed={"x": 0.4})


def tell_several(campaign: Campaign) -> None:
    campaign.tell_all([(0, 1.5), (1, 2.5)])


def tell_design(campaign: Campaign) -> None:
    campaign.tell({"x": 0.123}, 1.5)


def fail(campaign: Campaign) -> None:
    campaign.fail(0)


def give_up(campaign: Campaign) -> None:
    campaign.give_up(0)


def correct(campaign: Campaign) -> None:
    campaign.tell(2, 7.5, correct=True)


def tell_late(campaign: Campaign) -> None:
    campaign.tell(3, 8.5)


def import_rows(campaign: Campaign) -> None:
    campaign.import_table(campaign.settings.path.with_name("before.csv"))


def undo(campaign: Campaign) -> None:
    campaign.undo()


def exclude(campaign: Campaign) -> None:
    campaign.exclude(2, "the probe was dirty")


def note(campaign: Campaign) -> None:
    campaign.note(2, "a new batch")


CHANGES = (correct, undo, exclude, note)
"""Operations that are not simply repeated after a kill, but looked at."""
REPORTS = (tell, tell_several, tell_design, fail, give_up, correct, tell_late)
"""Operations that can simply be repeated."""

OPERATIONS = {f.__name__: f for f in (ask, import_rows, *REPORTS, *CHANGES)} | {
    "run": run,
    "run_on": run_on,
}
