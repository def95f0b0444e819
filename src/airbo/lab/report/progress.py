"""The results of the experiments, and what would have been recommended along the way."""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from rich.console import Console
from rich.progress import Progress

from airbo import words
from airbo.lab.report import page, style
from airbo.lab.report.beliefs import Estimate
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.lab.report.page import Section
from airbo.observed import OK, STATUS, VALUE
from airbo.optimizer import Design, TooLittleDataWarning

MAX_EARLIER = 12


@dataclass(frozen=True)
class Earlier:
    """What would have been recommended after the first ``n`` experiments."""

    n: int
    design: Design
    then: Estimate
    """Its expected value, as it was believed then."""
    now: Estimate
    """The same as it is believed with all experiments."""


def progress_section(findings: Findings, earlier: Sequence[Earlier] = ()) -> Section:
    """Show all observed values in order, and the recommendation over time."""
    parts = []
    if earlier:
        parts.append(
            page.note(
                "Solid: the expected value of the design that would have been recommended after so "
                "many experiments, as today's model judges it. Dotted: what was believed of it "
                f"then, ± one standard deviation. The model was fitted again at {len(earlier)} of "
                "the states on the way. Observed values scatter, so the largest and the smallest "
                "are often luck."
            )
        )
    figures = [
        ("" if findings.is_single else outcome.name, progress_figure(outcome, earlier))
        for outcome in findings.parts
    ]
    return Section("progress", "Progress", (*parts, page.charts(figures)))


def earlier_recommendations(
    findings: Findings, n_states: int = MAX_EARLIER, progress: bool = False
) -> list[Earlier]:
    """Fit the model again to the first experiments, up to ``n_states`` times.

    Args:
        findings: Where the mean of one outcome decides; else there are no earlier states.
        n_states: How many states to show, with today's.
        progress: Whether to show a progress bar.
    """
    outcome = findings.parts[0]
    known = outcome.values.notna().to_numpy()
    if not known.any() or n_states < 1 or not findings.is_by_mean:
        return []
    first, last = int(np.argmax(known)) + 1, len(known)
    counts = np.unique(np.linspace(first, last, n_states).round().astype(int)).tolist()
    bar = Progress(console=Console(stderr=True)) if progress else None
    states = []
    with bar or nullcontext():
        for n in bar.track(counts, description="looking back") if bar else counts:
            states.append(_state(outcome, n, today=n == last))
    X = findings.cube.columns([design for _, design, _ in states], allow_outside=True)
    now = outcome.beliefs.expected(X)
    return [Earlier(n, d, then, now[i]) for i, (n, d, then) in enumerate(states)]


def _state(outcome: OutcomeFindings, n: int, today: bool) -> tuple[int, Design, Estimate]:
    best = outcome.findings.best
    if not today:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooLittleDataWarning)
            best = outcome.findings.optimizer.as_of(n).recommend()
    return n, best.design, Estimate(np.array(best.mean), np.array(best.std))


def progress_figure(outcome: OutcomeFindings, earlier: Sequence[Earlier] = ()) -> go.Figure:
    """Draw all observed values in order, and the recommendation over time.

    The horizontal axis has the numbers by which people call the experiments.
    """
    findings = outcome.findings
    numbers = np.array(findings.numbers)
    failed = (findings.optimizer.observations[STATUS] != OK).to_numpy()
    figure = go.Figure()
    if len(earlier):
        _add_recommendations(figure, earlier, numbers)
    _add_observed(figure, outcome)
    if failed.any():
        figure.add_scatter(
            x=numbers[failed],
            y=np.full(failed.sum(), 0.03),
            yaxis="y2",
            mode="markers",
            name="failed",
            marker={"color": style.FAILURE, "size": 10, "symbol": "x"},
            hovertext=[f"experiment {i} failed" for i in numbers[failed]],
            hoverinfo="text",
        )
    for limit in outcome.limits:
        figure.add_hline(limit, line=style.LIMIT)
    style.styled(figure, height=400)
    ends = [float(numbers.min()) - 0.5, float(numbers.max()) + 0.5] if len(numbers) else [0.5, 1.5]
    return figure.update_layout(
        xaxis={"title": "number of the experiment", "range": ends, "tickformat": "d"},
        yaxis={"title": style.plain(outcome.label)},
        # failed experiments have no value: they stand on the lower edge, whatever the scale
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )


def _add_observed(figure: go.Figure, outcome: OutcomeFindings) -> None:
    """Draw observed values; where there are limits, those out of spec in another colour."""
    known = outcome.known[VALUE]
    within = np.array([outcome.is_in_spec(value) for value in known], dtype=bool)
    groups = [("observed", within, style.DATA)]
    if outcome.limits:
        groups = [("in spec", within, style.MODEL), ("out of spec", ~within, style.FAILURE)]
    for name, chosen, color in groups:
        shown = known[chosen]
        figure.add_scatter(
            x=shown.index.to_numpy(),
            y=shown.to_numpy(dtype=np.float64),
            mode="markers",
            name=name,
            marker={"color": color, "size": 8},
            hovertext=[
                style.plain(f"experiment {i}: {words.with_unit(words.number(v), outcome.unit)}")
                for i, v in shown.items()
            ],
            hoverinfo="text",
        )


def _add_recommendations(
    figure: go.Figure, earlier: Sequence[Earlier], numbers: np.ndarray
) -> None:
    """Draw each recommendation at the number of the last experiment before it."""
    x = [int(numbers[e.n - 1]) for e in earlier]
    after = [f"after {words.plural(e.n, 'experiment')}" for e in earlier]
    figure.add_scatter(
        x=x,
        y=[float(e.then.mean) for e in earlier],
        error_y={"array": [float(e.then.std) for e in earlier], "thickness": 1, "width": 3},
        mode="lines+markers",
        name="recommended, as believed then",
        line={"color": style.NOMINAL, "dash": "dot", "width": 1.5},
        marker={"size": 6, "symbol": "circle-open"},
        hovertext=[
            f"{when}: {words.plus_minus(e.then)}, believed then"
            for when, e in zip(after, earlier, strict=True)
        ],
        hoverinfo="text",
    )
    figure.add_scatter(
        x=x,
        y=[float(e.now.mean) for e in earlier],
        mode="lines+markers",
        name="recommended, as judged today",
        line={"color": style.BEST, "width": 2.5},
        marker={"size": 7},
        hovertext=[
            f"{when}: {words.plus_minus(e.now)}, judged today"
            for when, e in zip(after, earlier, strict=True)
        ],
        hoverinfo="text",
    )
