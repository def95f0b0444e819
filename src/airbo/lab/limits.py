"""The numbers that a campaign can work with: the one place that knows them.

A model sees a parameter through its range, or through the logarithm of it, and adds where designs
land; squares of all that must neither overflow nor vanish. What is accepted here can be asked for,
told, recommended and reported.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airbo.observed import LARGEST
from airbo.space import Space
from airbo.space.parameters import Categorical, Float, Integer, Parameter

SMALLEST = 1 / LARGEST
"""The smallest range of a parameter, and the smallest value of a logarithmic one."""
FINEST = 1e-9
"""The smallest range relative to its bounds; below, steps of the search are rounding errors."""
LARGEST_INTEGER = 2**53
"""Larger whole numbers are not all floating-point numbers."""
MOST_STEPS = 1_000_000
FARTHEST_RANGES = 1000
"""How far outside its range a parameter may be set or land, in ranges."""
FARTHEST_LOG_RANGES = 10
"""The same for a logarithmic parameter, in ranges of its logarithm."""
_SHAPES = {"a": (1e-3, 1e6), "b": (1e-3, 1e6), "df": (1e-3, 1e6)}
"""Numbers of an uncertainty that have no unit."""
_LENGTHS = ("std", "low", "high", "loc", "scale", "radius", "means", "deviations", "cov", "covs")


def check_parameter(parameter: Parameter) -> None:
    """Refuse a parameter with values that no campaign can tell apart, or compute with.

    Raises:
        ValueError: If it has such.
    """
    if isinstance(parameter, Categorical):
        texts = [str(choice) for choice in parameter.choices]
        for choice, text in zip(parameter.choices, texts, strict=True):
            if isinstance(choice, float) and not math.isfinite(choice):
                raise ValueError(f"choices must be texts or finite numbers, got {choice}.")
            if isinstance(choice, str) and choice != choice.strip():
                raise ValueError(f"choices must not begin or end with a blank, got {choice!r}.")
            if choice == "":
                raise ValueError("choices must not be empty texts.")
            if texts.count(text) > 1:
                raise ValueError(
                    "choices must differ in what is written, not only in their type: "
                    f"{text} is there twice."
                )
        return
    assert isinstance(parameter, Float | Integer)
    low, high = parameter.low, parameter.high
    largest = LARGEST_INTEGER if isinstance(parameter, Integer) else LARGEST
    for name, bound in (("low", low), ("high", high)):
        if abs(bound) > largest:
            raise ValueError(f"{name} must not exceed {largest:g} in size, got {bound:g}.")
    least = max(SMALLEST, FINEST * max(abs(low), abs(high)))
    if not high - low >= least:
        raise ValueError(
            f"high must be at least {least:g} above low, got low={low!r}, high={high!r}; use "
            "another unit, or the difference to a fixed value."
        )
    if parameter.log and low < SMALLEST:
        raise ValueError(f"A log parameter needs low >= {SMALLEST:g}, got low={low:g}.")
    if isinstance(parameter, Float) and (parameter.n_values or 0) > MOST_STEPS:
        raise ValueError(
            f"step must leave at most {MOST_STEPS:,} values, got step={parameter.step:g}; leave it "
            "out for any value."
        )


# -- uncertainties


def check_uncertainty(description: Any, parameters: Sequence[Parameter]) -> None:
    """Refuse deviations that are out of all proportion to the ranges of the parameters.

    Args:
        description: As JSON holds it.
        parameters: Those that it is about.

    Raises:
        ValueError: If it has such.
    """
    ranges = [p.range for p in parameters]
    width = max(high - low for low, high in ranges)
    outermost = max(abs(bound) for pair in ranges for bound in pair)
    limits = {name: FARTHEST_RANGES * width for name in _LENGTHS}
    limits |= {name: FARTHEST_RANGES * width * width for name in ("cov", "covs")}
    for kind, name, number in _numbers(description):
        is_limit = kind == "Clipped"  # a place, not a deviation
        if name in _SHAPES and not _SHAPES[name][0] <= number <= _SHAPES[name][1]:
            raise ValueError("{} must be between {:g} and {:g}, got {:g}.".format(
                name, *_SHAPES[name], number))  # fmt: skip
        most = limits.get(name, LARGEST) + (outermost if is_limit else 0.0)
        if abs(number) > most:
            raise ValueError(
                f"{name} must not exceed {most:g} in size, {FARTHEST_RANGES} times the range of "
                f"the parameter, got {number:g}."
            )
    if not isinstance(description, Mapping) or description.get("kind") != "Clipped":
        return
    low = description.get("low")
    for parameter in parameters:  # one that leaves a logarithmic parameter nearly unlimited
        if parameter.log and isinstance(low, int | float) and 0 < low < _least(parameter):
            least = _least(parameter)
            raise ValueError(f"clip_low must be at least {least:g} here, got {low:g}.")


def _least(parameter: Parameter) -> float:
    """Return the smallest value that a model can use of a logarithmic parameter."""
    first, last = (math.log(bound) for bound in parameter.range)
    return max(SMALLEST, math.exp(first - FARTHEST_LOG_RANGES * (last - first)))


def _numbers(description: Any, kind: str = "", name: str = "") -> Iterator[tuple[str, str, float]]:
    """Yield all numbers of a description, with the kind and the field that they belong to."""
    if isinstance(description, Mapping):
        own = str(description.get("kind", kind))
        for key, value in description.items():
            yield from _numbers(value, own, str(key))
    elif isinstance(description, list | tuple):
        for value in description:
            yield from _numbers(value, kind, name)
    elif isinstance(description, int | float) and not isinstance(description, bool):
        yield kind, name, float(description)


# -- designs


def check_place(space: Space, values: Mapping[str, Any], what: str) -> None:
    """Refuse values so far outside the ranges that no model could use them.

    Raises:
        ValueError: If there are such; it names the parameter.
    """
    for name, value in values.items():
        parameter = space.parameters[name]
        if isinstance(parameter, Categorical):
            continue
        low, high = parameter.range
        far = FARTHEST_RANGES * (high - low)
        least = _least(parameter) if parameter.log and value > 0 else low - far
        if not least <= value <= high + far:
            raise ValueError(
                f"{what}: {name} = {value:g} is so far from its range, {low:g} to {high:g}, that "
                f"no model can use it. The limits are {least:g} and {high + far:g}."
            )
