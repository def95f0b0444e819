"""How a change is taken back, so that everybody sees all of it or nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial

from airbo.campaign.experiment import Record
from airbo.campaign.history import AuditTrail, Change
from airbo.campaign.ledger import Ledger, Row
from airbo.campaign.optuna.attributes import STAMP, UNCERTAINTY
from airbo.campaign.optuna.counting import PENDING, UNDO


def take_back(
    ledger: Ledger, record: Record, changes: Sequence[Change], stamp: Mapping[str, Any]
) -> None:
    """Take back changes, with one mark.

    A mark that is taken back no longer counts, and what it replaced counts again. A trial that was
    told cannot lose its outcome: a new pending one stands in for it, or none if nobody had asked.
    """
    history = AuditTrail(record.counted, ledger.space)
    told = [trial for change in changes for trial in _told_by(record, change)]
    asked = [trial for trial in told if history.was_asked(trial)]
    added = [trial for trial in told if trial not in asked]
    ledger.change(
        UNDO,
        stamp,
        sorted({number for change in changes for number in change.numbers}),
        [_pending(trial, ledger) for trial in asked],
        [trial.number for trial in (*asked, *added)],
        of=[change.name for change in changes],
    )


def _told_by(record: Record, change: Change) -> list[FrozenTrial]:
    """Return the trials that must no longer count as told, although no mark commits them."""
    kind, _, number = change.name.partition(" ")
    if kind == "trial":
        return [record.counted.by_number[int(number)]]
    mark = next((c for c in record.counted.changes if c["token"] == change.name), {})
    if mark.get("was") == PENDING:  # told with another design: its own trial was closed
        return [record.counted.by_number[old] for old, _ in mark["replaces"]]
    return []


def _pending(trial: FrozenTrial, ledger: Ledger) -> Row:
    """Return the row with which a trial is pending again, as it was asked."""
    under = trial.user_attrs.get(UNCERTAINTY)
    under = trial.user_attrs.get(STAMP, {}).get("asked_under", under)
    design = {name: trial.params[name] for name in ledger.space.names}
    attributes = {} if under is None else {UNCERTAINTY: under}
    return Row(design, attributes, "pending", asked=trial.datetime_start)
