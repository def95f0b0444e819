"""A campaign: ask, tell and recommend over days, kept in an Optuna storage."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage

from airbo.campaign.answers import Answer, Told, check_once
from airbo.campaign.book import Book
from airbo.campaign.data import as_table
from airbo.campaign.distributions import distributions_of
from airbo.campaign.errors import AlreadyTold, CampaignError
from airbo.campaign.experiments import RUN, Experiment, Record, elapsed
from airbo.campaign.identity import open_study
from airbo.campaign.imports import Imported, import_table
from airbo.campaign.reports import described
from airbo.campaign.sampling import optimizer_from, sampler_of
from airbo.campaign.settings import Settings
from airbo.campaign.status import Status, status_of
from airbo.campaign.storage import close_storage, explained, explains, open_storage
from airbo.coordinates import NamedUncertainty
from airbo.integrations.optuna import UNCERTAINTY
from airbo.optimizer import Optimizer, Recommendation
from airbo.optimizer.optimizer import whole_number

FILE = "campaign.toml"
INTERRUPTED = timedelta(hours=1)
"""An ask that takes longer than this was interrupted."""


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
            self.book = Book(settings, self.study, storage)
            self.book.ledger.finish_committed()

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
        self.book.note(trial._trial_id, UNCERTAINTY, self.book.described_uncertainty)
        return self.book.experiment(trial.number)

    @explains
    def tidy(self) -> list[Experiment]:
        """Give up what was asked longer ago than the file allows; return it.

        Designs that somebody was choosing, and rows that somebody was importing, when the process
        was killed are taken away too.
        """
        now = datetime.now()
        self.book.ledger.discard_stale(now)
        record = self.book.record()
        for trial in record.unfinished_asks:
            if elapsed(trial.datetime_start, now) > INTERRUPTED:
                self.book.give_up(trial._trial_id)
        return [e for e in self._overdue(record, now) if self.book.give_up(e.trial_id)]

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
        answer = Answer.understood(
            self.book,
            what,
            value,
            executed=executed,
            uncertainty=uncertainty,
            correct=correct,
            again=again,
            allow_outside=allow_outside,
        )
        return answer.write()

    @explains
    def tell_all(
        self, outcomes: Sequence[tuple[int | Mapping[str, Any], Any]], **options: Any
    ) -> list[Told]:
        """Report several experiments; if anything is wrong with one, none of them is told.

        Args:
            outcomes: Pairs of a number or design and its value.
            **options: As for ``tell``; they hold for all.
        """
        check_once([Answer.understood(self.book, w, value, **options) for w, value in outcomes])
        return [self.tell(what, value, **options) for what, value in outcomes]

    @explains
    def fail(self, what: int | Mapping[str, Any], *, correct: bool = False) -> Told:
        """Report that an experiment was tried and gave no value."""
        return self.tell(what, None, correct=correct)

    @explains
    def give_up(self, number: int) -> Told:
        """Report that nobody will do an experiment; its design says nothing to the model."""
        experiment = self._to_give_up(number)
        if experiment.outcome == "given up":
            return Told(experiment, "already told")
        ours = self.book.give_up(experiment.trial_id)
        return Told(self._to_give_up(number), "told" if ours else "already told")

    def _to_give_up(self, number: int) -> Experiment:
        experiment = self.experiment(number)
        if experiment.has_outcome:
            raise AlreadyTold(
                f"Experiment {number} was told: {described(experiment)}. It cannot be given up."
            )
        return experiment

    @explains
    def give_up_all(self, numbers: Sequence[int]) -> list[Told]:
        """Give up several experiments; if anything is wrong with one, none of them is given up."""
        for number in numbers:
            self._to_give_up(number)
        return [self.give_up(number) for number in numbers]

    @explains
    def claim(self, number: int, process: Mapping[str, Any]) -> bool:
        """Note which process runs a pending experiment unattended; False: it is not pending."""
        try:
            self.book.note(self.experiment(number).trial_id, RUN, dict(process))
        except UpdateFinishedTrialError:
            return False
        return True

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
        return import_table(
            self.book,
            source,
            again=again,
            allow_outside=allow_outside,
            ignore_others=ignore_others,
            uncertainty=uncertainty,
        )

    @explains
    def export(self) -> pd.DataFrame:
        """Return all experiments as a table that ``import_table`` reads."""
        return as_table(self.settings.space, self.experiments)

    # -- looking

    @property
    def experiments(self) -> list[Experiment]:
        """All experiments, pending ones too, in the order of their numbers."""
        with explained(self.url):
            return self.book.experiments

    @explains
    def experiment(self, number: int) -> Experiment:
        """Return the experiment with a number."""
        return self.book.experiment(number)

    @explains
    def status(self) -> Status:
        """Say where the campaign stands."""
        record = self.book.record()
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
