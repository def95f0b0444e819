"""Numbers, designs and uncertainties as people read them."""

import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from airbo.coordinates import uncertain_columns
from airbo.parameters import Categorical, Float, Integer, Parameter
from airbo.report.beliefs import Estimate
from airbo.space import Space
from airbo.uncertainty import (
    Beta,
    ChiSquared,
    Clipped,
    Empirical,
    Exact,
    GaussianMixture,
    InputUncertainty,
    Normal,
    Piecewise,
    Product,
    Ring,
    Sampler,
    Scaled,
    SciPy,
    Torch,
    Uniform,
    Varying,
)


def number(value: float | int, digits: int = 4) -> str:
    """Write a number with so many significant digits and without trailing zeros."""
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        places = max(0, digits - 1 - _magnitude(value))
        text = f"{value:.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.{digits}g}"
    return _minus("0" if text in ("-0", "") else text)


def plus_minus(estimate: Estimate, signed: bool = False) -> str:
    """Write mean ± standard deviation, to the second digit of what is not known."""
    mean, std = float(estimate.mean), float(estimate.std)
    sign = "+" if signed and mean > 0 else ""
    places = 1 - _magnitude(std)
    if not std > 0 or places > 8 or abs(mean) >= 1e7 or std >= 1e7:
        return f"{sign}{number(mean)} ± {number(std, 2)}"
    places = max(places, 0)
    return sign + _minus(f"{mean:.{places}f} ± {std:.{places}f}")


def interval(estimate: Estimate) -> str:
    """Write the range that holds the truth in 95 of 100 cases."""
    mean, std = float(estimate.mean), float(estimate.std)
    places = max(0, 1 - _magnitude(std)) if std > 0 else 4
    if places > 8 or abs(mean) >= 1e7:
        return f"{number(mean - 2 * std)} to {number(mean + 2 * std)}"
    return _minus(f"{mean - 2 * std:.{places}f} to {mean + 2 * std:.{places}f}")


def unit_of(parameter: Parameter) -> str | None:
    """Return the unit of a parameter, if it has one."""
    return parameter.unit if isinstance(parameter, Float | Integer) else None


def with_unit(text: str, unit: str | None) -> str:
    """Put a unit behind a number."""
    return f"{text} {unit}" if unit else text


def label(name: str, unit: str | None) -> str:
    """Write a name and its unit, as on an axis."""
    return f"{name} ({unit})" if unit else name


def value(parameter: Parameter, given: Any) -> str:
    """Write the value of a parameter with its unit."""
    shown = number(given, 5) if isinstance(parameter, Float) else str(given)
    return with_unit(shown, unit_of(parameter))


def design(space: Space, given: Mapping[str, Any]) -> str:
    """Write a design in one line."""
    return listed([f"{n} = {value(p, given[n])}" for n, p in space.parameters.items()])


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


def kind(uncertainty: InputUncertainty, unit: str | None = None) -> str:
    """Say what kind of deviation an uncertainty is, with numbers where there are few."""
    return _kind(uncertainty, unit)


def hit(space: Space, uncertainty: InputUncertainty, name: str) -> str:
    """Say how one parameter is hit."""
    column, units = space.names.index(name), [unit_of(p) for p in space.parameters.values()]
    if column not in uncertain_columns(uncertainty, space.d):
        return "exactly"
    blocks, layout = [uncertainty], [tuple(range(space.d))]
    if isinstance(uncertainty, Product):
        blocks, layout = list(uncertainty.blocks), list(uncertainty.layout(space.d))
    [(block, own)] = [(b, c) for b, c in zip(blocks, layout, strict=True) if column in c]
    shared = {units[c] for c in own}
    text = kind(block, shared.pop() if len(shared) == 1 else None)
    others = [space.names[c] for c in own if c != column]
    return f"{text}; together with {listed(others)}" if others else text


@singledispatch
def _kind(u: InputUncertainty, unit: str | None) -> str:
    return repr(u)


@_kind.register
def _(u: Exact, unit: str | None) -> str:
    return "hit exactly"


@_kind.register
def _(u: Normal, unit: str | None) -> str:
    if u.cov is not None:
        return "normal with a covariance matrix"
    return f"normal, standard deviation {_shown(u.std, unit)}"


@_kind.register
def _(u: Uniform, unit: str | None) -> str:
    return f"anywhere between {_shown(u.low, None)} and {_shown(u.high, unit)} of the design"


@_kind.register
def _(u: Beta, unit: str | None) -> str:
    shape = f"beta({_shown(u.a, None)}, {_shown(u.b, None)})"
    return f"{shape}, {_shown(u.scale, unit)} wide from {_shown(u.loc, unit)} on"


@_kind.register
def _(u: ChiSquared, unit: str | None) -> str:
    shape = f"chi-squared with {_shown(u.df, None)} degrees of freedom"
    return f"{shape}, times {_shown(u.scale, unit)}, from {_shown(u.loc, unit)} on"


@_kind.register
def _(u: GaussianMixture, unit: str | None) -> str:
    return f"one of {np.shape(u.weights)[-1]} normal distributions"


@_kind.register
def _(u: Ring, unit: str | None) -> str:
    return f"on a circle of radius {_shown(u.radius, unit)}"


@_kind.register
def _(u: Empirical, unit: str | None) -> str:
    return f"as in a log of {len(u.deviations)} deviations"


@_kind.register
def _(u: SciPy | Torch, unit: str | None) -> str:
    return f"distribution {u!r}"


@_kind.register
def _(u: Varying, unit: str | None) -> str:
    return "changes with the design, by a function"


@_kind.register
def _(u: Sampler, unit: str | None) -> str:
    return "drawn by a program"


@_kind.register
def _(u: Piecewise, unit: str | None) -> str:
    return f"changes with the design, in {len(u.pieces)} steps"


@_kind.register
def _(u: Clipped, unit: str | None) -> str:
    ends = {"not below": u.low, "not above": u.high}
    limits = [f"{what} {_shown(end, unit)}" for what, end in ends.items() if end is not None]
    return ", ".join([_kind(u.uncertainty, unit), *limits])


@_kind.register
def _(u: Scaled, unit: str | None) -> str:
    return f"{number(u.factor)} times: {_kind(u.uncertainty, unit)}"


def _shown(p: Any, unit: str | None) -> str:
    parts = [number(v) for v in np.ravel(p)]
    return with_unit(parts[0] if len(parts) == 1 else f"({', '.join(parts)})", unit)


def _magnitude(value: float | int) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _minus(text: str) -> str:
    return text.replace("-", "−")
