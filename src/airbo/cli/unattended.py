"""An unattended run, shown while it goes on."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from airbo.campaign import Campaign
from airbo.campaign.command import Command
from airbo.campaign.unattended import Step, run_unattended
from airbo.campaign.words import in_words
from airbo.cli.output import Output
from airbo.cli.views import value_with_unit

ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def watch(
    campaign: Campaign,
    out: Output,
    template: str,
    budget: int,
    timeout: float | None,
    max_failures: int,
) -> list[Step]:
    """Run the command until the budget is used: a bar on a terminal, a line each elsewhere."""
    command = Command(template, campaign.settings.space, timeout)
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

    def show(step: Step) -> None:
        line = describe(campaign, step)
        bar.update(task, completed=step.n_done, last=line)
        if not out.err.is_terminal:
            out.err.print(f"{step.n_done}/{budget}  {line}", markup=False)

    with bar, _ended_politely():
        return run_unattended(campaign, command, budget, max_failures=max_failures, on_step=show)


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Let a request to end, or a terminal that is closed, do what Ctrl-C does."""
    before = {number: signal.signal(number, _interrupt) for number in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def describe(campaign: Campaign, step: Step) -> str:
    """Write an experiment and its answer on one line."""
    settings, e = campaign.settings, step.experiment
    value = step.result.value
    answer = f"failed, {step.result.reason}" if value is None else value_with_unit(settings, value)
    return f"{e.number}: {in_words(settings.space, e.design)} → {answer}"
