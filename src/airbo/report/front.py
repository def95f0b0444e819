"""The picture of a front: two objectives against each other."""

from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from airbo import words
from airbo.optimizer import Recommendation
from airbo.report import style
from airbo.space import Space

FRONT_HEIGHT = 400
"""In pixels."""


def front_figure(
    space: Space,
    observed: tuple[Iterable[float], Iterable[float]],
    front: Sequence[Recommendation],
    best: Recommendation,
    names: tuple[str, str],
    units: Mapping[str, str | None],
) -> go.Figure:
    """Draw single runs, the front and the compromise.

    Args:
        space: The parameters, to name the designs.
        observed: What was observed of both objectives.
        front: The designs that no other one beats.
        best: The compromise.
        names: The objectives.
        units: Units of outcomes by name.
    """
    a, b = names
    figure = go.Figure()
    figure.add_scatter(
        x=list(observed[0]), y=list(observed[1]), mode="markers", name="observed",
        marker={"color": style.DATA, "size": 6, "opacity": 0.5}, hoverinfo="skip",
    )  # fmt: skip
    ordered = sorted(front, key=lambda r: r.outcomes[a].mean)
    x, y = ([r.outcomes[n].mean for r in ordered] for n in names)
    figure.add_scatter(
        x=x, y=y, mode="lines+markers", name="front, expected",
        error_x={"array": [r.outcomes[a].std for r in ordered], "thickness": 1, "width": 3},
        error_y={"array": [r.outcomes[b].std for r in ordered], "thickness": 1, "width": 3},
        line={"color": style.MODEL, "width": 1.5, "dash": "dot"}, marker={"size": 9},
        hovertext=[style.plain(words.design(space, r.design)) for r in ordered],
        hoverinfo="text",
    )  # fmt: skip
    figure.add_scatter(
        x=[best.outcomes[a].mean], y=[best.outcomes[b].mean], mode="markers", name="compromise",
        marker={"color": style.BEST, "size": 14, "symbol": "star"}, hoverinfo="skip",
    )  # fmt: skip
    titles = [style.plain(words.label(n, units.get(n))) for n in names]
    figure.update_layout(xaxis={"title": titles[0]}, yaxis={"title": titles[1]})
    return style.styled(figure, height=FRONT_HEIGHT)
