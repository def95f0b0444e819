"""Every kind of uncertainty that can be written down, declared once.

JSON calls a kind by the name of its class, a campaign file by a shorter word. What is declared here
says which fields a description has and which numbers they take; ``sayings`` has the words for it.
Nothing here needs PyTorch: airbo reads and checks a description long before it makes a model from
it. What only the class can tell (whether a matrix is a covariance), it says when it is built.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airbo.uncertainty.fields import (
    Read,
    column,
    edges,
    in_percent,
    matrices,
    names_of,
    numbers,
    numbers_of,
    rows_of,
    shape_of,
    text,
)
from airbo.uncertainty.logs import header_of, read_deviations

Fields = dict[str, Any]
REQUIRED: Any = object()


@dataclass(frozen=True)
class Field:
    """One field of a description."""

    name: str
    read: Read
    default: Any = REQUIRED
    """What it is if it is left out; None: it stays out."""


@dataclass(frozen=True)
class Place:
    """What an uncertainty in a file acts on, and where its files are."""

    names: tuple[str, ...]
    """The parameters that it is about."""
    folder: Path
    """The folder of the campaign file."""


def _as_written(given: Fields, place: Place) -> Fields:
    return given


def _nothing(fields: Fields) -> Fields:
    return fields


def _width(fields: Fields) -> int | None:
    """Return the number of columns that vectors among the fields agree on."""
    sizes = {name: len(v) for name, v in fields.items() if isinstance(v, list)}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"Parameters disagree on the number of columns: {listed}.")
    return next(iter(sizes.values()), None)


@dataclass(frozen=True)
class Kind:
    """What a description of one kind holds."""

    name: str
    """The class in ``airbo.uncertainty``; JSON uses it."""
    module: str
    """Where the class is defined."""
    word: str = ""
    """What a campaign file calls it; nothing: it cannot be written there."""
    fields: tuple[Field, ...] = ()
    complete: Callable[[Fields], Fields] = _nothing
    """Checks fields against each other, and fills in what follows from them."""
    width: Callable[[Fields], int | None] = _width
    """Number of columns that it acts on; None: any number, or only the class can tell."""
    in_file: tuple[str, ...] | None = None
    """Keys in a campaign file, where these are others than the fields."""
    from_file: Callable[[Fields, Place], Fields] = _as_written
    """Makes fields of what a campaign file says."""
    part: str = ""
    """The key of a campaign file that holds another uncertainty."""
    parts: str = ""
    """The key of a campaign file that holds a list of further uncertainties."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What may be written in a campaign file."""
        return tuple(f.name for f in self.fields) if self.in_file is None else self.in_file

    def described(self, given: Mapping[str, Any]) -> Fields:
        """Return a whole description, as ``to_dict`` of the class gives it, or refuse.

        Raises:
            ValueError: If a field is missing, or a number is out of range.
            TypeError: If a field holds something else than numbers.
        """
        found: Fields = {}
        for f in self.fields:
            value = given.get(f.name, f.default)
            if value is REQUIRED:
                raise ValueError(f"{f.name} is missing for kind {self.word!r}.")
            if value is not None:
                found[f.name] = f.read(value, f.name)
        return {"kind": self.name, **self.complete(found)}

    def read(self, given: Fields, place: Place) -> Fields:
        """Return a whole description of what a campaign file says, or refuse it.

        Numbers in percent, such as ``std = "5%"``, are shares of the asked value.
        """
        shares = {name: in_percent(value) for name, value in given.items() if name in _LENGTHS}
        if not any(share is not None for share in shares.values()):
            return self.described(self.from_file(given, place))
        for name, share in shares.items():
            if share is None and given[name] != 0:
                raise ValueError(f"{name} must be in percent too, got {given[name]!r}.")
        plain = given | {n: share for n, share in shares.items() if share is not None}
        own = [f for f in self.fields if f.name in _LENGTHS and f.default not in (REQUIRED, None)]
        for f in own:  # a scale of 1 would be 100%
            if f.name not in given and f.default != 0:
                raise ValueError(f"{f.name} must be in percent too; it is missing.")
        return KINDS["Relative"].described({"share": self.described(plain)})


_LENGTHS = ("std", "low", "high", "loc", "scale", "radius", "deviations")
"""Fields that are in the unit of the parameter, or in percent of its value."""


# -- fields that belong together


def _inner(value: Any, name: str) -> Fields:
    return described(value)


def _pieces(value: Any, name: str) -> list[Fields]:
    return [described(piece) for piece in rows_of(value, name)]


