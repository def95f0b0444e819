"""Campaigns that the tests of the page share."""

from tests.lab.common import MILL, edited

QUICK = edited(MILL, "n_initial = 4", "n_initial = 1000")
"""Its designs need no model."""
TWO = """\
name = "seam"
n_initial = 1000
[parameters.x]
low = 0.0
high = 1.0
uncertainty = { kind = "normal", std = 0.05 }
[outcomes.strength]
goal = "maximize"
unit = "MPa"
[outcomes.leak]
goal = "minimize"
"""
