"""Benchmark functions that know their robust optimum."""

from airbo.problems.base import Optimum, Problem
from airbo.problems.double_peak import DoublePeak
from airbo.problems.rkhs import RKHS
from airbo.problems.wave import Wave

__all__ = ["RKHS", "DoublePeak", "Optimum", "Problem", "Wave"]
