"""What the page shows where there are several outcomes: the compromise, and the front."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from airbo.campaign import Campaign, Experiment, Settings
from airbo.outcomes import Limit, objectives
from airbo.serve.jobs import Deliver
from airbo.serve.thinking import Advice, as_chart
from airbo.serve.view import design_rows
from airbo.words import label, plus_minus, with_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from airbo.optimizer import Recommendation

CHART_HEIGHT = 420
"""Of a chart, in pixels."""


def report_compromise(campaign: Campaign, report: Deliver) -> None:
    """Work out the recommendation and the front, and draw the front."""
    settings, adviser = campaign.settings, campaign.adviser()
    best = adviser.recommend()
    several = list(objectives(settings.outcomes or {}))
    front = adviser.front() if len(several) > 1 else []
    report(advice_of(settings, best, front))
    for a, b in combinations(several, 2):
        figure = front_figure(settings, adviser.experiments, front, best, (a, b))
        report(as_chart(f"front {a} {b}", f"{a} against {b}", figure))


def advice_of(
    settings: Settings, best: "Recommendation", front: "Sequence[Recommendation]"
) -> Advice:
    """Write a recommendation for the page."""
    named = settings.named or {}
    units = {name: outcome.unit for name, outcome in named.items()}
    tiles = [(n, with_unit(plus_minus(e), units.get(n))) for n, e in best.outcomes.items()]
    reasons = [best.reason]
    for name, estimate in best.outcomes.items():
        want = named[name].want if name in named else None
        if estimate.within is not None and isinstance(want, Limit):
            tiles.append((f"{name} {want.where}", f"{estimate.within:.1%} of runs"))
            reasons.append(
                f"{want.words(name)} is what the file asks for. The probability that this design "
                f"reaches it is {estimate.holds:.2f}."
            )
    safe = best.reason if best.holds is not None and best.holds < 0.5 else ""
    header = [*(label(n, settings.unit(n)) for n in settings.space.names)]
    header += [label(name, unit) for name, unit in units.items()]
    rows = [
        [
            *(value for _, value, _ in design_rows(settings, each.design)),
            *(plus_minus(each.outcomes[name]) for name in named),
        ]
        for each in front
    ]
    return Advice(
        rows=design_rows(settings, best.design),
        tiles=tiles,
        sentences=reasons,
        doubt=safe,
        front=[header, *rows] if rows else [],
    )


def front_figure(
    settings: Settings,
    experiments: Sequence[Experiment],
    front: "Sequence[Recommendation]",
    best: "Recommendation",
    names: tuple[str, str],
) -> "go.Figure":
    """Draw two objectives against each other: single runs, the front, and the compromise."""
    import plotly.graph_objects as go

    from airbo.report import style

    a, b = names
    runs = [e.outcomes for e in experiments if e.counts and a in e.outcomes and b in e.outcomes]
    figure = go.Figure()
    figure.add_scatter(
        x=[run[a] for run in runs], y=[run[b] for run in runs], mode="markers",
        name="single runs", marker={"color": style.DATA, "size": 7, "opacity": 0.6},
    )  # fmt: skip
    for found, name, marker in (
        (front, "expected, on the front", {"color": style.MODEL, "size": 10}),
        ([best], "the compromise", {"color": style.BEST, "size": 15, "symbol": "star"}),
    ):
        at = [[each.outcomes[n] for each in found] for n in names]
        figure.add_scatter(
            x=[e.mean for e in at[0]], y=[e.mean for e in at[1]], mode="markers", name=name,
            marker=marker, error_x={"array": [e.std for e in at[0]], "thickness": 1},
            error_y={"array": [e.std for e in at[1]], "thickness": 1},
        )  # fmt: skip
    named = settings.named or {}
    figure.update_xaxes(title_text=style.plain(label(a, named[a].unit)))
    figure.update_yaxes(title_text=style.plain(label(b, named[b].unit)))
    return style.styled(figure, CHART_HEIGHT)
