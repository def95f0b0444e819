"""Optuna's distributions as parameters of a space, and back."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from airbo.parameters import Categorical, Float, Integer, Parameter
from airbo.space import Design, Space


@dataclass(frozen=True)
class SearchSpace:
    """The parameters that are chosen together, as Optuna and as airbo describe them."""

    distributions: Mapping[str, BaseDistribution]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """The same with units, where somebody has said so."""
    constraints: tuple[str, ...] = ()
    """What designs have to meet."""

    @classmethod
    def of(cls, given: Space | Mapping[str, BaseDistribution]) -> "SearchSpace":
        """Return the search space that somebody has described in one way or the other."""
        if isinstance(given, Space):
            return cls(distributions_of(given), given.parameters, given.constraints)
        for name, d in given.items():
            if not isinstance(d, BaseDistribution):
                raise TypeError(f"Parameter {name!r}: expected an Optuna distribution, got {d!r}.")
        return cls(dict(given))

    def with_choice(self) -> "SearchSpace":
        """Leave out parameters that have one value only."""
        several = {name: d for name, d in self.distributions.items() if not d.single()}
        return replace(self, distributions=several)

    @cached_property
    def space(self) -> Space:
        """The parameters, as airbo describes them."""
        known = self.parameters
        return Space(
            {
                name: known.get(name) or _parameter(name, d)
                for name, d in self.distributions.items()
            },
            self.constraints,
        )

    def design(self, params: Mapping[str, Any]) -> Design:
        """Return the values that a design takes from a trial, without those it cannot have."""
        return {
            name: _label(distribution, params[name])
            for name, distribution in self.distributions.items()
            if name in params and _has(distribution, params[name])
        }

    def params(self, design: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of Optuna's parameters: the inverse of :meth:`design`."""
        return {name: _value(d, design[name]) for name, d in self.distributions.items()}

    def possible(self, design: Design) -> Design:
        """Leave out of a design, from whatever search space, what cannot be in this one."""
        return {
            name: value
            for name, value in design.items()
            if name in self.distributions and _is_label(self.distributions[name], value)
        }

    def is_whole(self, design: Design) -> bool:
        """Say whether a design has a value for every parameter."""
        return design.keys() == self.distributions.keys()


def distributions_of(
    space: Space, design: Mapping[str, Any] | None = None
) -> dict[str, BaseDistribution]:
    """Return the parameters of a space as Optuna describes them, for ``study.ask`` for example.

    Args:
        space: The parameters.
        design: Values that the distributions have to hold, also outside the ranges of the space.
    """
    values = design or {}
    return {name: _distribution(p, values.get(name)) for name, p in space.parameters.items()}


def _distribution(parameter: Parameter, value: Any) -> BaseDistribution:
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(parameter.choices)
    assert isinstance(parameter, Float | Integer)
    low, high, step = parameter.low, parameter.high, parameter.step
    if value is not None:
        low, high = min(low, value), max(high, value)
        step = step if _on_grid(value, parameter) else None
    if isinstance(parameter, Integer):
        return IntDistribution(int(low), int(high), parameter.log, int(step or 1))
    return FloatDistribution(low, high, parameter.log, step)


def _on_grid(value: float | int, parameter: Float | Integer) -> bool:
    if not parameter.step:
        return True
    steps = (value - parameter.low) / parameter.step
    is_near = math.isclose(steps, round(steps), abs_tol=1e-6)
    return is_near and parameter.low <= value <= parameter.high


def _parameter(name: str, distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        return Float(low, high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, IntDistribution):
        low, high = distribution.low, distribution.high
        return Integer(low, high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(_labels(distribution))
    raise TypeError(f"Parameter {name!r}: the distribution {distribution!r} is not known.")


def _value(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[_labels(distribution).index(value)]
    return value


def _label(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return _labels(distribution)[int(distribution.to_internal_repr(value))]
    return value


def _is_label(distribution: BaseDistribution, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return value in _labels(distribution)
    return True


def _has(distribution: BaseDistribution, value: Any) -> bool:
    """Say whether a value is of the distribution's kind: one of the choices, or a number."""
    try:
        distribution.to_internal_repr(value)
    except ValueError:
        return False
    return True


def _labels(distribution: CategoricalDistribution) -> list[Any]:
    """Return names for the choices: themselves, if airbo can hold them and tell them apart."""
    choices = list(distribution.choices)
    is_plain = all(type(c) in (str, bool, int, float) and c == c for c in choices)  # nan != nan
    if is_plain and len(set(choices)) == len(choices):
        return choices
    names = [str(choice) for choice in choices]
    if len(set(names)) == len(names):
        return names
    return [f"{position}: {name}" for position, name in enumerate(names)]
