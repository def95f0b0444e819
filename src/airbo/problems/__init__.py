"""Benchmark functions that know their robust optimum."""

from airbo.problems.base import Problem
from airbo.problems.branin import Branin
from airbo.problems.bumped_bowl import BumpedBowl
from airbo.problems.cliff import Cliff
from airbo.problems.double_peak import DoublePeak
from airbo.problems.hartmann import Hartmann
from airbo.problems.hills import Hills
from airbo.problems.rkhs import RKHS
from airbo.problems.truth import Optimum
from airbo.problems.wave import Wave

__all__ = [
    "PROBLEMS",
    "RKHS",
    "Branin",
    "BumpedBowl",
    "Cliff",
    "DoublePeak",
    "Hartmann",
    "Hills",
    "Optimum",
    "Problem",
    "Wave",
    "problem",
]

PROBLEMS: dict[str, type[Problem]] = {
    kind.name: kind for kind in (RKHS, DoublePeak, BumpedBowl, Wave, Hills, Cliff, Branin, Hartmann)
}


def problem(name: str) -> Problem:
    """Return the problem of that name, with its default uncertainty."""
    if name not in PROBLEMS:
        raise ValueError(f"There is no problem {name!r}; choose from {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]()
