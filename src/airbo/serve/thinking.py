"""What needs a model: choosing designs, and looking at what was found. Runs in other processes."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airbo.serve.jobs import Deliver
from airbo.space import Design

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from airbo.report import Findings

N_STATES = 6
"""States on the way that are worked out for the chart of progress."""


@dataclass(frozen=True)
class Advice:
    """The recommendation, and how far it can be trusted."""

    design: Design
    mean: float
    std: float
    doubt: str | None


@dataclass(frozen=True)
class Chart:
    """A chart for the page."""

    key: str
    title: str
    figure: str
    """As JSON for Plotly."""


def choose_designs(path: Path, n: int, report: Deliver) -> None:
    """Choose the next designs; they are pending then."""
    campaign = _opened(path)
    for _ in range(n):
        [experiment] = campaign.ask()
        report(experiment.number)


def look(path: Path, report: Deliver) -> None:
    """Work out the recommendation, and then the charts, one after the other."""
    from airbo.report import Findings

    campaign = _opened(path)
    settings = campaign.settings
    findings = Findings(campaign.optimizer(), settings.value_name, settings.value_unit)
    best = findings.best
    report(Advice(best.design, best.mean, best.std, findings.doubt))
    _report_charts(findings, report)


def _report_charts(findings: "Findings", report: Deliver) -> None:
    from airbo.report import Slice, earlier_recommendations, parameter_figure, progress_figure
    from airbo.report.pairs import pair_figure, pairs_by_influence

    report(_chart("progress", "Progress", progress_figure(findings)))
    slices = [Slice(findings, name) for name in findings.space.names]
    for along in slices:
        report(_chart(f"along {along.name}", f"Along {along.name}", parameter_figure(along)))
    for a, b in pairs_by_influence(findings, slices)[:3]:
        report(_chart(f"pair {a} {b}", f"{b} over {a}", pair_figure(findings, a, b)))
    earlier = earlier_recommendations(findings, N_STATES)
    report(_chart("progress", "Progress", progress_figure(findings, earlier)))


def _chart(key: str, title: str, figure: "go.Figure") -> Chart:
    return Chart(key, title, figure.to_json())


def _opened(path: Path):  # type: ignore[no-untyped-def]
    """Open a campaign in a process that needs nothing but it."""
    import optuna
    import torch

    from airbo.campaign import Campaign

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    torch.set_num_threads(1)
    return Campaign.open(path)
