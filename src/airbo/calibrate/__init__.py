"""From a log of asked and actual values to an uncertainty."""

from airbo.calibrate.belief import Belief, believe
from airbo.calibrate.learned import Candidate, Learned, learn
from airbo.calibrate.logs import Log, Pair, log_of, read_log
from airbo.calibrate.sample import Sample
from airbo.calibrate.words import Finding

__all__ = [
    "Belief",
    "Candidate",
    "Finding",
    "Learned",
    "Log",
    "Pair",
    "Sample",
    "believe",
    "learn",
    "log_of",
    "read_log",
]
