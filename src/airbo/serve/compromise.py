"""What the page shows where there are several outcomes: the compromise, and the front."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from airbo.campaign import Campaign, Settings
from airbo.outcomes import Limit, expected_words, objectives
from airbo.serve.jobs import Deliver
from airbo.serve.thinking import Advice, as_chart
from airbo.serve.view import design_rows
from airbo.words import label

if TYPE_CHECKING:
    from airbo.optimizer import Recommendation


def report_compromise(campaign: Campaign, report: Deliver) -> None:
    """Work out the recommendation and the front, and draw the front."""
    from airbo.report.front import front_figure

    settings, adviser = campaign.settings, campaign.adviser()
    best = adviser.recommend()
    several = list(objectives(settings.outcomes or {}))
    front = adviser.front() if len(several) > 1 else []
    report(advice_of(settings, best, front))
    units = {name: outcome.unit for name, outcome in (settings.named or {}).items()}
    for a, b in combinations(several, 2):
        runs = [e.outcomes for e in adviser.experiments if e.counts and {a, b} <= e.outcomes.keys()]
        observed = ([run[a] for run in runs], [run[b] for run in runs])
        figure = front_figure(settings.space, observed, front, best, (a, b), units)
        report(as_chart(f"front {a} {b}", f"{a} against {b}", figure))


def advice_of(
    settings: Settings, best: "Recommendation", front: "Sequence[Recommendation]"
) -> Advice:
    """Write a recommendation for the page."""
    named = settings.named or {}
    units = {name: outcome.unit for name, outcome in named.items()}
    wants = {name: outcome.want for name, outcome in named.items()}
    expected = best.outcomes.items()
    tiles = [(n, expected_words(wants.get(n), e, units.get(n))) for n, e in expected]
    reasons = [best.reason]
    for name, estimate in best.outcomes.items():
        want = wants.get(name)
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
            *(expected_words(want, each.outcomes[name]) for name, want in wants.items()),
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
