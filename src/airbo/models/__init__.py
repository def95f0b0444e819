"""Gaussian processes over uncertain inputs, as BoTorch models."""

from airbo.models.conditioned import Conditioned
from airbo.models.gp import UncertainInputGP
from airbo.models.paths import Paths
from airbo.models.surrogates import (
    ERBFGP,
    MMDGP,
    SKLGP,
    UGP,
    ExpectationGP,
    NominalGP,
    RelevanceGP,
)

__all__ = [
    "ERBFGP",
    "MMDGP",
    "SKLGP",
    "UGP",
    "Conditioned",
    "ExpectationGP",
    "NominalGP",
    "Paths",
    "RelevanceGP",
    "UncertainInputGP",
]
