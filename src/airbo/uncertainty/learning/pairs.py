"""Which columns of a log belong together: asked and actual values, by their names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

ASKED_WORDS = {
    "asked", "set", "setpoint", "sp", "command", "commanded", "cmd", "target", "planned", "plan",
    "desired", "demand", "demanded", "reference", "ref", "nominal", "requested", "request", "soll",
    "sollwert", "design", "input", "goal", "w",
}  # fmt: skip
"""Words for asked values."""
ACTUAL = {
    "actual", "act", "measured", "meas", "measurement", "pv", "executed", "real", "realized",
    "observed", "feedback", "fb", "ist", "istwert", "achieved", "readback", "rb", "true", "got",
    "sensed", "sensor", "effective",
}  # fmt: skip
"""Words for actual values."""
_TWO_WORDS = {("set", "point"): "setpoint", ("process", "value"): "pv", ("read", "back"): "rb"}
_PREFIXES = ("soll", "ist")
_NAMING = {"parameter", "name", "variable", "axis", "channel", "tag", "signal", "quantity"}


@dataclass(frozen=True)
class Pair:
    """One parameter, and its two columns."""

    name: str
    asked: str
    actual: str


def find_pairs(columns: Iterable[str]) -> list[Pair]:
    """Pair columns by their names, such as ``speed_sp`` and ``speed_pv``.

    A column without such a word pairs with one that has it: ``speed`` and ``speed_actual``.
    """
    asked: dict[tuple[str, ...], str] = {}
    actual: dict[tuple[str, ...], str] = {}
    plain: dict[tuple[str, ...], str] = {}
    for column in columns:
        role, rest = _role(column)
        {"asked": asked, "actual": actual, "": plain}[role].setdefault(rest, column)
    pairs = []
    for rest in dict.fromkeys([*asked, *actual]):
        one = asked.get(rest) or (plain.get(rest) if rest else None)
        other = actual.get(rest) or (plain.get(rest) if rest else None)
        if one is not None and other is not None and one != other:
            pairs.append(Pair(_called(rest, one), one, other))
    return pairs


def named_pairs(texts: Sequence[str], columns: Sequence[str]) -> list[Pair]:
    """Read pairs that were named: ``asked=actual``, or ``name:asked=actual``."""
    pairs = []
    for text in texts:
        one, equals, other = text.partition("=")
        name, colon, rest = one.partition(":")
        if colon and one not in columns:
            one = rest
        else:
            name = ""
        if not equals:
            raise ValueError(f"A pair is written as asked=actual, got {text!r}.")
        for column in (one, other):
            if column not in columns:
                raise ValueError(
                    f"There is no column {column!r}; the log has {', '.join(columns)}."
                )
        pairs.append(Pair(name or _called(_role(one)[1], one), one, other))
    return pairs


def in_wide_form(table: pd.DataFrame) -> tuple[pd.DataFrame, str | None]:
    """Put the parameters of a long table side by side: the i-th row of each in row i.

    A long table has one pair of columns, and a column that names the parameter. Returns the table
    and the name of that column, None where the table was wide already.
    """
    pairs = find_pairs(table.columns)
    if len(pairs) != 1 or _role(pairs[0].asked)[1]:
        return table, None
    used = {pairs[0].asked, pairs[0].actual}
    naming = [c for c in table.columns if c not in used and _names_parameters(c, table[c])]
    if len(naming) != 1:
        return table, None
    parts = {}
    for name, part in table.groupby(naming[0], sort=False):
        parts[f"{name}_asked"] = part[pairs[0].asked].reset_index(drop=True)
        parts[f"{name}_actual"] = part[pairs[0].actual].reset_index(drop=True)
    return pd.DataFrame(parts), naming[0]


def _names_parameters(column: str, values: pd.Series) -> bool:
    """Say whether a column holds names: by its own name, or by a few texts that come again."""
    if _words(column)[-1:] and _words(column)[-1] in _NAMING:
        return True
    texts = values.dropna().astype(str)
    no_number = not texts.str.fullmatch(r"\s*[-+]?[\d.,]+(e[-+]?\d+)?\s*", case=False).any()
    return no_number and 1 < texts.nunique() <= max(20, len(texts) // 20) and "time" not in column


def _role(column: str) -> tuple[str, tuple[str, ...]]:
    """Return whether a name speaks of asked or actual values, and what else it says."""
    words = _words(column)
    for role, known in (("actual", ACTUAL), ("asked", ASKED_WORDS)):
        for i in (len(words) - 1, *range(len(words) - 1)):
            if words and words[i] in known:
                return role, tuple(words[:i] + words[i + 1 :])
    return "", tuple(words)


def _words(column: str) -> list[str]:
    """Split a name at signs and capital letters; a unit in brackets does not count."""
    bare = re.sub(r"[\[(].*?[\])]", " ", column)
    parts = re.findall(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+|\d+", bare)
    words = [part.lower() for part in parts]
    for two, one in _TWO_WORDS.items():
        for i in range(len(words) - 1):
            if tuple(words[i : i + 2]) == two:
                words[i : i + 2] = [one]
    for prefix in _PREFIXES:
        first = words[0] if words else ""
        longer = first.startswith(prefix) and len(first) > len(prefix) + 3
        if longer and first not in ASKED_WORDS | ACTUAL:
            words[:1] = [prefix, first[len(prefix) :]]
    return words


def _called(rest: tuple[str, ...], column: str) -> str:
    return "_".join(rest) or column
