"""A campaign: ask, tell and recommend over days, kept in an Optuna storage."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError

from airbo.campaign.adviser import Adviser, Policy, optimizer_from
from airbo.campaign.errors import CampaignError
from airbo.campaign.experiment import RUN, Experiment, Record, Status, elapsed, status_of
from airbo.campaign.optuna import UNCERTAINTY, distributions_of
from airbo.campaign.outcome import Listener, Outcome, Told, cannot_be_used, check_once
from airbo.campaign.plausible import check_plausible
from airbo.campaign.revised import RevisableCampaign
from airbo.campaign.storage import explained, explains
from airbo.campaign.study import check_kinds, range_changes, sampler_of
from airbo.campaign.tables import Imported, import_table, table_of

if TYPE_CHECKING:
    import pandas as pd

    from airbo.analysis import Handover, Outlook
    from airbo.optimizer import Optimizer, Recommendation
    from airbo.uncertainty.in_cube import NamedUncertainty

INTERRUPTED = timedelta(hours=1)
"""An ask that takes longer than this was interrupted."""


class Campaign(RevisableCampaign):
    """Experiments that last for days, shared by several people or machines.

    All state is in the storage, and every method reads it again: several processes can work on one
    campaign, and one that is killed loses nothing that it has reported.
    """

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
        from airbo.observed import whole_number

        n = whole_number("n", n, least=1)
        self.tidy()
        asked = [self._ask_one() for _ in range(n)]
        self._acknowledge()
        return asked

    def _ask_one(self) -> Experiment:
        wanted = distributions_of(self.settings.space)
        try:
            trial = self.study.ask(wanted)
        except ValueError as error:
            check_kinds(self.study, wanted)
            raise CampaignError(f"No design can be chosen. {error}") from error
        under = self.settings.described_uncertainty
        self.ledger.note(trial._trial_id, UNCERTAINTY, under)
        return self.ledger.experiment(trial.number)

    @explains
    def tidy(self) -> list[Experiment]:
        """Give up pending experiments that are overdue, and return them.

        Designs that somebody was choosing, and rows that somebody was importing, when the process
        was killed are taken away too.
        """
        now, record = datetime.now(), self.ledger.record()
        self.ledger.discard_stale(record, now)
        for trial in record.unfinished_asks:
            if elapsed(trial.datetime_start, now) > INTERRUPTED:
                self.ledger.give_up(trial._trial_id)
        given_up = [e for e in self._overdue(record, now) if self.ledger.give_up(e.trial_id)]
        if given_up:
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
        design: Mapping[str, Any] | None = None,
        executed: Mapping[str, Any] | None = None,
        uncertainty: "NamedUncertainty | list[dict[str, Any]]" = None,
        correct: bool = False,
        again: bool = False,
        allow_outside: bool = False,
        sure: bool = False,
    ) -> Told:
        """Report what an experiment gave.

        The same report twice counts once, so that after a crash it can simply be repeated.

        Args:
            what: The number of the experiment, or a design: a pending one, or one that was never
                asked for.
            value: The observed value, or, where the file has outcomes, a dict of those that were
                measured; None or NaN if the experiment failed.
            design: Parameters that you set otherwise than asked, where ``what`` is a number.
            executed: Parameters of the executed input, where they were measured. A correction
                keeps what was measured before; ``{}`` says that nothing was.
            uncertainty: What this experiment was made under, by name, if not what the file says; or
                its description, as :func:`airbo.campaign.optuna.describe_uncertainty` gives it.
            correct: Whether to replace another outcome that was told before.
            again: Whether a design and value that are known already are another experiment.
            allow_outside: Whether a design that was not asked for may lie outside the ranges.
            sure: Whether to store numbers that look like typing errors.

        Raises:
            AlreadyTold: If the experiment has another outcome and ``correct`` is not set.
            Doubtful: If a number looks like a typing error and ``sure`` is not set.
            CampaignError: If there is no such experiment, or something is wrong with the report.
        """
        [told] = self.tell_all(
            [(what, value)],
            design=design,
            executed=executed,
            uncertainty=uncertainty,
            correct=correct,
            again=again,
            allow_outside=allow_outside,
            sure=sure,
        )
        return told

    @explains
    def tell_all(
        self,
        outcomes: Sequence[tuple[int | Mapping[str, Any], Any]],
        *,
        design: Mapping[str, Any] | None = None,
        executed: Mapping[str, Any] | None = None,
        uncertainty: "NamedUncertainty | list[dict[str, Any]]" = None,
        correct: bool = False,
        again: bool = False,
        allow_outside: bool = False,
        sure: bool = False,
        infeasible: bool = False,
    ) -> list[Told]:
        """Report several experiments; if anything is wrong with one, none of them is stored.

        Args:
            outcomes: Pairs of a number or design and its value.
            design: As for ``tell``; this and the others hold for all.
            executed: As for ``tell``.
            uncertainty: As for ``tell``.
            correct: As for ``tell``.
            again: As for ``tell``.
            allow_outside: As for ``tell``.
            sure: As for ``tell``.
            infeasible: As for ``fail``.
        """
        listener = self._listener(uncertainty, allow_outside)
        understood = [
            listener.outcome(what, value, executed, correct, again, design)
            for what, value in outcomes
        ]
        if infeasible:
            understood = [cannot_be_used(self.settings, outcome) for outcome in understood]
        check_once(understood)
        if not sure:
            check_plausible(self.settings, listener.record, understood)
        return self._write(understood, again)

    def _write(self, understood: Sequence[Outcome], again: bool = False) -> list[Told]:
        told: list[Told] = []
        for i, outcome in enumerate(understood):
            is_new = outcome.experiment is None and not again
            if is_new and outcome in understood[:i]:  # the same new design twice counts once
                told.append(Told(told[understood.index(outcome)].experiment, "already told"))
            else:
                told.append(self.ledger.write(outcome))
        self._acknowledge(told)
        return told

    def _listener(self, uncertainty: Any = None, allow_outside: bool = False) -> Listener:
        record = self.ledger.record()
        stamp = self._stamp(record)
        return Listener.of(self.settings, record, uncertainty, allow_outside, stamp)

    @explains
    def fail(
        self, what: int | Mapping[str, Any], *, correct: bool = False, infeasible: bool = False
    ) -> Told:
        """Report that an experiment was tried and gave no value.

        Args:
            what: As for ``tell``.
            correct: As for ``tell``.
            infeasible: Whether it failed because its design cannot be used; needs outcomes.
        """
        [told] = self.tell_all([(what, None)], correct=correct, infeasible=infeasible)
        return told

    @explains
    def give_up(self, number: int, *, correct: bool = False) -> Told:
        """Report that an experiment will not be run; the model learns nothing from it.

        Args:
            number: Of the experiment.
            correct: Whether to replace an outcome that was told before.
        """
        [told] = self.give_up_all([number], correct=correct)
        return told

    @explains
    def give_up_all(self, numbers: Sequence[int], *, correct: bool = False) -> list[Told]:
        """Give up several experiments; if anything is wrong with one, none of them is given up."""
        listener = self._listener()
        return self._write([listener.given_up(number, correct) for number in numbers])

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
        sure: bool = False,
    ) -> Imported:
        """Take over experiments that were done before: all rows, or none.

        Args:
            source: A CSV or Excel file, or a table, with a column for each parameter and for the
                value; where there is such, ``status`` (ok or failed) and ``executed_<name>``.
            again: Whether a table that was imported before counts once more.
            allow_outside: Whether designs may lie outside the ranges of the file.
            ignore_others: Whether to skip columns with other names.
            uncertainty: What these experiments were made under, if not what the file says.
            sure: Whether to store numbers that look like typing errors.

        Raises:
            FileError: If there are mistakes; each is named with its line, and nothing is changed.
            Doubtful: If numbers look like typing errors and ``sure`` is not set.
        """
        listener = self._listener(uncertainty, allow_outside)
        done = import_table(self.ledger, listener, source, again, ignore_others, sure)
        self._acknowledge()
        return done

    @explains
    def export(self) -> "pd.DataFrame":
        """Return all experiments as a table that ``import_table`` reads."""
        return table_of(self.settings, self.experiments)

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
            settings.outcomes is not None,
        )

    @explains
    def recommend(self, policy: Policy | None = None) -> "Recommendation":
        """Return the design with the best expected value; see ``Optimizer.recommend``.

        A design that nobody has tried has the digits that the machine can hold.
        """
        return self.adviser().recommend(policy)

    @explains
    def front(self, policy: Policy | None = None) -> "list[Recommendation]":
        """Return the designs that no other one beats by all objectives; see ``Optimizer.front``."""
        return self.adviser().front(policy)

    def adviser(self) -> Adviser:
        """Return an adviser, which fits the model once and answers several questions."""
        return Adviser(self.settings, self.experiments)

    @explains
    def look_ahead(
        self,
        tolerance: float | None = None,
        policy: Policy | None = None,
    ) -> "Outlook":
        """Say what further experiments can bring, and what the recommendation is based on.

        Args:
            tolerance: A difference of expected values that does not matter to you; by default a
                twentieth of the range of the observed values.
            policy: As for ``recommend``.
        """
        return self.adviser().look_ahead(tolerance, policy)

    @explains
    def handover(self, design: Mapping[str, Any]) -> "Handover":
        """Return operating window and tolerance budgets of a design, where there are limits."""
        return self.adviser().handover(design)

    @explains
    def optimizer(self) -> "Optimizer":
        """Return an optimizer that knows all experiments. What you tell it is not kept.

        It is what reports and pictures are made from.
        """
        return optimizer_from(self.settings, self.experiments)