def _one_of_std_and_cov(fields: Fields) -> Fields:
    if len(fields) != 1:
        both = "both" if fields else "neither"
        raise ValueError(f"Normal takes exactly one of std and cov, got {both}.")
    return fields


def _in_order(fields: Fields) -> Fields:
    if "low" in fields and "high" in fields:
        low, high = fields["low"], fields["high"]
        n = _width({"low": low, "high": high}) or 1
        pairs = zip(*(v if isinstance(v, list) else [v] * n for v in (low, high)), strict=True)
        if any(a > b for a, b in pairs):
            raise ValueError(f"low must be <= high, got low={low} and high={high}.")
    return fields


def _one_per_component(fields: Fields) -> Fields:
    """Give every component its own matrix and weight."""
    means, covs = fields["means"], fields["covs"]
    if len(shape_of(means)) < 2:
        raise ValueError("means must have one row per component: shape (k, d).")
    k = len(means)
    if len(shape_of(covs)) == 2:
        covs = [covs] * k
    return {"means": means, "covs": covs, "weights": fields.get("weights", [1 / k] * k)}


def _rows(fields: Fields) -> Fields:
    rows = fields["deviations"]
    if not isinstance(rows, list):
        raise ValueError("deviations must have shape (N,) or (N, d).")
    return {"deviations": rows if isinstance(rows[0], list) else [[v] for v in rows]}


def _one_piece_more(fields: Fields) -> Fields:
    n, m = len(fields["edges"]), len(fields["pieces"])
    if m != n + 1:
        raise ValueError(f"{n} edges need {n + 1} pieces, got {m}.")
    return fields


def _width_of_pieces(fields: Fields) -> int | None:
    return next((w for w in map(width_of, fields["pieces"]) if w is not None), None)


def _width_inside(fields: Fields) -> int | None:
    limits = _width({n: v for n, v in fields.items() if n != "uncertainty"})
    return width_of(fields["uncertainty"]) if limits is None else limits


# -- what a file writes otherwise


def _of_value(given: Fields, place: Place) -> Fields:
    """Take a share in percent as it is: 5% of the value, not 5% of a share of it."""
    share = given.get("share")
    if isinstance(share, Mapping) and share.get("kind") == "Relative":
        return given | {"share": share["share"]}
    return given


def _of_logarithm(given: Fields, place: Place) -> Fields:
    sigma = in_percent(given.get("sigma"))
    return given if sigma is None else given | {"sigma": sigma}


def _from_log(given: Fields, place: Place) -> Fields:
    """Read logged deviations from the file, or from a CSV beside it."""
    if ("file" in given) == ("deviations" in given):
        raise ValueError("kind 'empirical' needs either file or deviations.")
    if "deviations" in given:
        return given
    path = place.folder / text(given["file"], "file")
    if not path.is_file():
        raise ValueError(f"there is no file {given['file']!r} beside the campaign file.")
    columns = given.get("columns")
    if columns is not None:
        columns = rows_of(columns, "columns")
    elif set(place.names) <= set(header_of(path)):  # the columns called like the parameters
        columns = list(place.names)
    return {"deviations": read_deviations(path, columns)}


def _by_parameter(given: Fields, place: Place) -> Fields:
    """Turn the parameter that decides into its column."""
    by = given.get("by", place.names[0])
    if by not in place.names:
        there = ", ".join(map(repr, place.names))
        raise ValueError(f"by must be one of {there}, got {by!r}.")
    others = {name: value for name, value in given.items() if name != "by"}
    return {**others, "column": place.names.index(by)}


# -- the registry

_POSITIVE, _NOT_NEGATIVE = numbers(above=0.0), numbers(least=0.0)
_LOC, _SCALE = Field("loc", numbers(), 0.0), Field("scale", _NOT_NEGATIVE, 1.0)

