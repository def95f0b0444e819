"""Questions to the models: which design to use, what to expect at others, and curves through them.

A process holds the fitted models, so that an answer takes a moment. It ends when the experiments
change, with the server, and when nobody has asked for a while.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.lab.serve.jobs import Deliver, JobError, Runner

if TYPE_CHECKING:
    from airbo.lab.advice import Adviser, Given, Policy
    from airbo.lab.report import OutcomeFindings

MOST_KEPT = 100
"""Answers that are kept while the experiments stay the same."""


@dataclass(frozen=True)
class Curve:
    """The expected value of an outcome along one parameter, the others being as given."""

    outcome: str
    parameter: str
    positions: Sequence[float]
    """From 0 to 1 along the axis."""
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    """Ends of 90% intervals (model uncertainty)."""
    here: float
    """Position of the given design."""
    labels: Sequence[str]
    """The choices of a category; otherwise the ends of the range."""
    is_choice: bool


@dataclass(frozen=True)
class Profile:
    """What to expect at one design."""

    design: Mapping[str, Any]
    """With what is given of the environment."""
    sentences: Sequence[str]
    curves: Sequence[Curve]


class Models:
    """Answers questions to the models of one campaign, one at a time."""

    def __init__(self, path: Path, run: Runner) -> None:
        """Take a campaign file, and how work that takes seconds is done."""
        self._path, self._run = path, run
        self._lock = threading.Lock()
        self._known = ""
        self._ours: Connection | None = None
        self._job: Future[None] | None = None
        self._kept: dict[str, Any] = {}
        self._threads = ThreadPoolExecutor(1, "models")

    def ask(self, known: str, find: Callable[..., Any], *about: Any) -> Any:
        """Return what a function of an ``Adviser`` finds.

        Args:
            known: Changes whenever the models would.
            find: One of the functions below.
            about: Its other arguments.

        Raises:
            JobError: If there is no answer; the message says why.
        """
        question = f"{find.__name__}{about!r}"
        with self._lock:
            if known != self._known or self._job is None or self._job.done():
                self._begin(known)
            if question not in self._kept:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[question] = self._answer(find, *about)
            return self._kept[question]

    def _begin(self, known: str) -> None:
        if self._ours is not None:
            self._ours.close()  # which ends the process
        self._known, self._kept = known, {}
        self._ours, theirs = Pipe()
        self._job = self._threads.submit(
            self._run, answer_questions, (self._path, theirs), lambda nothing: None
        )

    def _answer(self, *question: Any) -> Any:
        assert self._ours is not None
        assert self._job is not None
        self._ours.send(question)
        while not self._ours.poll(0.1):
            if self._job.done():
                self._job.result()  # raises what went wrong
                raise JobError("The process that worked on this was ended. Try again.")
        found = self._ours.recv()
        if isinstance(found, JobError):
            raise found
        return found

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._ours is not None:
                self._ours.close()
        self._threads.shutdown()


# -- in the process with the models


def answer_questions(path: Path, pipe: Connection, report: Deliver) -> None:
    """Fit the models, and then answer questions, or say why there is no answer."""
    from airbo.lab.errors import CampaignError
    from airbo.lab.serve.jobs import opened

    with opened(path) as campaign:
        adviser = campaign.adviser()
        while True:
            try:
                find, *about = pipe.recv()
            except (EOFError, OSError):  # the other end is closed
                return
            try:
                pipe.send(find(adviser, *about))
            except CampaignError as error:
                pipe.send(JobError(str(error), is_refused=True))


def advise(
    adviser: "Adviser", policy: "Policy | None", tolerance: float | None, given: "Given"
) -> dict[str, Any]:
    """Say which design to use, as plain data."""
    from airbo.lab.data import answer_data

    return answer_data(adviser.settings, adviser.answer(policy, tolerance, given))


def expect(adviser: "Adviser", design: Mapping[str, Any], allow_outside: bool) -> dict[str, Any]:
    """Say what to expect at a design, as plain data."""
    return adviser.predict(design, allow_outside).to_dict()


def profile(adviser: "Adviser", design: Mapping[str, Any]) -> Profile:
    """Predict a design, and all outcomes along each parameter through it."""
    from airbo.lab.prediction import sentences
    from airbo.lab.report import Findings

    found, settings = adviser.predict(design), adviser.settings
    findings = Findings(adviser.optimizer, settings.units, given=found.given, design=found.design)
    curves = [_curve(o, name) for o in findings.parts for name in settings.space.whole.names]
    return Profile({**found.design, **found.given}, sentences(settings, found), curves)


def _curve(outcome: "OutcomeFindings", name: str) -> Curve:
    from airbo.lab.report import Slice
    from airbo.lab.report.along import on_days
    from airbo.space.parameters import Categorical
    from airbo.words import NORMAL_90, value

    findings = outcome.findings
    parameter = findings.parameter(name)
    if name in findings.space.environment:  # each value is a day of its own
        values, expected = on_days(outcome, name)
    else:
        along = Slice(outcome, name)
        values, expected = along.values, along.expected
    here, *positions = findings.positions(name, values.tolist())
    is_choice = isinstance(parameter, Categorical)
    shown = [value(parameter, parameter.decode(v)) for v in values]
    away = NORMAL_90 * expected.std
    return Curve(
        outcome.name, name, positions, expected.mean.tolist(), (expected.mean - away).tolist(),
        (expected.mean + away).tolist(), here, shown if is_choice else [shown[0], shown[-1]],
        is_choice,
    )  # fmt: skip
