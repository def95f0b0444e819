"""What a campaign file says."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airbo.acquisition import ACQUISITIONS
from airbo.campaign.errors import FileError, Mistake, StorageError
from airbo.campaign.kinds import Group, NamedUncertainties, Place, read_uncertainty
from airbo.campaign.lines import Lines
from airbo.campaign.table import Notes, Table, nearest
from airbo.coordinates import by_columns
from airbo.observed import EXECUTED_COLUMN, STATUS, VALUE
from airbo.optimizer import Direction
from airbo.optimizer.surrogate import SURROGATES
from airbo.parameters import Categorical, Float, Integer, Parameter
from airbo.space import Space

STORAGE_VARIABLE = "AIRBO_STORAGE"
"""Environment variable that replaces the storage of the file."""

RESERVED = ("trial", "asked", "told", VALUE, STATUS)
MOST_HOURS = 1_000_000
_TOP = (
    "name", "direction", "value", "seed", "surrogate", "acquisition", "n_initial", "storage",
    "give_up_after_hours", "parameters", "uncertainty", "deployment",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """A campaign file, read and checked."""

    path: Path
    name: str
    direction: Direction
    value_name: str
    """What is measured, for people to read."""
    value_unit: str | None
    space: Space
    uncertainty: NamedUncertainties
    """Where designs may land in the experiments."""
    deployment: NamedUncertainties | None
    """Where the recommended design may land when it is used; None: as in the experiments."""
    surrogate: str
    acquisition: str
    seed: int
    n_initial: int
    storage: str
    """URL of the Optuna storage; may hold a password."""
    give_up_after_hours: float | None
    """When a design that nobody answered no longer counts as pending."""

    @classmethod
    def read(cls, path: str | Path) -> "Settings":
        """Read a campaign file.

        Raises:
            FileError: If it has mistakes; all are named.
            StorageError: If it cannot be read.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise StorageError(
                f"There is no campaign file {path}. `airbo init` makes one; --file names another."
            ) from None
        except UnicodeDecodeError:
            raise FileError(str(path), [Mistake(1, "this is not a text file in UTF-8.")]) from None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}.") from None
        return parse(text, path)

    def unit(self, name: str) -> str:
        """Return the unit of a parameter, or nothing."""
        return getattr(self.space.parameters[name], "unit", None) or ""


def parse(text: str, path: Path) -> Settings:
    """Read the text of a campaign file that stands, or will stand, at ``path``."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(str(path), [_broken(str(error), text)]) from None
    notes = Notes(Lines(text))
    settings = _settings(Table(values, (), notes), path)
    if settings is None or notes.mistakes:
        raise FileError(str(path), notes.mistakes)
    return settings


def parse_uncertainty(text: str, settings: Settings) -> NamedUncertainties:
    """Read the uncertainty of single experiments: TOML, one inline table per parameter.

    For example ``speed = { kind = "normal", std = 5.0 }``; an empty text: all are hit exactly.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError("the uncertainty", [_broken(str(error), text)]) from None
    notes = Notes(Lines(text))
    table = Table(values, (), notes)
    table.only(settings.space.names)
    found: NamedUncertainties = {}
    for name in (name for name in settings.space.names if name in values):
        own = table.sub(name)
        made = None if own is None else read_uncertainty(own, Place((name,), settings.path.parent))
        if own is not None and made is not None:
            _check_fit(own, settings.space.parameters, (name,), made)
            found[name] = made
    if notes.mistakes:
        raise FileError("the uncertainty", notes.mistakes)
    return found


def _broken(message: str, text: str) -> Mistake:
    """Take the line number out of what the parser said."""
    what, _, where = message.rpartition(" (at ")
    line = where.removeprefix("line ").split(",")[0]
    if line.isdigit():
        return Mistake(int(line), f"not valid TOML: {what}.")
    return Mistake(max(1, len(text.splitlines())), f"not valid TOML: {what or message}.")


def _settings(top: Table, path: Path) -> Settings | None:
    top.only(_TOP)
    name = top.need("name", "a text in quotes")
    if name is not None and not name.strip():
        top.note("name must not be empty.", "name")
    value = top.sub("value") or Table({}, ("value",), top.notes)
    value.only(["name", "unit"])
    parameters = _parameters(top)
    uncertainty = _uncertainties(top, "uncertainty", parameters, path.parent)
    deployment = _deployment(top, parameters, path.parent)
    others: dict[str, Any] = {
        "direction": top.one_of("direction", ("maximize", "minimize"), "maximize"),
        "value_name": value.get("name", "a text in quotes", "value"),
        "value_unit": value.get("unit", "a text in quotes"),
        "surrogate": top.one_of("surrogate", tuple(SURROGATES), "default"),
        "acquisition": top.one_of("acquisition", tuple(ACQUISITIONS), "ucb-random"),
        "seed": _at_least(top, "seed", "a whole number", 0, 0),
        "n_initial": _at_least(top, "n_initial", "a whole number", 1, _n_initial(len(parameters))),
        "storage": _storage(top, path),
        "give_up_after_hours": _hours(top),
    }
    if not parameters or name is None:
        return None
    return Settings(
        path=path,
        name=name,
        space=Space(parameters),
        uncertainty=uncertainty,
        deployment=deployment,
        **others,
    )


