"""The robot push: regrets, the pushes that were found, and where they take the ball."""

from experiments.optimization import Optimization


class Push(Optimization):
    """Robust optimization of the robot push, with the maps of found designs."""


PUSH = Push(
    "push", "figures 4, 5 and 8", "Robot push under a mixture of two Gaussians", "push", 100
)
