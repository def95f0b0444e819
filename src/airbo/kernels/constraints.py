"""Bounds of hyper-parameters."""

from gpytorch.constraints import GreaterThan


def positive() -> GreaterThan:
    """Keep a scale above 0, where its prior has no density, however far a step of a fit strays."""
    return GreaterThan(1e-12)
