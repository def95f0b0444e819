"""Gaussian processes over uncertain inputs, as BoTorch models."""

from airbo.models.base import UncertainInputGP
from airbo.models.expectation import ExpectationGP
from airbo.models.gaussian import ERBFGP, SKLGP
from airbo.models.mmd import MMDGP
from airbo.models.nominal import NominalGP
from airbo.models.paths import Paths
from airbo.models.ugp import UGP

__all__ = [
    "ERBFGP",
    "MMDGP",
    "SKLGP",
    "UGP",
    "ExpectationGP",
    "NominalGP",
    "Paths",
    "UncertainInputGP",
]
