"""What needs a model: choosing designs, and looking at what was found. Runs in other processes."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airbo.serve.jobs import Deliver

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from airbo.report import Findings
    from airbo.report.decided import Decided

N_PAIRS = 3
"""Pairs of parameters that are drawn: those that matter most."""
N_STATES = 6
"""Number of earlier states in the chart of progress."""
_DOUBT = "Too little is known yet to tell the designs apart. If you have to choose now:"


@dataclass(frozen=True)
class Advice:
    """The recommendation, and how far it can be trusted."""

    rows: list[tuple[str, str, str]]
    """What to set, in the digits that the machine can hold: name, value, unit."""
    tiles: list[tuple[str, str]]
    """What to expect: label and number."""
    sentences: list[str]
    """Whether it is worth going on, and what the recommendation is based on."""
    doubt: str = ""
    """Why the model cannot be trusted yet."""
    front: list[list[str]] = field(default_factory=list)
    """The designs to choose from where there are several objectives: a header, then rows."""


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
    """Choose the next designs, which are then pending."""
    campaign = _opened(path)
    for _ in range(n):
        [experiment] = campaign.ask()
        report(experiment.number)


def look(path: Path, report: Deliver) -> None:
    """Work out the recommendation, and then the charts, one after the other."""
    from airbo.measures import Mean
    from airbo.report import Findings
    from airbo.report.decided import Decided
    from airbo.serve.compromise import report_compromise

    campaign = _opened(path)
    settings = campaign.settings
    if settings.named is not None:
        return report_compromise(campaign, report)
    if settings.measure != Mean():
        decided = Decided(campaign.optimizer(), settings.value_name, settings.value_unit, {})
        report(_measured_advice(decided))
        return _report_charts(decided.parts[0], report, n_states=0)
    findings = Findings(campaign.optimizer(), settings.value_name, settings.value_unit)
    report(_advice(findings))
    _report_charts(findings, report)


def _rows(findings: "Findings") -> list[tuple[str, str, str]]:
    """Return what to set."""
    from airbo.words import unit_of

    parameters = findings.space.parameters
    return [
        (name, findings.bare(name, value), unit_of(parameters[name]) or "")
        for name, value in findings.best.design.items()
    ]


def _measured_advice(decided: "Decided") -> Advice:
    """Write the recommendation where another measure than the mean decides."""
    from airbo.analysis.words import MEAN_ONLY, window_sentences
    from airbo.report.decided import measure_tiles

    part, window = decided.parts[0], decided.handover.window
    return Advice(
        rows=_rows(part),
        tiles=[(tile.label, tile.value) for tile in measure_tiles(decided)],
        sentences=[*(window_sentences(window, part.space) if window else []), MEAN_ONLY],
        doubt=_DOUBT if decided.is_doubtful else "",
    )


def _advice(findings: "Findings") -> Advice:
    from airbo.analysis.words import outlook_sentences
    from airbo.words import interval, plus_minus, with_unit

    best, unit = findings.best, findings.unit
    single = findings.beliefs.expected(findings.center, noise=True)[0]
    return Advice(
        rows=_rows(findings),
        tiles=[
            (f"Expected {findings.name}", with_unit(plus_minus(best), unit)),
            ("19 of 20 single runs", with_unit(interval(single), unit)),
        ],
        sentences=outlook_sentences(findings.outlook, findings.space, findings.name, unit),
        doubt=_DOUBT if findings.doubt else "",
    )


def _report_charts(findings: "Findings", report: Deliver, n_states: int = N_STATES) -> None:
    """Make the charts of the report, the quickest first."""
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

    report(as_chart("progress", "Progress", progress_figure(findings)))
    left = left_out(findings)
    if left is not None:
        verdict, _ = trust_verdict(left)
        title = "Can the model be believed?"
        report(as_chart("trust", title, trust_figure(findings, left), verdict))
    slices = [Slice(findings, name) for name in findings.space.names]
    if len(slices) > 1:
        shares = importances(findings)
        verdict = importance_verdict(shares)
        report(as_chart("importances", "What matters", importance_figure(shares), verdict))
    for along in slices:
        report(as_chart(f"along {along.name}", f"Along {along.name}", parameter_figure(along)))
    for a, b in pairs_by_influence(findings, slices)[:N_PAIRS]:
        report(as_chart(f"pair {a} {b}", f"{b} over {a}", pair_figure(findings, a, b)))
    if n_states:
        earlier = earlier_recommendations(findings, n_states)
        report(as_chart("progress", "Progress", progress_figure(findings, earlier)))


def as_chart(key: str, title: str, figure: "go.Figure", verdict: str = "") -> Chart:
    """Make a chart of a figure."""
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
