"""What to try next: acquisition functions by name, including those that BoTorch lacks."""

from airbo.acquisition.gain import ExpectedGain
from airbo.acquisition.information import InformationAbout
from airbo.acquisition.situation import Acquisition, Situation, most_promising, with_pending
from airbo.acquisition.strategies import (
    ACQUISITIONS,
    EI,
    OWN,
    UCB,
    Balanced,
    FromFactory,
    RandomizedUCB,
    TheoryUCB,
    find_acquisition,
)

__all__ = [
    "ACQUISITIONS",
    "EI",
    "OWN",
    "UCB",
    "Acquisition",
    "Balanced",
    "ExpectedGain",
    "FromFactory",
    "InformationAbout",
    "RandomizedUCB",
    "Situation",
    "TheoryUCB",
    "find_acquisition",
    "most_promising",
    "with_pending",
]
