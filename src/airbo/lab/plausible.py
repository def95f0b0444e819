"""Numbers that are possible but look like typing errors: they are questioned."""

import math
import statistics
from collections.abc import Iterator, Sequence

from airbo.lab.entry import Entry
from airbo.lab.errors import Doubtful
from airbo.lab.file import Settings
from airbo.lab.record import Record
from airbo.measures.kinds import bounds_words
from airbo.space.parameters import Categorical, Parameter
from airbo.words import number, unit_of, with_unit

FAR_OUTSIDE = 0.5
"""How far outside its range a parameter may land without a question, in ranges."""
MANY_DEVIATIONS = 6.0
"""How far from the mean of the others a value may lie, in their standard deviations."""
MANY = 8
"""Fewer values than this have no reliable standard deviation: only a decimal slip shows."""
FEW = 3
"""With fewer other values, no value counts as unusual."""
ALIKE, SLIP = 3.0, 7.0
"""Where all others agree within the first factor, the second one looks like a decimal slip."""
MOST_QUESTIONED = 20
"""Number of lines of a table that are questioned one by one."""


def check_plausible(
    settings: Settings, record: Record, entries: Sequence[Entry], lines: Sequence[int] = ()
) -> None:
    """Question what looks like a typing error, all of it at once.

    Args:
        settings: The campaign file.
        record: What is known before.
        entries: What is said. Each is compared with the others as well.
        lines: Where they stand, if that is in a table.

    Raises:
        Doubtful: If there is such.
    """
    new = [(i, entry) for i, entry in enumerate(entries) if not entry.is_known]
    doubts = [(i, text) for i, entry in new for text in _about_input(settings, entry)]
    own = {entry.experiment.number for _, entry in new if entry.experiment is not None}
    told = [e.outcomes for e in record.experiments if e.counts and e.number not in own]
    for name in dict.fromkeys(name for _, entry in new for name in entry.outcomes):
        values = [v[name] for v in (*told, *(entry.outcomes for _, entry in new)) if name in v]
        suspects = outlying(values)
        for i, entry in new:
            value = entry.outcomes.get(name)
            if value is not None and (value in suspects or not _is_possible(settings, name, value)):
                others = [*values]
                others.remove(value)
                doubts += [(i, text) for text in _about_value(settings, name, value, others)]
    if doubts:
        listed = [f"Line {lines[i]}: {t}" if lines else t for i, t in sorted(doubts)]
        n_more = len(listed) - MOST_QUESTIONED
        more = [f"There are {n_more} more such lines."] if n_more > 0 else []
        raise Doubtful([*listed[:MOST_QUESTIONED], *more])


def _about_input(settings: Settings, entry: Entry) -> Iterator[str]:
    known = {} if entry.experiment is None else entry.experiment.executed
    for name, value in entry.executed.items():
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


def _is_possible(settings: Settings, name: str, value: float) -> bool:
    """Whether a value lies between those that the file says an outcome can have."""
    low, high = settings.plausible.get(name, (None, None))
    return (low is None or value >= low) and (high is None or value <= high)


def _about_value(settings: Settings, name: str, value: float, others: list[float]) -> list[str]:
    if not _is_possible(settings, name, value):
        between = with_unit(bounds_words(*settings.plausible[name]), settings.units[name])
        return [f"A {name} of {number(value)} is not plausible: the file says {between}."]
    if not is_far(value, others):
        return []
    reach = with_unit(f"{number(min(others))} to {number(max(others))}", settings.units.get(name))
    return [f"A {name} of {number(value)} is far from all others, which are {reach}."]


def is_far(value: float, others: list[float]) -> bool:
    """Say whether a value is far from all others."""
    if len(others) < FEW:
        return False
    if len(others) < MANY:
        sizes = [abs(other) for other in others]
        alike = min(others) * max(others) > 0 and max(sizes) < ALIKE * min(sizes)
        return alike and not min(sizes) / SLIP < abs(value) < max(sizes) * SLIP
    return abs(value - statistics.fmean(others)) > MANY_DEVIATIONS * statistics.stdev(others) > 0


def outlying(values: list[float]) -> set[float]:
    """Return the values that may be far from all others, without comparing all pairs.

    Without one value v, the mean is m - (v - m) / (n - 1), and the sum of squares is smaller by
    (v - m)² n / (n - 1).
    """
    n = len(values)
    if n <= MANY:
        return set(values)
    mean = statistics.fmean(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    found = set()
    for value in set(values):
        away = abs(value - mean) * n / (n - 1)  # from the mean of the others
        rest = max(0.0, squares - (value - mean) ** 2 * n / (n - 1))
        if away > 0.99 * MANY_DEVIATIONS * math.sqrt(rest / (n - 2)):
            found.add(value)
    return found