def _n_initial(d: int) -> int:
    return min(20, max(5, 2 * (d + 1)))


def _at_least(top: Table, key: str, kind: str, least: int, default: Any) -> Any:
    value = top.get(key, kind, default)
    if value is not None and not value >= least:
        top.note(f"{key} must be >= {least}, got {value}.", key)
        return default
    return value


def _hours(top: Table) -> float | None:
    hours = _at_least(top, "give_up_after_hours", "a number", 0, None)
    if hours is not None and hours > MOST_HOURS:
        key = "give_up_after_hours"
        top.note(f"{key} must be <= {MOST_HOURS:,}, got {hours}; leave it out for never.", key)
    return None if hours is None else float(hours)


def _storage(top: Table, path: Path) -> str:
    default = f"sqlite:///{path.stem}.db"
    given = top.get("storage", "a text in quotes", default)
    return os.environ.get(STORAGE_VARIABLE) or given


# -- parameters


def _parameters(top: Table) -> dict[str, Parameter]:
    table = top.sub("parameters")
    if table is None or not table.values:
        if "parameters" not in top.values or table is not None:
            top.note("there are no parameters: write a table [parameters.<name>] for each.")
        return {}
    made = {name: _parameter(table, name) for name in table.values}
    return {name: parameter for name, parameter in made.items() if parameter is not None}


def _parameter(parameters: Table, name: str) -> Parameter | None:
    table = parameters.sub(name)
    if table is None:
        return None
    _check_name(table, name)
    own = ["type", "uncertainty", "deployment"]
    types = {"float": Float, "integer": Integer, "categorical": Categorical}
    kind = table.one_of("type", types, "categorical" if "choices" in table.values else "float")
    needed = ("choices",) if kind == "categorical" else ("low", "high")
    optional = () if kind == "categorical" else ("unit", "log", "step")
    table.only([*own, *needed, *optional])
    number = "a whole number" if kind == "integer" else "a number"
    kinds = {"choices": "a list", "log": "true or false", "unit": "a text in quotes"}
    values = {key: table.need(key, kinds.get(key, number)) for key in needed}
    given = [key for key in optional if key in table.values]
    values |= {key: table.get(key, kinds.get(key, number)) for key in given}
    if None in values.values():
        return None
    build: Any = types[kind]
    try:
        parameter: Parameter = build(**values)
        return parameter
    except (ValueError, TypeError) as error:
        table.note_error(error)
        return None


def _check_name(table: Table, name: str) -> None:
    if name in RESERVED or name.startswith(EXECUTED_COLUMN):
        table.note(f"a parameter cannot be called {name!r}: tables use that name.")
    if not name.strip() or name.isdigit() or set(name) & set("={}[]"):
        table.note(
            f"a parameter cannot be called {name!r}: the name must not be empty or a number, nor "
            "contain any of = { } [ ]."
        )


# -- uncertainties


def _deployment(
    top: Table, parameters: Mapping[str, Parameter], folder: Path
) -> NamedUncertainties | None:
    if top.values.get("deployment") != "exact":
        return _uncertainties(top, "deployment", parameters, folder) or None
    for table, _ in _of_single(top, "deployment"):
        table.note('the file says deployment = "exact" for all parameters; take away one of both.')
    return {}


def _uncertainties(
    top: Table, key: str, parameters: Mapping[str, Parameter], folder: Path
) -> NamedUncertainties:
    """Collect uncertainties of single parameters and of groups."""
    found: NamedUncertainties = {}
    used: set[str] = set()
    for table, names in [*_of_single(top, key), *_of_groups(top, key)]:
        for name in used & set(names):
            table.note(f"parameter {name!r} has more than one {key}.")
        used |= set(names)
        extra = () if isinstance(table.path[-1], str) else ("parameters",)
        made = read_uncertainty(table, Place(names, folder), extra)
        if made is not None and set(names) <= set(parameters):
            _check_fit(table, parameters, names, made)
            found[names[0] if len(names) == 1 else names] = made
    return found


def _of_single(top: Table, key: str) -> list[tuple[Table, Group]]:
    tables = top.values.get("parameters")
    if not isinstance(tables, dict):
        return []
    found: list[tuple[Table, Group]] = []
    for name, values in tables.items():
        if isinstance(values, dict) and key in values:
            table = Table(values, ("parameters", name), top.notes).sub(key)
            found += [] if table is None else [(table, (name,))]
    return found


def _of_groups(top: Table, key: str) -> list[tuple[Table, Group]]:
    found = []
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


def _check_fit(table: Table, parameters: Mapping[str, Parameter], names: Group, made: Any) -> None:
    """Note an uncertainty that does not fit its parameters, such as one on categories."""
    try:
        by_columns(Space({name: parameters[name] for name in names}), {names: made})
    except (ValueError, TypeError) as error:
        table.note(str(error).replace(".clipped(low=...)", "clip_low"))
