"""From a log of asked and actual values to an uncertainty."""

from airbo.uncertainty.learning.learned import Learned, learn

__all__ = ["Learned", "learn"]
