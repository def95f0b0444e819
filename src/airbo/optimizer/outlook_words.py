"""Whether it is worth going on, in words."""

from collections.abc import Iterator

from airbo.optimizer.outlook import LuckiestRun, Outlook
from airbo.space import Space
from airbo.words import design as design_words
from airbo.words import listed, number, plus_minus, with_unit

MEAN_ONLY = (
    "What further experiments can bring is worked out only where the mean of one value decides."
)
"""Said in place of an outlook."""


def sentences(outlook: Outlook, space: Space, name: str, unit: str | None = None) -> list[str]:
    """Say what further experiments can bring, and what the recommendation is based on.

    Args:
        outlook: What was worked out.
        space: The parameters.
        name: What the observed values are.
        unit: Their unit.
    """
    return [
        verdict(outlook, name, unit),
        *_about_gains(outlook, unit),
        *_about_chance(outlook, name, unit),
        *_about_confirmations(outlook, name, unit),
        *_about_luck(outlook, space, name, unit),
    ]


def verdict(outlook: Outlook, name: str, unit: str | None) -> str:
    """Say in one sentence whether to go on."""
    last = max(outlook.gains, default=0)
    tolerance = with_unit(number(outlook.tolerance, 2), unit)
    if outlook.gains.get(last, 0.0) > outlook.tolerance:
        return f"Going on is worth it: more than {tolerance} of {name} is still to be gained."
    return (
        f"You can stop: {last} more experiments are expected to bring no more than {tolerance} of "
        f"{name}."
    )


def _about_gains(outlook: Outlook, unit: str | None) -> Iterator[str]:
    if outlook.gains:
        sign = "+" if outlook.direction == "maximize" else "−"
        parts = [f"{sign}{number(g, 2)} after {n} more" for n, g in outlook.gains.items()]
        in_units = f" (in {unit})" if unit else ""
        yield f"Expected improvement of the recommended design{in_units}: {listed(parts)}."


def _about_chance(outlook: Outlook, name: str, unit: str | None) -> Iterator[str]:
    tolerance = with_unit(number(outlook.tolerance, 2), unit)
    yield (
        f"By the model, the probability that no other design is better by more than {tolerance} of "
        f"{name} is {percent(outlook.probability)}."
    )


def percent(probability: float) -> str:
    """Write a probability that was counted over a few thousand draws.

    >>> percent(0.7231), percent(0.0003), percent(1.0)
    ('72%', 'below 1%', 'above 99%')
    """
    if probability < 0.01:
        return "below 1%"
    return "above 99%" if probability > 0.99 else f"{100 * probability:.0f}%"


def _about_confirmations(outlook: Outlook, name: str, unit: str | None) -> Iterator[str]:
    n = outlook.n_confirmations
    if not n:
        return
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
    yield (
        f"The {best} observed {name}, {with_unit(number(lucky.value), unit)}, is of another design "
        f"({design_words(space, lucky.design)}). The model expects {expected} of it on average, "
        f"{_compared(outlook, lucky, unit)}: {_reason(lucky, unit)}"
    )


def _compared(outlook: Outlook, lucky: LuckiestRun, unit: str | None) -> str:
    best = outlook.recommendation
    return f"and {with_unit(plus_minus(best), unit)} of the recommended one"


def _reason(lucky: LuckiestRun, unit: str | None) -> str:
    spread = with_unit(number(lucky.spread, 2), unit)
    excess = abs(lucky.value - lucky.mean)
    if lucky.spread > 0 and excess > 0.5 * lucky.spread:
        return f"single runs differ from the average by ± {spread}, and this one was lucky."
    return "the two can hardly be told apart."
