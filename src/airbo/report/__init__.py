"""One page to look at, and the charts that it is made of."""

from airbo.report.findings import Findings
from airbo.report.importance import importance_figure, importances
from airbo.report.logbook import Logbook
from airbo.report.pairs import pair_figure
from airbo.report.precision import precision_figure, precision_offers
from airbo.report.progress import earlier_recommendations, progress_figure
from airbo.report.report import write_report
from airbo.report.slices import Slice, parameter_figure
from airbo.report.trust import left_out, trust_figure

__all__ = [
    "Findings",
    "Logbook",
    "Slice",
    "earlier_recommendations",
    "importance_figure",
    "importances",
    "left_out",
    "pair_figure",
    "parameter_figure",
    "precision_figure",
    "precision_offers",
    "progress_figure",
    "trust_figure",
    "write_report",
]
