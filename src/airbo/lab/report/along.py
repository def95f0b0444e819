"""The expected value of an outcome along parameters, and against what nobody sets."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from scipy.interpolate import RectBivariateSpline
from torch import Tensor

from airbo import words
from airbo.analysis import tolerance_budget
from airbo.lab.report import style
from airbo.lab.report.findings import Estimate, Findings, OutcomeFindings, Slice
from airbo.measures import Mean
from airbo.models.draws import has_function
from airbo.observed import EXECUTED_COLUMN, OK, STATUS, VALUE
from airbo.space.parameters import Categorical, Parameter

N_BINS = 48
FAR_AWAY = 0.15
"""Opacity of experiments that differ in all other parameters."""
N_PER_SIDE, N_SHOWN = 17, 49
"""Points per side of a map: where the model is asked, and where the map is drawn."""
MAX_MAPS = 3
"""Maps of each objective: those of the pairs that matter most."""
N_LANDED = 200
PROBABILITIES = (0.5, 0.8, 0.95)
"""Lines of equal P(in spec) on a map."""
N_DAYS = 25
"""Values of the environment along a curve."""


# -- along one parameter


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
    if along.nominal is not None:
        _add_expected(figure, along, along.nominal, "set exactly")
    _add_expected(figure, along, along.expected, "expected in use")
    _add_observations(figure, along)
    style.scatter(
        figure,
        along.shown(along.findings.center[:, along.column].numpy()),
        [float(along.outcome.here.mean)],
        "recommended",
        [along.findings.shown(along.name, along.findings.best.design[along.name])],
        marker=style.STAR,
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


def _add_expected(figure: go.Figure, along: Slice, estimate: Estimate, name: str) -> None:
    """Draw a curve and its band, or points with bars; what is not for use is grey."""
    is_nominal, said = estimate is along.nominal, along.hover(estimate, name)
    color = style.NOMINAL if is_nominal else style.MODEL
    if along.findings.is_discrete(along.name):
        style.scatter(
            figure, along.shown(along.values), estimate.mean, name, said,
            error_y={"array": 2 * estimate.std, "thickness": 1.5, "width": 5},
            marker={"color": color, "size": 9, "symbol": "circle-open" if is_nominal else "circle"},
        )  # fmt: skip
        return
    look = {"fill": style.FAINT_BAND, "dash": "dash"} if is_nominal else {"width": 2.5}
    style.curve(figure, along.values, estimate.mean, estimate.std, name, said, color, **look)


def _add_observations(figure: go.Figure, along: Slice) -> None:
    """Draw what was observed, the fainter the more the other parameters differ."""
    outcome, X = along.outcome, along.outcome.designs
    designs = along.findings.space.to_designs(X)
    style.scatter(
        figure,
        along.shown(X[:, along.column].numpy()),
        outcome.known[VALUE].to_numpy(dtype=np.float64),
        "observed",
        [
            f"experiment {n}: {words.with_unit(words.number(v), outcome.unit)} at "
            f"{words.design(along.findings.space, design)}"
            for (n, v), design in zip(outcome.known[VALUE].items(), designs, strict=True)
        ],
        marker={"color": style.DATA, "size": 6, "opacity": _closeness(along, X)},
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
    style.scatter(
        figure,
        np.repeat(np.exp(edges) if log else edges, 2),
        np.concatenate([[0], np.repeat(shares, 2), [0]]),
        "where the recommended design lands",
        mode="lines",
        fill="tozeroy",
        line={"color": style.BEST, "width": 1},
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


def pairs_of_maps(findings: Findings) -> list[tuple[OutcomeFindings, str, str]]:
    """Return what maps are drawn of: each objective over the pairs that change it most."""
    return [
        (outcome, a, b)
        for outcome in findings.parts
        if outcome.name in findings.aims
        for a, b in pairs_by_influence([own for own in findings.slices if own.outcome is outcome])[
            :MAX_MAPS
        ]
    ]


def pairs_by_influence(slices: Sequence[Slice]) -> list[tuple[str, str]]:
    """Return all pairs of numeric parameters, those that matter most first."""
    numeric = {s.name: s.influence for s in slices if not isinstance(s.parameter, Categorical)}
    return sorted(combinations(numeric, 2), key=lambda pair: -sum(numeric[n] for n in pair))


class _Map:
    """A grid over two parameters, all others as recommended."""

    def __init__(self, findings: Findings, names: tuple[str, str]) -> None:
        self.findings, self.names = findings, names
        self.is_smooth = not any(findings.is_discrete(name) for name in names)
        self.coarse = [findings.grid(name, N_PER_SIDE) for name in names]
        across, up = np.meshgrid(*self.coarse)
        self.designs = findings.along({names[0]: across.ravel(), names[1]: up.ravel()})
        fine = np.linspace(0, 1, N_SHOWN)
        self.x, self.y = (
            [findings.values_at(name, fine) for name in names] if self.is_smooth else self.coarse
        )

    def fine(self, values: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
        """Return values of the coarse grid on the one that is drawn: this saves most of the work.

        Args:
            values: One per design.
            degree: Of the spline through them; 1 cannot overshoot.
        """
        z = values.reshape(len(self.coarse[1]), len(self.coarse[0]))
        if not self.is_smooth:
            return z
        u, v = (
            self.findings.positions_of(name, self.findings.along({name: grid}))
            for name, grid in zip(self.names, self.coarse, strict=True)
        )
        at = np.linspace(0, 1, N_SHOWN)
        return RectBivariateSpline(v, u, z, kx=degree, ky=degree)(at, at)


def map_figure(outcome: OutcomeFindings, horizontal: str, vertical: str) -> go.Figure:
    """Draw the expected value over two parameters, and over it what the limits forbid."""
    findings = outcome.findings
    over = _Map(findings, (horizontal, vertical))
    z = over.fine(outcome.expected(over.designs).mean, degree=3)
    title = style.plain(f"expected {outcome.label}")
    surface = {
        "x": over.x,
        "y": over.y,
        "z": z,
        "colorscale": "Viridis",
        "reversescale": outcome.want.sign < 0,  # bright is good, in either direction
        "colorbar": {
            "title": {"text": title, "side": "top"}, "thickness": 10,
            "orientation": "h", "yanchor": "bottom", "y": 1.02, "ypad": 0,
        },
        "hovertext": [
            [f"{words.number(a)}, {words.number(b)}: {words.number(v)}"
             for a, v in zip(over.x, row, strict=True)]
            for b, row in zip(over.y, z, strict=True)
        ],
        "hoverinfo": "text",
    }  # fmt: skip
    figure = go.Figure()
    if over.is_smooth:
        figure.add_contour(**surface, line={"width": 0}, ncontours=20)
    else:
        figure.add_heatmap(**surface)
    if findings.level is not None:
        _add_specification(figure, over, findings.level)
    _add_designs(figure, outcome, over.names)
    style.styled(figure, height=460)
    return figure.update_layout(
        xaxis=style.axis(horizontal, findings.parameter(horizontal)),
        yaxis=style.axis(vertical, findings.parameter(vertical)),
        showlegend=False,  # the text above explains the signs, once for all maps
    )


def _add_specification(figure: go.Figure, over: _Map, level: float) -> None:
    """Draw lines of P(in spec), hatch where it is too low, and frame the operating window."""
    p = over.fine(over.findings.in_spec(over.designs), degree=1)
    for line in PROBABILITIES if over.is_smooth else ():
        contours = {"start": line, "end": line, "size": 1.0, "coloring": "none", "showlabels": True}
        labels = {"labelformat": ".0%", "labelfont": {"color": "white"}}
        figure.add_contour(
            x=over.x, y=over.y, z=p, autocontour=False, showscale=False, hoverinfo="skip",
            showlegend=False,
            contours={**contours, **labels}, line={"color": "white", "width": 1.5},
        )  # fmt: skip
    step = 2 if over.is_smooth else 1
    x, y = np.meshgrid(over.x[::step], over.y[::step])
    is_out = p[::step, ::step] < level
    if is_out.any():
        hatching = {"symbol": "line-ne-open", "size": 9, "color": "rgba(0,0,0,0.55)"}
        style.scatter(figure, x[is_out], y[is_out], "out of spec too often", marker=hatching)
    window = over.findings.handover.window
    if window is not None and window.alone:
        (a, b), (c, d) = (window.jointly[name] for name in over.names)
        style.scatter(
            figure, [a, b, b, a, a], [c, c, d, d, c], "operating window",
            mode="lines", line={"color": style.WINDOW_EDGE, "width": 2.5},
        )  # fmt: skip


def _add_designs(figure: go.Figure, outcome: OutcomeFindings, names: tuple[str, str]) -> None:
    """Draw where the recommended design lands, and the designs themselves."""
    findings = outcome.findings
    columns = [findings.space.names.index(name) for name in names]
    if set(names) & set(findings.uncertain):
        landed = findings.executed[:N_LANDED, columns]
        dots = {"color": style.WINDOW_EDGE, "size": 3, "opacity": 0.6}
        style.scatter(figure, landed[:, 0], landed[:, 1], "where it lands", marker=dots)
    table = findings.optimizer.observations
    failed = table.loc[table[STATUS] != OK, list(findings.space.names)]
    groups: list[tuple[str, list[Any], str, str, int]] = [
        ("tried", findings.space.to_designs(outcome.designs), "circle", "#FFFFFF", 7),
        ("failed", failed.to_dict("records"), "x", "#FF5A4F", 9),
        ("pending", findings.optimizer.pending, "diamond-open", "#D81B60", 10),
        ("recommended", [findings.best.design], "star", "#FF9F1C", 15),
    ]
    for name, designs, symbol, color, size in groups:
        if not designs:
            continue
        X: torch.Tensor = findings.cube.columns(designs, allow_outside=True)[:, columns]
        line = {"color": "#222222", "width": 1} if symbol != "diamond-open" else {"width": 2}
        style.scatter(
            figure,
            X[:, 0],
            X[:, 1],
            name,
            [f"{name}: {words.design(findings.space, design)}" for design in designs],
            marker={"symbol": symbol, "color": color, "size": size, "line": line},
        )


# -- against what nobody sets


def scatter_words(findings: Findings) -> str:
    """Say how much of the scatter of the recommended design each environment explains."""
    said = []
    for outcome in findings.parts:
        if not has_function(outcome.model.model):
            continue
        budget = tolerance_budget(
            findings.optimizer, findings.best.design, outcome.name, given=findings.given
        )
        for part in budget.contributions:
            if set(part.parameters) <= set(findings.unseen):
                share, rest = part.share.value, part.scatter_if_halved.value
                said.append(
                    f"{words.listed(list(part.parameters))} explains {words.percent(share)} of the "
                    f"scatter of {outcome.name} in use; half the variation of it would leave "
                    f"{words.percent(rest)} of the scatter."
                )
    return " ".join(said)


def on_days(outcome: OutcomeFindings, name: str) -> tuple[NDArray[np.float64], Estimate]:
    """Return values of an environment, and what to expect of the recommended design on each."""
    findings = outcome.findings
    days, expected = findings.grid(name, N_DAYS), []
    for day in days.tolist():
        given = {**findings.given, name: day}
        model = findings.optimizer.outcome_model(outcome.name, Mean(), given=given)
        expected.append(torch.cat(model.predict(model.surrogate.points.of([findings.design]))))
    mean, std = torch.stack(expected, dim=-1).numpy()
    return days, Estimate(mean, std)


def environment_figure(outcome: OutcomeFindings, name: str) -> go.Figure:
    """Draw the expected value along an environment, and the experiments that measured it."""
    parameter = outcome.findings.parameter(name)
    days, expected = on_days(outcome, name)
    figure = go.Figure()
    said = [f"{words.value(parameter, d)}: {words.plus_minus(expected[i])}"
            for i, d in enumerate(days.tolist())]  # fmt: skip
    style.curve(figure, days, expected.mean, expected.std, "recommended design", said)
    column, known = EXECUTED_COLUMN + name, outcome.known
    if column in known:
        there = known[known[column].notna()]
        hover = [f"experiment {n}" for n in there.index]
        style.scatter(figure, there[column].astype(float), there[VALUE].astype(float), "observed",
                      hover, marker={"color": style.DATA, "size": 6})  # fmt: skip
    style.styled(figure, height=320)
    axis = style.axis(name, parameter)
    return figure.update_layout(xaxis=axis, yaxis={"title": style.plain(outcome.label)})
