"""The measures: frozen values that turn values over P_x into the one number that counts.

Inside, larger values are better, whatever the direction; the bad side is the lower one. ``of``
takes values at executed inputs that count alike. Nothing here needs PyTorch, so that a file which
names a measure can be checked at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from jaxtyping import Float

from airbo.space.parameters import finite_number

SOFT = 0.05
"""Width of the soft edge of limits while searching, in standard deviations of observed values."""
ALMOST_ALL = 0.999
"""The largest level: nothing is known about what happens more rarely. Where P_x has no bounded
support, ``Worst`` is about this share of executed inputs."""


class Measure(ABC):
    """What counts of the values f(x') over P_x."""

    @abstractmethod
    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        """Return the measure of values at executed inputs; larger is better."""

    def smooth(self, values: Float[Any, "*batch s"], scale: float) -> Float[Any, "*batch"]:
        """Return nearly the same with a slope everywhere, for a search.

        Args:
            values: Values at executed inputs.
            scale: Standard deviation of observed values.
        """
        return self.of(values)

    def over(self, bounded: bool) -> "Measure":
        """Return the measure that is meant where the support of P_x is bounded, or is not."""
        return self

    def inside(self, sign: int, unit: float) -> "Measure":
        """Return the same measure for values that were multiplied with ``sign / unit``."""
        return self

    def factor(self, sign: int, unit: float) -> float:
        """Return what turns the measure of such values into that of the user's."""
        return sign * unit

    @property
    @abstractmethod
    def words(self) -> str:
        """Say for people what it is."""

    def to_dict(self) -> dict[str, Any]:
        """Return a description out of plain numbers and strings; see ``measure_from``."""
        given = {n: v for n, v in asdict(self).items() if v is not None}  # type: ignore[call-overload]
        return {"kind": type(self).__name__, **given}


@dataclass(frozen=True)
class Mean(Measure):
    r"""The expected value, :math:`\mathbb E f(x')`."""

    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        return values.mean(-1)

    words: ClassVar[str] = "mean"


@dataclass(frozen=True)
class MeanStd(Measure):
    r"""Mean and scatter: :math:`\mathbb E f - k\, \mathrm{sd} f`, k deviations to the bad side."""

    k: float | int = 2.0
    """How many standard deviations count."""

    def __post_init__(self) -> None:
        _read_number(self, "k")
        if self.k < 0:
            raise ValueError(f"k must be >= 0, got {self.k:g}.")

    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        # sd² = E (f - E f)²
        mean = values.mean(-1)
        variance = (values - mean[..., None]).square().mean(-1)
        # the root has no slope at 0, where P_x is a point
        return mean - self.k * (variance + 1e-24 * (1 + mean.square())).sqrt()

    @property
    def words(self) -> str:
        return f"mean and {self.k:g} standard deviations to the bad side"


@dataclass(frozen=True)
class Quantile(Measure):
    r"""The value that a share ``level`` of executed inputs reaches: :math:`F^{-1}(1 - level)`."""

    level: float | int = 0.9
    """The share that does as well or better, above 0 and at most 0.999."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", check_tail(self.level))

    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        """Interpolate between sorted values, each in the middle of its step."""
        # F⁻¹(1 - level): value i of s stands at (i + ½) / s
        ordered, s = values.sort(-1).values, values.shape[-1]
        at = min(max((1 - self.level) * s - 0.5, 0.0), s - 1.0)
        i = min(int(at), s - 2) if s > 1 else 0
        return ordered[..., i] + (at - i) * (ordered[..., min(i + 1, s - 1)] - ordered[..., i])

    @property
    def words(self) -> str:
        return f"value that {_of_100(self.level)} executed inputs meet or beat"


@dataclass(frozen=True)
class CVaR(Measure):
    r"""The mean over the worst share ``1 - level`` (conditional value at risk)."""

    level: float | int = 0.9
    """The share that does not count, above 0 and at most 0.999."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", check_tail(self.level))

    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        """Average the lowest values; the last of them counts with what is left of the share."""
        # (Σ of the lowest k values, and of a part of the next one) / share, k the whole of share
        ordered = values.sort(-1).values
        share = (1 - self.level) * values.shape[-1]
        if share <= 1:
            return ordered[..., 0]
        whole = int(share)
        total = ordered[..., :whole].sum(-1)
        if share > whole:
            total = total + (share - whole) * ordered[..., whole]
        return total / share

    @property
    def words(self) -> str:
        return f"mean over the worst {_of_100(1 - self.level)} executed inputs"


