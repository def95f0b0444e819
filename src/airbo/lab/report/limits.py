"""What people hand over where values have limits: how they are kept, and how far one may move."""

import plotly.graph_objects as go
import torch
from jaxtyping import Float
from torch import Tensor

from airbo import words
from airbo.analysis import Contribution, OperatingWindow, ToleranceBudget
from airbo.analysis.words import likely_share, range_words
from airbo.lab.report import style
from airbo.lab.report.findings import Findings
from airbo.outcomes import Bounds
from airbo.space.parameters import Categorical

N_VALUE_BARS = 60
TAILS = (0.0005, 0.9995)
"""Values beyond these quantiles are drawn at the ends."""
ROOM = 0.04
"""Room at both ends, relative to what is shown."""
WINDOW, JOINT = "rgba(0,158,115,0.12)", "rgba(0,158,115,0.25)"


# -- the values in use


def in_spec_figure(values: Float[Tensor, "S s"], bounds: Bounds, label: str) -> go.Figure:
    """Draw the distribution of all draws together, with what is out of spec in red."""
    edges, shares = binned(values, bounds)
    low, high = bounds
    middle, width = (edges[1:] + edges[:-1]) / 2, edges.diff()
    is_out = torch.zeros_like(middle, dtype=torch.bool)
    is_out |= False if low is None else middle < low
    is_out |= False if high is None else middle > high
    figure = go.Figure()
    for title, which, color in (
        ("in spec", ~is_out, style.MODEL),
        ("out of spec", is_out, style.FAILURE),
    ):
        bars = zip(edges[:-1][which], edges[1:][which], shares[which], strict=True)
        figure.add_bar(
            x=middle[which].tolist(),
            y=(shares / width)[which].tolist(),
            width=width[which].tolist(),
            name=title,
            marker={"color": color, "line": {"width": 0}},
            hovertext=[
                f"{words.number(a)} to {words.number(b)}: {100 * share:.3g}%"
                for a, b, share in bars
            ],
            hoverinfo="text",
        )
    for limit in bounds:
        if limit is not None:
            figure.add_vline(limit, line={"color": style.NOMINAL, "dash": "dash", "width": 2})
    style.styled(figure, height=320)
    return figure.update_layout(
        xaxis={"title": style.plain(label)},
        yaxis={"title": "share of executed inputs", "showticklabels": False},
        barmode="overlay",
        bargap=0,
    )


def binned(
    values: Float[Tensor, "S s"], bounds: Bounds
) -> tuple[Float[Tensor, " edges"], Float[Tensor, " bins"]]:
    """Return edges of bins, limits among them, and the share of values in each bin."""
    ends = values.flatten().quantile(values.new_tensor(TAILS)).tolist()
    limits = [limit for limit in bounds if limit is not None]
    left, right = min(*ends, *limits), max(*ends, *limits)
    room = ROOM * ((right - left) or 1.0)
    plain = torch.linspace(left - room, right + room, N_VALUE_BARS + 1, dtype=torch.float64)
    edges = torch.cat([plain, values.new_tensor(limits)]).unique()
    inside = values.flatten().clamp(edges[0].item(), edges[-1].item())
    counts = torch.histogram(inside, edges).hist
    return edges, counts / counts.sum()


# -- the operating window


def window_rows(findings: Findings, window: OperatingWindow) -> list[list[str]]:
    """Write of each parameter its recommended value, and how far it may move."""
    ranges = window.alone, window.jointly
    return [
        [
            name,
            findings.shown(name, window.design[name]),
            *(range_words(findings.space, name, own[name]) for own in ranges),
        ]
        for name in findings.space.names
    ]


def window_figure(findings: Findings, window: OperatingWindow, name: str) -> go.Figure:
    """Draw P(in spec) along a parameter, and the ranges in which it is high enough."""
    parameter, along = findings.parameter(name), window.along[name]
    is_category = isinstance(parameter, Categorical)
    figure = go.Figure()
    if not is_category and window.alone:
        for ends, color in ((window.alone[name], WINDOW), (window.jointly[name], JOINT)):
            figure.add_vrect(*ends, fillcolor=color, line={"width": 0}, layer="below")
    shares = zip(along.values, along.probabilities, strict=True)
    style.scatter(
        figure,
        [style.plain(v) for v in along.values] if is_category else list(along.values),
        along.probabilities,
        hover=[f"{findings.shown(name, v)}: {words.percent(p)}" for v, p in shares],
        mode="markers" if is_category else "lines",
        line={"color": style.MODEL, "width": 2.5},
        marker={"color": style.MODEL, "size": 9},
    )
    if not is_category:
        line = {"color": style.MODEL, "width": 1}
        style.scatter(figure, list(along.values), along.lower, mode="lines", line=line)
    here = window.design[name]
    recommended = [f"recommended: {words.percent(window.probability)}"]
    x = [style.plain(here) if is_category else here]
    style.scatter(figure, x, [window.probability], None, recommended, marker=style.STAR)
    figure.add_hline(window.level, line={"color": style.NOMINAL, "dash": "dot"})
    style.styled(figure, height=300)
    return figure.update_layout(
        xaxis=style.axis(name, parameter),
        yaxis={"title": "P(in spec)", "range": [-0.03, 1.03], "tickformat": ".0%"},
        showlegend=False,
    )


# -- the tolerance budget


def budget_rows(budget: ToleranceBudget) -> list[list[str]]:
    """Return the cells of the table."""
    rows = [_row(budget, c, words.listed(c.parameters)) for c in budget.contributions]
    rest = [""] if budget.in_spec is None else ["", ""]
    if len(budget.contributions) > 1:
        rows += [] if budget.all_halved is None else [_row(budget, budget.all_halved, "all")]
        rows.append(["several only together", likely_share(budget.together), *rest])
    if budget.noise is not None:
        rows.append(["noise", likely_share(budget.noise), *rest])
    return rows


def _row(budget: ToleranceBudget, c: Contribution, name: str) -> list[str]:
    cells = [name, likely_share(c.share), likely_share(c.scatter_if_halved)]
    gain, share = c.gain_if_halved, budget.in_spec_if_halved(c)
    if gain is None or share is None or budget.in_spec is None:
        return cells
    then = words.percent(share)
    if then == words.percent(budget.in_spec.value):
        return [*cells, f"{then}, as now"]
    points, low, high = (_signed(100 * v) for v in (gain.value, gain.low, gain.high))
    clear = "" if c.is_clear else ", no clear difference"
    return [*cells, f"{then}: {points} points ({low} to {high}){clear}"]


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + words.number(value, 2)
