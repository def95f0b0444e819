"""Parameters of a campaign as Optuna's distributions."""

import math
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from airbo.parameters import Categorical, Float, Integer, Parameter
from airbo.space import Design, Space


def distributions_of(space: Space, design: Design | None = None) -> dict[str, BaseDistribution]:
    """Return what Optuna chooses from; wide enough to hold a design, if one is given."""
    values = design or {}
    return {n: _distribution(p, values.get(n)) for n, p in space.parameters.items()}


def _distribution(parameter: Parameter, value: Any) -> BaseDistribution:
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(list(parameter.choices))
    assert isinstance(parameter, Float | Integer)
    low, high, step = parameter.low, parameter.high, parameter.step
    if value is not None:
        low, high = min(low, value), max(high, value)
        step = step if _on_grid(value, parameter) else None
    if isinstance(parameter, Integer):
        return IntDistribution(int(low), int(high), log=parameter.log, step=int(step or 1))
    return FloatDistribution(low, high, log=parameter.log, step=step)


def _on_grid(value: float | int, parameter: Float | Integer) -> bool:
    if not parameter.step:
        return True
    steps = (value - parameter.low) / parameter.step
    return math.isclose(steps, round(steps), abs_tol=1e-6) and (
        parameter.low <= value <= parameter.high
    )
