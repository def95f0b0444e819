"""True measures of f(x') over P_x: quantiles, tails, shares within limits, from a million samples.

A measure is one of ``airbo.measures``; all that is asked of it stands in :class:`Measured`.
"""

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.expectation import BLOCK, Expectation
from airbo.problems.optimum import Function
from airbo.uncertainty import InputUncertainty, base_draws

N_PARTS, N_IN_PART = 16, 2**16
"""2²⁰ samples, in parts that are independent of each other."""


@runtime_checkable
class Measured(Protocol):
    """What counts of values: the part of ``airbo.measures.Measure`` that the truth needs."""

    def of(self, values: Any) -> Any:
        """Return the measure of values that count alike, larger being better."""

    def inside(self, sign: int, unit: float) -> "Measured":
        """Return the same measure for values that were multiplied with ``sign / unit``."""

    def factor(self, sign: int, unit: float) -> float:
        """Return what turns the measure of such values into that of the user's."""


def sign_of(direction: Direction) -> int:
    """Return what turns values into ones that are maximized."""
    return 1 if direction == "maximize" else -1


def direction_of(measure: Measured, direction: Direction) -> Direction:
    """Say whether a large or a small measure is good; a share within limits should be large."""
    return "maximize" if measure.factor(sign_of(direction), 1.0) > 0 else "minimize"


def estimate_measure(
    f: Function,
    uncertainty: InputUncertainty,
    X: Float[Tensor, "*batch n d"],
    measure: Measured,
    direction: Direction,
    n_samples: int = N_IN_PART,
    n_parts: int = N_PARTS,
) -> Expectation:
    """Return a measure of f(x') for x' ~ P_x, with its standard error.

    Every part of the samples is a scrambled Sobol sequence of its own; how much they disagree says
    how far their mean may be from the truth.
    """
    d, sign = X.shape[-1], sign_of(direction)
    inside, factor = measure.inside(sign, 1.0), measure.factor(sign, 1.0)
    points = X.reshape(-1, d).split(max(BLOCK // n_samples, 1))
    parts = []
    for seed in range(n_parts):
        base = base_draws(n_samples, uncertainty.n_base(d), seed=seed).to(X)
        values = [inside.of(sign * f(uncertainty.perturb(some, base))) for some in points]
        parts.append(factor * torch.cat(values).reshape(X.shape[:-1]))
    each = torch.stack(parts)
    error = each.std(0) / n_parts**0.5 if n_parts > 1 else torch.zeros_like(each[0])
    return Expectation(each.mean(0), error)