@dataclass(frozen=True)
class Worst(Measure):
    """The worst that P_x allows: over its support, or 999 of 1,000 where that has no end."""

    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        # min over the executed inputs
        return values.amin(-1)

    def over(self, bounded: bool) -> Measure:
        """Return what 999 of 1,000 reach where there is no end."""
        return self if bounded else Quantile(ALMOST_ALL)

    words: ClassVar[str] = "worst value over the executed inputs"


@dataclass(frozen=True)
class InSpec(Measure):
    r"""The share of executed inputs within limits, :math:`P(low \le f(x') \le high)`."""

    low: float | int | None = None
    """Lower limit, in the user's units; None: there is none."""
    high: float | int | None = None
    """Upper limit."""

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError("InSpec needs a lower limit, an upper limit, or both: got neither.")
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                _read_number(self, name)
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(
                f"The lower limit must be below the upper one, got low={self.low:g} and "
                f"high={self.high:g}."
            )

    @property
    def sides(self) -> list[tuple[int, float]]:
        """The limits that there are, each with the side of it that is in spec."""
        both = ((1, self.low), (-1, self.high))
        return [(sign, limit) for sign, limit in both if limit is not None]

    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        return self.keeps(values).to(values.dtype).mean(-1)

    def keeps(self, values: Any) -> Any:
        """Return which values are within the limits."""
        within = values == values
        for sign, limit in self.sides:
            within = within & (sign * values >= sign * limit)
        return within

    def smooth(self, values: Float[Any, "*batch s"], scale: float) -> Float[Any, "*batch"]:
        """Count with soft limits: also far outside, nearer is better."""
        # Π_sides sigmoid(distance into spec / width), narrow enough for both sides of an interval
        width = SOFT * scale
        if self.low is not None and self.high is not None:
            width = min(width, 0.1 * (self.high - self.low))
        share: Any = 1.0
        for sign, limit in self.sides:
            share = share * (sign * (values - limit) / width).sigmoid()
        return share.mean(-1)

    def inside(self, sign: int, unit: float) -> "InSpec":
        """Scale the limits, and swap them where values are flipped."""
        # low <= f <= high  ⇔  low / unit <= y <= high / unit, turned round where sign is -1
        low, high = (None if v is None else sign * v / unit for v in (self.low, self.high))
        return InSpec(low, high) if sign > 0 else InSpec(high, low)

    def factor(self, sign: int, unit: float) -> float:
        """Return 1: a share has no unit, and more of it is better in both directions."""
        return 1.0

    @property
    def words(self) -> str:
        return f"share of executed inputs with a value {bounds_words(self.low, self.high)}"


@dataclass(frozen=True)
class Target(Measure):
    r"""Minus the expected squared distance to a value, :math:`-\mathbb E (f(x') - t)^2`."""

    value: float | int
    """The value to hit, in the user's units."""

    def __post_init__(self) -> None:
        _read_number(self, "value")

    def of(self, values: Float[Any, "*batch s"]) -> Float[Any, "*batch"]:
        # -E (f - t)²
        return -(values - self.value).square().mean(-1)

    def inside(self, sign: int, unit: float) -> "Target":
        return Target(sign * self.value / unit)

    def factor(self, sign: int, unit: float) -> float:
        """Return the square of the unit: nearer is better in both directions."""
        return unit**2

    @property
    def words(self) -> str:
        return f"minus mean squared distance to {self.value:g}"


MEASURES: dict[str, type[Measure]] = {
    kind.__name__: kind for kind in (Mean, MeanStd, Quantile, CVaR, Worst, InSpec, Target)
}


def measure_from(described: Mapping[str, Any]) -> Measure:
    """Make a measure of what ``to_dict`` returned, or say what is wrong with it."""
    given = dict(described)
    kind = given.pop("kind", None)
    if kind not in MEASURES:
        raise ValueError(f"There is no measure {kind!r}; choose from {', '.join(MEASURES)}.")
    known = [f.name for f in fields(MEASURES[kind])]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has nothing to set"
            raise ValueError(f"The measure {kind} has no {name!r}; {has}.")
    return MEASURES[kind](**given)


