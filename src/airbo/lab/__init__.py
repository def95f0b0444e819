"""Campaigns for people: experiments that last for days, kept as events in a database."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airbo.lab.campaign import Campaign, Told
    from airbo.lab.errors import (
        AlreadyTold,
        CampaignError,
        DamageError,
        Doubtful,
        FileError,
        Mistake,
        StorageError,
    )
    from airbo.lab.file import Settings
    from airbo.lab.record import Change, Experiment, Record, Status
    from airbo.lab.tables import Imported

__all__ = [
    "AlreadyTold", "Campaign", "CampaignError", "Change", "DamageError", "Doubtful", "Experiment",
    "FileError", "Imported", "Mistake", "Record", "Settings", "Status", "StorageError", "Told",
]  # fmt: skip

_HOMES = {"Campaign": "campaign", "Told": "campaign", "Settings": "file", "Imported": "tables"}
_HOMES |= dict.fromkeys(("Change", "Experiment", "Record", "Status"), "record")


def __getattr__(name: str) -> Any:
    """Import what is used when it is used: ``airbo --help`` needs no database and no arrays."""
    if name not in __all__:
        raise AttributeError(f"module 'airbo.lab' has no attribute {name!r}")
    home = importlib.import_module(f"airbo.lab.{_HOMES.get(name, 'errors')}")
    return getattr(home, name)
