"""Which executed inputs stand for P_x when a measure is taken over it."""

from functools import singledispatch

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from airbo.in_cube import InCube
from airbo.measures.kinds import ALMOST_ALL, Measure, Quantile, Worst
from airbo.uncertainty import (
    Beta,
    Clipped,
    Empirical,
    Exact,
    InputUncertainty,
    Piecewise,
    Product,
    Relative,
    Ring,
    Scaled,
    SciPy,
    Uniform,
    Varying,
    base_draws,
)


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
    if isinstance(measure, Worst) and (noisy or not is_bounded(uncertainty, d)):
        return Quantile(ALMOST_ALL)
    return measure


@singledispatch
def is_bounded(uncertainty: InputUncertainty, d: int) -> bool:
    """Say whether all executed inputs of a design with ``d`` columns lie in a bounded region."""
    return isinstance(uncertainty, Exact | Uniform | Beta | Ring | Empirical)


@is_bounded.register
def _(u: Product, d: int) -> bool:
    parts = zip(u.blocks, u.layout(d), strict=True)
    return all(is_bounded(block, len(columns)) for block, columns in parts)


@is_bounded.register
def _(u: Relative, d: int) -> bool:
    return is_bounded(u.share, d)


@is_bounded.register(Scaled)
@is_bounded.register(InCube)
def _(u: Scaled | InCube, d: int) -> bool:
    return is_bounded(u.uncertainty, d)


@is_bounded.register
def _(u: Piecewise, d: int) -> bool:
    return all(is_bounded(piece, d) for piece in u.pieces)


@is_bounded.register
def _(u: Varying, d: int) -> bool:
    return is_bounded(u.at(torch.tensor(u.probe, dtype=torch.float64).expand(1, d).clone()), d)


@is_bounded.register
def _(u: Clipped, d: int) -> bool:
    return (u.low is not None and u.high is not None) or is_bounded(u.uncertainty, d)


@is_bounded.register
def _(u: SciPy, d: int) -> bool:
    support = getattr(u.frozen, "support", None)
    return support is not None and bool(np.isfinite(support()).all())