def check_measure(given: object) -> Measure:
    """Return a measure as it is, or say what was expected."""
    if isinstance(given, Measure):
        return given
    if isinstance(given, type) and issubclass(given, Measure):
        raise TypeError(f"measure is the class {given.__name__}; make one, as in measures.Mean().")
    raise TypeError(f"measure must be one of airbo.measures, as measures.CVaR(0.9), got {given!r}.")


def bounds_words(low: float | None, high: float | None) -> str:
    """Say where a value lies that is within limits.

    >>> bounds_words(0.0, 100.0), bounds_words(None, 0.5)
    ('between 0 and 100', 'at most 0.5')
    """
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    return f"at most {high:g}" if low is None else f"at least {low:g}"


def _of_100(share: float) -> str:
    """Write a share as a count: 90 of 100, 999 of 1,000."""
    for base in (10, 100, 1000, 10000):
        count = share * base
        if base >= 100 and abs(count - round(count)) < 1e-6 * base:
            return f"{round(count):,} of {base:,}"
    return f"{100 * share:.4g} of 100"


def _read_number(measure: Measure, name: str) -> None:
    """Read a field as a float; refuse what is not a finite number."""
    object.__setattr__(measure, name, finite_number(getattr(measure, name), name))


def check_level(level: object, name: str = "level") -> float:
    """Return a share between 0 and 1 as a float, and refuse what is not one."""
    with suppress(ValueError):
        share = finite_number(level, name)
        if 0 < share < 1:
            return share
    raise ValueError(f"{name} must be a number between 0 and 1, as 0.9 for 90%, got {level!r}.")


def check_tail(
    level: object, name: str = "level", instead: str = "Use Worst() for the worst case."
) -> float:
    """Return a share as a float, and refuse one that leaves too rare a rest to estimate."""
    share = check_level(level, name)
    if share > ALMOST_ALL:
        raise ValueError(
            f"{name} must not exceed {ALMOST_ALL} (999 of 1,000), got {share!r}: airbo cannot "
            f"estimate what is rarer. {instead}"
        )
    return share


def check_kept_share(probability: object, name: str = "probability") -> float:
    """Return the share of executed inputs that keep a limit, and refuse what cannot be one."""
    return check_tail(probability, name, "Ask for 0.999 of a stricter limit.")


# -- as people type them, in a campaign file or after a flag: cvar:0.9

_WORDS: dict[str, type[Measure]] = {
    "mean": Mean,
    "mean-std": MeanStd,
    "quantile": Quantile,
    "cvar": CVaR,
    "worst": Worst,
    "in-spec": InSpec,
    "target": Target,
}
_FORMS = {
    MeanStd: "mean-std:2",
    Quantile: "quantile:0.9",
    CVaR: "cvar:0.9",
    InSpec: "in-spec:0.5..2, in-spec:0.5.. or in-spec:..2",
    Target: "target:50",
}
"""How measures with numbers are written."""


def from_text(text: str) -> Measure:
    """Read a measure: a word, and what belongs to it after a colon.

    >>> from_text("cvar:0.9"), from_text("in-spec:..0.2"), from_text("worst")
    (CVaR(level=0.9), InSpec(low=None, high=0.2), Worst())
    """
    word, colon, rest = (part.strip() for part in text.partition(":"))
    if word.lower() not in _WORDS:
        raise ValueError(f"There is no measure {word!r}; choose from {', '.join(_WORDS)}.")
    kind = _WORDS[word.lower()]
    parts = rest.split("..") if colon else []
    is_form = len(parts) == 2 if kind is InSpec else len(parts) <= len(fields(kind))  # type: ignore[arg-type]
    if not is_form or (kind is Target and not parts):
        raise ValueError(f"{text.strip()!r} is no measure: write {_FORMS.get(kind, word)}.")
    return kind(*(_typed_number(word, part) if part.strip() else None for part in parts))


def to_text(measure: Measure) -> str:
    """Write a measure so that ``from_text`` reads it.

    >>> to_text(CVaR(0.9)), to_text(InSpec(high=0.2))
    ('cvar:0.9', 'in-spec:..0.2')
    """
    word = next(word for word, kind in _WORDS.items() if type(measure) is kind)
    numbers = ["" if v is None else str(v).removesuffix(".0") for v in vars(measure).values()]
    return f"{word}:{'..'.join(numbers)}" if numbers else word


def _typed_number(word: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        hint = " Write 0.95 for 95%." if "%" in text else ""
        raise ValueError(f"{word}: {text.strip()!r} is not a number.{hint}") from None