KINDS = {
    kind.name: kind
    for kind in (
        Kind("Exact", "columns", "exact"),
        Kind(
            "Normal", "normal", "normal",
            (Field("std", _NOT_NEGATIVE, None), Field("cov", matrices(2), None)),
            complete=_one_of_std_and_cov,
        ),
        Kind(
            "Uniform", "columns", "uniform",
            (Field("low", numbers()), Field("high", numbers())), complete=_in_order,
        ),
        Kind(
            "Beta", "columns", "beta",
            (Field("a", _POSITIVE), Field("b", _POSITIVE), _LOC, _SCALE),
        ),
        Kind(
            "ChiSquared", "columns", "chi-squared", (Field("df", _POSITIVE), _LOC, _SCALE),
        ),
        Kind(
            "GaussianMixture", "normal", "gaussian-mixture",
            (Field("means", numbers(2)), Field("covs", matrices(3)),
             Field("weights", _NOT_NEGATIVE, None)),
            complete=_one_per_component, width=lambda f: len(f["means"][0]),
        ),
        Kind(
            "Ring", "normal", "ring", (Field("radius", numbers(0, least=0.0)),),
            width=lambda f: 2,
        ),
        Kind(
            "Empirical", "empirical", "empirical", (Field("deviations", numbers(2)),),
            complete=_rows, width=lambda f: len(f["deviations"][0]),
            in_file=("file", "columns", "deviations"), from_file=_from_log,
        ),
        Kind(
            "SciPy", "external", "scipy",
            (Field("name", text), Field("args", rows_of, ()), Field("kwds", names_of, {})),
            width=lambda f: None,
        ),
        Kind(
            "Torch", "external", "torch",
            (Field("name", text), Field("parameters", numbers_of), Field("dtype", text, "float64")),
            width=lambda f: None, in_file=("name", "parameters"),
        ),
        Kind(
            "Relative", "composed", "relative", (Field("share", _inner),),
            width=lambda f: width_of(f["share"]), from_file=_of_value, part="share",
        ),
        Kind(
            "LogNormal", "columns", "lognormal", (Field("sigma", _NOT_NEGATIVE),),
            from_file=_of_logarithm,
        ),
        Kind("Product", "composed"),
        Kind(
            "Piecewise", "varying", "piecewise",
            (Field("edges", edges), Field("pieces", _pieces), Field("column", column, 0)),
            complete=_one_piece_more, width=_width_of_pieces,
            in_file=("edges", "pieces", "by"), from_file=_by_parameter, parts="pieces",
        ),
        Kind(
            "Clipped", "composed",
            fields=(Field("uncertainty", _inner), Field("low", numbers(), None),
                    Field("high", numbers(), None)),
            complete=_in_order, width=_width_inside,
        ),
        Kind(
            "Rounded", "composed",
            fields=(Field("uncertainty", _inner), Field("low", numbers()),
                    Field("high", numbers()), Field("columns", rows_of, None)),
            complete=_in_order, width=lambda f: width_of(f["uncertainty"]),
        ),
        Kind("Scaled", "composed"),
    )
}  # fmt: skip
"""By the name of the class. To add a kind, write its class in this package and declare it."""

WORDS = {kind.word: kind for kind in KINDS.values() if kind.word}
"""Those that a campaign file can hold, by what it calls them."""


def described(description: Any) -> Fields:
    """Check a description and complete it: what ``from_dict(description).to_dict()`` would give.

    Kinds that no file can hold are returned as they are.
    """
    kind = kind_of(description)
    if not kind.fields:
        return dict(description)
    known = [f.name for f in kind.fields]
    others = [name for name in description if name != "kind" and name not in known]
    if others:
        raise ValueError(f"{kind.name} has no {', '.join(map(repr, others))}, only {known}.")
    return kind.described(description)


def kind_of(description: Any) -> Kind:
    """Return the kind that a description names, or refuse it."""
    if not isinstance(description, Mapping) or "kind" not in description:
        raise ValueError(
            f"An uncertainty is described by a 'kind' and its fields, got {description!r}."
        )
    name = description["kind"]
    if not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {name!r}.")
    return KINDS[name]


def width_of(description: Mapping[str, Any]) -> int | None:
    """Return how many columns a description acts on; None: any number, or not known yet."""
    fields = {name: value for name, value in description.items() if name != "kind"}
    kind = KINDS[description["kind"]]
    return kind.width(fields) if kind.fields else None


def check_width(description: Mapping[str, Any], n: int) -> None:
    """Refuse a description that cannot act on ``n`` columns."""
    width = width_of(description)
    if width is not None and width != n:
        raise ValueError(f"{description['kind']} acts on designs with {width} columns, got {n}.")


def is_exact(uncertainty: Any) -> bool:
    """Say whether a description, or an object, says that designs are hit."""
    return name_of(uncertainty) == "Exact"


def name_of(uncertainty: Any) -> str:
    """Return the class of a description, or of an object."""
    named = isinstance(uncertainty, Mapping)
    return str(uncertainty["kind"]) if named else type(uncertainty).__name__


def clipped(description: Fields, low: Any, high: Any) -> Fields:
    """Return a description with limits that executed inputs cannot pass."""
    if low is None and high is None:
        return description
    limits = {"uncertainty": description, "low": low, "high": high}
    return KINDS["Clipped"].described(limits)
