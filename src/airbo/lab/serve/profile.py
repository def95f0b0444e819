"""What to expect at settings of a visitor's choice, and curves through them along each parameter.

A process holds the fitted models, so that an answer takes a moment. It ends when the experiments
change, with the server, and when nobody has asked for a while.
"""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.lab.serve.jobs import Deliver, JobError, Runner

if TYPE_CHECKING:
    from airbo.lab.advice import Adviser
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


class Profiler:
    """Answers questions about one campaign, one at a time."""

    def __init__(self, path: Path, run: Runner) -> None:
        """Take a campaign file, and how work that takes seconds is done."""
        self._path, self._run = path, run
        self._lock = threading.Lock()
        self._known = ""
        self._ours: Connection | None = None
        self._job: Future[None] | None = None
        self._kept: dict[str, Profile] = {}
        self._threads = ThreadPoolExecutor(1, "profile")

    def ask(self, known: str, design: Mapping[str, Any]) -> Profile:
        """Return what to expect at a design; parameters that it lacks are as recommended.

        Args:
            known: Changes whenever the models would.
            design: In the user's units.

        Raises:
            JobError: If there is no answer; the message says why.
        """
        question = repr(sorted(design.items()))
        with self._lock:
            if known != self._known or self._job is None or self._job.done():
                self._begin(known)
            if question not in self._kept:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[question] = self._answer(design)
            return self._kept[question]

    def _begin(self, known: str) -> None:
        if self._ours is not None:
            self._ours.close()  # which ends the process
        self._known, self._kept = known, {}
        self._ours, theirs = Pipe()
        self._job = self._threads.submit(
            self._run, answer_questions, (self._path, theirs), lambda nothing: None
        )

    def _answer(self, design: Mapping[str, Any]) -> Profile:
        assert self._ours is not None
        assert self._job is not None
        self._ours.send(dict(design))
        while not self._ours.poll(0.1):
            if self._job.done():
                self._job.result()  # raises what went wrong
                raise JobError("The process that worked on this was ended. Try again.")
        found = self._ours.recv()
        if isinstance(found, str):
            raise JobError(found)
        assert isinstance(found, Profile)
        return found

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._ours is not None:
                self._ours.close()
        self._threads.shutdown()


# -- in the process with the models


def answer_questions(path: Path, pipe: Connection, report: Deliver) -> None:
    """Fit the models, and then answer with a ``Profile``, or with why there is none."""
    from airbo.lab.errors import CampaignError
    from airbo.lab.serve.jobs import opened

    with opened(path) as campaign:
        adviser = campaign.adviser()
        while True:
            try:
                design = pipe.recv()
            except (EOFError, OSError):  # the other end is closed
                return
            try:
                pipe.send(profile(adviser, design))
            except CampaignError as error:
                pipe.send(str(error))


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
