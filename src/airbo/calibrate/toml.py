"""Uncertainties as a campaign file holds them."""

import textwrap
from collections.abc import Mapping
from typing import Any

from airbo.uncertainty import (
    Empirical,
    InputUncertainty,
    LogNormal,
    Normal,
    Piecewise,
    Relative,
    SciPy,
    Uniform,
)
from airbo.uncertainty.kinds import KINDS, percent_of

_WIDTH = 96


def to_toml(uncertainties: Mapping[str | tuple[str, ...], InputUncertainty]) -> str:
    """Return tables for a campaign file: one per parameter, and one per group.

    They have headers of their own, so that they can stand anywhere in a file that describes the
    parameters already.
    """
    lines: list[str] = []
    for names, uncertainty in uncertainties.items():
        fields = _fields(uncertainty)
        if isinstance(names, str):
            lines += _table(f"parameters.{_key(names)}.uncertainty", fields)
        else:
            lines += _table("uncertainty", {"parameters": list(names)} | fields, in_list=True)
    return "\n".join(lines).strip() + "\n"


def _table(header: str, fields: Mapping[str, Any], in_list: bool = False) -> list[str]:
    """Write plain values below the header, then tables inside with headers of their own."""
    lines = [f"[[{header}]]" if in_list else f"[{header}]"]
    inner: list[str] = []
    for key, value in fields.items():
        path = f"{header}.{_key(key)}"
        if isinstance(value, Mapping) and "kind" in value:
            inner += _table(path, value)
        elif key == "pieces":
            inner += [line for piece in value for line in _table(path, piece, in_list=True)]
        else:
            lines += _lines(f"{_key(key)} = {_value(value)}")
    return [*lines, "", *inner]


def _lines(entry: str) -> list[str]:
    """Break a long list after commas."""
    return textwrap.wrap(entry, _WIDTH, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False)  # fmt: skip


def _fields(uncertainty: InputUncertainty) -> dict[str, Any]:
    """Return kind and keys, by the words of the file."""
    if isinstance(uncertainty, Relative) and isinstance(uncertainty.share, Normal | Uniform):
        share = _fields(uncertainty.share)
        if all(isinstance(v, float) for key, v in share.items() if key != "kind"):
            return {k: v if k == "kind" else percent_of(v) for k, v in share.items()}
    if isinstance(uncertainty, LogNormal) and isinstance(uncertainty.sigma, float):
        return {"kind": "lognormal", "sigma": percent_of(uncertainty.sigma)}
    described = uncertainty.to_dict()
    kind = described.pop("kind")
    if isinstance(uncertainty, Piecewise):
        described.pop("column")
        described["pieces"] = [_fields(piece) for piece in uncertainty.pieces]
    if isinstance(uncertainty, SciPy):
        described = {key: value for key, value in described.items() if value}
    if isinstance(uncertainty, Empirical) and uncertainty.dim == 1:
        described["deviations"] = [value for (value,) in uncertainty.deviations]
    for key, value in vars(uncertainty).items():
        if isinstance(value, InputUncertainty):
            described[key] = _fields(value)
    return {"kind": KINDS[kind].word, **described}


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return repr(value)


def _key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "")
    return name if bare.isalnum() and bare.isascii() else _quoted(name)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
