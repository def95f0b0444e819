"""Uncertainties as JSON."""

import importlib
import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airbo.uncertainty.kinds import kind_of

if TYPE_CHECKING:
    from airbo.uncertainty.base import InputUncertainty


def from_dict(description: Any) -> "InputUncertainty":
    """Rebuild an uncertainty from what ``to_dict`` gave."""
    kind = kind_of(description)
    made: Any = getattr(importlib.import_module(f"airbo.uncertainty.{kind.module}"), kind.name)
    build: Any = getattr(made, "from_fields", made)
    values = {name: _decode(value) for name, value in description.items() if name != "kind"}
    try:
        inspect.signature(build).bind(**values)
    except TypeError as error:
        raise ValueError(f"{kind.name} cannot be made from {sorted(values)}: {error}.") from error
    uncertainty: InputUncertainty = build(**values)
    return uncertainty


def from_json(text: str) -> "InputUncertainty":
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
