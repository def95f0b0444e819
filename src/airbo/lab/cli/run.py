"""The command that does experiments unattended."""

import signal
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from airbo.lab.cli.command import DEFAULT, AsJson, File, one_thread, working_on
from airbo.words import assignments, measured, plural

if TYPE_CHECKING:
    from airbo.lab import Experiment
    from airbo.lab.run import CommandResult

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

    The last line that the command prints is the value. Where the file has several outcomes, it is
    JSON: {"strength": 410, "leak": 0.05}; leave out what was not measured. An exit code other than
    0, or a time-out, is a failed experiment. No shell sees the command. Started again after a
    crash, it goes on; several machines can run it at the same time.
    """
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.run import Command, run_unattended

        settings = campaign.settings
        one_thread()

        def show(e: "Experiment", result: "CommandResult", n_done: int) -> None:
            value = result.value
            answer = measured(value, settings.units) if value else f"failed, {result.reason}"
            design = assignments(settings.space, e.design)
            out.err.print(f"{n_done}/{budget}  {e.number}: {design} → {answer}", markup=False)

        for name in AS_CTRL_C:
            if number := getattr(signal, name, None):
                out.until_end.callback(signal.signal, number, signal.signal(number, _interrupt))
        doing = Command(command, settings.space, timeout, tuple(settings.outcomes))
        steps = run_unattended(campaign, doing, budget, max_failures=max_failures, on_step=show)
        n_failed = sum(result.value is None for _, result in steps)
        out.show(f"Done: {plural(len(steps), 'experiment')} here, {n_failed} of them failed.")
        done = [
            {
                "trial": e.number,
                "value": (result.value or {}).get(settings.value_name),
                **({"outcomes": result.value} if result.value else {}),
                "reason": result.reason,
            }
            for e, result in steps
        ]
        out.result({"done": done})


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
