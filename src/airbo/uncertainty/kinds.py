"""Every kind of uncertainty that can be written down, declared once: its fields and its words.

JSON calls a kind by the name of its class, a campaign file by a shorter word. A declaration says
which fields a description has, which numbers they take, and how to say it to a person. Its class
has all the rest, and reads its fields by the same declaration. To add a kind, write its class in
this package and declare it here.

Nothing here needs PyTorch: airbo reads, checks and shows a description long before it makes a model
from it. What only the class can tell (whether a matrix is a covariance), it says when it is built.
"""

import importlib
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.sheets import read_sheet
from airbo.space.parameters import as_float

if TYPE_CHECKING:
    from airbo.uncertainty.base import InputUncertainty

Fields = dict[str, Any]
Read = Callable[[Any, str], Any]
"""Returns the value of a field as plain data, or refuses it by the field's name."""
Show = Callable[..., str]
"""Writes numbers for people, by default with their unit."""
REQUIRED: Any = object()


@dataclass(frozen=True)
class Field:
    """One field of a description."""

    name: str
    read: Read
    default: Any = REQUIRED
    """What it is if it is left out; None: it stays out."""
    ndim: int = 1
    """Dimensions of a number that is the same for all designs; inside ``Varying`` it has more."""


@dataclass(frozen=True)
class Place:
    """What an uncertainty in a file acts on, and where its files are."""

    names: tuple[str, ...]
    """The parameters that it is about."""
    folder: Path
    """The folder of the campaign file."""


def _width(fields: Fields) -> int | None:
    """Return the number of columns that vectors among the fields agree on."""
    # the last dimension of every vector is the number of columns
    sizes = {name: shape_of(v)[-1] for name, v in fields.items() if shape_of(v)}
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
    say: Callable[[Mapping[str, Any], Show], str] = field(kw_only=True)
    """Says it to a person, given the fields and what writes their numbers."""
    complete: Callable[[Fields], Fields] | None = None
    """Checks fields against each other, and fills in what follows from them."""
    width: Callable[[Fields], int | None] = _width
    """Number of columns that it acts on; None: any number, or only the class can tell."""
    in_file: tuple[str, ...] | None = None
    """Keys in a campaign file, where these are others than the fields."""
    from_file: Callable[[Fields, Place], Fields] | None = None
    """Makes fields of what a campaign file says."""
    part: str = ""
    """The key of a campaign file that holds another uncertainty."""
    parts: str = ""
    """The key of a campaign file that holds a list of further uncertainties."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What may be written in a campaign file."""
        return tuple(f.name for f in self.fields) if self.in_file is None else self.in_file

    def read_fields(self, given: Mapping[str, Any]) -> Fields:
        """Return all fields as plain numbers, lists and descriptions, or refuse them.

        Tensors that change with the design stay as they are, and so do uncertainties.

        Raises:
            ValueError: If a field is missing, or a number is out of range.
            TypeError: If a field holds something else than numbers.
        """
        known = [f.name for f in self.fields]
        others = [name for name in given if name not in known]
        if others:
            raise ValueError(f"{self.name} has no {', '.join(map(repr, others))}, only {known}.")
        found: Fields = {}
        for f in self.fields:
            value = given.get(f.name, f.default)
            if value is REQUIRED:
                raise ValueError(f"{f.name} is missing for kind {self.word or self.name!r}.")
            if value is not None or f.default is REQUIRED:
                found[f.name] = f.read(value, f.name)
        return found if self.complete is None else self.complete(found)

    def described(self, given: Mapping[str, Any]) -> Fields:
        """Return a whole description, as ``to_dict`` of the class gives it, or refuse."""
        return {"kind": self.name, **self.read_fields(given)}

    def read(self, given: Fields, place: Place) -> Fields:
        """Return a whole description of what a campaign file says, or refuse it.

        Numbers in percent, such as ``std = "5%"``, are shares of the asked value.
        """
        lengths = {n: v for n, v in given.items() if n in LENGTHS}
        shares = {n: in_percent(v) for n, v in lengths.items()}
        if all(share is None for share in shares.values()):
            for name, value in lengths.items():
                if isinstance(value, str):
                    raise TypeError(f'{name} must be numbers, or percent as "5%", got {value!r}.')
            return self.described(self.from_file(given, place) if self.from_file else given)
        # a scale that is left out would be 1, which is 100%
        left_out = [f.name for f in self.fields if f.name == "scale" and "scale" not in given]
        for name in left_out + [n for n, v in lengths.items() if shares[n] is None and v != 0]:
            raise ValueError(f"{name} must be in percent too, got {given.get(name)!r}.")
        plain = given | {n: share for n, share in shares.items() if share is not None}
        return KINDS["Relative"].described({"share": self.described(plain)})


