"""A command that does an experiment: what it is started with, and what comes of it."""

import json
import os
import shlex
import signal
import string
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airbo.campaign.errors import CampaignError
from airbo.campaign.experiments import Experiment
from airbo.campaign.words import number_of
from airbo.observed import check_value
from airbo.space import Design, Space

GRACE_SECONDS = 5
"""How long a command may take to end after it was asked to."""
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals with which this process is asked to end."""


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
        [lowest, _] = self.space.to_designs(self.space.bounds)
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
        with _held_back() as signals:  # what is just being started could not be ended
            process = self._start(experiment.design, environment)
        try:
            for number in signals:
                signal.raise_signal(number)
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            return Result(None, f"it took longer than {self.timeout:g} s")
        except BaseException:
            _end(process)
            raise
        return _result(process.returncode, output, errors)

    def _start(self, design: Design, environment: dict[str, str]) -> "subprocess.Popen[str]":
        try:
            return subprocess.Popen(
                self.arguments(design),
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
    handlers = {number: signal.getsignal(number) for number in ENDINGS}
    for number in handlers:
        signal.signal(number, lambda number, frame: caught.append(number))
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
