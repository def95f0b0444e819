"""The kinds of parameters: a real number, an integer or a category.

This module imports neither PyTorch nor NumPy, so that checking a design does not take seconds.
"""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, SupportsFloat

Value = str | bool | int | float

_ROUNDING = 1e-12  # relative error of exp(log(value))
_SLACK = 1e-6  # a value this close to a bound, relative to the range, counts as the bound


class Parameter(ABC):
    """One parameter of a space."""

    kind: ClassVar[str]
    log: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest number, in user units."""
        this: Any = self  # numbers have bounds, and categories say it themselves
        return float(this.low), float(this.high)

    @property
    @abstractmethod
    def n_values(self) -> int | None:
        """Number of values that can be proposed; None for a continuous parameter."""

    @abstractmethod
    def encode(self, value: object, allow_outside: bool = False) -> float:
        """Translate a value into its number; raise ``ValueError`` if it is not allowed."""

    @abstractmethod
    def decode(self, number: float) -> Value:
        """Translate a number into a value of the parameter's own type."""


@dataclass(frozen=True)
class Float(Parameter):
    """A real number between two bounds.

    Args:
        low: Smallest value.
        high: Largest value.
        log: Whether ratios matter rather than differences; needs ``low > 0``.
        unit: For people to read.
        step: Propose only low, low + step, low + 2 step, ..., high. Told values may lie between.
    """

    kind: ClassVar[str] = "float"

    low: float | int
    high: float | int
    log: bool = False
    unit: str | None = None
    step: float | int | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, finite_number(getattr(self, name), name))
        _check_bounds(self)
        if self.step is not None:
            object.__setattr__(self, "step", finite_number(self.step, "step"))
            _check_step(self.low, self.high, self.step, self.log)

    @property
    def n_values(self) -> int | None:
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    def encode(self, value: object, allow_outside: bool = False) -> float:
        number = finite_number(value, "value")
        return _within(number, self.range, self._slack, allow_outside)

    @property
    def _slack(self) -> tuple[float, float]:
        """How far a value may lie below and above the bounds and still count as the bound."""
        if self.log:
            return _SLACK * self.low, _SLACK * self.high
        return (_SLACK * (self.high - self.low),) * 2

    def decode(self, number: float) -> float:
        """Return the number, moved to the bound or grid point that it misses by rounding only."""
        nearest = min(max(number, self.low), self.high)
        if math.isclose(number, nearest, rel_tol=_ROUNDING):
            number = nearest
        if self.step is None:
            return number
        # low + k step, in decimals, so that 0.1 + 2 * 0.1 is 0.3
        k = round((number - self.low) / self.step)
        on_grid = float(Decimal(str(self.low)) + k * Decimal(str(self.step)))
        return on_grid if abs(number - on_grid) < 1e-9 * self.step else number


@dataclass(frozen=True)
class Integer(Parameter):
    """A whole number between two bounds, both included.

    Args:
        low: Smallest value.
        high: Largest value.
        unit: For people to read.
        log: Whether ratios matter rather than differences; needs ``low > 0``.
        step: Propose only low, low + step, low + 2 step, ..., high. Told values may lie between.
    """

    kind: ClassVar[str] = "integer"

    low: int
    high: int
    unit: str | None = None
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, int(_whole(getattr(self, name), name)))
        _check_bounds(self)
        _check_step(self.low, self.high, self.step, self.log and self.step != 1)

    @property
    def n_values(self) -> int:
        return (self.high - self.low) // self.step + 1

    def encode(self, value: object, allow_outside: bool = False) -> float:
        """Return the value as a float; ``3.0`` counts as an integer."""
        return _within(_whole(value, "value"), self.range, (0.0, 0.0), allow_outside)

    def decode(self, number: float) -> int:
        return round(number)


