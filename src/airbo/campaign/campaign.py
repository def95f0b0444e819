"""A campaign: ask, tell and recommend over days, kept in an Optuna storage."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage

from airbo.campaign.config import Settings
from airbo.campaign.errors import AlreadyTold, CampaignError
from airbo.campaign.experiment import (
    RUN,
    Experiment,
    Record,
    Status,
    elapsed,
    read_record,
    status_of,
)
from airbo.campaign.journal import mend_journal
from airbo.campaign.ledger import Ledger
from airbo.campaign.outcome import Listener, Told, check_once, in_words
from airbo.campaign.seal import Held
from airbo.campaign.storage import close_storage, explained, explains, open_storage, reading
from airbo.campaign.study import (
    CAMPAIGN,
    check_there,
    open_study,
    optimizer_from,
    range_changes,
    sampler_of,
    seal_of,
)
from airbo.campaign.tables import Imported, import_table, table_of
from airbo.integrations.optuna import UNCERTAINTY, distributions_of

if TYPE_CHECKING:
    import pandas as pd

    from airbo.coordinates import NamedUncertainty
    from airbo.optimizer import Optimizer, Recommendation

INTERRUPTED = timedelta(hours=1)
"""An ask that takes longer than this was interrupted."""


class Campaign:
    """Experiments that last for days, shared by several people or machines.

    All state is in the storage, and every method reads it again: several processes can work on one
    campaign, and one that is killed loses nothing that it has reported.
    """

    def __init__(self, settings: Settings, storage: BaseStorage) -> None:
        """Take up a campaign; ``Campaign.open`` is the usual way."""
        self.settings = settings
        self.url = settings.storage
        self.storage = storage
        with explained(self.url), reading(self.url):
            self.seal = seal_of(settings)
            study = open_study(storage, settings, begun=bool(self.seal and self.seal.facts))
            self.ledger = Ledger(settings.space, study, storage)
            read_record(study, settings.space)
            if self.seal is not None:
                self.seal.check(self._held())
                with suppress(PermissionError):  # who may only look acknowledges nothing
                    self._acknowledge()
                    if self.url.is_journal:
                        mend_journal(self.seal.storage)

    @classmethod
    def open(cls, path: str | Path = "campaign.toml") -> "Campaign":
        """Open the campaign of a file, and begin it if it is new.

        Raises:
            DamageError: If the storage lacks something that was told, or has it otherwise.
            CampaignError: If the file has mistakes, the storage cannot be used, or it belongs to
                another campaign.
        """
        return cls.open_copy(Settings.read(path))

    @classmethod
    def open_copy(cls, settings: Settings) -> "Campaign":
        """Open the campaign that settings describe; they may name another storage than the file."""
        check_there(settings)
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

    def _held(self) -> Held:
        return Held.by(self.ledger.study, CAMPAIGN, self.settings.space.names)

    def _acknowledge(self) -> None:
        """Seal what the storage holds: what follows may be reported to the user."""
        if self.seal is not None:
            self.seal.add(self._held())

    @cached_property
    def study(self) -> Study:
        """The Optuna study, with the sampler that the file describes."""
        study = self.ledger.study
        study.sampler = sampler_of(self.settings)
        return study

    # -- asking

    @explains
    def ask(self, n: int = 1) -> list[Experiment]:
        """Choose the next designs; what is pending is taken into account."""
        from airbo.optimizer.optimizer import whole_number

        n = whole_number("n", n, least=1)
        self.tidy()
        asked = [self._ask_one() for _ in range(n)]
        self._acknowledge()
        return asked

    def _ask_one(self) -> Experiment:
        trial = self.study.ask(distributions_of(self.settings.space))
        under = self.settings.described_uncertainty
        self.ledger.note(trial._trial_id, UNCERTAINTY, under)
        return self.ledger.experiment(trial.number)

    @explains
    def tidy(self) -> list[Experiment]:
        """Give up what was asked longer ago than the file allows; return it.

        Designs that somebody was choosing, and rows that somebody was importing, when the process
        was killed are taken away too.
        """
        now, record = datetime.now(), self.ledger.record()
        self.ledger.discard_stale(record, now)
        for trial in record.unfinished_asks:
            if elapsed(trial.datetime_start, now) > INTERRUPTED:
                self.ledger.give_up(trial._trial_id)
        given_up = [e for e in self._overdue(record, now) if self.ledger.give_up(e.trial_id)]
        self._acknowledge()
        return given_up

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
        uncertainty: "NamedUncertainty | list[dict[str, Any]]" = None,
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
            uncertainty: What this experiment was made under, by name, if not what the file says; or
                its description, as :func:`airbo.integrations.optuna.describe_uncertainty` gives it.
            correct: Whether to replace another outcome that was told before.
            again: Whether a design and value that are known already are another experiment.
            allow_outside: Whether a design that was not asked for may lie outside the ranges.

        Raises:
            AlreadyTold: If the experiment has another outcome and ``correct`` is not set.
            CampaignError: If there is no such experiment, or something is wrong with the report.
        """
        [told] = self.tell_all(
            [(what, value)],
            executed=executed,
            uncertainty=uncertainty,
            correct=correct,
            again=again,
            allow_outside=allow_outside,
        )
        return told

    @explains
    def tell_all(
        self,
        outcomes: Sequence[tuple[int | Mapping[str, Any], Any]],
        *,
        executed: Mapping[str, Any] | None = None,
        uncertainty: "NamedUncertainty | list[dict[str, Any]]" = None,
        correct: bool = False,
        again: bool = False,
        allow_outside: bool = False,
    ) -> list[Told]:
        """Report several experiments; if anything is wrong with one, none of them is stored.

        Args:
            outcomes: Pairs of a number or design and its value.
            executed: As for ``tell``; this and the others hold for all.
            uncertainty: As for ``tell``.
            correct: As for ``tell``.
            again: As for ``tell``.
            allow_outside: As for ``tell``.
        """
        listener = self._listener(uncertainty, allow_outside)
        understood = [
            listener.outcome(what, value, executed, correct, again) for what, value in outcomes
        ]
        check_once(understood)
        told: list[Told] = []
        for i, outcome in enumerate(understood):
            is_new = outcome.experiment is None and not again
            if is_new and outcome in understood[:i]:  # the same new design twice counts once
                told.append(Told(told[understood.index(outcome)].experiment, "already told"))
            else:
                told.append(self.ledger.write(outcome))
        self._acknowledge()
        return told

    def _listener(self, uncertainty: Any, allow_outside: bool) -> Listener:
        return Listener.of(self.settings, self.ledger.record(), uncertainty, allow_outside)

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
        ours = self.ledger.give_up(experiment.trial_id)
        self._acknowledge()
        return Told(self._to_give_up(number), "told" if ours else "already told")

    def _to_give_up(self, number: int) -> Experiment:
        experiment = self.experiment(number)
        if experiment.has_outcome:
            raise AlreadyTold(
                f"Experiment {number} was told: {in_words(experiment)}. It cannot be given up."
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
            self.ledger.note(self.experiment(number).trial_id, RUN, dict(process))
        except UpdateFinishedTrialError:
            return False
        return True

    # -- tables

    @explains
    def import_table(
        self,
        source: "str | Path | pd.DataFrame",
        *,
        again: bool = False,
        allow_outside: bool = False,
        ignore_others: bool = False,
        uncertainty: "NamedUncertainty | list[dict[str, Any]]" = None,
    ) -> Imported:
        """Take over experiments that were done before: all rows, or none.

        Args:
            source: A CSV or Excel file, or a table, with a column for each parameter and for the
                value; where there is such, ``status`` (ok or failed) and ``executed_<name>``.
            again: Whether a table that was imported before counts once more.
            allow_outside: Whether designs may lie outside the ranges of the file.
            ignore_others: Whether to skip columns with other names.
            uncertainty: What these experiments were made under, if not what the file says.

        Raises:
            FileError: If there are mistakes; each is named with its line, and nothing is changed.
        """
        listener = self._listener(uncertainty, allow_outside)
        done = import_table(self.ledger, listener, source, again, ignore_others)
        self._acknowledge()
        return done

    @explains
    def export(self) -> "pd.DataFrame":
        """Return all experiments as a table that ``import_table`` reads."""
        return table_of(self.settings.space, self.experiments)

    # -- looking

    @property
    def experiments(self) -> list[Experiment]:
        """All experiments, pending ones too, in the order of their numbers."""
        with explained(self.url):
            return self.ledger.record().experiments

    @explains
    def experiment(self, number: int) -> Experiment:
        """Return the experiment with a number."""
        return self.ledger.experiment(number)

    @explains
    def status(self) -> Status:
        """Say where the campaign stands."""
        settings, record = self.settings, self.ledger.record()
        return status_of(
            record,
            1 if settings.direction == "maximize" else -1,
            settings.described_uncertainty,
            self._overdue(record, datetime.now()),
            range_changes(self.ledger.study, settings),
        )

    @explains
    def recommend(self, policy: Literal["observed", "anywhere"] | None = None) -> "Recommendation":
        """Return the design with the best expected value; see ``Optimizer.recommend``."""
        optimizer = self.optimizer()
        if not optimizer.observations["value"].notna().any():
            raise CampaignError("There is nothing to recommend yet: no experiment gave a value.")
        return optimizer.recommend(policy)

    @explains
    def optimizer(self) -> "Optimizer":
        """Return an optimizer that knows all experiments. What you tell it is not kept.

        It is what reports and pictures are made from.
        """
        return optimizer_from(self.settings, self.experiments)