LENGTHS = ("std", "low", "high", "loc", "scale", "radius", "deviations")
"""Fields that are in the unit of the parameter, or in percent of its value."""


# -- fields that belong together


def _inner(value: Any, name: str) -> Any:
    """Read another uncertainty: an object, or its description."""
    if hasattr(value, "perturb"):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: expected an uncertainty, got {value!r}.")
    return described(value)


def _inners(value: Any, name: str) -> list[Any]:
    return [_inner(piece, name) for piece in _list(value, name)]


def _one_of_std_and_cov(fields: Fields) -> Fields:
    if len(fields) != 1:
        both = "both" if fields else "neither"
        raise ValueError(f"Normal takes exactly one of std and cov, got {both}.")
    return fields


def _in_order(fields: Fields) -> Fields:
    low, high = fields.get("low"), fields.get("high")
    # l_j <= h_j in every column; tensors that change with the design are not compared
    if low is None or high is None or hasattr(low, "detach") or hasattr(high, "detach"):
        return fields
    n = _width({"low": low, "high": high}) or 1
    pairs = zip(*(v if isinstance(v, list) else [v] * n for v in (low, high)), strict=True)
    if any(a > b for a, b in pairs):
        raise ValueError(f"low must be <= high, got low={low} and high={high}.")
    return fields


def _one_per_component(fields: Fields) -> Fields:
    """Give every component its own matrix and weight."""
    # m (k d), C (d d) or (k d d), w (k) or 1/k each
    means, covs = fields["means"], fields["covs"]
    if len(shape_of(means)) < 2:
        raise ValueError("means must have one row per component: shape (k, d).")
    k = shape_of(means)[-2]
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


def _one_marginal_each(fields: Fields) -> Fields:
    n, m = len(fields["marginals"]), len(fields["correlation"])
    if m != n:
        raise ValueError(f"{n} marginals need a correlation matrix with {n} rows, got {m}.")
    centre = fields.get("centre")
    if centre is not None and shape_of(centre) != (n,):
        raise ValueError(f"centre must have a number for each of {n} marginals, got {centre}.")
    return fields


def _width_inside(fields: Fields) -> int | None:
    parts = [*fields.get("pieces", ()), *(fields[n] for n in _PARTS if n in fields)]
    return next((w for w in map(width_of, parts) if w is not None), None)


_PARTS = ("uncertainty", "share")
"""Fields that hold another uncertainty."""


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
    path = place.folder / _text(given["file"], "file")
    if not path.is_file():
        raise ValueError(f"there is no file {given['file']!r} beside the campaign file.")
    columns = given.get("columns")
    if columns is not None:
        columns = _list(columns, "columns")
    elif set(place.names) <= set(read_sheet(path).header):  # columns called like the parameters
        columns = list(place.names)
    return {"deviations": read_deviations(path, columns)}


