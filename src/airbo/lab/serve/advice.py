"""What needs a model: choosing designs, and what was found. Runs in processes of its own."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from airbo.lab.serve.jobs import Deliver

if TYPE_CHECKING:
    from airbo.lab import Campaign

N_STATES = 6
"""Number of earlier states in the chart of progress."""


def choose_designs(path: Path, n: int, by: str, key: str | None, report: Deliver) -> None:
    """Choose the next designs, which are then pending, and report their numbers.

    Args:
        path: The campaign file.
        n: How many.
        by: Who asks.
        key: Of the form: designs of one key are chosen once.
        report: Takes each number as soon as its design is stored.
    """
    with _opened(path) as campaign:
        for i in range(n):
            [asked] = campaign.signed(by).ask(key=None if key is None else f"{key}:{i}")
            report(asked.number)


def find(path: Path, report: Deliver) -> None:
    """Work out the sections of the report, and report the key and the HTML of each."""
    from airbo.lab.report import Findings, sections

    with _opened(path) as campaign:
        record = campaign.record()
        numbers = [e.number for e in campaign.modelled(record)]
        findings = Findings(campaign.optimizer(record), campaign.settings.units, numbers)
        for section in sections(findings, N_STATES, record):
            if section.key != "history":  # it has a page of its own
                report((section.key, section.html()))


def _opened(path: Path) -> "Campaign":
    """Open a campaign in a process that needs nothing but it."""
    import torch

    from airbo.lab import Campaign

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return Campaign.open(path)
