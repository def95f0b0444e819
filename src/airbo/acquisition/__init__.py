"""What to try next: acquisition functions by name, including those that BoTorch lacks."""

from airbo.acquisition.gain import ExpectedGain, InformationAbout
from airbo.acquisition.strategies import (
    ACQUISITIONS,
    EI,
    OWN,
    UCB,
    Acquisition,
    FromFactory,
    KnowledgeGradient,
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
    "ExpectedGain",
    "FromFactory",
    "InformationAbout",
    "KnowledgeGradient",
    "RandomizedUCB",
    "Situation",
    "TheoryUCB",
    "find_acquisition",
    "most_promising",
    "with_pending",
]
