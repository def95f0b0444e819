"""Campaigns that the tests of the page share."""

MILL = """\
name = "milling"
direction = "minimize"
value = { name = "roughness", unit = "µm" }
surrogate = "nominal"
n_initial = 4
seed = 3
[parameters.speed]
low = 50.0
high = 200.0
unit = "m/min"
uncertainty = { kind = "normal", std = 2.0 }

[parameters.depth]
low = 0.1
high = 2.0
log = true

[parameters.passes]
type = "integer"
low = 1
high = 5

[parameters.tool]
choices = ["A", "B"]
"""
QUICK = MILL.replace("n_initial = 4", "n_initial = 1000")
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


def write(folder, text):
    """Write a campaign file."""
    path = folder / "campaign.toml"
    path.write_text(text, encoding="utf-8")
    return path
