"""From a log of asked and actual values to an uncertainty."""

from airbo.calibrate.belief import Belief, believe
from airbo.calibrate.learned import Candidate, Finding, Learned, learn
from airbo.calibrate.logs import Log, Pair, Sample, read_log

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
    "read_log",
]
