"""Campaigns for people: experiments that last for days, kept as events in a database."""

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
    "AlreadyTold",
    "Campaign",
    "CampaignError",
    "Change",
    "DamageError",
    "Doubtful",
    "Experiment",
    "FileError",
    "Imported",
    "Mistake",
    "Record",
    "Settings",
    "Status",
    "StorageError",
    "Told",
]
