"""Constraints on hyper-parameters."""

from gpytorch.constraints import GreaterThan


def positive() -> GreaterThan:
    """Keep a scale above 0 in every step of a fit: at 0 its prior has no density."""
    return GreaterThan(1e-12)
