"""Operating window and tolerance budget, in words."""

from typing import Any

from airbo.measures.capability import Likely
from airbo.optimizer.budget import Contribution, ToleranceBudget
from airbo.optimizer.window import OperatingWindow
from airbo.space import Space
from airbo.space.parameters import Categorical
from airbo.words import listed, number, unit_of, with_unit


def window_sentences(window: OperatingWindow, space: Space) -> list[str]:
    """Say how far each parameter may move."""
    found = [window_verdict(window)]
    for name, ends in window.alone.items():
        alone, joint = (_range(space, name, own) for own in (ends, window.jointly[name]))
        both = f"{alone} alone; {joint} if all move at once"
        found.append(f"{name}: {both if len(window.alone) > 1 else alone}.")
    return found


def window_verdict(window: OperatingWindow) -> str:
    """Say what the window is about, or why there is none."""
    here = as_percent(window.probability)
    if not window.alone:
        return (
            f"There is no operating window: P(in spec) is {here} at this design, and "
            f"{as_percent(window.level)} are asked for."
        )
    fixed = ""
    if window.tied:
        fixed = (
            f" {listed(window.tied)} cannot move alone: an equality constraint ties them together, "
            "so their ranges are single values."
        )
    return (
        f"Operating window, P(in spec) of at least {as_percent(window.level)}; at the design it is "
        f"{here}.{fixed}"
    )


def _range(space: Space, name: str, ends: tuple[Any, ...]) -> str:
    parameter = space.parameters[name]
    if isinstance(parameter, Categorical):
        return listed([str(choice) for choice in ends])
    low, high = (number(end) for end in ends)
    return with_unit(low if low == high else f"{low} to {high}", unit_of(parameter))


def budget_sentences(budget: ToleranceBudget, name: str, unit: str | None) -> list[str]:
    """Say which error makes values scatter, and what halving each would buy."""
    if budget.all_halved is None:
        return [f"The design is hit exactly in use: nothing makes {name} scatter."]
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
    if c.gain_if_halved is None or budget.in_spec is None:
        return left
    now, then = budget.in_spec.value, budget.in_spec.value + c.gain_if_halved.value
    clear = "" if c.is_clear else " (no clear difference)"
    return f"{left}, and {as_percent(then)} in spec instead of {as_percent(now)}{clear}"


def likely_share(share: Likely) -> str:
    """Write a share and the interval that the model believes."""
    return f"{100 * share.value:.0f}% ({100 * share.low:.0f}% to {100 * share.high:.0f}%)"


def as_percent(probability: float) -> str:
    """Write a probability, with more digits the nearer it is to 1.

    >>> as_percent(0.5), as_percent(0.95), as_percent(0.998), as_percent(1.0)
    ('50%', '95%', '99.8%', '100%')
    """
    places = 0 if probability < 0.945 else 1
    return f"{100 * probability:.{places}f}".removesuffix(".0") + "%"
