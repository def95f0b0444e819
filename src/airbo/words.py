"""Values, designs and uncertainties as people write and read them: the one place for words."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from airbo.space import Space, closest
from airbo.space.parameters import Categorical, Float, Integer, Parameter
from airbo.uncertainty.kinds import is_exact, said


@runtime_checkable
class MeanAndStd(Protocol):
    """What is believed about a number."""

    @property
    def mean(self) -> Any:
        """The most likely value."""

    @property
    def std(self) -> Any:
        """What is not known about it."""


# -- reading


def typed_value(space: Space, name: str, text: str) -> Any:
    """Read the value of a parameter as people type it, or say what is wrong in a ``ValueError``."""
    if name not in space.names:
        raise ValueError(f"unknown parameter {name!r}{nearest(name, space.names)}")
    parameter, text = space.parameters[name], text.strip()
    if isinstance(parameter, Categorical):
        written = [c for c in parameter.choices if text in (str(c), repr(c))]
        for choice in written + [c for c in parameter.choices if _is_same_number(c, text)]:
            return choice
        raise ValueError(f"{name} must be one of {quoted(parameter.choices)}, got {text!r}.")
    number = typed_number(text, name, unit_of(parameter))
    if not isinstance(parameter, Integer):
        return number
    if not number.is_integer():
        raise ValueError(f"{name} must be a whole number, got {text!r}.")
    return int(number)


def _is_same_number(choice: Any, text: str) -> bool:
    """Spreadsheets write 1.0 as 1, and True as TRUE."""
    if isinstance(choice, bool):
        return text.lower() == str(choice).lower()
    try:
        return not isinstance(choice, str) and float(text) == choice
    except ValueError:
        return False


_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


def typed_number(text: str, what: str, unit: str | None = None) -> float:
    """Read a number as people type it, or say in a ``ValueError`` what is wrong.

    >>> typed_number("55,4", "yield"), typed_number(" 62.1%", "yield", "%"), typed_number("−2", "x")
    (55.4, 62.1, -2.0)
    """
    plain = text.strip().replace("−", "-").removesuffix(unit or "").strip()
    if _EITHER.fullmatch(plain):
        point, whole = plain.replace(",", "."), plain.replace(",", "")
        raise ValueError(f"{what}: {plain} can mean {point} or {whole}. Write one of them.")
    return number_of(plain.replace(",", ".") if _COMMA.fullmatch(plain) else plain, what)


def number_of(text: str, what: str) -> float:
    """Read a finite number, or say that it is none."""
    try:
        number = float(text)
    except ValueError:
        comma = " Write a decimal point, not a comma." if "," in text else ""
        raise ValueError(f"{what} must be a number, got {text!r}.{comma}") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, got {text!r}.")
    return number


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word is near an unknown one; where none is, list them."""
    known = list(known)
    near = closest(word, known)
    return f"; did you mean {near!r}?" if near else f"; there are {quoted(known) or 'none'}."


def quoted(words: Iterable[Any]) -> str:
    """Write words one after the other, in quotes."""
    return ", ".join(map(repr, words))


# -- numbers


