"""The expected value along one parameter, through the recommended design."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from torch import Tensor

from airbo.observed import OK, STATUS, VALUE
from airbo.report import style
from airbo.report.beliefs import Estimate
from airbo.report.findings import Findings
from airbo.space.parameters import Categorical, Parameter
from airbo.words import design, label, number, plus_minus, value

N_ALONG, N_ALONG_IN_MANY = 41, 25
N_BINS = 48
NEAR = 0.1
"""Values farther than this from all experiments, relative to the range, were not tried."""
FADED, FAR_AWAY = 0.3, 0.15
"""Opacity of what was not tried, and of experiments that differ in all other parameters."""


@dataclass(frozen=True)
class Slice:
    """What to expect along one parameter, the others being as recommended."""

    findings: Findings
    name: str

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values of the parameter, as numbers."""
        few = self.findings.is_discrete(self.name) or self.findings.space.d > 4
        own = self.findings.grid(self.name, N_ALONG_IN_MANY if few else N_ALONG)
        column = self.findings.space.names.index(self.name)
        return np.union1d(own, self.findings.center[:, column].numpy())

    @cached_property
    def expected(self) -> Estimate:
        """The expected value in use, by the model of the optimizer."""
        return self.findings.beliefs.expected(self.findings.along({self.name: self.values}))

    @cached_property
    def nominal(self) -> Estimate | None:
        """The value if the design were hit exactly; None if it is."""
        findings = self.findings
        if not findings.uncertain:
            return None
        return findings.if_exact.expected(findings.along({self.name: self.values}))

    @cached_property
    def was_tried(self) -> NDArray[np.bool_]:
        """Whether an experiment with a value lies near, in this parameter alone.

        Of a choice or a whole number: at that value; of others: within a tenth of the range.
        """
        findings, column = self.findings, self.findings.space.names.index(self.name)
        table = findings.optimizer.observations
        designs = table.loc[table[STATUS] == OK, list(findings.space.names)]
        X = findings.cube.columns(designs, allow_outside=True)
        tried, here = (
            findings.cube.axes.from_columns(rows)[:, column].numpy()
            for rows in (X, findings.along({self.name: self.values}))
        )
        reach = 1e-6 if findings.is_discrete(self.name) else NEAR
        return np.abs(here[:, None] - tried[None, :]).min(axis=1) <= reach

    @property
    def influence(self) -> float:
        """How much the expected value changes along the parameter."""
        return float(np.ptp(self.expected.mean))


def parameter_figure(along: Slice) -> go.Figure:
    """Draw the expected value along a parameter, and under it where the design lands."""
    findings, name = along.findings, along.name
    parameter = findings.parameter(name)
    lands = name in findings.uncertain
    figure = make_subplots(
        rows=1 + lands,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.04,
        row_heights=[0.78, 0.22] if lands else [1.0],
    )
    draw = _add_points if findings.is_discrete(name) else _add_curve
    if along.nominal is not None:
        draw(figure, along, along.nominal, "hit exactly", style.NOMINAL, style.FAINT_BAND)
    draw(figure, along, along.expected, "expected in use", style.MODEL, style.BAND)
    _add_observations(figure, along)
    _add_best(figure, along)
    if lands:
        _add_executed(figure, along)
    style.styled(figure, height=400 if lands else 340)
    bottom = style.axis(name, parameter)
    figure.update_xaxes(**{**bottom, "title": None}, range=_range(along))
    figure.update_xaxes(title=bottom["title"], row=1 + lands, col=1)
    figure.update_yaxes(title=style.plain(label(findings.name, findings.unit)), row=1, col=1)
    return figure


def _add_curve(
    figure: go.Figure, along: Slice, estimate: Estimate, name: str, color: str, band: str
) -> None:
    """Draw a curve and its band, faded where nothing was tried."""
    x, nominal = along.values, color == style.NOMINAL
    low, high = estimate.mean - 2 * estimate.std, estimate.mean + 2 * estimate.std
    for run in _runs(along.was_tried):
        tried = bool(along.was_tried[run.start])
        opacity = 1.0 if tried else FADED
        figure.add_scatter(
            x=np.concatenate([x[run], x[run][::-1]]),
            y=np.concatenate([high[run], low[run][::-1]]),
            fill="toself",
            fillcolor=band,
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            legendgroup=name,
            opacity=opacity,
        )
        dash = "dash" if nominal else None if tried else "dot"
        figure.add_scatter(
            x=x[run],
            y=estimate.mean[run],
            mode="lines",
            name=name,
            legendgroup=name,
            showlegend=run.start == 0,
            opacity=opacity,
            line={"color": color, "width": 2 if nominal else 2.5, "dash": dash},
            hovertext=_hover(along, estimate, name)[run],
            hoverinfo="text",
        )


def _runs(tried: NDArray[np.bool_]) -> list[slice]:
    """Return stretches that were tried, or were not; each ends where the next one begins."""
    turns = [0, *(np.flatnonzero(np.diff(tried.astype(int))) + 1).tolist(), len(tried)]
    return [slice(begin, min(end + 1, len(tried))) for begin, end in pairwise(turns)]


