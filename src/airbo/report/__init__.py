"""One page to look at, and the charts that it is made of."""

from airbo.report.findings import Findings
from airbo.report.pairs import pair_figure
from airbo.report.precision import precision_figure, precision_offers
from airbo.report.progress import earlier_recommendations, progress_figure
from airbo.report.report import write_report
from airbo.report.slices import Slice, parameter_figure

__all__ = [
    "Findings",
    "Slice",
    "earlier_recommendations",
    "pair_figure",
    "parameter_figure",
    "precision_figure",
    "precision_offers",
    "progress_figure",
    "write_report",
]
