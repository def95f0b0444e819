"""Uncertainties as JSON."""

import inspect
import json
from collections.abc import Mapping
from typing import Any

from airbo.uncertainty.additive import Beta, ChiSquared, Exact, Ring, Uniform
from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.clipped import Clipped
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.external import SciPy, Torch
from airbo.uncertainty.gaussian import Normal
from airbo.uncertainty.mixture import GaussianMixture
from airbo.uncertainty.product import Product
from airbo.uncertainty.relative import LogNormal, Relative
from airbo.uncertainty.scaled import Scaled
from airbo.uncertainty.varying import Piecewise

_KINDS: dict[str, type[InputUncertainty]] = {
    kind.__name__: kind
    for kind in (
        Exact, Normal, Uniform, Beta, ChiSquared, GaussianMixture, Ring, Empirical, SciPy, Torch,
        Product, Piecewise, Clipped, Scaled, Relative, LogNormal,
    )
}  # fmt: skip


def from_dict(description: Any) -> InputUncertainty:
    """Rebuild an uncertainty from what ``to_dict`` gave."""
    if not isinstance(description, Mapping) or "kind" not in description:
        raise ValueError(
            f"An uncertainty is described by a 'kind' and its fields, got {description!r}."
        )
    kind = description["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}.")
    build: Any = getattr(_KINDS[kind], "from_fields", _KINDS[kind])
    values = {name: _decode(value) for name, value in description.items() if name != "kind"}
    try:
        inspect.signature(build).bind(**values)
    except TypeError as error:
        raise ValueError(f"{kind} cannot be made from {sorted(values)}: {error}.") from error
    uncertainty: InputUncertainty = build(**values)
    return uncertainty


def from_json(text: str) -> InputUncertainty:
    """Rebuild an uncertainty from what ``to_json`` gave."""
    try:
        description = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"The description of an uncertainty is not valid JSON: {error}."
        ) from error
    return from_dict(description)


def _decode(value: Any) -> Any:
    if isinstance(value, Mapping) and "kind" in value:
        return from_dict(value)
    return [_decode(v) for v in value] if isinstance(value, list) else value
