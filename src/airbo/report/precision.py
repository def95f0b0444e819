"""What a more or less precise machine would change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from scipy.stats import norm
from torch import Tensor
from torch.quasirandom import SobolEngine

from airbo.optimizer import Design
from airbo.report import style
from airbo.report.beliefs import Beliefs, Estimate
from airbo.report.findings import Findings
from airbo.uncertainty import Exact, InputUncertainty, Product
from airbo.uncertainty.in_cube import by_columns
from airbo.words import label, listed, plus_minus

FACTORS = (0.5, 2.0)
ALL = "all together"
MAX_SEARCHES = 12
"""With more other uncertainties, the best design is looked up for the joint ones only."""
N_SPREAD, N_LOCAL, N_EARLIER = 96, 32, 32
RADII = (0.1, 0.03)


@dataclass(frozen=True)
class Found:
    """A design, what to expect of it, and how that differs from what today's uncertainty gives."""

    design: Design
    expected: Estimate
    change: Estimate


@dataclass(frozen=True)
class Offer:
    """What to expect if some parameters were hit more, or less, precisely."""

    who: str
    """The parameters whose deviations change."""
    factor: float
    """Factor of their deviations."""
    same: Found | None
    """The recommended design under it; None if it is not possible, see ``impossible``."""
    best: Found | None = None
    """The best design under it, compared with today's best; None if it was not searched."""
    impossible: str | None = None
    """Why this uncertainty is not possible."""


def uncertain_groups(findings: Findings) -> dict[str, list[int]]:
    """Return the groups of parameters that are uncertain in use, with their blocks."""
    u, names = findings.deployment, findings.space.names
    if isinstance(u, Exact):
        return {}
    if not isinstance(u, Product):
        return {listed(names): [0]}
    return {
        listed([names[c] for c in own]): [i]
        for i, (block, own) in enumerate(zip(u.blocks, u.layout(len(names)), strict=True))
        if not isinstance(block, Exact)
    }


def precision_offers(findings: Findings) -> list[Offer]:
    """Return what today's uncertainty gives, and half and double that of each group and of all."""
    groups = uncertain_groups(findings)
    if not groups:
        return []
    joint = [i for blocks in groups.values() for i in blocks]
    alone = [] if len(groups) == 1 else list(groups.items())
    asked = [(who, blocks, factor) for who, blocks in alone for factor in FACTORS]
    name = next(iter(groups)) if len(groups) == 1 else ALL
    asked += [(name, joint, factor) for factor in FACTORS]
    today = _best_design(findings, findings.what_if)
    offers = [_offer(findings, name, joint, 1.0, today)]
    for who, blocks, factor in asked:
        search = len(asked) <= MAX_SEARCHES or blocks == joint
        offers.append(_offer(findings, who, blocks, factor, today if search else None))
    return offers


def _offer(
    findings: Findings,
    who: str,
    blocks: Sequence[int],
    factor: float,
    today: Float[Tensor, "1 d"] | None,
) -> Offer:
    """Work out an offer, with the best design for it if that of ``today`` is given."""
    other = _scaled(findings.deployment, blocks, factor)
    try:
        by_columns(findings.space, other)
    except ValueError as error:
        return Offer(who, factor, None, impossible=str(error))
    beliefs = findings.what_if.under(other)
    same = _found(findings, beliefs, other, findings.center, findings.center)
    if today is None:
        return Offer(who, factor, same)
    X = today if factor == 1 else _best_design(findings, beliefs, start=today)
    return Offer(who, factor, same, _found(findings, beliefs, other, X, today))


def _scaled(u: InputUncertainty, blocks: Sequence[int], factor: float) -> InputUncertainty:
    if not isinstance(u, Product):
        return u.scaled(factor)
    changed = [b.scaled(factor) if i in blocks else b for i, b in enumerate(u.blocks)]
    return replace(u, blocks=tuple(changed))


def _found(
    findings: Findings,
    beliefs: Beliefs,
    other: InputUncertainty,
    X: Float[Tensor, "1 d"],
    reference: Float[Tensor, "1 d"],
) -> Found:
    both = torch.cat([reference, X])
    expected, change = beliefs.compare(both, [findings.deployment, other])
    if other == findings.deployment and torch.equal(X, reference):
        change = Estimate(np.zeros(()), np.zeros(()))
    [design] = findings.space.to_designs(X)
    return Found(design, expected, change)


