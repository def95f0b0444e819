"""One page to look at, and the sections and charts that it is made of."""

from airbo.lab.report.along import map_figure, parameter_figure
from airbo.lab.report.findings import Findings, OutcomeFindings, Slice
from airbo.lab.report.records import progress_figure
from airbo.lab.report.report import sections, write_report

__all__ = [
    "Findings",
    "OutcomeFindings",
    "Slice",
    "map_figure",
    "parameter_figure",
    "progress_figure",
    "sections",
    "write_report",
]
