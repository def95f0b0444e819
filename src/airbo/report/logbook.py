"""What people recorded beside the values: failures, exclusions, and every change."""

from collections.abc import Sequence
from dataclasses import dataclass

from airbo import words
from airbo.lab import Campaign, Change, Experiment
from airbo.report.page import Page

MOST_CHANGES = 200
"""Number of changes on the page, the latest ones; `airbo export --history` has all."""


@dataclass(frozen=True)
class Logbook:
    """The experiments of a campaign, and every change of them."""

    experiments: Sequence[Experiment]
    changes: Sequence[Change]

    @classmethod
    def of(cls, campaign: Campaign) -> "Logbook":
        """Read the logbook of a campaign."""
        return cls(campaign.experiments, campaign.history())


def add_failures(page: Page, logbook: Logbook) -> None:
    """Add experiments without a value and those left out, with the notes on them."""
    told = [e for e in logbook.experiments if e.outcome == "failed" or e.excluded is not None]
    if not told:
        return
    page.section("Experiments without a value, or left out")
    page.table(
        ["experiment", "what happened", "design", "notes"],
        [
            [
                str(e.number),
                "failed" if e.outcome == "failed" else f"left out: {e.excluded}",
                ", ".join(f"{name} = {words.shown(value)}" for name, value in e.design.items()),
                "; ".join(e.notes),
            ]
            for e in told
        ],
    )


def add_changes(page: Page, logbook: Logbook) -> None:
    """Add the history: who changed what, and when."""
    if not logbook.changes:
        return
    page.section("History")
    latest = list(logbook.changes)[-MOST_CHANGES:][::-1]
    if len(latest) < len(logbook.changes):
        page.note(
            f"The latest {len(latest)} of {len(logbook.changes)} changes. "
            "`airbo export --history` writes all."
        )
    faded = [i for i, change in enumerate(latest) if change.undone]
    if faded:
        page.note("What is struck through was taken back.")
    page.table(
        ["when", "who", "experiments", "what"],
        [
            [f"{c.at.astimezone():%Y-%m-%d %H:%M}", c.by or "", c.about, f"{c.what}: {c.text}"]
            for c in latest
        ],
        faded,
    )
