"""What an experiment measures, and what is wanted of it: to be large, small or within limits.

Plain values, checked without PyTorch and pandas, which ``airbo tell`` does not need.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from airbo.measures.kinds import (
    InSpec,
    Mean,
    Measure,
    Target,
    bounds_words,
    check_kept_share,
    check_measure,
    measure_from,
)
from airbo.observed import LARGEST, VALUE, Direction, check_value
from airbo.space.parameters import finite_number
from airbo.words import MeanAndStd, nearest, number, percent, plus_minus, with_unit

if TYPE_CHECKING:
    from airbo.measures.capability import Capability

FEASIBLE = "feasible"
"""The outcome that is 0 where a design cannot be used and 1 where it can."""
MAX_OBJECTIVES = 3
"""A front of more objectives has more designs than anybody can choose from."""

Bounds = tuple[float | None, float | None]
"""The smallest and the largest value that are allowed; None: there is no limit."""


class Want(ABC):
    """What is wanted of one outcome."""

    if TYPE_CHECKING:  # fields of some kinds, worked out by others

        @property
        def measure(self) -> Measure:
            """What counts of it over P_x."""

        @property
        def direction(self) -> Direction:
            """The direction in which values get better, or away from a limit."""

    @property
    def bounds(self) -> Bounds:
        """The limits that it counts by, where it counts by ``InSpec``; None: there is no limit."""
        measure = self.measure
        return (measure.low, measure.high) if isinstance(measure, InSpec) else (None, None)

    @property
    def where(self) -> str:
        """Say where values are within the limits."""
        return bounds_words(*self.bounds)

    @property
    def sign(self) -> int:
        """1: larger values are better; -1: smaller ones; 0: neither, but those in the middle."""
        if isinstance(self.measure, InSpec):
            low, high = self.bounds
            return (low is not None) - (high is not None)
        if isinstance(self.measure, Target):
            return 0
        return 1 if self.direction == "maximize" else -1

    def merit(self, value: float) -> float:
        """Return how good one observed value is: larger is better, whatever the goal.

        Within limits, it is the distance to the nearer one, negative outside.
        """
        if isinstance(self.measure, InSpec):
            return min(sign * (value - limit) for sign, limit in self.measure.sides)
        if isinstance(self.measure, Target):
            return -abs(value - self.measure.value)
        return self.sign * value

    def best_called(self, value: float) -> str:
        """Say what the value with the largest merit is.

        >>> Maximize().best_called(3.0), Maximize(InSpec(1.4, 1.6)).best_called(1.5)
        ('best observed', 'farthest inside the limits')
        """
        if isinstance(self.measure, Target):
            return "nearest to the target"
        if isinstance(self.measure, InSpec):
            is_in = self.merit(value) >= 0
            return "farthest inside the limits" if is_in else "nearest to the limits, outside them"
        return "best observed"

    @abstractmethod
    def better(self, unit: str | None = None) -> str:
        """Say which values are good."""

    @abstractmethod
    def words(self, name: str, unit: str | None = None) -> str:
        """Say what is wanted of the outcome."""


class Aim(Want):
    """An outcome that designs are chosen by."""

    measure: Measure

    def __post_init__(self) -> None:
        check_measure(self.measure)

    def better(self, unit: str | None = None) -> str:
        """Say which values are good.

        >>> Maximize().better(), Minimize(InSpec(1.4, 1.6)).better("µm")
        ('larger is better', 'between 1.4 and 1.6 µm is in spec')
        """
        if isinstance(self.measure, InSpec):
            return f"{with_unit(self.where, unit)} is in spec"
        if isinstance(self.measure, Target):
            return f"nearer to {with_unit(f'{self.measure.value:g}', unit)} is better"
        return "larger is better" if self.sign > 0 else "smaller is better"

    def words(self, name: str, unit: str | None = None) -> str:
        """Say what is wanted of the outcome.

        >>> Maximize(InSpec(1.4, 1.6)).words("Ra", "µm")
        'Ra between 1.4 and 1.6 µm for as many executed inputs as possible'
        """
        if isinstance(self.measure, InSpec):
            return f"{name} {with_unit(self.where, unit)} for as many executed inputs as possible"
        if isinstance(self.measure, Target):
            return f"{name} as near as possible to {with_unit(f'{self.measure.value:g}', unit)}"
        size = "large" if self.direction == "maximize" else "small"
        by = "" if isinstance(self.measure, Mean) else f" ({self.measure.words})"
        return f"{name} as {size} as possible{by}"


@dataclass(frozen=True)
class Maximize(Aim):
    """An outcome that should be large.

    >>> Maximize().words("strength")
    'strength as large as possible'
    """

    direction: ClassVar[Direction] = "maximize"

    measure: Measure = field(default_factory=Mean)
    """What counts of it over P_x, one of ``airbo.measures``."""


@dataclass(frozen=True)
class Minimize(Aim):
    """An outcome that should be small."""

    direction: ClassVar[Direction] = "minimize"

    measure: Measure = field(default_factory=Mean)
    """What counts of it over P_x, one of ``airbo.measures``."""


class Limit(Want):
    """An outcome that must stay within limits, with a probability over P_x."""

    probability: float

    def __post_init__(self) -> None:
        kind = type(self).__name__
        for name in vars(self).keys() - {"probability"}:
            value = check_limit(getattr(self, name), f"{kind}: {name}")
            object.__setattr__(self, name, value)
        share = check_kept_share(self.probability, f"{kind}: probability")
        object.__setattr__(self, "probability", share)

    @property
    @abstractmethod
    def measure(self) -> InSpec:
        """The share of executed inputs that keep the limit."""

    @property
    def direction(self) -> Direction:
        """The direction away from the limit; with two limits, as for values to be maximized."""
        return "minimize" if self.bounds[0] is None else "maximize"

    def better(self, unit: str | None = None) -> str:
        """Say which values are good."""
        return f"must be {with_unit(self.where, unit)}"

    def words(self, name: str, unit: str | None = None) -> str:
        """Say what is wanted of the outcome."""
        kept = f"{name} {with_unit(self.where, unit)}"
        what = "the design can be used" if name == FEASIBLE else kept
        return f"{what} for {100 * self.probability:.12g}% of executed inputs"


@dataclass(frozen=True)
class AtMost(Limit):
    """An outcome that must not exceed a limit.

    >>> AtMost(0.2).words("leak")
    'leak at most 0.2 for 95% of executed inputs'
    """

    limit: float | int
    probability: float = 0.95
    """Share of executed inputs that must keep the limit, at most 0.999."""

    @property
    def measure(self) -> InSpec:
        """The share of executed inputs with a value up to the limit."""
        return InSpec(high=self.limit)


@dataclass(frozen=True)
class AtLeast(Limit):
    """An outcome that must reach a limit."""

    limit: float | int
    probability: float = 0.95
    """Share of executed inputs that must keep the limit, at most 0.999."""

    @property
    def measure(self) -> InSpec:
        """The share of executed inputs that reach the limit."""
        return InSpec(low=self.limit)


@dataclass(frozen=True)
class Between(Limit):
    """An outcome that must lie between two limits."""

    low: float | int
    high: float | int
    probability: float = 0.95
    """Share of executed inputs that must keep both limits, at most 0.999."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise ValueError(f"Between: low must be below high, got {self.low:g}, {self.high:g}.")

    @property
    def measure(self) -> InSpec:
        """The share of executed inputs between the limits."""
        return InSpec(self.low, self.high)


