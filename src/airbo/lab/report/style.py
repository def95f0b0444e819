"""What all charts of a report look like."""

import math
from collections.abc import Iterable
from html import escape
from typing import Any

import plotly.graph_objects as go

from airbo.space.parameters import Categorical, Parameter
from airbo.words import label, unit_of

MODEL, DATA, NOMINAL, BEST, FAILURE = "#0072B2", "#D55E00", "#6B6B6B", "#009E73", "#A00000"
BAND, FAINT_BAND = "rgba(0,114,178,0.18)", "rgba(107,107,107,0.12)"
GRID_LINES = "#E6E8EB"
STAR = {"color": BEST, "size": 13, "symbol": "star"}
WINDOW_EDGE = "#7CFC9A"
"""Seen on every colour of a map."""
LIMIT = {"color": FAILURE, "dash": "dash", "width": 1.5}

_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 13}
_AXIS = {"gridcolor": GRID_LINES, "linecolor": "#9AA0A6", "zeroline": False, "automargin": True}


def styled(figure: go.Figure, height: int) -> go.Figure:
    """Give a chart the look of the report, with its legend below."""
    figure.update_xaxes(**_AXIS)
    figure.update_yaxes(**_AXIS)
    return figure.update_layout(
        template="none",
        height=height,
        font=_FONT,
        margin={"l": 64, "r": 16, "t": 24, "b": 48},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hovermode="closest",
    )


def plain(text: object) -> str:
    """Write text for a chart, where a few HTML tags would mean something."""
    return escape(str(text))


def scatter(
    figure: go.Figure,
    x: Any,
    y: Any,
    name: str | None = None,
    hover: Iterable[object] | None = None,
    mode: str = "markers",
    **look: Any,
) -> None:
    """Draw points or a line; without a name it is not in the legend.

    Args:
        figure: Where to draw.
        x: Horizontal coordinates.
        y: Vertical coordinates.
        name: What the legend calls it, where no other trace has this name.
        hover: What is said of each point, as plain text.
        mode: Of Plotly: ``markers``, ``lines`` or ``lines+markers``.
        look: Further arguments of Plotly.
    """
    said = None if hover is None else [plain(text) for text in hover]
    is_new = name is not None and all(trace.name != name for trace in figure.data)
    figure.add_scatter(
        x=_numbers(x), y=_numbers(y), name=name, mode=mode, hovertext=said,
        hoverinfo="skip" if said is None else "text", showlegend=is_new, legendgroup=name, **look,
    )  # fmt: skip


def curve(
    figure: go.Figure,
    x: Any,
    mean: Any,
    std: Any,
    name: str,
    hover: Iterable[object],
    color: str = MODEL,
    fill: str = BAND,
    **line: Any,
) -> None:
    """Draw a curve, and around it a band of two standard deviations."""
    x, low, high = list(x), list(mean - 2 * std), list(mean + 2 * std)
    scatter(
        figure, [*x, *x[::-1]], [*high, *low[::-1]],
        mode="lines",  # with few points, Plotly would mark each of them
        fill="toself", fillcolor=fill, line={"width": 0},
    )  # fmt: skip
    scatter(figure, x, mean, name, hover, mode="lines", line={"color": color, **line})


def _numbers(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values


def axis(name: str, parameter: Parameter) -> dict[str, Any]:
    """Return the axis of a parameter, with unit and scale."""
    title = {"text": plain(label(name, unit_of(parameter)))}
    if isinstance(parameter, Categorical):
        shown = [plain(choice) for choice in parameter.choices]
        return {"title": title, "type": "category", "categoryarray": shown}
    if not parameter.log:
        return {"title": title, "type": "linear"}
    return {"title": title, "type": "log", "tickvals": ticks(*parameter.range)}


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers along a logarithmic axis, a little beyond its ends too.

    >>> ticks(0.1, 2.0)
    [0.1, 0.2, 0.5, 1.0, 2.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 4 else (1,)
    found = [float(f"{step}e{power}") for power in powers for step in steps]
    return [tick for tick in found if low / 1.01 <= tick <= 1.01 * high]


def code(setting: object) -> str:
    """Write a setting of the optimizer: a word, or the name of what somebody wrote."""
    if isinstance(setting, str):
        return setting
    return getattr(setting, "__name__", None) or repr(setting)
