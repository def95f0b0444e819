"""Uncertainties by the names of parameters, as JSON holds them; without PyTorch."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airbo.uncertainty import InputUncertainty


def describe_uncertainty(uncertainty: Mapping[Any, Any] | None) -> list[dict[str, Any]]:
    """Write an uncertainty by name in a form that fits into JSON."""
    return [
        {"parameters": list(group(names)), "uncertainty": u.to_dict()}
        for names, u in (uncertainty or {}).items()
    ]


def read_uncertainty(description: Any) -> "dict[str | tuple[str, ...], InputUncertainty]":
    """Return the uncertainty by name that :func:`describe_uncertainty` described."""
    try:
        return dict(_read(json.dumps(description)))
    except (TypeError, KeyError) as error:
        raise ValueError(
            "An uncertainty by name must be a list of dicts with 'parameters' and 'uncertainty', "
            f"got {description!r}."
        ) from error


@lru_cache(maxsize=32)
def _read(text: str) -> "dict[str | tuple[str, ...], InputUncertainty]":
    """Read a description; thousands of experiments may have the same one."""
    from airbo.uncertainty import from_dict

    return {tuple(row["parameters"]): from_dict(row["uncertainty"]) for row in json.loads(text)}


def group(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a group of parameters, which may be a single one."""
    return (names,) if isinstance(names, str) else tuple(names)