WANTS: dict[str, type[Want]] = {
    kind.__name__: kind for kind in (Maximize, Minimize, AtMost, AtLeast, Between)
}


def check_limit(value: object, name: str) -> float:
    """Return the number that an outcome must not pass, and refuse what cannot be one."""
    number = finite_number(value, name)
    if abs(number) > LARGEST:
        raise ValueError(f"{name} must not exceed {LARGEST:g} in size, got {number:g}.")
    return number


def check_outcomes(given: Any) -> dict[str, Want]:
    """Return outcomes by name, or say what is wrong with them."""
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            "outcomes must be a dict from names to Maximize, Minimize, AtMost, AtLeast or Between, "
            f"got {given!r}."
        )
    for name, outcome in given.items():
        if not (isinstance(name, str) and name):
            raise ValueError(f"Names of outcomes must be non-empty strings, got {name!r}.")
        if name == FEASIBLE:
            raise ValueError(f"An outcome cannot be called {name!r}: airbo has one with that name.")
        if not isinstance(outcome, Want):
            hint = " (write it with brackets)" if outcome in WANTS.values() else ""
            raise ValueError(
                f"Outcome {name!r}: expected one of {', '.join(WANTS)}, got {outcome!r}{hint}."
            )
    n = len(objectives(given))
    if not 1 <= n <= MAX_OBJECTIVES:
        raise ValueError(
            f"outcomes must name one to {MAX_OBJECTIVES} objectives (Maximize or Minimize), got "
            f"{n}. All others can be limits."
        )
    return dict(given)


