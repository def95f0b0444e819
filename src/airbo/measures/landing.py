"""Which executed inputs stand for P_x when a measure is taken over it."""

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.measures.kinds import Measure, Worst
from airbo.uncertainty import InputUncertainty, base_draws


def base_for(
    measure: Measure, uncertainty: InputUncertainty, d: int, n: int
) -> Float[Tensor, "s r"]:
    """Return base draws for executed inputs, with one more column, for noise.

    Where the support is bounded, half of those for ``Worst`` lie on its faces and corners.
    """
    r = uncertainty.n_base(d)
    base = base_draws(n, r + 1)
    if not isinstance(measure, Worst):
        return base
    half = n // 2
    # (¼, ¾) becomes (0, 1), and what lies outside becomes an edge
    edges = (2 * base[:half, :r] - 0.5).clamp(0, 1)
    return torch.cat([torch.cat([edges, base[:half, r:]], -1), base[half:]])


def over(measure: Measure, uncertainty: InputUncertainty, d: int, noisy: bool) -> Measure:
    """Return the measure that is meant where designs with ``d`` columns land like this."""
    # noise has no bounds either
    return measure.over(bounded=not noisy and uncertainty.is_bounded(d))
