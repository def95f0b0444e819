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

N_PAIRS = 3
"""Pairs of parameters that are drawn: those that matter most."""
N_STATES = 6
"""States on the way that are worked out for the chart of progress."""


@dataclass(frozen=True)
class Advice:
    """The recommendation, and how far it can be trusted."""

    design: Design
    mean: float
    std: float
    doubt: str | None
    """Why the model cannot tell the designs apart."""
    rows: list[tuple[str, str, str]]
    """What to set, in the digits that the machine can hold: name, value, unit."""
    single_runs: str
    """Where 19 of 20 single runs lie."""
    sentences: list[str]
    """Whether it is worth going on, and what the recommendation rests on."""


@dataclass(frozen=True)
class Chart:
    """A chart for the page."""

    key: str
    title: str
    figure: str
    """As JSON for Plotly."""
    verdict: str = ""
    """What it says, in a sentence."""


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
    report(_advice(findings))
    _report_charts(findings, report)


def _advice(findings: "Findings") -> Advice:
    from airbo.optimizer.outlook_words import sentences
    from airbo.words import interval, unit_of

    best, parameters = findings.best, findings.space.parameters
    single = findings.beliefs.expected(findings.center, noise=True)[0]
    return Advice(
        design=best.design,
        mean=best.mean,
        std=best.std,
        doubt=findings.doubt,
        rows=[
            (name, findings.bare(name, value), unit_of(parameters[name]) or "")
            for name, value in best.design.items()
        ],
        single_runs=interval(single),
        sentences=sentences(findings.outlook, findings.space, findings.name, findings.unit),
    )


def _report_charts(findings: "Findings", report: Deliver) -> None:
    """Make the charts of the report, those that are ready first at first."""
    from airbo.report import (
        Slice,
        earlier_recommendations,
        importance_figure,
        importances,
        left_out,
        parameter_figure,
        progress_figure,
        trust_figure,
    )
    from airbo.report.importance import importance_verdict
    from airbo.report.pairs import pair_figure, pairs_by_influence
    from airbo.report.trust import trust_verdict

    report(_chart("progress", "Progress", progress_figure(findings)))
    left = left_out(findings)
    if left is not None:
        verdict, _ = trust_verdict(left)
        title = "Can the model be believed?"
        report(_chart("trust", title, trust_figure(findings, left), verdict))
    slices = [Slice(findings, name) for name in findings.space.names]
    if len(slices) > 1:
        shares = importances(findings)
        verdict = importance_verdict(shares)
        report(_chart("importances", "What matters", importance_figure(shares), verdict))
    for along in slices:
        report(_chart(f"along {along.name}", f"Along {along.name}", parameter_figure(along)))
    for a, b in pairs_by_influence(findings, slices)[:N_PAIRS]:
        report(_chart(f"pair {a} {b}", f"{b} over {a}", pair_figure(findings, a, b)))
    earlier = earlier_recommendations(findings, N_STATES)
    report(_chart("progress", "Progress", progress_figure(findings, earlier)))


def _chart(key: str, title: str, figure: "go.Figure", verdict: str = "") -> Chart:
    return Chart(key, title, figure.to_json(), verdict)


def _opened(path: Path):  # type: ignore[no-untyped-def]
    """Open a campaign in a process that needs nothing but it."""
    import optuna
    import torch

    from airbo.campaign import Campaign

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    torch.set_num_threads(1)
    return Campaign.open(path)
