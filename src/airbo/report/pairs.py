"""The expected value over two parameters, through the recommended design."""

from itertools import combinations
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.interpolate import RectBivariateSpline
from torch import Tensor

from airbo.observed import OK, STATUS
from airbo.optimizer import Design
from airbo.report import style
from airbo.report.findings import Findings
from airbo.report.slices import Slice
from airbo.words import design as design_words
from airbo.words import label, number

N_PER_SIDE, N_SHOWN = 17, 49
_COLORS = "Viridis"


def pairs_by_influence(findings: Findings, slices: list[Slice]) -> list[tuple[str, str]]:
    """Return all pairs of numeric parameters, those that matter most first."""
    influence = {along.name: along.influence for along in slices}
    categorical = {findings.space.names[c] for c in findings.space.categorical_columns}
    numeric = [name for name in findings.space.names if name not in categorical]
    return sorted(combinations(numeric, 2), key=lambda pair: -sum(influence[n] for n in pair))


def pair_figure(findings: Findings, horizontal: str, vertical: str) -> go.Figure:
    """Draw the expected value over two parameters, with designs tried, failed and pending."""
    names = (horizontal, vertical)
    x, y, z = _surface(findings, names)
    title = f"expected {label(findings.name, findings.unit)}"
    surface = {
        "x": x,
        "y": y,
        "z": z,
        "colorscale": _COLORS,
        "reversescale": findings.sign < 0,  # bright is good, in either direction
        "colorbar": {"title": {"text": style.plain(title), "side": "right"}, "thickness": 14},
        "hovertext": [
            [f"{number(a)}, {number(b)}: {number(v)}" for a, v in zip(x, row, strict=True)]
            for b, row in zip(y, z, strict=True)
        ],
        "hoverinfo": "text",
    }
    figure = go.Figure()
    if any(findings.is_discrete(name) for name in names):
        figure.add_heatmap(**surface)
    else:
        figure.add_contour(**surface, line={"width": 0.5}, ncontours=14)
    _add_designs(figure, findings, names)
    style.styled(figure, height=460)
    return figure.update_layout(
        xaxis=style.axis(horizontal, findings.parameter(horizontal)),
        yaxis=style.axis(vertical, findings.parameter(vertical)),
    )


def _surface(
    findings: Findings, names: tuple[str, str]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    x, y = (findings.grid(name, N_PER_SIDE) for name in names)
    across, up = np.meshgrid(x, y)
    X = findings.along({names[0]: across.ravel(), names[1]: up.ravel()})
    z = findings.beliefs.expected(X).mean.reshape(up.shape)
    if any(findings.is_discrete(name) for name in names):
        return x, y, z
    # a posterior mean is smooth: a spline through it saves most of the work
    u, v = (_positions(findings, name, grid) for name, grid in zip(names, (x, y), strict=True))
    fine = np.linspace(0, 1, N_SHOWN)
    x, y = (_values(findings, name, fine) for name in names)
    return x, y, RectBivariateSpline(v, u, z)(fine, fine)


def _positions(findings: Findings, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    column = findings.space.names.index(name)
    return findings.cube.axes.from_columns(findings.along({name: values}))[:, column].numpy()


def _values(findings: Findings, name: str, positions: NDArray[np.float64]) -> NDArray[np.float64]:
    column = findings.space.names.index(name)
    F = torch.zeros(len(positions), findings.space.d, dtype=torch.float64)
    F[:, column] = torch.from_numpy(positions)
    return findings.cube.axes.to_columns(F)[:, column].numpy()


def _add_designs(figure: go.Figure, findings: Findings, names: tuple[str, str]) -> None:
    table = findings.optimizer.observations
    designs = table[list(findings.space.names)]
    ok = table[STATUS] == OK
    groups: list[tuple[str, list[Any], str, str, int]] = [
        ("tried", designs[ok].to_dict("records"), "circle", "#FFFFFF", 7),
        ("failed", designs[~ok].to_dict("records"), "x", "#FF5A4F", 9),
        ("pending", findings.optimizer.pending, "diamond-open", "#D81B60", 10),
        ("recommended", [findings.best.design], "star", "#FF9F1C", 15),
    ]
    for name, rows, symbol, color, size in groups:
        if not rows:
            continue
        X = _columns(findings, rows, names)
        line = {"color": "#222222", "width": 1} if symbol != "diamond-open" else {"width": 2}
        figure.add_scatter(
            x=X[:, 0].tolist(),
            y=X[:, 1].tolist(),
            mode="markers",
            name=name,
            marker={"symbol": symbol, "color": color, "size": size, "line": line},
            hovertext=[style.plain(f"{name}: {design_words(findings.space, d)}") for d in rows],
            hoverinfo="text",
        )


def _columns(
    findings: Findings, designs: list[Design], names: tuple[str, str]
) -> Float[Tensor, "n 2"]:
    X = findings.cube.columns(designs, allow_outside=True)
    return X[:, [findings.space.names.index(name) for name in names]]
