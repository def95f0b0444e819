"""The sentence on top of a report: what to set, and what to expect."""

import numpy as np

from airbo import words
from airbo.report.beliefs import Estimate
from airbo.report.findings import Findings
from airbo.report.page import Page

NEAR_BOUND = 0.005
"""A design so near to a bound, in ranges of the parameter, stands on it."""


def add_answer(page: Page, findings: Findings) -> None:
    """Add what to set and what to expect, or why that cannot be said yet."""
    if not len(findings.known):
        page.lead("No experiment has given a value yet: there is nothing to recommend.", doubt=True)
        return
    best = findings.best
    estimate = Estimate(np.array(best.mean), np.array(best.std))
    expected = words.with_unit(words.plus_minus(estimate), findings.unit)
    chosen = words.design(findings.space, best.design)
    if findings.doubt is not None:
        n = len(findings.known)
        page.lead(
            f"Too little is known to recommend a design: after {n} value{'s' if n != 1 else ''} "
            f"the model cannot tell the designs apart. If you have to choose now: {chosen}, with "
            f"an expected {findings.name} of {expected}.",
            doubt=True,
        )
    else:
        page.lead(f"Set {chosen}. Expect a mean {findings.name} of {expected}.")
    page.note(_what_it_means(findings, estimate))
    for name in findings.space.names:
        end = _bound_reached(findings, name)
        if end:
            page.note(
                f"{name} stands at the {end} end of its range: if the range can be made wider, "
                "there may be something better beyond."
            )


def _what_it_means(findings: Findings, estimate: Estimate) -> str:
    goal = "large" if findings.sign > 0 else "small"
    over = ", over all the places where the design may land" if findings.uncertain else ""
    text = (
        f"Values are to be {goal}. The mean is that of many repetitions{over}. "
        "± is one standard deviation of what the model does not know about it: the mean lies "
        f"between {words.interval(estimate).replace(' to ', ' and ')} in 95 of 100 cases."
    )
    if findings.optimizer.deployment == findings.optimizer.uncertainty:
        single = findings.beliefs.expected(findings.center, noise=True)[0]
        text += f" A single experiment scatters more: {words.interval(single)}."
    return text


def _bound_reached(findings: Findings, name: str) -> str | None:
    column = findings.space.names.index(name)
    if column in findings.space.categorical_columns:
        return None
    position = findings.space.to_model(findings.center)[0, column].item()
    if position <= NEAR_BOUND:
        return "lower"
    return "upper" if position >= 1 - NEAR_BOUND else None
