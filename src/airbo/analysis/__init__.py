"""What people hand over: an outlook, an operating window, tolerance budgets."""

from airbo.analysis.budget import Contribution, ToleranceBudget, tolerance_budget
from airbo.analysis.handover import Handover
from airbo.analysis.outlook import LuckiestRun, Outlook, look_ahead
from airbo.analysis.window import OperatingWindow, operating_window

__all__ = [
    "Contribution",
    "Handover",
    "LuckiestRun",
    "OperatingWindow",
    "Outlook",
    "ToleranceBudget",
    "look_ahead",
    "operating_window",
    "tolerance_budget",
]
