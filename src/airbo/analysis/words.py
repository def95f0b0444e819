"""Outlook, operating window and tolerance budget, in words."""

from collections.abc import Iterator, Sequence
from typing import Any

from airbo.analysis.budget import Contribution, ToleranceBudget
from airbo.analysis.outlook import Outlook
from airbo.analysis.window import CONFIDENCE, OperatingWindow
from airbo.measures.capability import Likely
from airbo.space import Space
from airbo.space.parameters import Categorical
from airbo.words import design as design_words
from airbo.words import listed, number, percent, plus_minus, unit_of, with_unit

MEAN_ONLY = (
    "What further experiments can bring is worked out only where the mean of one value decides."
)
"""Said in place of an outlook."""


def outlook_sentences(
    outlook: Outlook, space: Space, name: str, unit: str | None = None
) -> list[str]:
    """Say what further experiments can bring, and what the recommendation is based on.

    Args:
        outlook: What was worked out.
        space: The parameters.
        name: What the observed values are.
        unit: Their unit.
    """
    return [
        outlook_verdict(outlook, name, unit),
        *_about_gains(outlook, name, unit),
        *_about_confirmations(outlook, name, unit),
        *_about_luck(outlook, space, name, unit),
    ]


def outlook_verdict(outlook: Outlook, name: str, unit: str | None) -> str:
    """Say in one sentence whether to go on."""
    last = max(outlook.gains, default=0)
    tolerance = with_unit(number(outlook.tolerance, 2), unit)
    if not outlook.tolerance:
        return "Keep going: values have to differ before they tell what more experiments gain."
    if outlook.gains.get(last, 0.0) > outlook.tolerance:
        return f"Keep going: {last} more experiments should gain over {tolerance} of {name}."
    return f"You can stop: {last} more experiments should gain at most {tolerance} of {name}."


def _about_gains(outlook: Outlook, name: str, unit: str | None) -> Iterator[str]:
    if outlook.gains:
        sign = "+" if outlook.direction == "maximize" else "−"
        parts = [f"{sign}{number(g, 2)} after {n} more" for n, g in outlook.gains.items()]
        in_units = f" (in {unit})" if unit else ""
        yield f"Expected improvement of the recommended design{in_units}: {listed(parts)}."
    tolerance = with_unit(number(outlook.tolerance, 2), unit)
    yield (
        f"By the model, the probability that no other design is better by more than {tolerance} of "
        f"{name} is {chance(outlook.probability)}."
    )


def chance(probability: float) -> str:
    """Write a probability that was counted over a few thousand draws.

    >>> chance(0.7231), chance(0.0003), chance(1.0)
    ('72%', 'below 1%', 'above 99%')
    """
    if probability < 0.01:
        return "below 1%"
    return "above 99%" if probability > 0.99 else f"{100 * probability:.0f}%"


def _about_confirmations(outlook: Outlook, name: str, unit: str | None) -> Iterator[str]:
    n = outlook.n_confirmations
    if not n:
        return
    # runs of one design scatter by the noise and by where x' lands
    tried = {0: "was never tried", 1: "was tried once"}.get(
        outlook.n_values, f"was tried {outlook.n_values} times"
    )
    runs = "once more" if n == 1 else f"{n} more times"
    spread = with_unit(number(outlook.spread, 2), unit)
    yield (
        f"The recommended design {tried}, and a single run differs from its expected {name} by "
        f"± {spread}. Run it {runs} before you rely on it."
    )


def _about_luck(outlook: Outlook, space: Space, name: str, unit: str | None) -> Iterator[str]:
    lucky = outlook.luckiest
    if lucky is None:
        return
    best = "highest" if outlook.direction == "maximize" else "lowest"
    expected = with_unit(plus_minus(lucky), unit)
    of_best = with_unit(plus_minus(outlook.recommendation), unit)
    # |y - E y| > half a standard deviation of single runs: luck explains it
    reason = "the two can hardly be told apart."
    if abs(lucky.value - lucky.mean) > 0.5 * lucky.spread > 0:
        spread = with_unit(number(lucky.spread, 2), unit)
        reason = f"single runs differ from the average by ± {spread}, and this one was lucky."
    yield (
        f"The {best} observed {name}, {with_unit(number(lucky.value), unit)}, is of another design "
        f"({design_words(space, lucky.design)}). The model expects {expected} of it on average, "
        f"and {of_best} of the recommended one: {reason}"
    )


def window_sentences(window: OperatingWindow, space: Space) -> list[str]:
    """Say how far each parameter may move."""
    found = [window_verdict(window)]
    for name, ends in window.alone.items():
        alone, joint = (range_words(space, name, own) for own in (ends, window.jointly[name]))
        both = f"{alone} alone; {joint} if all move at once"
        found.append(f"{name}: {both if len(window.alone) > 1 else alone}.")
    return found


def window_verdict(window: OperatingWindow) -> str:
    """Say what the window is about, or why there is none."""
    here = percent(window.probability)
    if not window.alone:
        return (
            f"There is no operating window: P(in spec) is {here} at this design. The probability "
            f"that it is at least {percent(window.level)} is {window.confidence:.2f}, but "
            f"{CONFIDENCE:g} is required."
        )
    fixed = ""
    if window.tied:
        fixed = (
            f" {listed(window.tied)} cannot move alone: an equality constraint ties them together, "
            "so their ranges are single values."
        )
    return (
        f"Operating window, P(in spec) of at least {percent(window.level)} with a confidence of "
        f"{CONFIDENCE:g}; at the design it is {here}.{fixed}"
    )


def range_words(space: Space, name: str, ends: Sequence[Any]) -> str:
    """Write how far a parameter may move, or which of its choices there are."""
    parameter = space.parameters[name]
    if isinstance(parameter, Categorical):
        return listed([str(choice) for choice in ends])
    low, high = (number(end) for end in ends)
    return with_unit(low if low == high else f"{low} to {high}", unit_of(parameter))


def budget_sentences(budget: ToleranceBudget, name: str, unit: str | None) -> list[str]:
    """Say which error makes values scatter, and what halving each would buy."""
    if budget.all_halved is None:
        return [f"The design is set exactly in use, so {name} does not scatter."]
    found = [all_halved_words(budget, name, unit)]
    if len(budget.contributions) < 2:
        return found
    for c in budget.contributions:
        found.append(
            f"The error of {listed(c.parameters)} causes {likely_share(c.share)} of the variance; "
            f"halving it leaves {_left(c, budget)}."
        )
    return found


def all_halved_words(budget: ToleranceBudget, name: str, unit: str | None) -> str:
    """Say how far values scatter, and what halving all errors would buy."""
    c = budget.all_halved
    assert c is not None
    scatter = with_unit(number(budget.scatter.value, 2), unit)
    return (
        f"{name} scatters by ± {scatter} over where the design lands. Halving all errors leaves "
        f"{_left(c, budget)}."
    )


def _left(c: Contribution, budget: ToleranceBudget) -> str:
    left = f"{likely_share(c.scatter_if_halved)} of the scatter"
    then = budget.in_spec_if_halved(c)
    if then is None or budget.in_spec is None:
        return left
    now = budget.in_spec.value
    if percent(then) == percent(now):
        return f"{left}, and {percent(now)} in spec as now"
    clear = "" if c.is_clear else " (no clear difference)"
    return f"{left}, and {percent(then)} in spec instead of {percent(now)}{clear}"


def likely_share(share: Likely) -> str:
    """Write a share and the interval that the model believes."""
    return f"{100 * share.value:.0f}% ({100 * share.low:.0f}% to {100 * share.high:.0f}%)"
