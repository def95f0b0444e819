"""A campaign: ask, tell and recommend over days, kept in an Optuna storage."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import optuna
import pandas as pd
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from airbo.campaign.data import DataRow, as_table, digest, parse_rows, read_data
from airbo.campaign.distributions import distributions_of
from airbo.campaign.errors import AlreadyTold, CampaignError, FileError, Mistake
from airbo.campaign.experiments import RUN, Experiment, Record, read_record
from airbo.campaign.identity import open_study
from airbo.campaign.reports import Report, described, same_design
from airbo.campaign.sampling import optimizer_from, sampler_of
from airbo.campaign.settings import Settings
from airbo.campaign.staging import Ledger, Row
from airbo.campaign.status import Status, status_of
from airbo.campaign.storage import close_storage, explained, explains, open_storage
from airbo.coordinates import NamedUncertainty
from airbo.integrations.optuna import (
    EXECUTED,
    GAVE_UP,
    REPLACED,
    UNCERTAINTY,
    describe_uncertainty,
    read_uncertainty,
)
from airbo.optimizer import Design, Optimizer, Recommendation
from airbo.optimizer.optimizer import whole_number

FILE = "campaign.toml"
INTERRUPTED = timedelta(hours=1)
"""An ask that takes longer than this was interrupted."""

Done = Literal["told", "already told", "corrected", "added"]


@dataclass(frozen=True)
class Told:
    """What telling did."""

    experiment: Experiment
    done: Done


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    numbers: list[int]
    """The experiments, in the order of the rows."""
    already: bool
    """Whether the same table had been imported before; nothing was changed then."""


class Campaign:
    """Experiments that last for days, shared by several people or machines.

    All state is in the storage, and every method reads it anew: several processes can work on one
    campaign, and one that is killed loses nothing that it has reported.
    """

    def __init__(self, settings: Settings, storage: BaseStorage) -> None:
        """Take up a campaign; ``Campaign.open`` is the usual way."""
        self.settings = settings
        self.url = settings.storage
        self.storage = storage
        with explained(self.url):
            self.study = open_study(storage, settings, sampler_of(settings))
            self._ledger = Ledger(self.study, storage)
            self._ledger.finish_committed()

    @classmethod
    def open(cls, path: str | Path = FILE) -> "Campaign":
        """Open the campaign of a file, and begin it if it is new.

        Raises:
            CampaignError: If the file has mistakes, the storage cannot be used, or it belongs to
                another campaign.
        """
        settings = Settings.read(path)
        storage = open_storage(settings.storage, settings.path.parent)
        try:
            return cls(settings, storage)
        except CampaignError:
            close_storage(storage)
            raise

    def close(self) -> None:
        """Close the connections to the storage; leaving a ``with`` block does so too."""
        close_storage(self.storage)

    def __enter__(self) -> "Campaign":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- asking

    @explains
    def ask(self, n: int = 1) -> list[Experiment]:
        """Choose the next designs; what is pending is taken into account."""
        n = whole_number("n", n, least=1)
        self.tidy()
        return [self._ask_one() for _ in range(n)]

    def _ask_one(self) -> Experiment:
        trial = self.study.ask(distributions_of(self.settings.space))
        self.storage.set_trial_user_attr(trial._trial_id, UNCERTAINTY, self._described)
        return self.experiment(trial.number)

    @explains
    def tidy(self) -> list[Experiment]:
        """Give up what was asked longer ago than the file allows; return it.

        Designs that somebody was choosing, and rows that somebody was importing, when the process
        was killed are taken away too.
        """
        now = datetime.now()
        self._ledger.discard_stale(now)
        record = self._record()
        for trial in record.unfinished_asks:
            if trial.datetime_start is not None and now - trial.datetime_start > INTERRUPTED:
                self._finish(trial._trial_id, None, gave_up=True)
        overdue = self._overdue(record, now)
        for experiment in overdue:
            self._finish(experiment.trial_id, None, gave_up=True)
        return overdue

    def _overdue(self, record: Record, now: datetime) -> list[Experiment]:
        hours = self.settings.give_up_after_hours
        if hours is None:
            return []
        limit = timedelta(hours=hours)
        return [e for e in record.experiments if e.is_pending and e.age(now) > limit]

    # -- telling

    @explains
    def tell(
        self,
        what: int | Mapping[str, Any],
        value: Any,
        *,
        executed: Mapping[str, Any] | None = None,
        uncertainty: NamedUncertainty = None,
        correct: bool = False,
        again: bool = False,
        allow_outside: bool = False,
    ) -> Told:
        """Report what an experiment gave.

        The same report twice counts once, so that after a crash it can simply be repeated.

        Args:
            what: The number of the experiment, or a design: a pending one, or one that was never
                asked for.
            value: The observed value; None or NaN if the experiment failed.
            executed: Parameters of the executed input, where they were measured.
            uncertainty: What this experiment was made under, by name, if not what the file says.
            correct: Whether to replace another outcome that was told before.
            again: Whether a design and value that are known already are another experiment.
            allow_outside: Whether a design that was not asked for may lie outside the ranges.

        Raises:
            AlreadyTold: If the experiment has another outcome and ``correct`` is not set.
            CampaignError: If there is no such experiment, or something is wrong with the report.
        """
        about = self._understand(
            what,
            value,
            executed=executed,
            uncertainty=uncertainty,
            correct=correct,
            again=again,
            allow_outside=allow_outside,
        )
        return self._tell(*about, correct)

    @explains
    def tell_all(
        self, outcomes: Sequence[tuple[int | Mapping[str, Any], Any]], **options: Any
    ) -> list[Told]:
        """Report several experiments; if anything is wrong with one, none of them is told.

        Args:
            outcomes: Pairs of a number or design and its value.
            **options: As for ``tell``; they hold for all.
        """
        for what, value in outcomes:
            self._understand(what, value, **options)
        return [self.tell(what, value, **options) for what, value in outcomes]

    def _understand(
        self,
        what: int | Mapping[str, Any],
        value: Any,
        *,
        executed: Mapping[str, Any] | None = None,
        uncertainty: NamedUncertainty = None,
        correct: bool = False,
        again: bool = False,
        allow_outside: bool = False,
    ) -> tuple[Experiment | None, Design, Report]:
        """Check a report and return what it is about; nothing changes."""
        report = Report.checked(self.settings.space, value, executed, uncertainty)
        experiment, design = self._find(what, report, again, allow_outside)
        self._check_outcome(experiment, design, report, correct)
        return experiment, design, report

    def _find(
        self, what: int | Mapping[str, Any], report: Report, again: bool, allow_outside: bool
    ) -> tuple[Experiment | None, Design]:
        """Return what a report is about: an experiment that is known, or a new design."""
        if isinstance(what, Mapping):
            design = self._design(what, allow_outside)
            return self._same(design, report, again), design
        experiment = self.experiment(what)
        return experiment, experiment.design

    def _check_outcome(
        self, experiment: Experiment | None, design: Design, report: Report, correct: bool
    ) -> None:
        """Refuse a report that no model could use, or that contradicts another one."""
        self._check(design, report, experiment and experiment.uncertainty)
        told = experiment is not None and experiment.has_outcome
        if experiment is not None and told and not (correct or report.agrees(experiment)):
            raise AlreadyTold(
                f"Experiment {experiment.number} was told before: {described(experiment)}. "
                "To replace that, say so: --correct on the command line, correct=True in Python."
            )

    def _tell(
        self, experiment: Experiment | None, design: Design, report: Report, correct: bool
    ) -> Told:
        if experiment is None:
            return self._add(design, report)
        if experiment.has_outcome and report.agrees(experiment):
            return Told(experiment, "already told")
        if not experiment.is_pending:
            return self._replace(experiment, report)
        try:
            return self._answer(experiment, report)
        except optuna.exceptions.UpdateFinishedTrialError:  # somebody else was faster
            latest = self.experiment(experiment.number)
            self._check_outcome(latest, design, report, correct)
            return self._tell(latest, design, report, correct)

    def _add(self, design: Design, report: Report) -> Told:
        known = {e.number for e in self.experiments}
        row = self._row(design, report, self._described)
        state = TrialState.FAIL if report.value is None else TrialState.COMPLETE
        self.study.add_trial(
            optuna.trial.create_trial(
                state=state,
                value=row.value,
                params=row.design,
                distributions=dict(row.distributions),
                user_attrs=dict(row.attributes),
            )
        )
        new = [e for e in self.experiments if e.number not in known and e.design == design]
        return Told(new[0], "added")

    def _same(self, design: Design, report: Report, again: bool) -> Experiment | None:
        """Return the experiment that a design without a number is about, if there is one."""
        alike = [e for e in self.experiments if same_design(self.settings.space, e.design, design)]
        pending = [e for e in alike if e.is_pending]
        if pending:
            return pending[0]
        known = [e for e in alike if e.has_outcome and report.agrees(e)]
        return known[0] if known and not again else None

    def _answer(self, experiment: Experiment, report: Report) -> Told:
        attributes = report.attributes(experiment.uncertainty or self._described)
        if experiment.executed and not report.executed:
            attributes[EXECUTED] = {}  # of a report that was interrupted
        known = {UNCERTAINTY: experiment.uncertainty, EXECUTED: experiment.executed}
        for key, attribute in attributes.items():
            if attribute != known[key]:
                self.storage.set_trial_user_attr(experiment.trial_id, key, attribute)
        self._finish(experiment.trial_id, report.value)
        return Told(self.experiment(experiment.number), "told")

    def _replace(self, experiment: Experiment, report: Report) -> Told:
        row = self._row(experiment.design, report, experiment.uncertainty or self._described)
        self._ledger.write([row], f"{REPLACED}{experiment.trial}", {})
        done: Done = "told" if experiment.outcome == "given up" else "corrected"
        return Told(self.experiment(experiment.number), done)

    def _row(self, design: Design, report: Report, under: Any) -> Row:
        distributions = distributions_of(self.settings.space, design)
        return Row(design, distributions, report.value, report.attributes(under))

    @explains
    def fail(self, what: int | Mapping[str, Any], *, correct: bool = False) -> Told:
        """Report that an experiment was tried and gave no value."""
        return self.tell(what, None, correct=correct)

    @explains
    def give_up(self, number: int) -> Told:
        """Report that nobody will do an experiment; its design says nothing to the model."""
        experiment = self.experiment(number)
        if experiment.outcome == "given up":
            return Told(experiment, "already told")
        if not experiment.is_pending:
            raise AlreadyTold(
                f"Experiment {number} was told: {described(experiment)}. It cannot be given up."
            )
        self._finish(experiment.trial_id, None, gave_up=True)
        return Told(self.experiment(number), "told")

    def _finish(self, trial_id: int, value: float | None, gave_up: bool = False) -> None:
        if gave_up:
            self.storage.set_trial_user_attr(trial_id, GAVE_UP, True)
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        self.storage.set_trial_state_values(trial_id, state, None if value is None else [value])

    @explains
    def claim(self, number: int, process: Mapping[str, Any]) -> None:
        """Note which process runs a pending experiment unattended."""
        experiment = self.experiment(number)
        self.storage.set_trial_user_attr(experiment.trial_id, RUN, dict(process))

    # -- tables

    @explains
    def import_table(
        self,
        source: str | Path | pd.DataFrame,
        *,
        again: bool = False,
        allow_outside: bool = False,
        ignore_others: bool = False,
        uncertainty: NamedUncertainty = None,
    ) -> Imported:
        """Take over experiments that were done before: all rows, or none.

        Args:
            source: A CSV file, or a table, with a column for each parameter and ``value``; where
                there is such, ``status`` (ok or failed) and ``executed_<name>``.
            again: Whether a table that was imported before counts once more.
            allow_outside: Whether designs may lie outside the ranges of the file.
            ignore_others: Whether to skip columns with other names.
            uncertainty: What these experiments were made under, if not what the file says.

        Raises:
            FileError: If there are mistakes; each is named with its line, and nothing is changed.
        """
        name, text = read_data(source)
        rows = parse_rows(name, text, self.settings.space, ignore_others)
        if not rows:
            raise FileError(name, [Mistake(1, "there are no experiments in it.")])
        checked = self._checked_rows(name, rows, allow_outside, uncertainty)
        key = f"airbo:import:{digest(rows)}"
        marks = self.study.user_attrs
        if key in marks and not again:
            first = marks[key]["trial"]
            return Imported(self._numbers_of(key) or [first], already=True)
        if key in marks:
            key = next(k for i in itertools.count(2) if (k := f"{key}:{i}") not in marks)
        numbers = self._ledger.write(checked, key, {"file": Path(name).name, "rows": len(rows)})
        return Imported(numbers, already=False)

    def _numbers_of(self, key: str) -> list[int]:
        token = self.study.user_attrs[key]["token"]
        trials = self.study.get_trials(deepcopy=False)
        staged = [(t.number, t.user_attrs.get("airbo:staged", {})) for t in trials]
        return [number for number, note in staged if note.get("token") == token]

    def _checked_rows(
        self,
        name: str,
        rows: Sequence[DataRow],
        allow_outside: bool,
        uncertainty: NamedUncertainty,
    ) -> list[Row]:
        checked, mistakes = [], []
        for row in rows:
            try:
                report = Report.checked(self.settings.space, row.value, row.executed, uncertainty)
                design = self._design(row.design, allow_outside)
                self._check(design, report)
                checked.append(self._row(design, report, self._described))
            except CampaignError as error:
                mistakes.append(Mistake(row.line, str(error)))
        if mistakes:
            raise FileError(name, mistakes)
        return checked

    @explains
    def export(self) -> pd.DataFrame:
        """Return all experiments as a table that ``import_table`` reads."""
        return as_table(self.settings.space, self.experiments)

    # -- looking

    @property
    def experiments(self) -> list[Experiment]:
        """All experiments, pending ones too, in the order of their numbers."""
        return self._record().experiments

    @explains
    def experiment(self, number: int) -> Experiment:
        """Return the experiment with a number."""
        whole_number("number", number, least=0)
        found = self._record().find(number)
        if found is None:
            numbers = [e.number for e in self.experiments if e.is_pending]
            pending = f"pending: {', '.join(map(str, numbers))}" if numbers else "none is pending"
            raise CampaignError(f"There is no experiment {number} ({pending}).")
        return found

    @explains
    def _record(self) -> Record:
        return read_record(self.study, self.settings.space)

    @explains
    def status(self) -> Status:
        """Say where the campaign stands."""
        record = self._record()
        overdue = self._overdue(record, datetime.now())
        return status_of(self.settings, self.study, record, overdue)

    @explains
    def recommend(self, policy: Literal["observed", "anywhere"] | None = None) -> Recommendation:
        """Return the design with the best expected value; see ``Optimizer.recommend``."""
        optimizer = self.optimizer()
        if not optimizer.observations["value"].notna().any():
            raise CampaignError("There is nothing to recommend yet: no experiment gave a value.")
        return optimizer.recommend(policy)

    @explains
    def optimizer(self) -> Optimizer:
        """Return an optimizer that knows all experiments, to look at: what it is told is not kept.

        It is what reports and pictures are made from.
        """
        return optimizer_from(self.settings, self.experiments)

    # -- checking

    @property
    def _described(self) -> Any:
        return describe_uncertainty(self.settings.uncertainty)

    def _design(self, given: Mapping[str, Any], allow_outside: bool) -> Design:
        space = self.settings.space
        try:
            [design] = space.decode(space.encode(given, allow_outside))
        except ValueError as error:
            raise CampaignError(str(error)) from None
        return design

    def _check(self, design: Design, report: Report, described: Any = None) -> None:
        """Refuse a report that no model could use."""
        under = report.uncertainty
        if under is None and described is not None:
            under = read_uncertainty(described)
        scratch = optimizer_from(self.settings, [])
        try:
            scratch.tell(design, report.value, report.executed, under, allow_outside=True)
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