def read_deviations(path: Path, columns: Sequence[str | int] | None) -> list[list[float]]:
    """Read the rows of a CSV or Excel file, with or without header; see ``Empirical.from_csv``."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file of deviations at {path}.")
    sheet = read_sheet(path)
    header, lines = sheet.header, list(sheet.rows)
    if any(_as_number(sheet.number(cell)) is not None for cell in header):  # it has no header
        header, lines = [], [(1, sheet.header), *lines]
    width = len(sheet.header)
    if not lines:
        raise ValueError(f"{path} holds no deviations.")
    place: dict[str | int, int] = {name: j for j, name in enumerate(header)}
    place |= {j: j for j in range(width)}
    for column in columns or ():
        if column not in place:
            known = ", ".join(header) or f"no header and {width} columns, counted from 0"
            raise ValueError(f"There is no column {column!r}; the file has {known}.")
    picked = range(width) if columns is None else [place[c] for c in columns]
    rows = []
    for number, cells in lines:
        if len(cells) != width:
            raise ValueError(f"{path}, row {number}: expected {width} cells, got {len(cells)}.")
        row = [_as_number(sheet.number(cells[j])) for j in picked]
        for j, value in zip(picked, row, strict=True):
            if value is None or not math.isfinite(value):
                where = f"{path}, row {number}, column {j}"
                raise ValueError(f"{where}: expected a finite number, got {cells[j]!r}.")
        rows.append([value for value in row if value is not None])
    return rows


def _as_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _by_parameter(given: Fields, place: Place) -> Fields:
    """Turn the parameter that decides into its column."""
    # the column of the parameter among those that the uncertainty is about
    by = given.get("by", place.names[0])
    if by not in place.names:
        there = ", ".join(map(repr, place.names))
        raise ValueError(f"by must be one of {there}, got {by!r}.")
    others = {name: value for name, value in given.items() if name != "by"}
    return {**others, "column": place.names.index(by)}


# -- readers of fields: numbers, lists and texts


def numbers(max_ndim: int = 1, above: float | None = None, least: float | None = None) -> Read:
    """Read a number, or nested lists of numbers, in a range.

    A tensor that requires grad, or has more dimensions than a constant can have, was made from
    designs inside ``Varying``, and stays one.
    """

    def read(value: Any, name: str) -> Any:
        if hasattr(value, "detach") and (value.requires_grad or value.ndim > max_ndim):
            if not value.isfinite().all():
                raise ValueError(f"{name} must be finite, got nan or infinite entries.")
            found, smallest = value, value.min().item()
        else:
            found = _floats(value, name, value)
            shape = shape_of(found)
            if len(shape) > max_ndim:
                raise ValueError(
                    f"{name} must have at most {max_ndim} dimensions, got an array of shape "
                    f"{shape}."
                )
            smallest = _smallest(found)
        if least is not None and smallest < least:
            raise ValueError(f"{name} must be >= {least:g}, got {smallest:g}.")
        if above is not None and smallest <= above:
            raise ValueError(f"{name} must be > {above:g}, got {smallest:g}.")
        return found

    return read


def in_percent(value: Any) -> Any:
    """Return what is written in percent as shares; None if nothing is.

    >>> in_percent("5%"), in_percent(["5 %", "0.1%"]), in_percent(5.0)
    (0.05, [0.05, 0.001], None)
    """
    if isinstance(value, list):
        shares = [in_percent(v) for v in value]
        return shares if shares and None not in shares else None
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return None
    try:
        share = float(Decimal(value.strip().removesuffix("%").strip()) / 100)
    except InvalidOperation:
        return None
    return share if math.isfinite(share) else None


def percent_of(share: float) -> str:
    """Write a share in percent, with every digit; ``in_percent`` gives it back.

    >>> percent_of(0.05), percent_of(0.04084)
    ('5%', '4.084%')
    """
    return f"{(Decimal(repr(share)) * 100).normalize():f}%"


def _floats(value: Any, name: str, whole: Any) -> Any:
    """Return numbers of Python, NumPy or PyTorch as floats in nested lists of one shape."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if not value:
            raise ValueError(f"{name} must not be empty.")
        rows = [_floats(v, name, whole) for v in value]
        if len({shape_of(row) for row in rows}) > 1:
            raise TypeError(
                f"{name} must be a number or an array of numbers, with rows of the same length."
            )
        return rows
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number or an array of numbers, got {whole!r}.")
    number = as_float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {whole}.")
    return number


def shape_of(value: Any) -> tuple[Any, ...]:
    """Return the shape of nested lists, tuples or a tensor; () of anything else."""
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if not isinstance(value, list | tuple):
        return ()
    return (len(value), *(shape_of(value[0]) if value else ()))


