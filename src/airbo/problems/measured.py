"""True measures of f(x') over P_x: quantiles, tails, shares within limits, from a million samples.

A measure is one of ``airbo.measures``; all that is asked of it stands in :class:`Measured`.
"""

from functools import lru_cache
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

    def over(self, bounded: bool) -> "Measured":
        """Return the measure that is meant where the support of P_x is bounded, or is not."""

    def inside(self, sign: int, unit: float) -> "Measured":
        """Return the same measure for values that were multiplied by ``sign / unit``."""

    def factor(self, sign: int, unit: float) -> float:
        """Return the factor from the measure of such values to that in the user's units."""


def sign_of(direction: Direction) -> int:
    """Return the factor that makes larger values better."""
    return 1 if direction == "maximize" else -1


def direction_of(measure: Measured, direction: Direction) -> Direction:
    """Return whether larger or smaller measures are better; for a share in spec, larger."""
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
    meant = measure.over(bounded=uncertainty.is_bounded(d))
    inside, factor = meant.inside(sign, 1.0), meant.factor(sign, 1.0)
    points = X.reshape(-1, d).split(max(BLOCK // n_samples, 1))
    parts = []
    for seed in range(n_parts):
        values = [inside.of(sign * f(_executed(uncertainty, x, n_samples, seed))) for x in points]
        parts.append(factor * torch.cat(values).reshape(X.shape[:-1]))
    each = torch.stack(parts)
    error = each.std(0) / n_parts**0.5 if n_parts > 1 else torch.zeros_like(each[0])
    return Expectation(each.mean(0), error)


def _executed(
    uncertainty: InputUncertainty, X: Float[Tensor, "n d"], n_samples: int, seed: int
) -> Float[Tensor, "n s d"]:
    """Draw executed inputs, the same for the same seed."""
    if uncertainty.is_additive:
        return X.unsqueeze(-2) + _deviations(uncertainty, X.shape[-1], n_samples, seed).to(X)
    base = base_draws(n_samples, uncertainty.n_base(X.shape[-1]), seed=seed).to(X)
    return uncertainty.perturb(X, base)


@lru_cache(maxsize=2 * N_PARTS)
def _deviations(
    uncertainty: InputUncertainty, d: int, n_samples: int, seed: int
) -> Float[Tensor, "s d"]:
    """Draw x' - x, which is the same at every design."""
    base = base_draws(n_samples, uncertainty.n_base(d), seed=seed)
    return uncertainty.perturb(torch.zeros(1, d, dtype=base.dtype), base)[0]
