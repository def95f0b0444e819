"""Small campaigns that the tests share."""

import re
from pathlib import Path

from airbo import Campaign
from airbo.lab import Settings
from airbo.lab.file import parse

LINE = """\
name = "line"
surrogate = "nominal"
n_initial = 1000
storage = "sqlite:///campaign.db"
[parameters.x]
low = 0.0
high = 1.0
unit = "mm"
uncertainty = { kind = "normal", std = 0.05 }
"""

MILL = """\
name = "milling"
direction = "minimize"
value = { name = "roughness", unit = "µm" }
surrogate = "nominal"
n_initial = 4
seed = 3
storage = "sqlite:///campaign.db"
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
DESIGN = {"speed": 120.0, "depth": 0.5, "passes": 2, "tool": "B"}


def write(folder: Path, text: str = LINE, name: str = "campaign.toml") -> Path:
    """Write a campaign file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def campaign(folder: Path, text: str = LINE) -> Campaign:
    """Open a campaign; the file is written anew."""
    return Campaign.open(write(folder, text))


def settings(text: str) -> Settings:
    """Read the text of a file."""
    return parse(text, Path("campaign.toml"))


def edited(text: str, old: str, new: str) -> str:
    """Change a line of a file that has it."""
    assert old in text
    return text.replace(old, new)


def told(campaign: Campaign) -> list[tuple]:
    """Return all that was told, without the times."""
    return sorted(
        (
            tuple(e.design.items()),
            tuple(e.outcomes.items()),
            tuple(e.executed.items()),
            repr(e.uncertainty),
        )
        for e in campaign.experiments
        if e.has_outcome
    )


def line_of(text: str, pattern: str) -> int:
    """Return the number of the line that has a pattern."""
    return next(i for i, line in enumerate(text.splitlines(), 1) if re.search(pattern, line))


def values(campaign: Campaign) -> dict[int, float | None]:
    """Return the values of all experiments that have an outcome."""
    return {e.number: value_of(e) for e in campaign.experiments if e.has_outcome}


def reopened(campaign: Campaign) -> Campaign:
    """Open the same campaign once more."""
    return Campaign.open(campaign.settings.path)


def value_of(experiment) -> float | None:
    """Return what a campaign with one outcome measured."""
    return next(iter(experiment.outcomes.values()), None)
