"""Where a campaign stands."""

from collections.abc import Sequence
from dataclasses import dataclass

from optuna import Study

from airbo.campaign.experiments import Experiment, Record
from airbo.campaign.identity import range_changes
from airbo.campaign.settings import Settings
from airbo.integrations.optuna import describe_uncertainty


@dataclass(frozen=True)
class Status:
    """Where a campaign stands."""

    n_ok: int
    n_failed: int
    n_given_up: int
    pending: list[Experiment]
    overdue: list[Experiment]
    """Those of the pending ones that the next ask gives up."""
    best: Experiment | None
    """The experiment with the best observed value: the luckiest, not the recommended one."""
    notes: list[str]
    """What has changed in the file, and what was interrupted."""


def status_of(
    settings: Settings, study: Study, record: Record, overdue: Sequence[Experiment]
) -> Status:
    """Count experiments and say what is unusual."""
    outcomes = [e.outcome for e in record.experiments]
    ok = [e for e in record.experiments if e.value is not None]
    sign = 1 if settings.direction == "maximize" else -1
    return Status(
        n_ok=len(ok),
        n_failed=outcomes.count("failed"),
        n_given_up=outcomes.count("given up"),
        pending=[e for e in record.experiments if e.is_pending],
        overdue=list(overdue),
        best=max(ok, key=lambda e: sign * (e.value or 0.0), default=None),
        notes=[
            *_about_uncertainty(settings, record),
            *range_changes(study, settings),
            *_about_interruptions(record),
        ],
    )


def _about_uncertainty(settings: Settings, record: Record) -> list[str]:
    now = describe_uncertainty(settings.uncertainty)
    others = [
        e.number
        for e in record.experiments
        if e.outcome != "given up" and e.uncertainty is not None and e.uncertainty != now
    ]
    if not others:
        return []
    were = "experiment was" if len(others) == 1 else "experiments were"
    return [
        f"{len(others)} {were} made under another uncertainty than the file says now "
        f"({_numbers(others)}); each keeps its own, and the model uses that."
    ]


def _about_interruptions(record: Record) -> list[str]:
    notes = []
    if record.unfinished_asks:
        numbers = _numbers([t.number for t in record.unfinished_asks])
        notes.append(f"A design is being chosen, or an ask was interrupted ({numbers}).")
    if record.staged:
        notes.append(
            f"An import of {len(record.staged)} or more rows is under way, or was interrupted: "
            "its rows do not count. Import the file again to complete it."
        )
    return notes


def _numbers(numbers: Sequence[int], most: int = 6) -> str:
    shown = ", ".join(map(str, numbers[:most]))
    return f"{shown}, ..." if len(numbers) > most else shown
