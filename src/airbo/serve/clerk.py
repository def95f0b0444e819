"""What each form does to the campaign; the answer is a sentence for the visitor."""

from collections.abc import Mapping

from airbo.campaign import Campaign, CampaignError, Told
from airbo.serve.desk import name_of_last
from airbo.serve.entries import (
    NOTE_FIELD,
    OUTCOME_FIELD,
    WHY_FIELD,
    EntryError,
    read_all,
    read_design,
    read_executed,
    read_set,
    read_text,
    read_values,
)
from airbo.serve.view import told_words

MOST_AT_ONCE = 20
"""Designs that one form can ask for."""


class KnownAlready(CampaignError):
    """The same design and value are stored already; it may have been another run."""


class Clerk:
    """Does what one form says."""

    def __init__(self, campaign: Campaign, form: Mapping[str, str], number: int = -1) -> None:
        """Take a form.

        Args:
            campaign: What it is about; changes are signed with the name of the visitor.
            form: What was filled in.
            number: The experiment, where it is about one.
        """
        self.campaign, self.form, self.number = campaign, form, number
        self.settings = campaign.settings

    def _ticked(self, name: str) -> bool:
        return name in self.form

    # -- what came out

    def tell(self) -> str:
        """Store what an experiment gave."""
        value, executed, moved = read_all(
            lambda: read_values(self.settings, self.form),
            lambda: read_executed(self.settings, self.form),
            lambda: read_set(self.settings, self.form),
        )
        self._check_kept(value)
        told = self.campaign.tell(
            self.number,
            value,
            design=moved or None,
            executed=executed if executed or self._ticked("whole") else None,
            correct=self._ticked("correct"),
            sure=self._ticked("sure"),
            allow_outside=self._ticked("sure"),
        )
        self._annotate()
        return self._said(told)

    def _check_kept(self, value: float | dict[str, float]) -> None:
        """Refuse a correction that would remove an outcome: what was measured earlier stays."""
        if not isinstance(value, dict) or not self._ticked("whole"):
            return
        gone = [n for n in self.campaign.experiment(self.number).outcomes if n not in value]
        text = "This was told before. Enter another value, or undo the report."
        if gone:
            raise EntryError({OUTCOME_FIELD + name: text for name in gone})

    def fail(self) -> str:
        """Store that an experiment was tried and gave no value."""
        told = self.campaign.fail(self.number, correct=self._ticked("correct"))
        self._annotate()
        return self._said(told)

    def cannot_be_used(self) -> str:
        """Store that an experiment failed because its design cannot be used."""
        told = self.campaign.fail(self.number, correct=self._ticked("correct"), infeasible=True)
        self._annotate()
        return self._said(told)

    def give_up(self) -> str:
        """Store that an experiment will not be run."""
        told = self.campaign.give_up(self.number, correct=self._ticked("correct"))
        self._annotate()
        return self._said(told)

    def add(self) -> str:
        """Store an experiment that nobody asked for."""
        design, value = read_all(
            lambda: read_design(self.settings, self.form),
            lambda: read_values(self.settings, self.form),
        )
        told = self.campaign.tell(
            design,
            value,
            again=self._ticked("again"),
            allow_outside=self._ticked("outside"),
            sure=self._ticked("sure"),
        )
        if told.done == "already told":
            raise KnownAlready(
                f"Experiment {told.experiment.number} has this design and this value already. "
                "Nothing was stored."
            )
        return self._said(told)

    def _annotate(self) -> None:
        """Write the note that came with a report."""
        text = self.form.get(NOTE_FIELD, "").strip()
        if text and text not in self.campaign.experiment(self.number).notes:
            self.campaign.note(self.number, text)

    def _said(self, told: Told) -> str:
        e = told.experiment
        outcome = told_words(self.settings, e)
        return {
            "told": f"Experiment {e.number}: {outcome}.",
            "already told": f"Experiment {e.number} was told before: {outcome}. Nothing changed.",
            "corrected": f"Experiment {e.number} is corrected: {', '.join(told.changes)}.",
            "added": f"Added as experiment {e.number}: {outcome}.",
        }[told.done]

    # -- changing one's mind

    def note(self) -> str:
        """Write a note."""
        text = read_text(self.form, NOTE_FIELD, "Write something first.")
        self.campaign.note(self.number, text)
        return f"Noted on experiment {self.number}."

    def exclude(self) -> str:
        """Leave an experiment out of the model."""
        why = read_text(self.form, WHY_FIELD, "Say why, for those who read it later.")
        self.campaign.exclude(self.number, why)
        return f"Experiment {self.number} is left out of the model."

    def include(self) -> str:
        """Include an experiment in the model again."""
        self.campaign.include(self.number)
        return f"Experiment {self.number} counts in the model again."

    def undo(self) -> str:
        """Take back the last change, if it is still the one that the visitor saw."""
        wanted = self.form.get("change", "").split()
        taken_back: list[str] = []
        while wanted and name_of_last(self.campaign.history()) in wanted:
            taken_back += [str(change) for change in self.campaign.undo()]
        if not taken_back:
            raise CampaignError(
                "There is a newer change, or this one was taken back already. Look at the history."
            )
        return f"Taken back: {'; '.join(taken_back)}."

    # -- asking

    def how_many(self) -> int:
        """Read how many designs are wanted."""
        text = self.form.get("n", "1").strip()
        if text not in map(str, range(1, MOST_AT_ONCE + 1)):
            raise EntryError({"n": f"Ask for 1 to {MOST_AT_ONCE} designs, not {text[:20]!r}."})
        return int(text)