def _best_design(
    findings: Findings, beliefs: Beliefs, start: Float[Tensor, "1 d"] | None = None
) -> Float[Tensor, "1 d"]:
    """Search the designs tried, designs all over the space, and ever closer neighbours."""
    cube = findings.cube
    spread = SobolEngine(cube.space.d, scramble=True, seed=0).draw(N_SPREAD, dtype=torch.float64)
    everywhere = findings.allowed(cube.axes.to_columns(cube.round(spread)))
    X = [findings.center if start is None else start, everywhere]
    if findings.tried:
        X.append(cube.columns([row.design for row in findings.tried[:N_EARLIER]]))
    best = _best_of(findings, beliefs, torch.cat(X))
    steps = 2 * spread[:N_LOCAL] - 1
    for radius in RADII:
        near = cube.round(cube.axes.from_columns(best) + radius * steps)
        beside = findings.allowed(cube.axes.to_columns(near))
        best = _best_of(findings, beliefs, torch.cat([best, beside]))
    return best


def _best_of(findings: Findings, beliefs: Beliefs, X: Float[Tensor, "n d"]) -> Float[Tensor, "1 d"]:
    return X[[int(np.argmax(findings.sign * beliefs.expected(X).mean))]]


def times(factor: float) -> str:
    """Write a factor of deviations."""
    return {0.5: "halved", 1.0: "as it is", 2.0: "doubled"}.get(factor, f"× {factor:g}")


def strictness(offers: Sequence[Offer]) -> float:
    """Return how many standard deviations make a change clear, where several are compared.

    One change in twenty would look clear by chance at 1.96; with k changes each has to be clear at
    1/20/k (Bonferroni), so that the largest of them is not quoted for being the largest.
    """
    k = sum((offer.same is not None) + (offer.best is not None) for offer in offers[1:])
    return float(norm.isf(0.025 / max(1, k)))


def change_verdict(findings: Findings, change: Estimate, strict: float = 2.0) -> str:
    """Say whether a change is clear, and in which direction."""
    mean, std = float(change.mean), float(change.std)
    shown = plus_minus(change, signed=True)
    if std == 0 and mean == 0:
        return "—"
    if abs(mean) < strict * std:
        return f"{shown}: no clear difference"
    return f"{shown}: {'better' if findings.sign * mean > 0 else 'worse'}"


def gains(findings: Findings, offers: Sequence[Offer], strict: float = 2.0) -> list[Offer]:
    """Return the offers that would clearly make the best design better, in their order."""

    def is_clear(offer: Offer) -> bool:
        found = offer.best or offer.same
        if found is None:
            return False
        return findings.sign * float(found.change.mean) > strict * float(found.change.std)

    return [offer for offer in offers if offer.factor < 1 and is_clear(offer)]


def precision_figure(findings: Findings, offers: Sequence[Offer]) -> go.Figure:
    """Draw the expected value under each uncertainty, at the recommended and the best design."""
    figure = go.Figure()
    for what, symbol, color in (
        ("recommended design", "circle-open", style.NOMINAL),
        ("best design for it", "circle", style.MODEL),
    ):
        shown = [
            (offer, found)
            for offer in reversed(offers)
            if (found := offer.same if what.startswith("rec") else offer.best) is not None
        ]
        figure.add_scatter(
            x=[float(found.expected.mean) for _, found in shown],
            y=[_row(offer) for offer, _ in shown],
            error_x={"array": [float(f.expected.std) for _, f in shown], "thickness": 1.5},
            mode="markers",
            name=what,
            marker={"symbol": symbol, "size": 10, "color": color},
            hovertext=[
                style.plain(f"{offer.who} {times(offer.factor)}: {plus_minus(found.expected)}")
                for offer, found in shown
            ],
            hoverinfo="text",
        )
    today = next(o.same for o in offers if o.factor == 1.0 and o.same)
    figure.add_vline(float(today.expected.mean), line={"color": style.NOMINAL, "dash": "dot"})
    style.styled(figure, height=130 + 34 * len(offers))
    rows = [_row(offer) for offer in reversed(offers)]
    return figure.update_layout(
        xaxis={"title": style.plain(f"expected {label(findings.name, findings.unit)}")},
        yaxis={"type": "category", "categoryorder": "array", "categoryarray": rows},
    )


def _row(offer: Offer) -> str:
    if offer.factor == 1.0:
        return "as it is"
    return style.plain(f"{offer.who} {times(offer.factor)}")