def _smallest(plain: Any) -> float:
    return min(map(_smallest, plain)) if isinstance(plain, list) else plain


def _matrices(max_ndim: int) -> Read:
    def read(value: Any, name: str) -> Any:
        found = numbers(max_ndim)(value, name)
        shape = shape_of(found)
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"{name} must be a square matrix, got shape {shape}.")
        return found

    return read


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r}.")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list, got {value!r}.")
    return list(value)


def _by_name(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a table of names and values, got {value!r}.")
    return dict(value)


def _edges(value: Any, name: str) -> list[Any]:
    plain = numbers(1)(value, name) if len(value) else []
    if any(not left < right for left, right in pairwise(plain)):
        raise ValueError(f"{name} must be strictly increasing, got {plain}.")
    return plain


def _column(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
        raise ValueError(f"{name} must be a whole number >= 0, got {value!r}.")
    return operator.index(value)


def _columns(value: Any, name: str) -> list[Any]:
    return [_column(c, name) for c in _list(value, name)]


def _columns_by_block(value: Any, name: str) -> list[Any]:
    return [_columns(block, name) for block in _list(value, name)]


# -- words


def _say_beta(f: Mapping[str, Any], show: Show) -> str:
    shape = f"beta({show(f['a'], unit=False)}, {show(f['b'], unit=False)})"
    return f"{shape}, {show(f['scale'])} wide from {show(f['loc'])} on"


def _say_chi_squared(f: Mapping[str, Any], show: Show) -> str:
    shape = f"chi-squared with {show(f['df'], unit=False)} degrees of freedom"
    return f"{shape}, times {show(f['scale'])}, from {show(f['loc'])} on"


def _say_relative(f: Mapping[str, Any], show: Show) -> str:
    def percent(numbers: Any, unit: bool = True) -> str:
        return f"{show(_times_100(numbers), unit=False)}%" if unit else show(numbers, unit=False)

    share = f["share"]
    fields = share if isinstance(share, Mapping) else vars(share)
    if name_of(share) == "Normal" and fields.get("cov") is None:
        return f"±{percent(fields['std'])} of the value (standard deviation)"
    if name_of(share) == "Uniform":
        low, high = fields["low"], fields["high"]
        if isinstance(low, float) and low == -high:
            return f"anywhere within ±{percent(high)} of the value"
        return f"anywhere from {percent(low)} to {percent(high)} of the value"
    return f"in percent of the value: {said(share, percent)}"


def _times_100(numbers: Any) -> Any:
    plain = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    if isinstance(plain, list | tuple):
        return [_times_100(v) for v in plain]
    # 12 digits: 100 · 0.07 is 7, not 7.000000000000001
    return float(f"{100 * plain:.12g}")


def _say_mixture(f: Mapping[str, Any], show: Show) -> str:
    means, weights = f["means"], f["weights"]
    if len(means[0]) > 1:
        return f"one of {len(weights)} normal distributions"
    stds = [math.sqrt(cov[0][0]) for cov in f["covs"]]
    if len(weights) > 1:
        parts = [
            f"{100 * w:.0f}% around {show(m, unit=False)} (±{show(s, unit=False)})"
            for w, m, s in zip(weights, means, stds, strict=True)
        ]
        return f"one of {len(weights)} normal distributions: {', '.join(parts)}"
    side = "above" if means[0][0] > 0 else "below"
    biased = f", on average {show(abs(means[0][0]))} {side} the design" if means[0][0] else ""
    return f"normal, standard deviation {show(stds[0])}{biased}"


def _say_empirical(f: Mapping[str, Any], show: Show) -> str:
    rows = f["deviations"]
    text = f"as in a log of {len(rows)} deviations"
    if len(rows[0]) > 1:
        return text
    return f"{text}, from {show(min(rows)[0], unit=False)} to {show(max(rows)[0])}"


def _say_piecewise(f: Mapping[str, Any], show: Show) -> str:
    edges = [show(edge) for edge in f["edges"]]
    where = [f"below {edges[0]}" if edges else "everywhere", *(f"from {e} on" for e in edges)]
    parts = zip(where, f["pieces"], strict=True)
    return "; ".join(f"{place}: {said(piece, show)}" for place, piece in parts)


def _say_scipy(f: Mapping[str, Any], show: Show) -> str:
    given = [
        *map(str, f.get("args", ())),
        *(f"{n} = {v}" for n, v in (f.get("kwds") or {}).items()),
    ]
    return f"distributed as {f['name']}" + (f" ({', '.join(given)})" if given else "")


def _say_clipped(f: Mapping[str, Any], show: Show) -> str:
    ends = {"not below": f.get("low"), "not above": f.get("high")}
    limits = [f"{what} {show(end)}" for what, end in ends.items() if end is not None]
    return ", ".join([said(f["uncertainty"], show), *limits])


# -- the registry

_POSITIVE, _NOT_NEGATIVE = numbers(above=0.0), numbers(least=0.0)
_LOC, _SCALE = Field("loc", numbers(), 0.0), Field("scale", _NOT_NEGATIVE, 1.0)
_INSIDE = Field("uncertainty", _inner)

KINDS = {
    kind.name: kind
    for kind in (
        Kind("Exact", "columns", "exact", say=lambda f, show: "set exactly"),
        Kind(
            "Normal", "normal", "normal",
            (Field("std", _NOT_NEGATIVE, None), Field("cov", _matrices(2), None, ndim=2)),
            say=lambda f, show: "normal with a covariance matrix" if f.get("cov") is not None
            else f"normal, standard deviation {show(f['std'])}",
            complete=_one_of_std_and_cov,
        ),
        Kind(
            "Uniform", "columns", "uniform", (Field("low", numbers()), Field("high", numbers())),
            say=lambda f, show: f"anywhere between {show(f['low'], unit=False)} and "
            f"{show(f['high'])} of the design",
            complete=_in_order,
        ),
        Kind(
            "Beta", "columns", "beta",
            (Field("a", _POSITIVE), Field("b", _POSITIVE), _LOC, _SCALE), say=_say_beta,
        ),
        Kind(
            "ChiSquared", "columns", "chi-squared", (Field("df", _POSITIVE), _LOC, _SCALE),
            say=_say_chi_squared,
        ),
        Kind(
            "GaussianMixture", "normal", "gaussian-mixture",
            (Field("means", numbers(2), ndim=2), Field("covs", _matrices(3), ndim=3),
             Field("weights", _NOT_NEGATIVE, None)),
            say=_say_mixture, complete=_one_per_component, width=lambda f: shape_of(f["means"])[-1],
        ),
        Kind(
            "Ring", "normal", "ring", (Field("radius", numbers(0, least=0.0), ndim=0),),
            say=lambda f, show: f"on a circle of radius {show(f['radius'])}", width=lambda f: 2,
        ),
        Kind(
            "Empirical", "normal", "empirical", (Field("deviations", numbers(2)),),
            say=_say_empirical, complete=_rows,
            in_file=("file", "columns", "deviations"), from_file=_from_log,
        ),
        Kind(
            "SciPy", "external", "scipy",
            (Field("name", _text), Field("args", _list, ()), Field("kwds", _by_name, {})),
            say=_say_scipy, width=lambda f: None,
        ),
        Kind(
            "Relative", "composed", "relative", (Field("share", _inner),),
            say=_say_relative, width=_width_inside, from_file=_of_value, part="share",
        ),
        Kind(
            "LogNormal", "columns", "lognormal", (Field("sigma", _NOT_NEGATIVE),),
            say=lambda f, show: f"±{show(_times_100(f['sigma']), unit=False)}% of the value "
            "(log-normal)",
            from_file=_of_logarithm,
        ),
        Kind(
            "Product", "composed",
            fields=(Field("blocks", _inners), Field("columns", _columns_by_block, None)),
            say=lambda f, show: "; ".join(said(block, show) for block in f["blocks"]),
            width=lambda f: None,
        ),
        Kind(
            "Joint", "composed", "joint",
            (Field("marginals", _inners), Field("correlation", _matrices(2)),
             Field("centre", numbers(1), None)),
            say=lambda f, show: "; ".join(said(m, show) for m in f["marginals"]) + "; correlated",
            complete=_one_marginal_each, width=lambda f: len(f["marginals"]),
            in_file=("marginals", "correlation"), parts="marginals",
        ),
        Kind(
            "Piecewise", "varying", "piecewise",
            (Field("edges", _edges), Field("pieces", _inners), Field("column", _column, 0)),
            say=_say_piecewise, complete=_one_piece_more, width=_width_inside,
            in_file=("edges", "pieces", "by"), from_file=_by_parameter, parts="pieces",
        ),
        Kind(
            "Clipped", "composed",
            fields=(_INSIDE, Field("low", numbers(), None), Field("high", numbers(), None)),
            say=_say_clipped, complete=_in_order,
            width=lambda f: _width({n: f.get(n) for n in ("low", "high")}) or _width_inside(f),
        ),
        Kind(
            "Rounded", "composed",
            fields=(_INSIDE, Field("low", numbers()), Field("high", numbers()),
                    Field("columns", _columns, None)),
            say=lambda f, show: f"{said(f['uncertainty'], show)}, rounded to whole numbers in the "
            "range",
            complete=_in_order, width=_width_inside,
        ),
        Kind(
            "Scaled", "composed", fields=(_INSIDE, Field("factor", numbers(0, least=0.0))),
            say=lambda f, show: f"{show(f['factor'], unit=False)} times: "
            f"{said(f['uncertainty'], show)}",
            width=_width_inside,
        ),
    )
}  # fmt: skip
"""By the name of the class."""

WORDS = {kind.word: kind for kind in KINDS.values() if kind.word}
"""Those that a campaign file can hold, by what it calls them."""


def described(description: Any) -> Fields:
    """Check a description and complete it: what ``from_dict(description).to_dict()`` would give."""
    return kind_of(description).described({n: v for n, v in description.items() if n != "kind"})


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


def width_of(uncertainty: Any) -> int | None:
    """Return how many columns a description, or an object, acts on; None: any, or not known yet."""
    if not isinstance(uncertainty, Mapping):
        width: int | None = uncertainty.dim
        return width
    fields = {name: value for name, value in uncertainty.items() if name != "kind"}
    return KINDS[uncertainty["kind"]].width(fields)


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


def said(uncertainty: Any, show: Show) -> str:
    """Say in words what a deviation is like.

    Args:
        uncertainty: A description, or an object of a class of ``airbo.uncertainty``.
        show: Writes its numbers.
    """
    if isinstance(uncertainty, Mapping):
        return KINDS[uncertainty["kind"]].say(uncertainty, show)
    return str(uncertainty.words(show))


# -- JSON

_OURS = "airbo.uncertainty."


def from_dict(description: Any) -> "InputUncertainty":
    """Rebuild an uncertainty from what ``to_dict`` gave."""
    made = _class_of_program(description)
    kind = kind_of(description) if made is None else None
    values = {name: _decode(value) for name, value in description.items() if name != "kind"}
    if kind is not None:
        made = getattr(importlib.import_module(_OURS + kind.module), kind.name)
        values = kind.read_fields(values)
    uncertainty: InputUncertainty = getattr(made, "from_fields", made)(**values)
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


def _class_of_program(description: Any) -> Any:
    """Return the class that a program defined and a description names; None: it is ours."""
    from airbo.uncertainty.base import InputUncertainty

    # all subclasses, those of subclasses too; of two with one name, the later one
    known = [InputUncertainty]
    for found in known:
        known += found.__subclasses__()
    name = description.get("kind") if isinstance(description, Mapping) else None
    theirs = [u for u in known if u.__name__ == name and not u.__module__.startswith(_OURS)]
    return theirs[-1] if theirs and name not in KINDS else None


# -- by the names of parameters


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
    return {tuple(row["parameters"]): from_dict(row["uncertainty"]) for row in json.loads(text)}


def group(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a group of parameters, which may be a single one."""
    return (names,) if isinstance(names, str) else tuple(names)
