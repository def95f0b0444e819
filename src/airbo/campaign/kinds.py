"""Uncertainties as they are written in a campaign file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airbo import uncertainty as unc
from airbo.campaign.table import Table, nearest
from airbo.uncertainty import InputUncertainty

Group = tuple[str, ...]
NamedUncertainties = dict[str | Group, InputUncertainty]

_LIMITS = ("clip_low", "clip_high")


@dataclass(frozen=True)
class Place:
    """What an uncertainty acts on, and where its files are."""

    names: Group
    """Parameters of the uncertainty."""
    folder: Path
    """The folder of the campaign file."""


def read_uncertainty(table: Table, place: Place, extra: Sequence[str] = ()) -> Any:
    """Make an uncertainty from a table, or note what is wrong with it and return None.

    Args:
        table: The kind and its numbers.
        place: What it acts on.
        extra: Keys that are read elsewhere.
    """
    kind = table.need("kind", "a text in quotes")
    if kind is None:
        return None
    if kind not in KINDS:
        table.note(f"unknown kind {kind!r}{nearest(kind, KINDS)}", "kind")
        return None
    keys, build = KINDS[kind]
    n_before = len(table.notes.mistakes)
    table.only(["kind", *keys, *_LIMITS, *extra])
    if len(table.notes.mistakes) > n_before:
        return None
    given = {key: table.values[key] for key in keys if key in table.values}
    try:
        made = build(table, place, given)
        return None if made is None else _clipped(made, table.values)
    except (ValueError, TypeError, OSError) as error:
        table.note_error(error)
        return None


def _clipped(uncertainty: InputUncertainty, values: Mapping[str, Any]) -> InputUncertainty:
    low, high = (values.get(limit) for limit in _LIMITS)
    return uncertainty if low is None and high is None else uncertainty.clipped(low, high)


def _plainly(make: Callable[..., InputUncertainty], *needed: str) -> Callable[..., Any]:
    """Pass the keys on as they are; note those that are missing."""

    def build(table: Table, place: Place, given: dict[str, Any]) -> InputUncertainty | None:
        missing = [key for key in needed if key not in given]
        for key in missing:
            table.note(f"{key} is missing for kind {table.values['kind']!r}.")
        return None if missing else make(**given)

    return build


def _empirical(table: Table, place: Place, given: dict[str, Any]) -> InputUncertainty | None:
    """Read logged deviations from the file, or from a CSV beside it."""
    if ("file" in given) == ("deviations" in given):
        table.note("kind 'empirical' needs either file or deviations.")
        return None
    if "deviations" in given:
        return unc.Empirical(given["deviations"])
    file = table.get("file", "a text in quotes")
    if file is None:
        return None
    path = place.folder / file
    if not path.is_file():
        table.note(f"there is no file {file!r} beside the campaign file.", "file")
        return None
    columns = table.get("columns", "a list")
    return unc.Empirical.from_csv(path, _own_columns(path, place.names, columns))


def _own_columns(path: Path, names: Group, columns: list[Any] | None) -> list[Any] | None:
    """Pick the columns that are called like the parameters, where nothing else is said."""
    if columns is not None:
        return columns
    with path.open(encoding="utf-8-sig") as file:
        header = [cell.strip() for cell in file.readline().split(",")]
    return list(names) if set(names) <= set(header) else None


def _piecewise(table: Table, place: Place, given: dict[str, Any]) -> InputUncertainty | None:
    """Read the pieces, each a table of its own, and the parameter that decides."""
    by = table.get("by", "a text in quotes", place.names[0])
    if by not in place.names:
        table.note(f"by must be one of {', '.join(map(repr, place.names))}, got {by!r}.", "by")
        return None
    edges = table.need("edges", "a list")
    parts = table.subs("pieces")
    pieces = [read_uncertainty(part, place) for part in parts]
    if edges is None or None in pieces:
        return None
    return unc.Piecewise(edges, pieces, place.names.index(by))


def _relative(table: Table, place: Place, given: dict[str, Any]) -> InputUncertainty | None:
    """Read the share, a table of its own: 0.05 is 5%."""
    part = None if table.need("share", "a table") is None else table.sub("share")
    share = None if part is None else read_uncertainty(part, place)
    return None if share is None else unc.Relative(share)


def _named(kind: type[unc.SciPy] | type[unc.Torch]) -> Callable[..., Any]:
    return _plainly(kind.from_fields, "name", *(["parameters"] if kind is unc.Torch else []))


KINDS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "exact": ((), _plainly(unc.Exact)),
    "normal": (("std", "cov"), _plainly(unc.Normal)),
    "uniform": (("low", "high"), _plainly(unc.Uniform, "low", "high")),
    "beta": (("a", "b", "loc", "scale"), _plainly(unc.Beta, "a", "b")),
    "chi-squared": (("df", "loc", "scale"), _plainly(unc.ChiSquared, "df")),
    "gaussian-mixture": (
        ("means", "covs", "weights"),
        _plainly(unc.GaussianMixture, "means", "covs"),
    ),
    "ring": (("radius",), _plainly(unc.Ring, "radius")),
    "empirical": (("file", "columns", "deviations"), _empirical),
    "piecewise": (("edges", "pieces", "by"), _piecewise),
    "relative": (("share",), _relative),
    "lognormal": (("sigma",), _plainly(unc.LogNormal, "sigma")),
    "scipy": (("name", "args", "kwds"), _named(unc.SciPy)),
    "torch": (("name", "parameters"), _named(unc.Torch)),
}
"""For each kind its keys, and what makes the uncertainty of them."""
