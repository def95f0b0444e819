"""The part of many observations that a model looks at, so that time and memory stay bounded."""

import warnings
from collections.abc import Sequence
from typing import Any

from airbo.optimizer.record import Observation
from airbo.uncertainty import InputUncertainty

MOST_ROWS = 1000
"""Rows of a model: its time grows with their cube and its memory with their square."""
MOST_UNCERTAINTIES = 100
"""After so many different uncertainties, observations under further ones are not compared."""


class PartOfDataWarning(RuntimeWarning):
    """The model looks at a part of what is known."""


def replicates(known: Sequence[Observation]) -> list[list[int]]:
    """Return the positions of observations, those together that one row of a model can hold."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    distinct: list[InputUncertainty | None] = [None]
    for i, o in enumerate(known):
        if o.uncertainty in distinct:
            under = distinct.index(o.uncertainty)
        elif len(distinct) <= MOST_UNCERTAINTIES:
            under = len(distinct)
            distinct.append(o.uncertainty)
        else:
            under = -1 - i
        key = (*o.design.values(), *o.executed.items(), under)
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def warn_of_part(n_part: int, n_all: int, what: str, how: str) -> None:
    """Say that the model looks at a part."""
    warnings.warn(
        f"The model looks at {n_part:,} of {n_all:,} {what}: {how}. With all of them, it would "
        "need too much time and memory.",
        PartOfDataWarning,
        stacklevel=2,
    )
