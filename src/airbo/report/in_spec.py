"""The picture of a share in spec: the predicted values of a design, and its limits."""

import plotly.graph_objects as go
import torch
from jaxtyping import Float
from torch import Tensor

from airbo.measures.capability import Capability
from airbo.report import style
from airbo.report.findings import Findings
from airbo.report.page import Page
from airbo.words import label, number

N_VALUE_BARS = 60
TAILS = (0.0005, 0.9995)
"""Values beyond these quantiles are drawn at the ends."""
ROOM = 0.04
"""Room at both ends, relative to what is shown."""
IN_SPEC_HEIGHT = 320
"""In pixels."""

Bounds = tuple[float | None, float | None]


def add_in_spec(
    page: Page, findings: Findings, bounds: Bounds, found: Capability, values: Float[Tensor, "S s"]
) -> None:
    """Add how the values of the recommended design are spread, and which of them miss the limits.

    Args:
        page: The page.
        findings: What is known of these values.
        bounds: The smallest and the largest value that are allowed; None: there is no limit.
        found: How well the design keeps them.
        values: Draws of the values at executed inputs.
    """
    page.section(findings.titled("Values in use, and the limits"))
    page.verdict(f"{found.words}.")
    page.note(
        "The values to expect of the recommended design, over where it lands. What the model does "
        "not know makes them wider. Dashed: the limits. Red: values out of spec. Brackets are 90% "
        "intervals (model uncertainty)."
    )
    page.charts([("", in_spec_figure(values, bounds, findings.name, findings.unit))])


def in_spec_figure(
    values: Float[Tensor, "S s"], bounds: Bounds, name: str, unit: str | None
) -> go.Figure:
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
        figure.add_bar(
            x=middle[which].tolist(),
            y=(shares / width)[which].tolist(),
            width=width[which].tolist(),
            name=title,
            marker={"color": color, "line": {"width": 0}},
            hovertext=[
                style.plain(f"{number(a)} to {number(b)}: {100 * share:.3g}%")
                for a, b, share in zip(edges[:-1][which], edges[1:][which], shares[which],
                                       strict=True)
            ],
            hoverinfo="text",
        )  # fmt: skip
    for limit in bounds:
        if limit is not None:
            figure.add_vline(limit, line={"color": style.NOMINAL, "dash": "dash", "width": 2})
    style.styled(figure, height=IN_SPEC_HEIGHT)
    return figure.update_layout(
        xaxis={"title": style.plain(label(name, unit))},
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
