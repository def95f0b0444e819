"""Experiments that last for days, kept in an Optuna storage."""

from airbo.campaign.answers import Told
from airbo.campaign.campaign import Campaign
from airbo.campaign.errors import AlreadyTold, CampaignError, FileError, Mistake, StorageError
from airbo.campaign.experiments import Experiment
from airbo.campaign.imports import Imported
from airbo.campaign.settings import Settings
from airbo.campaign.status import Status

__all__ = [
    "AlreadyTold",
    "Campaign",
    "CampaignError",
    "Experiment",
    "FileError",
    "Imported",
    "Mistake",
    "Settings",
    "Status",
    "StorageError",
    "Told",
]