@dataclass(frozen=True)
class Categorical(Parameter):
    """One of several choices that have no order."""

    kind: ClassVar[str] = "categorical"

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or not isinstance(self.choices, Iterable):
            raise ValueError(f"choices must be a list, got {self.choices!r}.")
        choices = tuple(_plain(choice) for choice in self.choices)
        object.__setattr__(self, "choices", choices)
        for choice in choices:
            if not isinstance(choice, str | bool | int | float):
                raise ValueError(f"A choice must be a string or a number, got {choice!r}.")
        if len(choices) < 2:
            raise ValueError(f"At least two choices are needed, got {list(choices)}.")
        if len(set(choices)) < len(choices):
            raise ValueError(f"choices must differ from each other, got {list(choices)}.")

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, len(self.choices) - 1.0

    @property
    def n_values(self) -> int:
        return len(self.choices)

    def encode(self, value: object, allow_outside: bool = False) -> float:
        value = _plain(value)
        for position, choice in enumerate(self.choices):
            if choice == value and isinstance(choice, bool) == isinstance(value, bool):
                return float(position)
        raise ValueError(f"expected one of {list(self.choices)}, got {value!r}.")

    def decode(self, number: float) -> Value:
        return self.choices[min(max(round(number), 0), len(self.choices) - 1)]


@dataclass(frozen=True)
class Environment:
    """A quantity that nobody sets: the humidity of the day, the raw material, the load.

    Its value is ``typical`` plus a deviation that no design changes. Where it was measured, tell
    it with the executed input.

    Args:
        low: Smallest value that can occur.
        high: Largest value that can occur.
        typical: The value without a deviation; by default in the middle.
        law: How the deviation is distributed, one of ``airbo.uncertainty``; None: nobody knows, and
            every experiment has to measure it.
        log: Whether ratios matter rather than differences; needs ``low > 0``.
        unit: For people to read.
    """

    kind: ClassVar[str] = "environment"

    low: float | int
    high: float | int
    typical: float | int | None = None
    law: Any = None
    log: bool = False
    unit: str | None = None

    def __post_init__(self) -> None:
        column = self.column
        low, high = column.range
        # the middle of the scale: √(low high) where ratios matter
        middle = math.sqrt(low * high) if self.log else (low + high) / 2
        typical = middle if self.typical is None else finite_number(self.typical, "typical")
        if not low <= typical <= high:
            raise ValueError(f"typical must be between {low:g} and {high:g}, got {typical}.")
        if self.law is not None and not hasattr(self.law, "perturb"):
            raise ValueError(f"law must be an airbo.uncertainty or None, got {self.law!r}.")
        for name, number in (("low", low), ("high", high), ("typical", typical)):
            object.__setattr__(self, name, number)

    @property
    def column(self) -> Float:
        """The same as a parameter that models compare."""
        return Float(self.low, self.high, self.log, self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Describe it in values that JSON can hold."""
        law = {} if self.law is None else {"law": self.law.to_dict()}
        return {**{name: v for name, v in vars(self).items() if name != "law"}, **law}


def _check_bounds(parameter: Float | Integer) -> None:
    low, high = parameter.low, parameter.high
    if not low < high:
        raise ValueError(f"low must be < high, got low={low}, high={high}.")
    if parameter.log and not low > 0:
        raise ValueError(f"A log parameter needs low > 0, got low={low}.")


def _check_step(low: float | int, high: float | int, step: float | int, log: bool) -> None:
    if log:
        raise ValueError("A log parameter cannot have a step.")
    if not step > 0:
        raise ValueError(f"step must be > 0, got {step}.")
    # high = low + n step with a whole n >= 1
    n = (high - low) / step
    if not math.isclose(n, max(round(n), 1), rel_tol=1e-9):
        raise ValueError(
            f"high must be low plus a whole number of steps, got low={low}, high={high}, "
            f"step={step}: {n:.6g} steps."
        )


def _plain(value: Any) -> Any:
    """Turn scalars of NumPy and PyTorch, which both have ndim and item, into Python numbers."""
    is_scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_scalar else value


def finite_number(value: object, what: str) -> float:
    """Return the value as a float; raise ``ValueError`` if it is not a finite number."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{what} must be a number, got {value!r}.")
    number = as_float(value)
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, got {number}.")
    return number


def as_float(number: SupportsFloat) -> float:
    """Return the nearest float; infinity for integers that no float can hold."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _whole(value: object, what: str) -> float:
    number = finite_number(value, what)
    if not number.is_integer():
        raise ValueError(f"{what} must be an integer, got {number}.")
    return number


def _within(
    number: float, bounds: tuple[float, float], slack: tuple[float, float], allow_outside: bool
) -> float:
    low, high = bounds
    if allow_outside or low <= number <= high:
        return number
    if low - slack[0] <= number <= high + slack[1]:
        return min(max(number, low), high)
    raise ValueError(f"value must be between {low:g} and {high:g}, got {number}.")
