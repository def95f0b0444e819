"""How accurate a mean over repeats is."""

import numpy as np

Z_90 = 1.6449
"""Half the width of the central 90% of a Gaussian, in standard deviations."""


def interval_of_mean(values: np.ndarray, n: int = 10_000) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the mean."""
    picks = np.random.default_rng(0).integers(0, len(values), (n, len(values)))
    low, high = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def with_interval(values: np.ndarray, digits: str = ".2f") -> str:
    """Write a mean and its 95% interval."""
    low, high = interval_of_mean(values)
    return f"{values.mean():{digits}} ({low:{digits}} to {high:{digits}})"
