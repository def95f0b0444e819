"""How parameters are missed: uncertainties as a campaign file writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo.campaign.limits import check_uncertainty
from airbo.campaign.toml_errors import TomlTable
from airbo.space import Space
from airbo.space.parameters import Categorical, Parameter
from airbo.uncertainty.kinds import WORDS, Place, check_width, clipped, is_exact
from airbo.words import nearest

if TYPE_CHECKING:
    from airbo.uncertainty import InputUncertainty

_LIMITS = ("clip_low", "clip_high")

Tables = Sequence[tuple[TomlTable, tuple[str, ...]]]
"""Tables about an uncertainty, each with the parameters that it is about."""


@dataclass(frozen=True)
class Missed:
    """How some parameters are missed, as the file says it."""

    names: tuple[str, ...]
    description: dict[str, Any]
    """As JSON holds it; see ``airbo.uncertainty.from_dict``."""
    table: TomlTable = field(compare=False, repr=False)
    """Where it stands in the file."""

    def described(self) -> dict[str, Any]:
        """Return what the attributes of a trial say about it."""
        return {"parameters": list(self.names), "uncertainty": self.description}

    def built(self, space: Space) -> "InputUncertainty | None":
        """Make the uncertainty, or note what is wrong with it and return None."""
        from airbo.uncertainty import from_dict
        from airbo.uncertainty.in_cube import by_columns

        try:
            made = from_dict(self.description)
        except (ValueError, TypeError) as error:
            self.table.note_error(error)
            return None
        try:
            by_columns(Space({n: space.parameters[n] for n in self.names}), {self.names: made})
        except (ValueError, TypeError) as error:
            self.table.note(str(error).replace(".clipped(low=...)", "clip_low"))
        return made


def tables_of(top: TomlTable, key: str) -> Tables:
    """Return the tables under single parameters, and those of groups."""
    return [*of_single(top, key), *_of_groups(top, key)]


def read_missed(
    tables: Tables, parameters: Mapping[str, Parameter], folder: Path, key: str
) -> tuple[Missed, ...]:
    """Read the uncertainties of single parameters and of groups."""
    found: list[Missed] = []
    used: set[str] = set()
    for table, names in tables:
        for name in used & set(names):
            table.note(f"parameter {name!r} has more than one {key}.")
        used |= set(names)
        extra = () if isinstance(table.path[-1], str) else ("parameters",)
        description = _description(table, Place(names, folder), extra)
        if description is not None and set(names) <= set(parameters):
            _check_fit(table, [parameters[n] for n in names], names, description)
            found.append(Missed(names, description, table))
    return tuple(found)


def _description(
    table: TomlTable, place: Place, extra: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Describe an uncertainty as JSON does, or note what is wrong with it and return None."""
    word = table.need("kind", "a text in quotes")
    if word is None:
        return None
    if word not in WORDS:
        table.note(f"unknown kind {word!r}{nearest(word, WORDS)}", "kind")
        return None
    kind = WORDS[word]
    n_before = len(table.notes.mistakes)
    table.only(["kind", *kind.keys, *_LIMITS, *extra])
    given = {key: table.values[key] for key in kind.keys if key in table.values}
    if kind.part in given and (part := table.sub(kind.part)) is not None:
        given[kind.part] = _description(part, place)
    if kind.parts:
        given[kind.parts] = [_description(part, place) for part in table.subs(kind.parts)]
    if len(table.notes.mistakes) > n_before:
        return None
    try:
        description = kind.read(given, place)
        return clipped(description, *(table.values.get(limit) for limit in _LIMITS))
    except (ValueError, TypeError, OSError) as error:
        table.note_error(error)
        return None


def of_single(top: TomlTable, key: str) -> Tables:
    """Return the tables that stand under a parameter."""
    tables = top.values.get("parameters")
    if not isinstance(tables, dict):
        return []
    found: list[tuple[TomlTable, tuple[str, ...]]] = []
    for name, values in tables.items():
        if isinstance(values, dict) and key in values:
            table = TomlTable(values, ("parameters", name), top.notes).sub(key)
            found += [] if table is None else [(table, (name,))]
    return found


def _of_groups(top: TomlTable, key: str) -> Tables:
    found: list[tuple[TomlTable, tuple[str, ...]]] = []
    declared = top.values.get("parameters")
    known = list(declared) if isinstance(declared, dict) else []
    for table in top.subs(key):
        names = table.need("parameters", "a list")
        if names is None:
            continue
        unknown = [name for name in names if name not in known]
        for name in unknown:
            table.note(f"unknown parameter {name!r}{nearest(str(name), known)}", "parameters")
        if not names or len(set(map(str, names))) < len(names):
            table.note(f"parameters must be different names, got {names}.", "parameters")
        elif not unknown:
            found.append((table, tuple(names)))
    return found


def _check_fit(
    table: TomlTable,
    parameters: Sequence[Parameter],
    names: tuple[str, ...],
    description: Mapping[str, Any],
) -> None:
    """Note an uncertainty that does not fit its parameters, such as one on categories."""
    called = names[0] if len(names) == 1 else names
    for name, parameter in zip(names, parameters, strict=True):
        if isinstance(parameter, Categorical) and not is_exact(description):
            table.note(
                f"Parameter {name!r} is categorical: uncertainty on categories is not supported. "
                "Leave it out to have it hit exactly."
            )
    does_not_fit = f"The uncertainty of {called!r} does not fit: "
    try:
        check_width(description, len(names))
    except ValueError as error:
        table.note(f"{does_not_fit}{error}")
        return
    try:
        check_uncertainty(description, parameters)
    except ValueError as error:
        table.note_beyond(ValueError(f"{does_not_fit}{error}"))
