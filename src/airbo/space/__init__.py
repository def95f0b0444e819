"""Designs: named parameters, which designs are allowed, and the unit cube that models see."""

from airbo.space.space import Design, Space, closest, n_initial_for

__all__ = ["Design", "Space", "closest", "n_initial_for"]
