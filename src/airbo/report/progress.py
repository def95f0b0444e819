"""The results of the experiments, and what would have been recommended along the way."""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from rich.console import Console
from rich.progress import Progress

from airbo.observed import FAILED, STATUS, VALUE
from airbo.optimizer import Design, TooLittleDataWarning
from airbo.report import style
from airbo.report.beliefs import Estimate
from airbo.report.findings import Findings
from airbo.words import label, number, plus_minus

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


def earlier_recommendations(
    findings: Findings, n_states: int = MAX_EARLIER, progress: bool = False
) -> list[Earlier]:
    """Fit the model again to the first experiments, up to ``n_states`` times.

    Args:
        findings: What is known today.
        n_states: How many states to show, with today's.
        progress: Whether to show a progress bar.
    """
    optimizer = findings.optimizer
    failed = (optimizer.observations[STATUS] == FAILED).to_numpy()
    if failed.all() or n_states < 1:
        return []
    first, last = int(np.argmin(failed)) + 1, len(failed)
    counts = np.unique(np.linspace(first, last, n_states).round().astype(int)).tolist()
    bar = Progress(console=Console(stderr=True)) if progress else None
    states = []
    with bar or nullcontext():
        for n in bar.track(counts, description="looking back") if bar else counts:
            states.append(_state(findings, n, today=n == last))
    X = findings.cube.columns([design for _, design, _ in states], allow_outside=True)
    now = findings.beliefs.expected(X)
    return [Earlier(n, d, then, now[i]) for i, (n, d, then) in enumerate(states)]


def _state(findings: Findings, n: int, today: bool) -> tuple[int, Design, Estimate]:
    if today:
        best = findings.best
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooLittleDataWarning)
            best = findings.optimizer.as_of(n).recommend()
    return n, best.design, Estimate(np.array(best.mean), np.array(best.std))


def progress_figure(findings: Findings, earlier: Sequence[Earlier] = ()) -> go.Figure:
    """Draw all observed values in order, and the recommendation over time."""
    table = findings.optimizer.observations
    failed = (table[STATUS] == FAILED).to_numpy()
    numbers, values = np.arange(1, len(table) + 1), table[VALUE].to_numpy(dtype=np.float64)
    figure = go.Figure()
    if len(earlier):
        _add_recommendations(figure, earlier)
    figure.add_scatter(
        x=numbers[~failed],
        y=values[~failed],
        mode="markers",
        name="observed",
        marker={"color": style.DATA, "size": 8},
        hovertext=[
            f"experiment {i}: {number(v)}"
            for i, v in zip(numbers[~failed], values[~failed], strict=True)
        ],
        hoverinfo="text",
    )
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
    style.styled(figure, height=400)
    return figure.update_layout(
        xaxis={"title": "experiment", "range": [0.5, len(table) + 0.5], "tickformat": "d"},
        yaxis={"title": style.plain(label(findings.name, findings.unit))},
        # failed experiments have no value: they stand on the lower edge, whatever the scale
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )


def _add_recommendations(figure: go.Figure, earlier: Sequence[Earlier]) -> None:
    n = [e.n for e in earlier]
    now = np.array([e.now.mean for e in earlier])
    then = np.array([e.then.mean for e in earlier])
    figure.add_scatter(
        x=n,
        y=then,
        error_y={"array": np.array([e.then.std for e in earlier]), "thickness": 1, "width": 3},
        mode="lines+markers",
        name="recommended, as believed then",
        line={"color": style.NOMINAL, "dash": "dot", "width": 1.5},
        marker={"size": 6, "symbol": "circle-open"},
        hovertext=[
            f"after {e.n} experiments: {plus_minus(e.then)}, believed then" for e in earlier
        ],
        hoverinfo="text",
    )
    figure.add_scatter(
        x=n,
        y=now,
        mode="lines+markers",
        name="recommended, as judged today",
        line={"color": style.BEST, "width": 2.5},
        marker={"size": 7},
        hovertext=[f"after {e.n} experiments: {plus_minus(e.now)}, judged today" for e in earlier],
        hoverinfo="text",
    )
