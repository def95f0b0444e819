"""One page to look at, and the sections and charts that it is made of."""

from airbo.lab.report.along import Slice, pair_figure, parameter_figure
from airbo.lab.report.answer import Answer, answer_of
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.lab.report.page import Section, Tile
from airbo.lab.report.precision import precision_figure, precision_offers
from airbo.lab.report.progress import earlier_recommendations, progress_figure
from airbo.lab.report.report import sections, write_report
from airbo.lab.report.trust import importance_figure, importances, left_out, trust_figure

__all__ = [
    "Answer",
    "Findings",
    "OutcomeFindings",
    "Section",
    "Slice",
    "Tile",
    "answer_of",
    "earlier_recommendations",
    "importance_figure",
    "importances",
    "left_out",
    "pair_figure",
    "parameter_figure",
    "precision_figure",
    "precision_offers",
    "progress_figure",
    "sections",
    "trust_figure",
    "write_report",
]