def shown(value: Any) -> str:
    """Write a value so that it can be copied: six digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def number(value: float | int, digits: int = 4) -> str:
    """Write a number with so many significant digits and without trailing zeros."""
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        places = max(0, digits - 1 - _magnitude(value))
        text = f"{value:.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.{digits}g}"
    return _minus("0" if text in ("-0", "") else text)


def fixed(value: float, places: int) -> str:
    """Write a number with so many digits behind the point, zeros too."""
    text = f"{value:.{max(0, places)}f}"
    return _minus(text.lstrip("-") if float(text) == 0 else text)


def plus_minus(estimate: MeanAndStd, signed: bool = False) -> str:
    """Write mean ± standard deviation, to the second digit of what is not known."""
    mean, std = float(estimate.mean), float(estimate.std)
    sign = "+" if signed and mean > 0 else ""
    places = _places(std, mean, std)
    if places is None:
        return f"{sign}{number(mean)} ± {number(std, 2)}"
    return f"{sign}{fixed(mean, places)} ± {fixed(std, places)}"


def interval(estimate: MeanAndStd) -> str:
    """Write the range that holds the truth in 90 of 100 cases."""
    mean, away = float(estimate.mean), NORMAL_90 * float(estimate.std)
    return between(mean - away, mean + away)


def percent(share: float) -> str:
    """Write a share with three digits, and more where it would pass for 100% without being it.

    >>> percent(0.9643), percent(0.9996), percent(1.0), percent(0.0)
    ('96.4%', '99.96%', '100%', '0%')
    """
    few, more, most = (f"{100 * share:.{n}g}%" for n in (3, 4, 5))
    text = next((text for text in (few, more) if share == 1 or text != "100%"), most)
    return "below 0.01%" if 0 < share < 1e-4 else text


NORMAL_90 = 1.6449
"""Half-width, in standard deviations, of the central 90% of a normal distribution."""


def ppm(value: float) -> str:
    """Write parts per million with two digits, and more where they would pass for all.

    >>> ppm(382738.1), ppm(997580.0), ppm(452.0), ppm(0.3), ppm(0.0)
    ('380,000', '998,000', '450', 'below 1', '0')
    """
    if 0 < value < 1:
        return "below 1"
    rounded = (float(f"{value:.{n}g}") for n in (2, 3, 4))
    return f"{next((r for r in rounded if r < 1e6), 1e6):,.0f}"


def between(low: float, high: float) -> str:
    """Write a range, to the second digit of a quarter of its width.

    >>> between(0.32292, 0.51609), between(96.1, 127.9)
    ('0.323 to 0.516', '96.1 to 127.9')
    """
    places = _places((high - low) / 4, low, high)
    if places is None:
        return f"{number(low)} to {number(high)}"
    return f"{fixed(low, places)} to {fixed(high, places)}"


def around(value: float, low: float, high: float) -> str:
    """Write a number and the interval that it lies in, with the digits of the interval.

    >>> around(78.9931, 59.41, 98.57)
    '79.0 (59.4 to 98.6)'
    """
    places = _places((high - low) / 4, low, high)
    shown = number(value) if places is None else fixed(value, places)
    return f"{shown} ({between(low, high)})"


def _places(unknown: float, *numbers: float) -> int | None:
    """Return how many digits behind the point show two of what is not known of numbers.

    None: such digits make no sense, for what is known exactly and for very small or large numbers.
    """
    places = max(0, 1 - _magnitude(unknown))
    is_readable = unknown > 0 and places <= 8 and max(map(abs, numbers)) < 1e7
    return places if is_readable else None


def _magnitude(value: float | int) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _minus(text: str) -> str:
    return text.replace("-", "−")


# -- parameters and designs


def unit_of(parameter: Parameter) -> str | None:
    """Return the unit of a parameter, if it has one."""
    return parameter.unit if isinstance(parameter, Float | Integer) else None


def same_unit(one: str | None, other: str | None) -> bool:
    """Say whether two units are one that is spelled differently: C and °C, um and µm.

    >>> same_unit("C", "°C"), same_unit("mm", "m"), same_unit("m/s^2", "m/s²")
    (True, False, True)
    """
    return _spelled_alike(one or "") == _spelled_alike(other or "")


_SPELLINGS = str.maketrans("µμ⁰¹²³⁴⁵⁶⁷⁸⁹⁻−·×", "uu0123456789--**", " °^_")


def _spelled_alike(unit: str) -> str:
    return unit.strip().translate(_SPELLINGS).removeprefix("deg")


def with_unit(value: Any, unit: str | None) -> str:
    """Put a unit behind a value, or behind a number that is written already."""
    return f"{shown(value)} {unit}" if unit else shown(value)


def label(name: str, unit: str | None) -> str:
    """Write a name and its unit, as on an axis."""
    return f"{name} ({unit})" if unit else name


def value(parameter: Parameter, given: Any) -> str:
    """Write the value of a parameter with its unit."""
    return with_unit(bare(parameter, given), unit_of(parameter))


def bare(parameter: Parameter, given: Any) -> str:
    """Write the value of a parameter without its unit."""
    return number(given, 5) if isinstance(parameter, Float) else str(given)


def design(space: Space, given: Mapping[str, Any]) -> str:
    """Write a design in one line, as a part of a sentence."""
    return listed([f"{n} = {value(p, given[n])}" for n, p in space.parameters.items()])


def pairs(given: Mapping[str, Any]) -> str:
    """Write names and values in one line, without units.

    >>> pairs({"speed": 120.0, "tool": "A"})
    'speed = 120, tool = A'
    """
    return ", ".join(f"{name} = {shown(v)}" for name, v in given.items())


def assignments(space: Space, given: Mapping[str, Any]) -> str:
    """Write a design in one line so that its values can be copied."""
    units = {name: unit_of(parameter) for name, parameter in space.whole.parameters.items()}
    return ", ".join(f"{name} = {with_unit(v, units.get(name))}" for name, v in given.items())


def result(experiment: Any, units: Mapping[str, str | None]) -> str:
    """Say what came of an experiment.

    Args:
        experiment: Its ``outcomes`` by name; without any, ``outcome`` says what came of it.
        units: The unit of every outcome that experiments have. The name of a single one is known
            and left out.
    """
    if experiment.outcomes:
        return measured(experiment.outcomes, units)
    unusable = ", its design cannot be used" if experiment.infeasible else ""
    return f"{experiment.outcome}{unusable}"


def measured(values: Mapping[str, float], units: Mapping[str, str | None]) -> str:
    """Write measured values with their units; see ``result``.

    >>> measured({"Ra": 1.39}, {"Ra": "µm"}), measured({"Ra": 1.39}, {"Ra": "µm", "t": None})
    ('1.39 µm', 'Ra = 1.39 µm')
    """
    is_alone = len(units) < 2 and values.keys() <= units.keys()
    parts = {name: with_unit(value, units.get(name)) for name, value in values.items()}
    return ", ".join(text if is_alone else f"{name} = {text}" for name, text in parts.items())


def plural(n: int, noun: str) -> str:
    """Count things.

    >>> plural(1, "experiment"), plural(1200, "experiment")
    ('1 experiment', '1,200 experiments')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def listed(parts: Sequence[str]) -> str:
    """Join parts as a sentence does."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def choices(parameter: Parameter) -> str:
    """Say which values a parameter can have."""
    if isinstance(parameter, Categorical):
        return "one of " + ", ".join(map(str, parameter.choices))
    low, high = (number(bound, 6) for bound in parameter.range)
    kind = "whole numbers " if isinstance(parameter, Integer) else ""
    step = getattr(parameter, "step", None)
    in_steps = f" in steps of {number(step)}" if step not in (None, 1) else ""
    scale = ", log scale" if parameter.log else ""
    return kind + with_unit(f"{low} to {high}", unit_of(parameter)) + in_steps + scale


# -- uncertainties


def kind(uncertainty: Any, unit: str | None = None) -> str:
    """Say what kind of deviation an uncertainty is, with numbers where there are few.

    Args:
        uncertainty: One of ``airbo.uncertainty``, or its description.
        unit: The unit of its numbers.

    >>> kind({"kind": "Normal", "std": 2.0}, "m/min")
    'normal, standard deviation 2 m/min'
    """
    own_unit = unit

    def show(numbers: Any, unit: bool = True) -> str:
        parts = [number(v) for v in _flat(numbers)]
        text = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        return with_unit(text, own_unit if unit else None)

    return said(uncertainty, show)


def hit(space: Space, uncertainty: Any, name: str) -> str:
    """Say how one parameter is hit.

    Args:
        space: The parameters.
        uncertainty: One of ``airbo.uncertainty`` over all parameters, or descriptions by name, as
            ``describe_uncertainty`` gives them.
        name: Of the parameter.
    """
    for own, part in _parts(space, uncertainty):
        if name in own and not is_exact(part):
            units = {unit_of(space.whole.parameters[n]) for n in own}
            text = kind(part, units.pop() if len(units) == 1 else None)
            others = [n for n in own if n != name]
            return f"{text}; together with {listed(others)}" if others else text
    return "exactly"


def parameter_rows(space: Space, *uncertainties: Any) -> list[list[str]]:
    """Say of each parameter which values it has, and how it is hit under each uncertainty."""
    rows = [
        [name, choices(parameter), *(hit(space, under, name) for under in uncertainties)]
        for name, parameter in space.parameters.items()
    ]
    for name, around in space.environment.items():
        typical = with_unit(shown(around.typical), around.unit)
        laws = [hit(space, under, name) for under in uncertainties]
        laws = ["measured each time" if law == "exactly" else law for law in laws]
        rows.append([name, f"{choices(around.column)}, typically {typical}; nobody sets it", *laws])
    return rows


def _parts(space: Space, uncertainty: Any) -> list[tuple[Sequence[str], Any]]:
    """Return what is hit together, and how."""
    if isinstance(uncertainty, list):
        return [(row["parameters"], row["uncertainty"]) for row in uncertainty]
    if not hasattr(uncertainty, "blocks"):
        return [(space.whole.names, uncertainty)]
    whole = space.whole
    layout = ([whole.names[c] for c in columns] for columns in uncertainty.layout(whole.d))
    return list(zip(layout, uncertainty.blocks, strict=True))


def _flat(numbers: Any) -> list[float]:
    plain = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    if isinstance(plain, list | tuple):
        return [v for part in plain for v in _flat(part)]
    return [plain]
