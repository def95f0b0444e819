"""The expected value of an outcome along one parameter and over two, through the recommendation."""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from scipy.interpolate import RectBivariateSpline
from torch import Tensor

from airbo import words
from airbo.lab.report import page, style
from airbo.lab.report.beliefs import Estimate
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.lab.report.page import Section
from airbo.observed import OK, STATUS, VALUE
from airbo.space.parameters import Categorical, Parameter

N_ALONG, N_ALONG_IN_MANY = 41, 25
N_BINS = 48
NEAR = 0.1
"""Values farther than this from all experiments, relative to the range, were not tried."""
FADED, FAR_AWAY = 0.3, 0.15
"""Opacity of what was not tried, and of experiments that differ in all other parameters."""
N_PER_SIDE, N_SHOWN = 17, 49
"""Points per side of a map: where the model is asked, and where the map is drawn."""
MAX_PAIRS, MAX_SIDE_BY_SIDE = 10, 3


class Slice:
    """What to expect along one parameter, the others being as recommended."""

    def __init__(self, outcome: OutcomeFindings, name: str) -> None:
        """Look along a parameter.

        Args:
            outcome: Whose values.
            name: Of the parameter.
        """
        self.outcome, self.findings, self.name = outcome, outcome.findings, name
        self.parameter = self.findings.parameter(name)
        self.column = self.findings.space.names.index(name)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values of the parameter, as numbers."""
        few = self.findings.is_discrete(self.name) or self.findings.space.d > 4
        own = self.findings.grid(self.name, N_ALONG_IN_MANY if few else N_ALONG)
        return np.union1d(own, self.findings.center[:, self.column].numpy())

    @cached_property
    def expected(self) -> Estimate:
        """The expected value in use, by the model of the optimizer."""
        return self.outcome.beliefs.expected(self.findings.along({self.name: self.values}))

    @cached_property
    def nominal(self) -> Estimate | None:
        """The value if the design were hit exactly; None if it is, or if the model cannot say."""
        if not self.findings.uncertain or self.outcome.if_exact is None:
            return None
        return self.outcome.if_exact.expected(self.findings.along({self.name: self.values}))

    @cached_property
    def was_tried(self) -> NDArray[np.bool_]:
        """Whether an experiment with a value lies near, in this parameter alone.

        Of a choice or a whole number: at that value; of others: within a tenth of the range.
        """
        tried, here = (
            self.findings.positions_of(self.name, X)
            for X in (self.outcome.designs, self.findings.along({self.name: self.values}))
        )
        reach = 1e-6 if self.findings.is_discrete(self.name) else NEAR
        return np.abs(here[:, None] - tried[None, :]).min(axis=1) <= reach

    @property
    def influence(self) -> float:
        """How much the expected value changes along the parameter."""
        return float(np.ptp(self.expected.mean))

    def shown(self, numbers: NDArray[np.float64]) -> list[float | str]:
        """Return values as a chart takes them."""
        if not isinstance(self.parameter, Categorical):
            return numbers.tolist()
        return [style.plain(self.parameter.decode(x)) for x in numbers]

    def hover(self, estimate: Estimate, name: str) -> NDArray[np.str_]:
        """Say what each value is, where a pointer rests on it."""
        written = [words.value(self.parameter, self.parameter.decode(x)) for x in self.values]
        return np.array(
            [
                style.plain(f"{value}: {words.plus_minus(estimate[i])}, {name}")
                for i, value in enumerate(written)
            ]
        )


# -- along one parameter


def along_section(findings: Findings, slices: Sequence[Slice]) -> Section:
    """Show the expected value of each outcome along each parameter."""
    exactly = "Designs are hit exactly in use."
    if findings.uncertain:
        exactly = "Below each chart: where the recommended design lands."
        if any(along.nominal is not None for along in slices):
            exactly = f"Grey, dashed: the value if the design were hit exactly. {exactly}"
    limits = " Red, dashed: its limits." if any(o.limits for o in findings.parts) else ""
    explained = page.note(
        "The other parameters are as recommended (star). Blue: the expected value in use, ± two "
        "standard deviations (model uncertainty). Faded and dotted: no experiment was made there. "
        "Orange: what was observed, the fainter the more the other parameters differ."
        f"{limits} {exactly}"
    )
    figures = [(_title(along), parameter_figure(along)) for along in slices]
    return Section("along", "Along each parameter", (explained, page.charts(figures)))


def _title(along: Slice) -> str:
    name = along.name if along.findings.is_single else f"{along.outcome.name} along {along.name}"
    return name if along.name in along.findings.uncertain else f"{name} (hit exactly)"


def parameter_figure(along: Slice) -> go.Figure:
    """Draw the expected value along a parameter, and under it where the design lands."""
    lands = along.name in along.findings.uncertain
    figure = make_subplots(
        rows=1 + lands,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.04,
        row_heights=[0.78, 0.22] if lands else [1.0],
    )
    draw = _add_points if along.findings.is_discrete(along.name) else _add_curve
    if along.nominal is not None:
        draw(figure, along, along.nominal, "hit exactly", style.NOMINAL, style.FAINT_BAND)
    draw(figure, along, along.expected, "expected in use", style.MODEL, style.BAND)
    _add_observations(figure, along)
    figure.add_scatter(
        x=along.shown(along.findings.center[:, along.column].numpy()),
        y=[float(along.outcome.here.mean)],
        mode="markers",
        name="recommended",
        marker={"color": style.BEST, "size": 13, "symbol": "star"},
        hovertext=along.findings.shown(along.name, along.findings.best.design[along.name]),
        hoverinfo="text",
    )
    for limit in along.outcome.limits:
        figure.add_hline(limit, line=style.LIMIT, row=1, col=1)
    if lands:
        _add_executed(figure, along)
    style.styled(figure, height=360 if lands else 300).update_layout(showlegend=False)
    bottom = style.axis(along.name, along.parameter)
    figure.update_xaxes(**{**bottom, "title": None}, range=_range(along))
    figure.update_xaxes(title=bottom["title"], row=1 + lands, col=1)
    figure.update_yaxes(title=style.plain(along.outcome.label), row=1, col=1)
    return figure


def _add_curve(
    figure: go.Figure, along: Slice, estimate: Estimate, name: str, color: str, band: str
) -> None:
    """Draw a curve and its band, faded where nothing was tried."""
    x, nominal = along.values, color == style.NOMINAL
    low, high = estimate.mean - 2 * estimate.std, estimate.mean + 2 * estimate.std
    hover = along.hover(estimate, name)
    runs = _runs(along.was_tried)
    first = next((run for run in runs if along.was_tried[run.start]), runs[0])
    for run in runs:
        tried = bool(along.was_tried[run.start])
        opacity = 1.0 if tried else FADED
        figure.add_scatter(
            x=np.concatenate([x[run], x[run][::-1]]),
            y=np.concatenate([high[run], low[run][::-1]]),
            mode="lines",  # with few points, Plotly would mark each of them
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
            showlegend=run == first,
            opacity=opacity,
            line={"color": color, "width": 2 if nominal else 2.5, "dash": dash},
            hovertext=hover[run],
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
    symbol = "circle-open" if color == style.NOMINAL else "circle"
    for tried in (True, False):
        chosen = along.was_tried == tried
        if chosen.any():
            figure.add_scatter(
                x=along.shown(along.values[chosen]),
                y=estimate.mean[chosen],
                error_y={"array": 2 * estimate.std[chosen], "thickness": 1.5, "width": 5},
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=tried or not along.was_tried.any(),
                opacity=1.0 if tried else FADED,
                marker={"color": color, "size": 9, "symbol": symbol},
                hovertext=along.hover(estimate, name)[chosen],
                hoverinfo="text",
            )


def _add_observations(figure: go.Figure, along: Slice) -> None:
    """Draw what was observed, the fainter the more the other parameters differ."""
    outcome, X = along.outcome, along.outcome.designs
    designs = along.findings.space.to_designs(X)
    figure.add_scatter(
        x=along.shown(X[:, along.column].numpy()),
        y=outcome.known[VALUE].to_numpy(dtype=np.float64),
        mode="markers",
        name="observed",
        marker={"color": style.DATA, "size": 6, "opacity": _closeness(along, X)},
        hovertext=[
            style.plain(
                f"experiment {n}: {words.with_unit(words.number(v), outcome.unit)} at "
                f"{words.design(along.findings.space, design)}"
            )
            for (n, v), design in zip(outcome.known[VALUE].items(), designs, strict=True)
        ],
        hoverinfo="text",
    )


def _closeness(along: Slice, X: Float[Tensor, "n d"]) -> NDArray[np.float64]:
    """Return 1 for designs on the slice, and less for those whose other parameters differ."""
    axes, d = along.findings.cube.axes, along.findings.space.d
    apart = (axes.from_columns(X) - axes.from_columns(along.findings.center)).abs()
    apart[:, along.column] = 0
    distance = apart.square().sum(-1).sqrt().numpy() / max(1, d - 1) ** 0.5
    return FAR_AWAY + (1 - FAR_AWAY) * np.exp(-((distance / 0.25) ** 2))


def _add_executed(figure: go.Figure, along: Slice) -> None:
    """Draw a histogram of the executed inputs, equal steps on the scale of the axis."""
    x = along.findings.executed[:, along.column].numpy()
    log = along.parameter.log
    t = np.log(x) if log else x
    low, high = np.quantile(t, [0.002, 0.998])
    width = high - low or 1e-3 * np.ptp(_bounds(along.parameter))
    edges = np.linspace(low - 0.05 * width, high + 0.05 * width, N_BINS + 1)
    shares = np.histogram(t, edges)[0] / len(t)
    figure.add_scatter(
        x=np.repeat(np.exp(edges) if log else edges, 2),
        y=np.concatenate([[0], np.repeat(shares, 2), [0]]),
        fill="tozeroy",
        mode="lines",
        name="where the recommended design lands",
        line={"color": style.BEST, "width": 1},
        hoverinfo="skip",
        showlegend=False,
        row=2,
        col=1,
    )
    figure.update_yaxes(showticklabels=False, rangemode="tozero", row=2, col=1)


def _bounds(parameter: Parameter) -> NDArray[np.float64]:
    bounds = np.array(parameter.range)
    return np.log(bounds) if parameter.log else bounds


def _range(along: Slice) -> list[float] | None:
    """Show the whole parameter, and where the design may land beyond its bounds."""
    if isinstance(along.parameter, Categorical):
        return None
    reached = [*along.parameter.range, *along.findings.center[:, along.column].tolist()]
    if along.name in along.findings.uncertain:
        reached += along.findings.executed_interval(along.name)
    ends = np.array([min(reached), max(reached)])
    low, high = np.log10(ends) if along.parameter.log else ends
    return [float(low - 0.03 * (high - low)), float(high + 0.03 * (high - low))]


# -- over two parameters


def pairs_section(findings: Findings, slices: Sequence[Slice]) -> Section | None:
    """Show maps of the expected value; None where there is no pair of numbers."""
    figures, n_left_out = [], 0
    for outcome in findings.parts:
        pairs = pairs_by_influence([along for along in slices if along.outcome is outcome])
        n_left_out += len(pairs[MAX_PAIRS:])
        of = "" if findings.is_single else f"{outcome.name}: "
        figures += [(f"{of}{b} over {a}", pair_figure(outcome, a, b)) for a, b in pairs[:MAX_PAIRS]]
    if not figures:
        return None
    good = " Bright is good." if any(o.want.sign for o in findings.parts) else ""
    limits = " Red: the limits." if any(o.limits for o in findings.parts) else ""
    parts = [
        page.note(
            f"The expected value in use.{good}{limits} The other parameters are as recommended, "
            "but those of the designs shown may differ: hover over a point to see all of it."
        )
    ]
    if n_left_out:
        parts.append(
            page.note(
                f"The pairs that change the expected value most; {n_left_out} others are left out."
            )
        )
    few = len(figures) <= MAX_SIDE_BY_SIDE
    parts.append(page.charts(figures) if few else page.choice("Pair of parameters", figures))
    return Section("pairs", "Pairs of parameters", tuple(parts))


def pairs_by_influence(slices: Sequence[Slice]) -> list[tuple[str, str]]:
    """Return all pairs of numeric parameters, those that matter most first."""
    numeric = {s.name: s.influence for s in slices if not isinstance(s.parameter, Categorical)}
    return sorted(combinations(numeric, 2), key=lambda pair: -sum(numeric[n] for n in pair))


def pair_figure(outcome: OutcomeFindings, horizontal: str, vertical: str) -> go.Figure:
    """Draw the expected value over two parameters, with designs tried, failed and pending."""
    findings, names = outcome.findings, (horizontal, vertical)
    x, y, z = _surface(outcome, names)
    title = f"expected {outcome.label}"
    surface = {
        "x": x,
        "y": y,
        "z": z,
        "colorscale": "Viridis",
        "reversescale": outcome.want.sign < 0,  # bright is good, in either direction
        "colorbar": {"title": {"text": style.plain(title), "side": "right"}, "thickness": 14},
        "hovertext": [
            [", ".join(map(words.number, (a, b))) + f": {words.number(v)}"
             for a, v in zip(x, row, strict=True)]
            for b, row in zip(y, z, strict=True)
        ],
        "hoverinfo": "text",
    }  # fmt: skip
    figure = go.Figure()
    if any(findings.is_discrete(name) for name in names):
        figure.add_heatmap(**surface)
    else:
        figure.add_contour(**surface, line={"width": 0.5}, ncontours=14)
        for limit in outcome.limits:
            figure.add_contour(
                x=x, y=y, z=z, autocontour=False, showscale=False, showlegend=False,
                contours={"start": limit, "end": limit, "size": 1.0, "coloring": "lines"},
                colorscale=[[0, style.FAILURE], [1, style.FAILURE]], line={"width": 3},
                hoverinfo="skip",
            )  # fmt: skip
    _add_designs(figure, outcome, names)
    style.styled(figure, height=460)
    return figure.update_layout(
        xaxis=style.axis(horizontal, findings.parameter(horizontal)),
        yaxis=style.axis(vertical, findings.parameter(vertical)),
    )


def _surface(
    outcome: OutcomeFindings, names: tuple[str, str]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    findings = outcome.findings
    x, y = (findings.grid(name, N_PER_SIDE) for name in names)
    across, up = np.meshgrid(x, y)
    X = findings.along({names[0]: across.ravel(), names[1]: up.ravel()})
    z = outcome.beliefs.expected(X).mean.reshape(up.shape)
    if any(findings.is_discrete(name) for name in names):
        return x, y, z
    # a posterior mean is smooth: a spline through it saves most of the work
    u, v = (
        findings.positions_of(name, findings.along({name: grid}))
        for name, grid in zip(names, (x, y), strict=True)
    )
    fine = np.linspace(0, 1, N_SHOWN)
    x, y = (findings.values_at(name, fine) for name in names)
    return x, y, RectBivariateSpline(v, u, z)(fine, fine)


def _add_designs(figure: go.Figure, outcome: OutcomeFindings, names: tuple[str, str]) -> None:
    findings = outcome.findings
    table = findings.optimizer.observations
    failed = table.loc[table[STATUS] != OK, list(findings.space.names)]
    groups: list[tuple[str, list[Any], str, str, int]] = [
        ("tried", findings.space.to_designs(outcome.designs), "circle", "#FFFFFF", 7),
        ("failed", failed.to_dict("records"), "x", "#FF5A4F", 9),
        ("pending", findings.optimizer.pending, "diamond-open", "#D81B60", 10),
        ("recommended", [findings.best.design], "star", "#FF9F1C", 15),
    ]
    columns = [findings.space.names.index(name) for name in names]
    for name, designs, symbol, color, size in groups:
        if not designs:
            continue
        X = findings.cube.columns(designs, allow_outside=True)[:, columns]
        line = {"color": "#222222", "width": 1} if symbol != "diamond-open" else {"width": 2}
        figure.add_scatter(
            x=X[:, 0].tolist(),
            y=X[:, 1].tolist(),
            mode="markers",
            name=name,
            marker={"symbol": symbol, "color": color, "size": size, "line": line},
            hovertext=[
                style.plain(f"{name}: {words.design(findings.space, design)}") for design in designs
            ],
            hoverinfo="text",
        )
