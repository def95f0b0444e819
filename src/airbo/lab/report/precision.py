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

from airbo.lab.report import page, style
from airbo.lab.report.beliefs import Beliefs, Estimate
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.lab.report.page import Section
from airbo.optimizer import Design
from airbo.uncertainty import Exact, InputUncertainty, Product
from airbo.uncertainty.in_cube import by_columns
from airbo.words import listed, number, plus_minus

FACTORS = (0.5, 2.0)
ALL = "all together"
MAX_SEARCHES = 12
"""With more other uncertainties, the best design is looked up for the joint ones only."""
N_SPREAD, N_LOCAL = 96, 32
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

    @property
    def title(self) -> str:
        """What changes, in words."""
        change = {0.5: "halved", 2.0: "doubled"}.get(self.factor)
        return "as it is" if change is None else f"{self.who} {change}"


def precision_section(outcome: OutcomeFindings) -> Section:
    """Show what a more, or less, precise machine would change."""
    key, title = "precision", "What precision would buy"
    if not uncertain_groups(outcome.findings):
        exact = page.text("Designs are hit exactly in use: there is no precision to gain.")
        return Section(key, title, (exact,))
    if outcome.what_if is None:
        surrogate = style.code(outcome.findings.optimizer.surrogate)
        cannot = (
            f"The surrogate of this optimization ({surrogate}) cannot say what other uncertainties "
            "would do. The default can."
        )
        return Section(key, title, (page.text(cannot),))
    offers = precision_offers(outcome)
    strict = strictness(offers)
    parts = [
        page.verdict(_summary(outcome, offers, strict)),
        page.note(
            "What to expect if the deviations from the design were half or twice as large: at the "
            "recommended design, and at the best design for them. Changes are relative to the "
            "current deviations, ± one standard deviation. Several changes are compared here, so "
            f"one counts as clear only beyond {number(strict, 2)} standard deviations. Nobody has "
            "tried these precisions: this is what the model makes of the experiments."
        ),
        page.charts([("", precision_figure(outcome, offers))]),
    ]
    header = ["deviations", "recommended design", "best design for it", "expected there"]
    rows = [_offer_row(outcome, offer, strict) for offer in offers]
    return Section(key, title, (*parts, page.table(header, rows)))


def _summary(outcome: OutcomeFindings, offers: list[Offer], strict: float) -> str:
    """Say first what all deviations halved would do, whatever the others do."""
    joint = next(o for o in reversed(offers) if o.factor < 1)
    found = joint.best or joint.same
    if found is None:
        return f"{joint.who} halved: not possible."
    who = "all deviations were" if joint.who == ALL else f"the deviations of {joint.who} were"
    text = f"If {who} halved: {change_verdict(outcome, found.change, strict)}."
    clear = [offer.who for offer in gains(outcome, offers, strict) if offer is not joint]
    others = [offer for offer in offers if offer.factor < 1 and offer is not joint]
    if clear:
        return f"{text} Halving those of {listed(clear)} alone is a clear gain, too."
    return f"{text} Halving those of one parameter alone is no clear gain." if others else text


def _offer_row(outcome: OutcomeFindings, offer: Offer, strict: float) -> list[str]:
    if offer.same is None:
        return [offer.title, f"not possible. {offer.impossible}", "", ""]
    best = offer.best.design.items() if offer.best else ()
    shown = (f"{name} {outcome.findings.shown(name, value)}" for name, value in best)
    same, other = (
        "" if found is None
        else f"{plus_minus(found.expected)} ({change_verdict(outcome, found.change, strict)})"
        for found in (offer.same, offer.best)
    )  # fmt: skip
    return [offer.title, same, ", ".join(shown) or "not looked up", other]


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


def precision_offers(outcome: OutcomeFindings) -> list[Offer]:
    """Return what today's uncertainty gives, and half and double that of each group and of all.

    There is none where designs are hit exactly, or where the model cannot say.
    """
    groups = uncertain_groups(outcome.findings)
    if not groups or outcome.what_if is None:
        return []
    joint = [i for blocks in groups.values() for i in blocks]
    alone = [] if len(groups) == 1 else list(groups.items())
    asked = [(who, blocks, factor) for who, blocks in alone for factor in FACTORS]
    name = next(iter(groups)) if len(groups) == 1 else ALL
    asked += [(name, joint, factor) for factor in FACTORS]
    today = _best_design(outcome, outcome.what_if)
    offers = [_offer(outcome, name, joint, 1.0, today)]
    for who, blocks, factor in asked:
        search = len(asked) <= MAX_SEARCHES or blocks == joint
        offers.append(_offer(outcome, who, blocks, factor, today if search else None))
    return offers


