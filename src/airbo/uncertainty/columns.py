"""An uncertainty over some of its columns, where columns deviate independently."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import singledispatch
from typing import Any

from torch import Tensor

from airbo.uncertainty.additive import Beta, ChiSquared, Exact, Uniform
from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.clipped import Clipped
from airbo.uncertainty.gaussian import Normal
from airbo.uncertainty.relative import LogNormal, Relative
from airbo.uncertainty.rounded import Rounded
from airbo.uncertainty.scaled import Scaled


@singledispatch
def some_columns(uncertainty: InputUncertainty, columns: Sequence[int]) -> InputUncertainty | None:
    """Return an uncertainty over some of its columns, None unless it treats each by itself."""
    return None


@some_columns.register(Exact)
@some_columns.register(Uniform)
@some_columns.register(Beta)
@some_columns.register(ChiSquared)
@some_columns.register(LogNormal)
def _(u: Any, columns: Sequence[int]) -> InputUncertainty | None:
    return _chosen(u, columns)


@some_columns.register
def _(u: Normal, columns: Sequence[int]) -> InputUncertainty | None:
    return _chosen(u, columns) if u.cov is None else None


@some_columns.register
def _(u: Relative, columns: Sequence[int]) -> InputUncertainty | None:
    share = some_columns(u.share, columns)
    return None if share is None else Relative(share)


@some_columns.register(Clipped)
@some_columns.register(Scaled)
def _(u: Any, columns: Sequence[int]) -> InputUncertainty | None:
    inside = some_columns(u.uncertainty, columns)
    return None if inside is None else _chosen(u, columns, uncertainty=inside)


@some_columns.register
def _(u: Rounded, columns: Sequence[int]) -> InputUncertainty | None:
    inside = some_columns(u.uncertainty, columns)
    if inside is None:
        return None
    own = [i for i, c in enumerate(columns) if u.columns is None or c in u.columns]
    if not own:
        return inside
    limits: dict[str, Any] = {"low": u.low, "high": u.high}
    for name, limit in limits.items():
        if isinstance(limit, tuple):  # one per rounded column
            order = list(u.columns or range(len(limit)))
            limits[name] = tuple(limit[order.index(columns[i])] for i in own)
    return Rounded(inside, **limits, columns=None if len(own) == len(columns) else tuple(own))


def _chosen(u: Any, columns: Sequence[int], **others: Any) -> Any:
    """Choose from the parameters that have one number per column, also where these vary."""
    for name in (f.name for f in fields(u)):
        value = getattr(u, name)
        if isinstance(value, tuple):
            others[name] = tuple(value[c] for c in columns)
        elif isinstance(value, Tensor) and value.ndim and value.shape[-1] > 1:
            others[name] = value[..., list(columns)]
    return replace(u, **others)
