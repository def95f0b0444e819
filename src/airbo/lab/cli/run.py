"""The command that does experiments unattended, shown while it goes on."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airbo.lab.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    one_thread,
    open_campaign,
    reporting,
)

if TYPE_CHECKING:
    from airbo.lab import Campaign
    from airbo.lab.run import Step

AS_CTRL_C = ("SIGTERM", "SIGHUP")
"""Signals that do what Ctrl-C does; Windows lacks one."""


def run(
    command: Annotated[
        str,
        typer.Option(
            help="The command that runs one experiment, with the names of parameters in braces."
        ),
    ],
    budget: Annotated[
        int, typer.Option(help="Total number of experiments in the campaign.", min=1)
    ],
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds after which an experiment counts as failed.", min=0),
    ] = None,
    max_failures: Annotated[
        int, typer.Option(help="Stop after this many failures in a row.", min=1)
    ] = 5,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Do experiments unattended: ask, run the command, tell, until the budget is used.

    The last line that the command prints is the value. Where the file has outcomes, it names them:
    strength=410 leak=0.05; leave out what was not measured. An exit code other than 0, or
    a time-out, is a failed experiment. No shell sees the command. Started again after a crash, it
    goes on; several machines can run it at the same time.
    """
    from airbo.words import plural

    with reporting(as_json) as out:
        campaign = open_campaign(file, out)
        one_thread()
        steps = _watch(campaign, out, command, budget, timeout, max_failures)
        n_failed = sum(s.result.value is None for s in steps)
        out.show(f"Done: {plural(len(steps), 'experiment')} here, {n_failed} of them failed.")
        out.result({"done": [_as_data(campaign, s) for s in steps]})


def _as_data(campaign: "Campaign", step: "Step") -> dict[str, Any]:
    """Describe an experiment and its answer for programs."""
    outcomes = step.result.value or {}
    return {
        "trial": step.experiment.number,
        "value": outcomes.get(campaign.settings.value_name),
        **({"outcomes": outcomes} if outcomes else {}),
        "reason": step.result.reason,
    }


def _watch(
    campaign: "Campaign",
    out: Output,
    template: str,
    budget: int,
    timeout: float | None,
    max_failures: int,
) -> "list[Step]":
    """Run the command until the budget is used: a bar on a terminal, a line each elsewhere."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from airbo.lab.run import Command, run_unattended

    settings = campaign.settings
    command = Command(template, settings.space, timeout, tuple(settings.outcomes))
    bar = Progress(
        TextColumn("experiments"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", markup=False),
        console=out.err,
        disable=not out.err.is_terminal,
    )
    done = sum(e.has_outcome for e in campaign.experiments)
    task = bar.add_task("", total=budget, completed=done, last="")

    def show(step: "Step") -> None:
        line = _line(campaign, step)
        bar.update(task, completed=step.n_done, last=line)
        if not out.err.is_terminal:
            out.err.print(f"{step.n_done}/{budget}  {line}", markup=False)

    with bar, _ended_politely():
        return run_unattended(campaign, command, budget, max_failures=max_failures, on_step=show)


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Let a request to end, or a terminal that is closed, do what Ctrl-C does."""
    there = [getattr(signal, name) for name in AS_CTRL_C if hasattr(signal, name)]
    before = {number: signal.signal(number, _interrupt) for number in there}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _line(campaign: "Campaign", step: "Step") -> str:
    """Write an experiment and its answer on one line."""
    from airbo.words import assignments, measured

    settings, e, value = campaign.settings, step.experiment, step.result.value
    answer = f"failed, {step.result.reason}" if value is None else measured(value, settings.units)
    return f"{e.number}: {assignments(settings.space, e.design)} → {answer}"
