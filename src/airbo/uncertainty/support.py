"""Whether the executed inputs of a design have bounds."""

from functools import singledispatch

import numpy as np
import torch

from airbo.uncertainty.additive import Beta, Exact, Ring, Uniform
from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.clipped import Clipped
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.external import SciPy
from airbo.uncertainty.product import Product
from airbo.uncertainty.relative import Relative
from airbo.uncertainty.scaled import Scaled
from airbo.uncertainty.varying import Piecewise, Varying


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


@is_bounded.register
def _(u: Scaled, d: int) -> bool:
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
