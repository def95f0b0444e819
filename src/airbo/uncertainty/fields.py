"""Readers of the fields of a description: plain numbers, lists and texts, checked.

Each takes a value and the name of its field, returns plain data, and says what is wrong by that
name, in the words of the classes.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

from airbo.space.parameters import as_float

Read = Callable[[Any, str], Any]
"""Returns the value of a field as plain data, or refuses it by the field's name."""


def numbers(max_ndim: int = 1, above: float | None = None, least: float | None = None) -> Read:
    """Read a number, or nested lists of numbers, in a range."""

    def read(value: Any, name: str) -> Any:
        plain = _floats(value, name, value)
        shape = shape_of(plain)
        if len(shape) > max_ndim:
            raise ValueError(
                f"{name} must have at most {max_ndim} dimensions, got an array of shape {shape}."
            )
        smallest = min(_flat(plain))
        if least is not None and smallest < least:
            raise ValueError(f"{name} must be >= {least:g}, got {smallest:g}.")
        if above is not None and smallest <= above:
            raise ValueError(f"{name} must be > {above:g}, got {smallest:g}.")
        return plain

    return read


def in_percent(value: Any) -> Any:
    """Return what is written in percent as shares; None if nothing is.

    >>> in_percent("5%"), in_percent(["5 %", "0.1%"]), in_percent(5.0)
    (0.05, [0.05, 0.001], None)
    """
    if isinstance(value, list):
        shares = [in_percent(v) for v in value]
        return shares if shares and None not in shares else None
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return None
    try:
        share = float(Decimal(value.strip().removesuffix("%").strip()) / 100)
    except InvalidOperation:
        return None
    return share if math.isfinite(share) else None


def percent_of(share: float) -> str:
    """Write a share in percent, with every digit; ``in_percent`` gives it back.

    >>> percent_of(0.05), percent_of(0.04084)
    ('5%', '4.084%')
    """
    return f"{(Decimal(repr(share)) * 100).normalize():f}%"


def _floats(value: Any, name: str, whole: Any) -> Any:
    if isinstance(value, list | tuple):
        if not value:
            raise ValueError(f"{name} must not be empty.")
        return [_floats(v, name, whole) for v in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = ', or percent, such as "5%"' if isinstance(value, str) else ""
        raise TypeError(f"{name} must be a number or an array of numbers{hint}, got {whole!r}.")
    number = as_float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {whole}.")
    return number


def shape_of(plain: Any) -> tuple[int, ...]:
    """Return the shape of nested lists; refuse rows of different length."""
    if not isinstance(plain, list):
        return ()
    shapes = {shape_of(row) for row in plain}
    if len(shapes) > 1:
        raise TypeError("All rows of an array of numbers must have the same length.")
    return (len(plain), *shapes.pop())


def _flat(plain: Any) -> list[float]:
    return [v for row in plain for v in _flat(row)] if isinstance(plain, list) else [plain]


def matrices(max_ndim: int) -> Read:
    """Read square matrices, alone or in a list."""
    read_numbers = numbers(max_ndim)

    def read(value: Any, name: str) -> Any:
        plain = read_numbers(value, name)
        shape = shape_of(plain)
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"{name} must be a square matrix, got shape {shape}.")
        return plain

    return read


def text(value: Any, name: str) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r}.")
    return value


def rows_of(value: Any, name: str) -> list[Any]:
    """Read a list of anything."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list, got {value!r}.")
    return list(value)


def names_of(value: Any, name: str) -> dict[str, Any]:
    """Read values by name."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a table of names and values, got {value!r}.")
    return dict(value)


def numbers_of(value: Any, name: str) -> dict[str, Any]:
    """Read numbers, or lists of numbers, by name."""
    return {key: _floats(v, f"{name}.{key}", v) for key, v in names_of(value, name).items()}


def edges(value: Any, name: str) -> list[float]:
    """Read increasing numbers, perhaps none."""
    plain: list[float] = numbers(1)(value, name) if rows_of(value, name) else []
    if any(not left < right for left, right in pairwise(plain)):
        raise ValueError(f"{name} must be strictly increasing, got {plain}.")
    return plain


def column(value: Any, name: str) -> int:
    """Read the position of a column."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a whole number >= 0, got {value!r}.")
    return value
