"""Experiments that a program does: ask, run the command, tell, without anybody watching."""

import functools
import json
import os
import shlex
import signal
import socket
import string
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airbo.lab.advice import Given
from airbo.lab.campaign import Campaign
from airbo.lab.errors import AlreadyTold, CampaignError
from airbo.lab.record import Experiment
from airbo.observed import check_value
from airbo.space import Design, Space
from airbo.words import nearest, number_of

GRACE_SECONDS = 5
"""How long a command may take to end after it was asked to."""
ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals with which this process is asked to end; Windows lacks one."""


@dataclass(frozen=True)
class CommandResult:
    """What came of a command."""

    value: dict[str, float] | None
    """What was measured, by name; None: the experiment failed."""
    reason: str = ""
    """Why there is no value."""
    environment: Mapping[str, float] = field(default_factory=dict)
    """What was measured of the environment."""


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
    outcomes: Collection[str] = ("value",)
    """Names of what it measures; it may name the environment of the space, too."""

    def __post_init__(self) -> None:
        """Refuse a command that names something else than parameters."""
        lowest = {name: p.decode(p.range[0]) for name, p in self.space.parameters.items()}
        try:
            words = self.arguments(lowest)
        except ValueError as error:
            raise CampaignError(
                f"The command {self.template!r} is not readable: {str(error).rstrip('.')}."
            ) from None
        if not words:
            raise CampaignError("The command is empty.")

    def arguments(self, design: Design) -> list[str]:
        """Put the values of a design in their places."""
        return [_filled(word, design) for word in shlex.split(self.template)]

    def run(self, experiment: Experiment) -> CommandResult:
        """Do the experiment; its answer is the last line that the command prints."""
        with _held_back() as signals:  # what is just being started could not be ended
            process = self._start(experiment)
        try:
            for number in signals:
                signal.raise_signal(number)
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            return CommandResult(None, f"it took longer than {self.timeout:g} s")
        except BaseException:
            _end(process)
            raise
        if process.returncode:
            said = ": ".join(filter(None, [str(process.returncode), _last_line(errors)]))
            return CommandResult(None, f"it ended with exit code {said}")
        line = _last_line(output)
        try:
            found = answer_in(line, self.outcomes, self.space.environment)
            own = {name: value for name, value in found.items() if name in self.outcomes}
            around = {name: value for name, value in found.items() if name not in own}
            return CommandResult(own, environment=around)
        except ValueError as error:
            reason = str(error).rstrip(".")  # with all that was printed: none of it is lost
            return CommandResult(None, reason if repr(line) in reason else f"{reason} ({line})")

    def _start(self, experiment: Experiment) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "AIRBO_TRIAL": str(experiment.number),
            "AIRBO_DESIGN": json.dumps(dict(experiment.design)),
        }
        try:
            return subprocess.Popen(
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


@contextmanager
def _held_back() -> Iterator[list[int]]:
    """Collect signals that ask this process to end, instead of ending it."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # they do not arrive there
        yield caught
        return
    numbers = [getattr(signal, name) for name in ENDINGS if hasattr(signal, name)]
    handlers = {n: signal.signal(n, lambda n, frame: caught.append(n)) for n in numbers}
    try:
        yield caught
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _filled(word: str, design: Design) -> str:
    parts = []
    for text, name, form, conversion in string.Formatter().parse(word):
        parts.append(text)
        if name is None:
            continue
        if name not in design or form or conversion:
            there = ", ".join(f"{{{n}}}" for n in design)
            raise CampaignError(f"The command names {{{name}}} or formats it; there are {there}.")
        parts.append(str(design[name]))
    return "".join(parts)


def answer_in(
    line: str, outcomes: Collection[str], environment: Collection[str] = ()
) -> dict[str, float]:
    """Read what a program prints: JSON with outcomes by name, or the bare value of a single one.

    What it measured of the environment is named, too.

    >>> answer_in("1.25", ["strength"])
    {'strength': 1.25}
    >>> answer_in('{"strength": 410, "leak": 0.05}', ["strength", "leak"])
    {'strength': 410.0, 'leak': 0.05}

    Raises:
        ValueError: If it is something else.
    """
    if len(outcomes) == 1 and not line.startswith("{"):
        return {name: _measured(number_of(line, "its last line"), name) for name in outcomes}
    try:
        given = json.loads(line)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given:
        example = json.dumps(dict.fromkeys(outcomes, 1.25))
        raise ValueError(f"its last line must be JSON such as {example}, got {line!r}")
    for name in given:
        if name not in (known := [*outcomes, *environment]):
            raise ValueError(f"its last line names {name!r}{nearest(name, known)}")
    return {name: _measured(value, name) for name, value in given.items() if value is not None}


