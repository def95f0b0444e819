"""What takes long, or much memory: choosing designs, what was found, and files to save.

It runs in processes of its own.
"""

import datetime
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airbo.lab.serve.jobs import Deliver

if TYPE_CHECKING:
    from airbo.lab import Campaign


def choose_designs(
    path: Path, n: int, by: str, key: str | None, given: Mapping[str, Any], report: Deliver
) -> None:
    """Choose the next designs, which are then pending, and report their numbers.

    Args:
        path: The campaign file.
        n: How many.
        by: Who asks.
        key: Of the form: designs of one key are chosen once.
        given: What is known beforehand.
        report: Takes each number as soon as its design is stored.
    """
    with opened(path) as campaign:
        for i in range(n):
            own = None if key is None else f"{key}:{i}"
            [asked] = campaign.signed(by).ask(key=own, given=given)
            report(asked.number)


def advise(
    path: Path,
    policy: Literal["observed", "anywhere"] | None,
    tolerance: float | None,
    given: Mapping[str, Any] | None,
    report: Deliver,
) -> None:
    """Report which design to use, as plain data."""
    from airbo.lab.data import answer_data

    with opened(path) as campaign:
        answer = campaign.adviser().answer(policy, tolerance, given)
        report(answer_data(campaign.settings, answer))


def expect(path: Path, design: Mapping[str, Any], allow_outside: bool, report: Deliver) -> None:
    """Report what to expect at a design, as plain data."""
    with opened(path) as campaign:
        report(campaign.predict(design, allow_outside=allow_outside).to_dict())


def find(path: Path, report: Deliver) -> None:
    """Work out the sections of the report, and report the key and the HTML of each."""
    from airbo.lab.advice import check_given
    from airbo.lab.report import Findings, sections

    with opened(path) as campaign:
        check_given(campaign.settings, None)
        record = campaign.record()
        numbers = [e.number for e in campaign.modelled(record)]
        findings = Findings(campaign.optimizer(record), campaign.settings.units, numbers)
        for found in sections(findings, record):
            report(found)


def make_table(path: Path, kind: str, report: Deliver) -> None:
    """Make a file of all experiments, or of all changes, and report its bytes.

    Args:
        path: The campaign file.
        kind: ``experiments.csv``, ``experiments.xlsx`` or ``history.csv``.
        report: Takes the bytes.
    """
    from airbo.lab.tables import to_csv, to_excel

    with opened(path) as campaign:
        table = campaign.export_history() if kind == "history.csv" else campaign.export()
    report(to_excel(table) if kind.endswith(".xlsx") else to_csv(table).encode())


def make_report(path: Path, sections: Mapping[str, str], report: Deliver) -> None:
    """Make the file of the report from the sections that were found, and report its bytes.

    The history is the latest one: what changes it need not change what the model says.
    """
    from airbo.lab.report.report import section, whole_page

    with opened(path) as campaign:
        record = campaign.record()
        shown = {**sections, "history": section("history", record)}
        title, today = campaign.settings.name, datetime.date.today()
        report(whole_page(campaign.optimizer(record), shown.values(), title, today).encode())


def opened(path: Path) -> "Campaign":
    """Open a campaign in a process that needs nothing but it."""
    import torch

    from airbo.lab import Campaign

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return Campaign.open(path)