def named_outcomes(
    given: Mapping[str, Want] | None, direction: Direction, measure: Measure | None
) -> dict[str, Want]:
    """Return the outcomes by name: those that were given, or a single one called ``"value"``."""
    if given is None:
        measure = Mean() if measure is None else measure
        aim = Maximize if direction == "maximize" else Minimize
        return check_outcomes({VALUE: aim(measure)})
    outcomes = check_outcomes(given)
    first = first_objective(outcomes)
    if direction not in ("maximize", first.direction):
        raise ValueError("With outcomes, each has its own direction: leave direction out.")
    if measure not in (None, first.measure):
        raise ValueError("With outcomes, each has its own measure: leave measure out.")
    return outcomes


def objectives(outcomes: Mapping[str, Want]) -> dict[str, Aim]:
    """Return the outcomes that designs are chosen by."""
    return {name: o for name, o in outcomes.items() if isinstance(o, Aim)}


def first_objective(outcomes: Mapping[str, Want]) -> Aim:
    """Return the objective that is meant where a single one is asked about."""
    return next(iter(objectives(outcomes).values()))


def limits(outcomes: Mapping[str, Want]) -> dict[str, Limit]:
    """Return the outcomes that must stay within limits."""
    return {name: o for name, o in outcomes.items() if isinstance(o, Limit)}


class Expected(MeanAndStd, Protocol):
    """What is believed about an outcome of a design."""

    @property
    def capability(self) -> "Capability | None":
        """How well it keeps within limits, if it has any."""


def expected_words(want: Want | None, estimate: Expected, unit: str | None = None) -> str:
    """Write what to expect of an outcome; a share in spec and a squared distance have no unit."""
    measure = want.measure if isinstance(want, Aim) else None
    if isinstance(measure, InSpec) and estimate.capability is not None:
        low, high = map(percent, estimate.capability.share_interval)
        return f"{percent(estimate.capability.share)} ({low} to {high}) in spec"
    if isinstance(measure, Target):
        away = with_unit(number(max(0.0, -estimate.mean) ** 0.5, 3), unit)
        return f"typically {away} away from {measure.value:g}"
    return with_unit(plus_minus(estimate), unit)


def outcomes_to_dict(outcomes: Mapping[str, Want]) -> dict[str, Any]:
    """Describe outcomes in values that JSON can hold."""
    return {
        name: {"kind": type(o).__name__}
        | {f: v.to_dict() if isinstance(v, Measure) else v for f, v in vars(o).items()}
        for name, o in outcomes.items()
    }


def outcomes_from_dict(data: Mapping[str, Any]) -> dict[str, Want]:
    """Make the outcomes that :func:`outcomes_to_dict` described."""
    outcomes = {}
    for name, fields in data.items():
        arguments = dict(fields)
        kind = arguments.pop("kind", None)
        if kind not in WANTS:
            raise ValueError(f"Outcome {name!r}: kind must be one of {list(WANTS)}, got {kind!r}.")
        try:
            if "measure" in arguments:
                arguments["measure"] = measure_from(arguments["measure"])
            outcomes[name] = WANTS[kind](**arguments)
        except (TypeError, ValueError) as error:
            raise ValueError(f"Outcome {name!r}: {error}") from error
    return check_outcomes(outcomes)


def check_values(outcomes: Mapping[str, Want], told: Any) -> dict[str, float] | None:
    """Return the outcomes that were measured, by name; None for a failed experiment.

    An outcome that is left out, None or NaN was not measured. Where there is only one, its value
    need not have a name.
    """
    if len(outcomes) == 1 and not isinstance(told, Mapping):
        value = check_value(told)
        return None if value is None else dict.fromkeys(outcomes, value)
    if told is None or (isinstance(told, float) and math.isnan(told)):
        return None
    if not isinstance(told, Mapping):
        raise TypeError(
            f"Expected a dict of outcomes ({', '.join(outcomes)}), or None if the experiment "
            f"failed, got {told!r}."
        )
    measured = {}
    for name, value in told.items():
        if name not in outcomes:
            raise ValueError(f"Unknown outcome {name!r}{nearest(str(name), outcomes)}")
        try:
            number = check_value(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Outcome {name!r}: {error}") from None
        if number is not None:
            measured[name] = number
    if not measured:
        raise ValueError(
            f"No outcome was measured: expected at least one of {', '.join(outcomes)}. "
            "None in place of the dict says that the experiment failed."
        )
    return {name: measured[name] for name in outcomes if name in measured}