def _measured(value: Any, name: str) -> float:
    try:
        number = check_value(value)
    except TypeError:
        number = None
    if number is None:
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _end(process: "subprocess.Popen[str]") -> None:
    """End a command and all that it started: first politely."""
    for name in ("SIGTERM", "SIGKILL"):
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, getattr(signal, name))
            else:  # on Windows both mean the same
                process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=GRACE_SECONDS)
            return


# -- unattended


Done = tuple[Experiment, CommandResult]
"""One experiment of an unattended run, and what came of it."""


def run_unattended(
    campaign: Campaign,
    command: Command,
    budget: int,
    *,
    max_failures: int = 5,
    given: Given = None,
    on_step: Callable[[Experiment, CommandResult, int], object] = lambda *step: None,
) -> list[Done]:
    """Do experiments until the campaign has ``budget`` of them; return those done here.

    Experiments that a killed run on this machine left behind are done first. Ctrl-C ends the
    command and gives its experiment up.

    Args:
        campaign: The campaign.
        command: What does an experiment.
        budget: Total number of experiments with an outcome.
        max_failures: After so many failed ones in a row the command itself is taken for broken.
        given: What is known of today, as for ``Campaign.ask``.
        on_step: Called after each experiment, with what came of it and the number of experiments
            that have an outcome by now.

    Raises:
        CampaignError: After too many failures.
    """
    steps: list[Done] = []
    while (experiment := _next(campaign, budget, given)) is not None:
        try:
            result = command.run(experiment)
        except BaseException:
            with suppress(AlreadyTold):  # somebody else has answered it
                campaign.give_up(experiment.number)
            raise
        _tell(campaign, experiment, result)
        steps.append((experiment, result))
        on_step(experiment, result, sum(e.has_outcome for e in campaign.record().experiments))
        last = [own.value for _, own in steps[-max_failures:]]
        if len(last) == max_failures and all(value is None for value in last):
            raise CampaignError(
                f"The last {max_failures} experiments failed, so the run has stopped. The last "
                f"one: {result.reason}."
            )
    return steps


def _next(campaign: Campaign, budget: int, given: Given) -> Experiment | None:
    """Return an experiment that was left behind, or a new one while the budget allows."""
    process = this_process()
    for left_behind in filter(is_orphan, campaign.record().pending):
        if campaign.claim(left_behind.number, process, instead_of=left_behind.run):
            return campaign.experiment(left_behind.number)
    return next(iter(campaign.ask(run=process, budget=budget, given=given)), None)


def _tell(campaign: Campaign, experiment: Experiment, result: CommandResult) -> None:
    """Report a result; Ctrl-C waits, so that no value is lost."""
    around, why = result.environment or None, result.reason or None
    tell = functools.partial(
        campaign.tell, experiment.number, result.value, executed=around, sure=True, note=why
    )
    with suppress(AlreadyTold):  # somebody else did the same experiment and was faster
        try:
            tell()
        except KeyboardInterrupt:
            tell()
            raise


# -- which process runs an experiment, and whether it still does


def this_process() -> dict[str, Any]:
    """Describe this process; every claim gets its own description."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": _beginning(os.getpid()),
        "since": time.time(),
        "token": uuid.uuid4().hex,
    }


def is_orphan(experiment: Experiment) -> bool:
    """Say whether the run on this machine that began an experiment is gone."""
    run = experiment.run
    if run is None or run.get("host") != socket.gethostname():
        return False
    pid = int(run["pid"])
    if pid == os.getpid():
        return True
    return not _is_alive(pid) or run.get("began") not in (None, _beginning(pid))


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # there, os.kill would end it: whoever knows better gives the experiment up
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is somebody else's, and alive
    return True


def _beginning(pid: int) -> str | None:
    """Return when a process and the machine were started; None if the system hides it.

    After a restart of the machine, another process soon has the same number.
    """
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        process = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return f"{machine} {process[19]}"
