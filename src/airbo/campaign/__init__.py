"""Experiments that last for days, kept in an Optuna storage."""

from airbo.campaign.campaign import Campaign
from airbo.campaign.config import Settings
from airbo.campaign.errors import (
    AlreadyTold,
    CampaignError,
    DamageError,
    Doubtful,
    FileError,
    Mistake,
    StorageError,
)
from airbo.campaign.experiment import Experiment, Status
from airbo.campaign.history import Change
from airbo.campaign.outcome import Told
from airbo.campaign.tables import Imported

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
    "Settings",
    "Status",
    "StorageError",
    "Told",
]
