"""Experiments that a program does: ask, run the command, tell, without anybody watching."""

import json
import os
import shlex
import signal
import socket
import string
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airbo.campaign.campaign import Campaign
from airbo.campaign.errors import AlreadyTold, CampaignError
from airbo.campaign.experiments import Experiment
from airbo.campaign.words import number_of
from airbo.optimizer.record import Design, check_value
from airbo.space import Space

GRACE_SECONDS = 5
"""How long a command may take to end after it was asked to."""
GIVE_WAY_SECONDS = 1.0
"""How long another run may take to see that a budget is used up, and to give way."""


@dataclass(frozen=True)
class Command:
    """A command line with the names of parameters in braces; no shell sees it.

    >>> space = Space({"speed": (50.0, 200.0)})
    >>> Command("./mill --speed={speed}", space).arguments({"speed": 120.5})
    ['./mill', '--speed=120.5']
    """

    template: str
    space: Space
    timeout: float | None = None
    """Seconds after which the experiment has failed."""

    def __post_init__(self) -> None:
        """Refuse a command that names something else than parameters."""
        [lowest, _] = self.space.decode(self.space.bounds)
        try:
            words = self.arguments(lowest)
        except ValueError as error:
            raise CampaignError(
                f"The command {self.template!r} is not readable: {str(error).rstrip('.')}."
            ) from None
        if not words:
            raise CampaignError("The command is empty.")

    def arguments(self, design: Design) -> list[str]:
        """Put the values of a design in their places, in the format that stands there, if any."""
        return [_filled(word, design) for word in shlex.split(self.template)]

    def run(self, experiment: Experiment) -> "Result":
        """Do the experiment; its value is the last line that the command prints."""
        environment = {
            **os.environ,
            "AIRBO_TRIAL": str(experiment.number),
            "AIRBO_DESIGN": json.dumps(experiment.design),
        }
        try:
            process = subprocess.Popen(
                self.arguments(experiment.design),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise CampaignError(
                f"The command {self.template!r} cannot be started: {error.strerror}."
            ) from None
        try:
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            return Result(None, f"it took longer than {self.timeout:g} s")
        except BaseException:
            _end(process)
            raise
        return _result(process.returncode, output, errors)


def _filled(word: str, design: Design) -> str:
    parts = []
    for text, name, form, conversion in string.Formatter().parse(word):
        parts.append(text)
        if name is None:
            continue
        if name not in design:
            there = ", ".join(f"{{{n}}}" for n in design)
            raise CampaignError(f"The command names {{{name}}}; there are {there}.")
        value = string.Formatter().convert_field(design[name], conversion)
        parts.append(format(value, form) if form else str(value))
    return "".join(parts)


@dataclass(frozen=True)
class Result:
    """What came of a command."""

    value: float | None
    reason: str = ""
    """Why there is no value."""


def _result(code: int, output: str, errors: str) -> Result:
    if code:
        last = _last_line(errors)
        return Result(None, f"it ended with exit code {code}" + (f": {last}" if last else ""))
    try:
        return Result(check_value(number_of(_last_line(output), "its last line")))
    except ValueError as error:
        return Result(None, str(error).rstrip("."))


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _end(process: "subprocess.Popen[str]") -> None:
    """End a command and all that it started: first politely."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
        except ProcessLookupError:
            break
        try:
            process.communicate(timeout=GRACE_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue


@dataclass(frozen=True)
class Step:
    """One experiment of an unattended run."""

    experiment: Experiment
    result: Result
    n_done: int
    """Experiments of the campaign that have an outcome."""


def run_unattended(
    campaign: Campaign,
    command: Command,
    budget: int,
    *,
    max_failures: int = 5,
    on_step: Callable[[Step], object] = lambda step: None,
) -> list[Step]:
    """Do experiments until the campaign has ``budget`` of them; return those done here.

    Experiments that a killed run on this machine left behind are done first. Ctrl-C ends the
    command and gives its experiment up.

    Args:
        campaign: The campaign.
        command: What does an experiment.
        budget: Experiments with an outcome that the campaign shall have in the end.
        max_failures: After so many failed ones in a row the command itself is taken for broken.
        on_step: Called after each experiment.

    Raises:
        CampaignError: After too many failures.
    """
    steps: list[Step] = []
    while (experiment := _next(campaign, budget)) is not None:
        try:
            result = command.run(experiment)
        except BaseException:
            campaign.give_up(experiment.number)
            raise
        _tell(campaign, experiment, result)
        done = sum(e.has_outcome for e in campaign.experiments)
        steps.append(Step(experiment, result, done))
        on_step(steps[-1])
        _check_failures(steps, max_failures)
    return steps


def _tell(campaign: Campaign, experiment: Experiment, result: Result) -> None:
    try:
        campaign.tell(experiment.number, result.value)
    except AlreadyTold:
        return  # somebody else did the same experiment and was faster


def _check_failures(steps: Sequence[Step], max_failures: int) -> None:
    last = steps[-max_failures:]
    if len(last) == max_failures and all(step.result.value is None for step in last):
        raise CampaignError(
            f"The last {max_failures} experiments failed, so the run has stopped. The last one: "
            f"{last[-1].result.reason}."
        )


def _next(campaign: Campaign, budget: int) -> Experiment | None:
    """Return an experiment that was left behind, or a new one while the budget allows."""
    experiments = campaign.experiments
    running = [e for e in experiments if e.is_pending and e.run is not None]
    orphans = [e for e in running if _is_orphan(e)]
    if orphans:
        experiment = orphans[0]
    elif _n_counted(experiments) < budget:
        [experiment] = campaign.ask()
    else:
        return None
    process = {"host": socket.gethostname(), "pid": os.getpid(), "since": time.time()}
    campaign.claim(experiment.number, process)
    if not orphans and not _keeps_to(campaign, budget, experiment.number):
        campaign.give_up(experiment.number)
        return _next(campaign, budget)
    return experiment


def _n_counted(experiments: Sequence[Experiment]) -> int:
    """Return how many experiments are done, or under way in a run."""
    return sum(e.has_outcome or (e.is_pending and e.run is not None) for e in experiments)


def _keeps_to(campaign: Campaign, budget: int, number: int) -> bool:
    """Say whether the last place of a budget is ours, where other runs began at the same time.

    Whoever began later gives way at once. The first one looks again: another run may have counted
    before it could see this experiment, and then this one gives way.
    """
    experiments = campaign.experiments
    if _n_counted(experiments) <= budget:
        return True
    begun = {e.number: _since(e) for e in experiments if e.is_pending and e.run is not None}
    earlier = [n for n in begun if (begun[n], n) < (begun[number], number)]
    if sum(e.has_outcome for e in experiments) + len(earlier) >= budget:
        return False
    time.sleep(GIVE_WAY_SECONDS)
    return _n_counted(campaign.experiments) <= budget


def _since(experiment: Experiment) -> float:
    return float((experiment.run or {}).get("since", 0.0))


def _is_orphan(experiment: Experiment) -> bool:
    """Say whether the run on this machine that began an experiment is gone."""
    run = experiment.run or {}
    if run.get("host") != socket.gethostname():
        return False
    if run.get("pid") == os.getpid():
        return True
    try:
        os.kill(int(run["pid"]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
