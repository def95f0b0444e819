"""What to try next: acquisition functions by name, including those that BoTorch lacks."""

from airbo.acquisition.gain import ExpectedGain, InformationAbout
from airbo.acquisition.strategies import (
    ACQUISITIONS,
    EI,
    OWN,
    UCB,
    Acquisition,
    Balanced,
    FromFactory,
    RandomizedUCB,
    Situation,
    TheoryUCB,
    find_acquisition,
    most_promising,
    with_pending,
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