def _add_points(
    figure: go.Figure, along: Slice, estimate: Estimate, name: str, color: str, band: str
) -> None:
    """Draw points with bars, faded where nothing was tried."""
    nominal = color == style.NOMINAL
    shown = np.where(along.was_tried, 1.0, FADED)
    for tried in (True, False):
        chosen = along.was_tried == tried
        if not chosen.any():
            continue
        figure.add_scatter(
            x=_shown(along, along.values[chosen]),
            y=estimate.mean[chosen],
            error_y={"array": 2 * estimate.std[chosen], "thickness": 1.5, "width": 5},
            mode="markers",
            name=name,
            legendgroup=name,
            showlegend=tried or not along.was_tried.any(),
            opacity=float(shown[chosen][0]),
            marker={"color": color, "size": 9, "symbol": "circle-open" if nominal else "circle"},
            hovertext=[h for h, c in zip(_hover(along, estimate, name), chosen, strict=True) if c],
            hoverinfo="text",
        )


def _add_observations(figure: go.Figure, along: Slice) -> None:
    """Draw what was observed, the fainter the more the other parameters differ."""
    findings, column = along.findings, along.findings.space.names.index(along.name)
    table = findings.optimizer.observations
    table = table[table[STATUS] == OK]
    designs = table[list(findings.space.names)]
    X = findings.cube.columns(designs, allow_outside=True)
    values = table[VALUE].to_numpy(dtype=np.float64)
    figure.add_scatter(
        x=_shown(along, X[:, column].numpy()),
        y=values,
        mode="markers",
        name="observed",
        marker={"color": style.DATA, "size": 6, "opacity": _closeness(along, X)},
        hovertext=[
            style.plain(f"observed {number(v)} at {design(findings.space, d)}")
            for v, d in zip(values, findings.space.to_designs(X), strict=True)
        ],
        hoverinfo="text",
    )


def _closeness(along: Slice, X: Float[Tensor, "n d"]) -> NDArray[np.float64]:
    """Return 1 for designs on the slice, and less for those whose other parameters differ."""
    findings, column = along.findings, along.findings.space.names.index(along.name)
    axes = findings.cube.axes
    apart = (axes.from_columns(X) - axes.from_columns(findings.center)).abs()
    apart[:, column] = 0
    distance = apart.square().sum(-1).sqrt().numpy() / max(1, findings.space.d - 1) ** 0.5
    return FAR_AWAY + (1 - FAR_AWAY) * np.exp(-((distance / 0.25) ** 2))


def _add_best(figure: go.Figure, along: Slice) -> None:
    findings = along.findings
    column = findings.space.names.index(along.name)
    center = findings.center[:, column].numpy()
    figure.add_scatter(
        x=_shown(along, center),
        y=[findings.best.mean],
        mode="markers",
        name="recommended",
        marker={"color": style.BEST, "size": 13, "symbol": "star"},
        hovertext=value(findings.parameter(along.name), findings.best.design[along.name]),
        hoverinfo="text",
    )


def _add_executed(figure: go.Figure, along: Slice) -> None:
    """Draw a histogram of the executed inputs, equal steps on the scale of the axis."""
    findings = along.findings
    x = findings.executed[:, findings.space.names.index(along.name)].numpy()
    log = findings.parameter(along.name).log
    t = np.log(x) if log else x
    low, high = np.quantile(t, [0.002, 0.998])
    width = high - low or 1e-3 * np.ptp(_bounds(findings.parameter(along.name)))
    edges = np.linspace(low - 0.05 * width, high + 0.05 * width, N_BINS + 1)
    shares = np.histogram(t, edges)[0] / len(t)
    outline = np.repeat(np.exp(edges) if log else edges, 2)
    heights = np.concatenate([[0], np.repeat(shares, 2), [0]])
    figure.add_scatter(
        x=outline,
        y=heights,
        fill="tozeroy",
        mode="lines",
        name="where the recommended design lands",
        line={"color": style.BEST, "width": 1},
        hoverinfo="skip",
        showlegend=False,
        row=2,
        col=1,
    )
    figure.update_yaxes(title="lands", showticklabels=False, rangemode="tozero", row=2, col=1)


def _bounds(parameter: Parameter) -> NDArray[np.float64]:
    bounds = np.array(parameter.range)
    return np.log(bounds) if parameter.log else bounds


def _range(along: Slice) -> list[float] | None:
    """Show the whole parameter, and where the design may land beyond its bounds."""
    findings, parameter = along.findings, along.findings.parameter(along.name)
    if isinstance(parameter, Categorical):
        return None
    reached = [*parameter.range, *findings.center[:, findings.space.names.index(along.name)]]
    if along.name in findings.uncertain:
        reached += findings.executed_interval(along.name)
    ends = np.array([min(reached), max(reached)])
    low, high = np.log10(ends) if parameter.log else ends
    return [float(low - 0.03 * (high - low)), float(high + 0.03 * (high - low))]


def _shown(along: Slice, numbers: NDArray[np.float64]) -> list[float | str]:
    parameter = along.findings.parameter(along.name)
    if not isinstance(parameter, Categorical):
        return numbers.tolist()
    return [style.plain(parameter.decode(x)) for x in numbers]


def _hover(along: Slice, estimate: Estimate, name: str) -> list[str]:
    parameter = along.findings.parameter(along.name)
    return [
        style.plain(f"{value(parameter, parameter.decode(x))}: {plus_minus(estimate[i])}, {name}")
        for i, x in enumerate(along.values.tolist())
    ]
