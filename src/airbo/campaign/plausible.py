"""Numbers that are possible, but look like a slip of the hand: they are questioned."""

import math
import statistics
from collections.abc import Iterator, Sequence

from airbo.campaign.config import Settings
from airbo.campaign.errors import Doubtful
from airbo.campaign.experiment import Record
from airbo.campaign.outcome import Outcome
from airbo.parameters import Categorical, Parameter
from airbo.words import number, unit_of, with_unit

FAR_OUTSIDE = 0.5
"""How far outside its range a parameter may land without a question, in ranges."""
MANY_DEVIATIONS = 6.0
"""How far from the mean of the others a value may lie, in their standard deviations."""
TOO_FEW = 8
"""With fewer other values, nothing is known about what is usual."""


def check_plausible(settings: Settings, record: Record, outcomes: Sequence[Outcome]) -> None:
    """Question what looks like a slip of the hand.

    Raises:
        Doubtful: If there is such.
    """
    doubts = [
        doubt
        for outcome in outcomes
        if not _is_known(outcome)
        for doubt in (*_about_input(settings, outcome), *_about_value(settings, record, outcome))
    ]
    if doubts:
        raise Doubtful(doubts)


def _is_known(outcome: Outcome) -> bool:
    known = outcome.experiment
    return known is not None and known.has_outcome and outcome.agrees(known)


def _about_input(settings: Settings, outcome: Outcome) -> Iterator[str]:
    known = {} if outcome.experiment is None else outcome.experiment.executed
    for name, value in outcome.executed.items():
        parameter = settings.space.parameters[name]
        if known.get(name) == value or isinstance(parameter, Categorical):
            continue
        if _ranges_outside(parameter, value) > FAR_OUTSIDE:
            low, high = (number(bound) for bound in parameter.range)
            reach = with_unit(f"{low} to {high}", unit_of(parameter))
            yield f"{name}: an executed input of {number(value)} is far outside the range {reach}."


def _ranges_outside(parameter: Parameter, value: float) -> float:
    """Return how far a value lies outside the range, in ranges; on the scale of the parameter."""
    low, high = parameter.range
    if parameter.log:
        if value <= 0:
            return math.inf
        low, high, value = math.log(low), math.log(high), math.log(value)
    return max(low - value, value - high, 0.0) / (high - low)


def _about_value(settings: Settings, record: Record, outcome: Outcome) -> Iterator[str]:
    own = None if outcome.experiment is None else outcome.experiment.number
    others = [e.value for e in record.experiments if e.counts and e.number != own]
    values = [value for value in others if value is not None]
    if outcome.value is None or len(values) < TOO_FEW:
        return
    mean, std = statistics.fmean(values), statistics.stdev(values)
    if abs(outcome.value - mean) > MANY_DEVIATIONS * std > 0:
        low, high = (number(value) for value in (min(values), max(values)))
        reach = with_unit(f"{low} to {high}", settings.value_unit)
        yield (
            f"A {settings.value_name} of {number(outcome.value)} is far from all others, which "
            f"are {reach}."
        )