def _offer(
    outcome: OutcomeFindings,
    who: str,
    blocks: Sequence[int],
    factor: float,
    today: Float[Tensor, "1 d"] | None,
) -> Offer:
    """Work out an offer, with the best design for it if that of ``today`` is given."""
    findings = outcome.findings
    other = _scaled(findings.deployment, blocks, factor)
    try:
        by_columns(findings.space, other)
    except ValueError as error:
        return Offer(who, factor, None, impossible=str(error))
    assert outcome.what_if is not None
    beliefs = outcome.what_if.under(other)
    same = _found(findings, beliefs, other, findings.center, findings.center)
    if today is None:
        return Offer(who, factor, same)
    X = today if factor == 1 else _best_design(outcome, beliefs, start=today)
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
    outcome: OutcomeFindings, beliefs: Beliefs, start: Float[Tensor, "1 d"] | None = None
) -> Float[Tensor, "1 d"]:
    """Search the designs tried, designs all over the space, and ever closer neighbours."""
    findings, cube = outcome.findings, outcome.findings.cube
    spread = SobolEngine(cube.space.d, scramble=True, seed=0).draw(N_SPREAD, dtype=torch.float64)
    everywhere = findings.allowed(cube.axes.to_columns(cube.round(spread)))
    tried = outcome.designs[
        torch.tensor(findings.inside(findings.space.to_designs(outcome.designs)))
    ]
    X = [findings.center if start is None else start, everywhere, tried]
    best = _best_of(outcome, beliefs, torch.cat(X))
    steps = 2 * spread[:N_LOCAL] - 1
    for radius in RADII:
        near = cube.round(cube.axes.from_columns(best) + radius * steps)
        beside = findings.allowed(cube.axes.to_columns(near))
        best = _best_of(outcome, beliefs, torch.cat([best, beside]))
    return best


def _best_of(
    outcome: OutcomeFindings, beliefs: Beliefs, X: Float[Tensor, "n d"]
) -> Float[Tensor, "1 d"]:
    return X[[int(np.argmax(outcome.want.sign * beliefs.expected(X).mean))]]


def strictness(offers: Sequence[Offer]) -> float:
    """Return how many standard deviations make a change clear, where several are compared.

    One change in twenty would look clear by chance at 1.96; with k changes each has to be clear at
    1/20/k (Bonferroni), so that the largest of them is not quoted for being the largest.
    """
    k = sum((offer.same is not None) + (offer.best is not None) for offer in offers[1:])
    return float(norm.isf(0.025 / max(1, k)))


def change_verdict(outcome: OutcomeFindings, change: Estimate, strict: float = 2.0) -> str:
    """Say whether a change is clear, and in which direction."""
    mean, std = float(change.mean), float(change.std)
    shown = plus_minus(change, signed=True)
    if std == 0 and mean == 0:
        return "as it is"
    if abs(mean) < strict * std:
        return f"{shown}: no clear difference"
    return f"{shown}: {'better' if outcome.want.sign * mean > 0 else 'worse'}"


def gains(outcome: OutcomeFindings, offers: Sequence[Offer], strict: float = 2.0) -> list[Offer]:
    """Return the offers that would clearly make the best design better, in their order."""

    def is_clear(offer: Offer) -> bool:
        found = offer.best or offer.same
        if found is None:
            return False
        return outcome.want.sign * float(found.change.mean) > strict * float(found.change.std)

    return [offer for offer in offers if offer.factor < 1 and is_clear(offer)]


def precision_figure(outcome: OutcomeFindings, offers: Sequence[Offer]) -> go.Figure:
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
            y=[style.plain(offer.title) for offer, _ in shown],
            error_x={"array": [float(f.expected.std) for _, f in shown], "thickness": 1.5},
            mode="markers",
            name=what,
            marker={"symbol": symbol, "size": 10, "color": color},
            hovertext=[
                style.plain(f"{offer.title}: {plus_minus(found.expected)}")
                for offer, found in shown
            ],
            hoverinfo="text",
        )
    today = next(o.same for o in offers if o.factor == 1.0 and o.same)
    figure.add_vline(float(today.expected.mean), line={"color": style.NOMINAL, "dash": "dot"})
    style.styled(figure, height=130 + 34 * len(offers))
    rows = [style.plain(offer.title) for offer in reversed(offers)]
    return figure.update_layout(
        xaxis={"title": style.plain(f"expected {outcome.label}")},
        yaxis={"type": "category", "categoryorder": "array", "categoryarray": rows},
    )
