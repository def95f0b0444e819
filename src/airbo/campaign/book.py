"""The book of a campaign: its experiments, as the storage holds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from airbo.campaign.distributions import distributions_of
from airbo.campaign.errors import CampaignError
from airbo.campaign.experiments import Experiment, Record, read_record
from airbo.campaign.reports import Report
from airbo.campaign.sampling import optimizer_from
from airbo.campaign.settings import Settings
from airbo.campaign.staging import Ledger, Row
from airbo.integrations.optuna import GAVE_UP, describe_uncertainty, read_uncertainty
from airbo.optimizer import Design
from airbo.optimizer.optimizer import whole_number


@dataclass(frozen=True)
class Book:
    """Reads experiments, always anew, and writes what becomes of them."""

    settings: Settings
    study: Study
    storage: BaseStorage

    # -- reading

    def record(self) -> Record:
        """Return all experiments and what was left unfinished."""
        return read_record(self.study, self.settings.space)

    @property
    def experiments(self) -> list[Experiment]:
        """All experiments, pending ones too, in the order of their numbers."""
        return self.record().experiments

    def experiment(self, number: int) -> Experiment:
        """Return the experiment with a number."""
        whole_number("number", number, least=0)
        record = self.record()
        found = record.find(number)
        if found is None:
            numbers = [e.number for e in record.experiments if e.is_pending]
            pending = f"pending: {', '.join(map(str, numbers))}" if numbers else "none is pending"
            raise CampaignError(f"There is no experiment {number} ({pending}).")
        return found

    # -- writing

    @cached_property
    def ledger(self) -> Ledger:
        """Writes outcomes that belong together."""
        return Ledger(self.study, self.storage)

    def note(self, trial_id: int, name: str, value: Any) -> None:
        """Write an attribute of a trial."""
        self.storage.set_trial_user_attr(trial_id, name, value)

    def finish(self, trial_id: int, value: float | None) -> None:
        """Close a trial, with the value that it gave or without one.

        Raises:
            UpdateFinishedTrialError: If somebody else was faster.
        """
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        values = None if value is None else [value]
        if not self.storage.set_trial_state_values(trial_id, state, values):
            raise UpdateFinishedTrialError(f"Trial {trial_id} is being finished elsewhere.")

    def give_up(self, trial_id: int) -> bool:
        """Close a trial that nobody will do; False if somebody else has closed it."""
        try:
            self.note(trial_id, GAVE_UP, True)
            self.finish(trial_id, None)
        except UpdateFinishedTrialError:
            return False
        return True

    def row(self, design: Design, report: Report, under: Any = None) -> Row:
        """Return what is written about a design.

        Args:
            design: The design.
            report: What is said about it.
            under: Description of what it was made under, where the report says nothing; by
                default what the file says.
        """
        distributions = distributions_of(self.settings.space, design)
        attributes = report.attributes(self.described_uncertainty if under is None else under)
        return Row(design, distributions, report.value, attributes)

    # -- checking

    @property
    def described_uncertainty(self) -> Any:
        """Description of the uncertainty that the file names."""
        return describe_uncertainty(self.settings.uncertainty)

    def design(self, given: Mapping[str, Any], allow_outside: bool) -> Design:
        """Return a design as the space writes it, or refuse it."""
        space = self.settings.space
        try:
            design = space.checked(given, allow_outside)
        except ValueError as error:
            raise CampaignError(str(error)) from None
        return design

    def check(self, design: Design, report: Report, described: Any = None) -> None:
        """Refuse a report that no model could use.

        Args:
            design: The design.
            report: What is said about it.
            described: Description of what it was made under, where the report says nothing.
        """
        under = report.uncertainty
        if under is None and described is not None:
            under = read_uncertainty(described)
        scratch = optimizer_from(self.settings, [])
        try:
            scratch.tell(design, report.value, report.executed, under, allow_outside=True)
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
