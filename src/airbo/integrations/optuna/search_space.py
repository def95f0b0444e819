"""Optuna's distributions as parameters of a space, and back."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from airbo.space import Design, Space
from airbo.space.parameters import Categorical, Environment, Float, Integer, Parameter


@dataclass(frozen=True)
class SearchSpace:
    """The parameters that the model chooses together, as Optuna and as airbo describe them."""

    distributions: Mapping[str, BaseDistribution]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """The same as parameters of airbo, with units, if they were given in this form."""
    constraints: tuple[str, ...] = ()
    """Constraints on designs."""
    environment: Mapping[str, Environment] = field(default_factory=dict)
    """What no trial sets."""

    @classmethod
    def of(cls, given: Space | Mapping[str, BaseDistribution]) -> "SearchSpace":
        """Return the search space of an ``airbo.Space`` or of Optuna's distributions."""
        if isinstance(given, Space):
            known = given.parameters, given.constraints, given.environment
            return cls(distributions_of(given), *known)
        for name, d in given.items():
            if not isinstance(d, BaseDistribution):
                raise TypeError(f"Parameter {name!r}: expected an Optuna distribution, got {d!r}.")
        return cls(dict(given))

    def with_choice(self) -> "SearchSpace":
        """Leave out parameters that have only one value."""
        several = {name: d for name, d in self.distributions.items() if not d.single()}
        return replace(self, distributions=several)

    @cached_property
    def space(self) -> Space:
        """The parameters, as airbo describes them."""
        known = self.parameters
        return Space(
            {name: known.get(name) or _parameter(name, d) for name, d in self.distributions.items()}
            | dict(self.environment),
            self.constraints,
        )

    def design(self, params: Mapping[str, Any]) -> Design:
        """Return the design of a trial; values that do not fit its distributions are left out."""
        found = {}
        for name, distribution in self.distributions.items():
            with suppress(KeyError, ValueError):  # it lacks it, or has no such choice
                value = params[name]
                at = distribution.to_internal_repr(value)
                if isinstance(distribution, CategoricalDistribution):
                    value = _labels(distribution)[int(at)]
                found[name] = value
        return found

    def params(self, design: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of Optuna's parameters: the inverse of :meth:`design`."""
        return {
            name: d.choices[_labels(d).index(design[name])]
            if isinstance(d, CategoricalDistribution)
            else design[name]
            for name, d in self.distributions.items()
        }

    def is_whole(self, design: Design) -> bool:
        """Return whether a design has a value for every parameter."""
        return design.keys() == self.distributions.keys()


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """Return the parameters of a space as Optuna describes them, for ``study.ask`` for example."""
    return {name: _distribution(parameter) for name, parameter in space.parameters.items()}


def _distribution(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(parameter.choices)
    assert isinstance(parameter, Float | Integer)
    low, high, log = parameter.low, parameter.high, parameter.log
    if isinstance(parameter, Integer):
        return IntDistribution(int(low), int(high), log, int(parameter.step or 1))
    return FloatDistribution(low, high, log, parameter.step)


def _parameter(name: str, distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        return Float(low, high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, IntDistribution):
        low, high = distribution.low, distribution.high
        return Integer(low, high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(_labels(distribution))
    raise TypeError(f"Parameter {name!r}: the distribution {distribution!r} is not supported.")


def _labels(distribution: CategoricalDistribution) -> list[Any]:
    """Return labels for the choices: the choices themselves if they are distinct plain values."""
    choices = list(distribution.choices)
    is_plain = all(type(c) in (str, bool, int, float) and c == c for c in choices)  # nan != nan
    if is_plain and len(set(choices)) == len(choices):
        return choices
    names = [str(choice) for choice in choices]
    if len(set(names)) == len(names):
        return names
    return [f"{position}: {name}" for position, name in enumerate(names)]
