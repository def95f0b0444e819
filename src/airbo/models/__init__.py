"""Gaussian processes over uncertain inputs, as BoTorch models."""

from airbo.models.base import UncertainInputGP
from airbo.models.conditioned import Conditioned
from airbo.models.energy import EnergyGP
from airbo.models.expectation import ExpectationGP
from airbo.models.gaussian import ERBFGP, SKLGP
from airbo.models.mmd import MMDGP
from airbo.models.nominal import NominalGP
from airbo.models.paths import Paths
from airbo.models.relevance import RelevanceGP
from airbo.models.ugp import UGP
from airbo.models.wasserstein import SlicedWassersteinGP

__all__ = [
    "ERBFGP",
    "MMDGP",
    "SKLGP",
    "UGP",
    "Conditioned",
    "EnergyGP",
    "ExpectationGP",
    "NominalGP",
    "Paths",
    "RelevanceGP",
    "SlicedWassersteinGP",
    "UncertainInputGP",
]
