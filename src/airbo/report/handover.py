"""What people hand over where there are limits: the operating window and the tolerance budget."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from airbo.analysis import Contribution, OperatingWindow, ToleranceBudget
from airbo.analysis.words import (
    all_halved_words,
    as_percent,
    likely_share,
    window_verdict,
)
from airbo.report import style
from airbo.report.findings import Findings
from airbo.report.page import Page
from airbo.space.parameters import Categorical
from airbo.words import listed, number, with_unit

WINDOW, JOINT = "rgba(0,158,115,0.12)", "rgba(0,158,115,0.25)"
TOGETHER, NOISE_ROW = "together", "noise"


def add_window(page: Page, findings: Findings, window: OperatingWindow) -> None:
    """Add how far each parameter may move."""
    page.section("Operating window")
    page.verdict(window_verdict(window), doubt=not window.alone)
    page.note(
        "P(in spec) is the probability that a part is within all limits, wherever the design "
        "lands; what the model does not know counts against it. Light: the range of one parameter "
        "while all others stay as recommended (its proven acceptable range). Dark: ranges within "
        "which all parameters may move at once. The ends of ranges are what the model predicts, to "
        "about 1 percentage point of P(in spec): try them before you rely on them."
    )
    names = findings.space.names
    page.charts([(name, window_figure(findings, window, name)) for name in names])
    if not window.alone:
        return
    rows = [
        [
            name,
            findings.shown(name, window.design[name]),
            range_words(findings, name, window.alone[name]),
            range_words(findings, name, window.jointly[name]),
        ]
        for name in names
    ]
    page.table(["parameter", "recommended", "alone", "all together"], rows)


def range_words(findings: Findings, name: str, ends: Sequence[Any]) -> str:
    """Write a range, or the choices of a category."""
    if isinstance(findings.parameter(name), Categorical):
        return listed([str(choice) for choice in ends])
    low, high = (findings.bare(name, end) for end in ends)
    unit = getattr(findings.parameter(name), "unit", None)
    return with_unit(low if low == high else f"{low} to {high}", unit)


def window_figure(findings: Findings, window: OperatingWindow, name: str) -> go.Figure:
    """Draw P(in spec) along a parameter, and the ranges in which it is high enough."""
    parameter, along = findings.parameter(name), window.along[name]
    is_category = isinstance(parameter, Categorical)
    figure = go.Figure()
    if not is_category and window.alone:
        for ends, color in ((window.alone[name], WINDOW), (window.jointly[name], JOINT)):
            figure.add_vrect(*ends, fillcolor=color, line={"width": 0}, layer="below")
    x = [style.plain(v) for v in along.values] if is_category else list(along.values)
    figure.add_scatter(
        x=x,
        y=along.probabilities,
        mode="markers" if is_category else "lines",
        line={"color": style.MODEL, "width": 2.5},
        marker={"color": style.MODEL, "size": 9},
        hovertext=[
            style.plain(f"{findings.shown(name, v)}: {as_percent(p)}")
            for v, p in zip(along.values, along.probabilities, strict=True)
        ],
        hoverinfo="text",
    )
    here = window.design[name]
    figure.add_scatter(
        x=[style.plain(here) if is_category else here],
        y=[window.probability],
        mode="markers",
        marker={"color": style.BEST, "size": 13, "symbol": "star"},
        hovertext=style.plain(f"recommended: {as_percent(window.probability)}"),
        hoverinfo="text",
    )
    figure.add_hline(window.level, line={"color": style.NOMINAL, "dash": "dot"})
    style.styled(figure, height=300)
    return figure.update_layout(
        xaxis=style.axis(name, parameter),
        yaxis={"title": "P(in spec)", "range": [-0.03, 1.03], "tickformat": ".0%"},
        showlegend=False,
    )


def add_budget(page: Page, findings: Findings, budget: ToleranceBudget) -> None:
    """Add which error makes values scatter, and what halving it would buy."""
    page.section(findings.titled("Tolerance budget"))
    if budget.all_halved is None:
        page.text("Designs are hit exactly in use: nothing makes values scatter.")
        return
    page.verdict(all_halved_words(budget, findings.name, findings.unit))
    page.note(
        "How much of the scatter over where the recommended design lands each parameter's error "
        "causes, and what would be left if that error were half as large, the design staying as "
        "it is. Brackets and bars hold 90% of what the model believes. All parameters are listed "
        "in their order. Because several changes are compared, a change counts as clear only after "
        "a Bonferroni correction."
    )
    page.charts([("", budget_figure(budget))])
    page.table(_header(budget), budget_rows(budget))


def budget_figure(budget: ToleranceBudget) -> go.Figure:
    """Draw the share of the variance that each error causes."""
    rows = [(listed(c.parameters), c.share) for c in budget.contributions]
    rows += [(TOGETHER, budget.together)] if len(budget.contributions) > 1 else []
    rows += [(NOISE_ROW, budget.noise)] if budget.noise is not None else []
    rows = rows[::-1]
    figure = go.Figure()
    figure.add_bar(
        x=[100 * share.value for _, share in rows],
        y=[style.plain(name) for name, _ in rows],
        orientation="h",
        marker={"color": style.MODEL},
        error_x={
            "array": [100 * (s.high - s.value) for _, s in rows],
            "arrayminus": [100 * (s.value - s.low) for _, s in rows],
            "color": style.NOMINAL,
            "thickness": 1.5,
        },
        hoverinfo="skip",
    )
    style.styled(figure, height=130 + 34 * len(rows))
    return figure.update_layout(
        xaxis={"title": "share of the variance", "ticksuffix": "%", "rangemode": "tozero"},
        yaxis={"type": "category"},
        showlegend=False,
    )


def _header(budget: ToleranceBudget) -> list[str]:
    gain = ["in spec, if halved", ""] if budget.in_spec is not None else []
    return ["error of", "causes of the variance", "scatter left, if halved", *gain]


def budget_rows(budget: ToleranceBudget) -> list[list[str]]:
    """Return the cells of the table."""
    everything = [] if budget.all_halved is None else [budget.all_halved]
    rows = [_row(budget, c, listed(c.parameters)) for c in budget.contributions]
    if len(budget.contributions) > 1:
        rows += [_row(budget, c, "all") for c in everything]
    rest = [""] * (len(_header(budget)) - 2)
    if len(budget.contributions) > 1:
        rows.append(["several only together", likely_share(budget.together), *rest])
    if budget.noise is not None:
        rows.append(["noise", likely_share(budget.noise), *rest])
    return rows


def _row(budget: ToleranceBudget, c: Contribution, name: str) -> list[str]:
    cells = [name, likely_share(c.share), likely_share(c.scatter_if_halved)]
    if c.gain_if_halved is None or budget.in_spec is None:
        return cells
    gain, low, high = (100 * v for v in (c.gain_if_halved.value, c.gain_if_halved.low,
                                         c.gain_if_halved.high))  # fmt: skip
    then = as_percent(budget.in_spec.value + c.gain_if_halved.value)
    points = f"{_signed(gain)} points ({_signed(low)} to {_signed(high)})"
    clear = points if c.is_clear else f"{points}: no clear difference"
    return [*cells, then, clear]


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value, 2)
