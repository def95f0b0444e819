"""What was told can be taken back, left out and remarked on; the history keeps all of it."""

from typing import TYPE_CHECKING

from airbo.campaign.errors import CampaignError
from airbo.campaign.experiment import Experiment, Record
from airbo.campaign.history import Change, table_of_changes
from airbo.campaign.opened import OpenCampaign
from airbo.campaign.optuna.counting import EXCLUDE, INCLUDE, NOTE
from airbo.campaign.storage import explains
from airbo.campaign.undo import take_back

if TYPE_CHECKING:
    import pandas as pd


class RevisableCampaign(OpenCampaign):
    """A campaign in which nothing is final."""

    @explains
    def undo(self) -> list[Change]:
        """Take back the last change: a report, an import, a correction, an exclusion or a note.

        An experiment that was asked for is pending again. Called again, it takes back the change
        before. What is taken back stays in the history; to have it again, tell it again.

        Returns:
            What was taken back: all that was said in the same call.

        Raises:
            CampaignError: If there is nothing to take back.
        """
        record = self.ledger.record()
        last = self._history(record).last
        if not last:
            raise CampaignError("There is nothing to undo: nothing was told yet.")
        take_back(self.ledger, record, last, self._stamp(record))
        self._acknowledge()
        return last

    @explains
    def exclude(self, number: int, why: str) -> Experiment:
        """Keep an experiment, but leave it out of the model, and say why."""
        record = self.ledger.record()
        known = record.get(number)
        if not known.has_outcome:
            raise CampaignError(
                f"Experiment {number} has no outcome that could be excluded: it is {known.outcome}."
            )
        return self._changed(record, EXCLUDE, number, why)

    @explains
    def include(self, number: int) -> Experiment:
        """Include an experiment in the model again that was excluded."""
        record = self.ledger.record()
        if record.get(number).excluded is None:
            raise CampaignError(f"Experiment {number} is not excluded.")
        return self._changed(record, INCLUDE, number, "the model knows it again")

    @explains
    def note(self, number: int, text: str) -> Experiment:
        """Write something about an experiment, for people to read."""
        record = self.ledger.record()
        record.get(number)
        return self._changed(record, NOTE, number, text)

    def _changed(self, record: Record, what: str, number: int, text: str) -> Experiment:
        if not text.strip():
            raise CampaignError("The text is empty.")
        self.ledger.change(what, self._stamp(record), [number], text=text.strip())
        self._acknowledge()
        return self.ledger.experiment(number)

    @explains
    def history(self) -> list[Change]:
        """Return every change of the campaign, the oldest first: who, when, what."""
        return self._history(self.ledger.record()).changes

    @explains
    def export_history(self) -> "pd.DataFrame":
        """Return every change as a table: when, who, what, which experiments."""
        return table_of_changes(self.history())
