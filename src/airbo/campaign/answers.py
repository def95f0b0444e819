"""Answers: what somebody says about an experiment, found in the book and written into it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import optuna
from optuna.trial import TrialState

from airbo.campaign.book import Book
from airbo.campaign.errors import AlreadyTold, CampaignError
from airbo.campaign.experiments import Experiment
from airbo.campaign.reports import Report, described, same_design
from airbo.coordinates import NamedUncertainty
from airbo.integrations.optuna import EXECUTED, REPLACED, UNCERTAINTY
from airbo.optimizer import Design

Done = Literal["told", "already told", "corrected", "added"]


@dataclass(frozen=True)
class Told:
    """What telling did."""

    experiment: Experiment
    done: Done


@dataclass(frozen=True)
class Answer:
    """A report and what it is about; it has been checked, and nothing is written yet."""

    book: Book
    experiment: Experiment | None
    """None: a design that nobody asked for."""
    design: Design
    report: Report
    correct: bool
    """Whether it may replace another outcome."""

    @classmethod
    def understood(
        cls,
        book: Book,
        what: int | Mapping[str, Any],
        value: Any,
        *,
        executed: Mapping[str, Any] | None = None,
        uncertainty: NamedUncertainty = None,
        correct: bool = False,
        again: bool = False,
        allow_outside: bool = False,
    ) -> "Answer":
        """Find out what a report is about, and check it; see ``Campaign.tell``."""
        report = Report.checked(book.settings.space, value, executed, uncertainty)
        if isinstance(what, Mapping):
            design = book.design(what, allow_outside)
            experiment = _experiment_with(book, design, report, again)
        else:
            experiment = book.experiment(what)
            design = experiment.design
        answer = cls(book, experiment, design, report, correct)
        answer._check()
        return answer

    def write(self) -> Told:
        """Write it down; the same outcome twice counts once."""
        if self.experiment is None:
            return self._add()
        if self.experiment.has_outcome and self.report.agrees(self.experiment, fully=self.correct):
            return Told(self.experiment, "already told")
        if not self.experiment.is_pending:
            return self._replace(self.experiment)
        try:
            return self._finish(self.experiment)
        except optuna.exceptions.UpdateFinishedTrialError:  # somebody else was faster
            latest = replace(self, experiment=self.book.experiment(self.experiment.number))
            latest._check()
            return latest.write()

    def _check(self) -> None:
        """Refuse a report that no model could use, or that contradicts another one."""
        experiment, report = self.experiment, self.report
        self.book.check(self.design, report, experiment and experiment.uncertainty)
        told = experiment is not None and experiment.has_outcome
        if experiment is not None and told and not (self.correct or report.agrees(experiment)):
            raise AlreadyTold(
                f"Experiment {experiment.number} was told before: {described(experiment)}. "
                "To replace that, say so: --correct on the command line, correct=True in Python."
            )

    def _add(self) -> Told:
        row = self.book.row(self.design, self.report)
        trial = optuna.trial.create_trial(
            state=TrialState.FAIL if row.value is None else TrialState.COMPLETE,
            value=row.value,
            params=row.design,
            distributions=dict(row.distributions),
            user_attrs=dict(row.attributes),
        )
        trial_id = self.book.storage.create_new_trial(self.book.study._study_id, trial)
        return Told(next(e for e in self.book.experiments if e.trial_id == trial_id), "added")

    def _finish(self, experiment: Experiment) -> Told:
        known_under, now = experiment.uncertainty, self.book.described_uncertainty
        attributes = self.report.attributes(now if known_under is None else known_under)
        if experiment.executed and not self.report.executed:
            attributes[EXECUTED] = {}  # of a report that was interrupted
        known = {UNCERTAINTY: experiment.uncertainty, EXECUTED: experiment.executed}
        for name, attribute in attributes.items():
            if attribute != known[name]:
                self.book.note(experiment.trial_id, name, attribute)
        self.book.finish(experiment.trial_id, self.report.value)
        told = self.book.experiment(experiment.number)
        same_trial = told.trial_id == experiment.trial_id
        if same_trial and not self.report.agrees(told, fully=True):
            # the value is ours, and the measurement somebody else's, who was slower
            told = self._replace(told).experiment
        return Told(told, "told")

    def _replace(self, experiment: Experiment) -> Told:
        row = self.book.row(self.design, self.report, experiment.uncertainty)
        self.book.ledger.write([row], f"{REPLACED}{experiment.trial}", {})
        done: Done = "told" if experiment.outcome == "given up" else "corrected"
        return Told(self.book.experiment(experiment.number), done)


def check_once(answers: Sequence[Answer]) -> None:
    """Refuse several answers about one experiment that contradict each other."""
    said: dict[int, Report] = {}
    for answer in answers:
        if answer.experiment is None:
            continue
        number = answer.experiment.number
        if said.setdefault(number, answer.report) != answer.report:
            raise CampaignError(f"Experiment {number} is reported twice, with different outcomes.")


def _experiment_with(book: Book, design: Design, report: Report, again: bool) -> Experiment | None:
    """Return the experiment that a design without a number is about, if there is one."""
    space = book.settings.space
    alike = [e for e in book.experiments if same_design(space, e.design, design)]
    pending = [e for e in alike if e.is_pending]
    if pending:
        return pending[0]
    known = [e for e in alike if e.has_outcome and report.agrees(e)]
    return known[0] if known and not again else None
