"""A campaign file, read and checked.

A file is read without PyTorch. Names, keys, ranges, numbers and shapes are checked at once; what
only a model can tell (a matrix that is no covariance, a logarithmic parameter that may land below
zero, the name of a surrogate) is said by ``Settings.check``, before anything is asked.

One value is one outcome: ``value = {...}`` with ``direction`` and ``measure`` is another way to
write a single table ``[outcomes.<name>]``, and nothing behind this file knows the difference.
"""

import json
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airbo import measures
from airbo.lab.errors import FileError, Mistake, StorageError
from airbo.lab.limits import check_parameter, check_uncertainty
from airbo.lab.toml_errors import Notes, TomlTable
from airbo.lab.url import StorageURL
from airbo.measures import Measure
from airbo.measures.kinds import check_kept_share
from airbo.observed import EXECUTED_COLUMN, STATUS, VALUE, Direction
from airbo.outcomes import (
    MAX_OBJECTIVES,
    Aim,
    AtLeast,
    AtMost,
    Between,
    Bounds,
    Maximize,
    Minimize,
    Want,
    check_limit,
    check_outcomes,
    objectives,
)
from airbo.space import Space, n_initial_for
from airbo.space.parameters import Categorical, Environment, Float, Integer, Parameter
from airbo.uncertainty.kinds import WORDS, Place, check_width, clipped, is_exact
from airbo.words import nearest

if TYPE_CHECKING:
    from airbo.lab.record import Experiment
    from airbo.uncertainty import InputUncertainty

    NamedUncertainties = dict[str | tuple[str, ...], InputUncertainty]

STORAGE_VARIABLE = "AIRBO_STORAGE"
"""Environment variable that replaces the storage of the file."""
RESERVED = ("trial", "asked", "told", VALUE, STATUS)
"""Columns of tables that no parameter and no outcome can be called."""
DEEPEST = 20
"""How deep tables and lists of a file may stand in each other."""
_TOP = (
    "name", "direction", "value", "seed", "surrogate", "acquisition", "measure", "noise",
    "n_initial", "storage", "parameters", "environment",
    "constraints", "uncertainty", "deployment", "outcomes",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """A campaign file, read and checked."""

    path: Path
    name: str
    outcomes: Mapping[str, Want]
    """What is measured, and what is wanted of each."""
    units: Mapping[str, str | None]
    """The unit of every outcome."""
    plausible: Mapping[str, Bounds]
    """Between which values each outcome can lie; others are questioned."""
    unnamed: bool
    """Whether the file has one value; its events call it ``value``, so that it can be renamed."""
    space: Space
    before: Mapping[str, Any]
    """Of parameters that came later: the value that former experiments were made with."""
    uncertainties: tuple["FileUncertainty", ...]
    """Where designs may land in the experiments, and the laws of the environment."""
    uncertainties_in_use: tuple["FileUncertainty", ...] | None
    """Where the recommended design may land when it is used; None: as in the experiments."""
    surrogate: str
    acquisition: str
    noise: Literal["measurement", "product"]
    """Whether observation noise counts as a property of the product."""
    seed: int
    n_initial: int
    storage: StorageURL
    """Where the experiments are kept."""
    top: TomlTable = field(compare=False, repr=False)
    """The file itself, for messages about it."""

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
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StorageError(f"{str(path)!r} cannot be read: {reason}.") from None
        return parse(text, path)

    def unit(self, name: str) -> str:
        """Return the unit of a parameter, or of the environment, or nothing."""
        return getattr(self.space.whole.parameters[name], "unit", None) or ""

    @property
    def laws(self) -> tuple["FileUncertainty", ...]:
        """The laws of the environment in the experiments."""
        return tuple(u for u in self.uncertainties if set(u.names) <= {*self.space.environment})

    # -- the first objective

    @cached_property
    def _first(self) -> tuple[str, Aim]:
        return next(iter(objectives(self.outcomes).items()))

    @property
    def value_name(self) -> str:
        """The name of the first objective."""
        return self._first[0]

    @property
    def value_unit(self) -> str | None:
        """Its unit."""
        return self.units[self.value_name]

    @property
    def direction(self) -> Direction:
        """Whether it should be large or small."""
        return self._first[1].direction

    @property
    def measure(self) -> Measure:
        """What counts of its values over where a design lands."""
        return self._first[1].measure

    @property
    def is_single(self) -> bool:
        """Whether one outcome is measured."""
        return len(self.outcomes) == 1

    def best_called(self, e: "Experiment") -> str:
        """Say what the best experiment of a campaign with one outcome is called."""
        return self._first[1].best_called(e.outcomes[self.value_name])

    # -- as plain data

    def event_name(self, outcome: str) -> str:
        """Return what events call an outcome."""
        return VALUE if self.unnamed else outcome

    @cached_property
    def described_uncertainty(self) -> list[dict[str, Any]]:
        """The uncertainty of the experiments as JSON holds it, by name."""
        return [each.described() for each in self.uncertainties]

    @property
    def described_deployment(self) -> list[dict[str, Any]] | None:
        """The uncertainty in use, in the same way."""
        used = self.uncertainties_in_use
        return None if used is None else [each.described() for each in used]

    @cached_property
    def described(self) -> dict[str, Any]:
        """What experiments depend on, as the events of a campaign hold it."""
        described = {
            **self.space.to_dict(),
            "uncertainty": self.described_uncertainty,
            "direction": self.direction,
            "outcomes": {self.event_name(name): unit for name, unit in self.units.items()},
            **({"before": self.before} if self.before else {}),
        }
        plain: dict[str, Any] = json.loads(json.dumps(described))  # as it is read again
        return plain

    # -- as models need it

    @property
    def uncertainty(self) -> "NamedUncertainties":
        """Where designs may land in the experiments, by name."""
        return self._built[0]

    @property
    def deployment(self) -> "NamedUncertainties | None":
        """Where the recommended design may land in use; None: as in the experiments."""
        return self._built[1]

    def check(self) -> None:
        """Refuse what no model could use; this needs PyTorch.

        Raises:
            FileError: If there are mistakes that show only when a model is made.
        """
        _ = self._built

    @cached_property
    def _built(self) -> "tuple[NamedUncertainties, NamedUncertainties | None]":
        from airbo.acquisition import ACQUISITIONS
        from airbo.optimizer.goal import check_settings
        from airbo.optimizer.surrogate import SURROGATES

        notes = self.top.notes
        notes.mistakes.clear()
        self.top.one_of("surrogate", tuple(SURROGATES), self.surrogate)
        self.top.one_of("acquisition", tuple(ACQUISITIONS), self.acquisition)
        try:
            if not notes.mistakes:
                check_settings(self.outcomes, self.acquisition, SURROGATES[self.surrogate])
        except ValueError as error:
            self.top.note(str(error), "measure")
        made: list[Any] = [
            None
            if group is None
            else {u.names[0] if len(u.names) == 1 else u.names: u.built(self.space) for u in group}
            for group in (self.uncertainties, self.uncertainties_in_use)
        ]
        if notes.mistakes:
            raise FileError(str(self.path), notes.mistakes)
        return made[0], made[1]


def parse(text: str, path: Path) -> Settings:
    """Read the text of a campaign file that stands, or will stand, at ``path``."""
    top = _table(text, str(path))
    settings = _settings(top, path)
    if settings is None:
        raise FileError(str(path), top.notes.mistakes)
    return settings


def parse_uncertainty(text: str, settings: Settings) -> list[dict[str, Any]]:
    """Read the uncertainty of single experiments: TOML, one inline table per parameter.

    For example ``speed = { kind = "normal", std = 5.0 }``; an empty text: all are hit exactly.

    Returns:
        Its description, as events hold it.
    """
    top, whole = _table(text, "the uncertainty"), settings.space.whole
    top.only(whole.names)
    given = ((name, top.sub(name)) for name in whole.names if name in top.values)
    tables = [(table, (name,)) for name, table in given if table is not None]
    found = _uncertainties(tables, whole.parameters, settings.path.parent, "uncertainty")
    for each in found:
        each.built(settings.space)
    if top.notes.mistakes:
        raise FileError("the uncertainty", top.notes.mistakes)
    kept = [law for law in settings.laws if not {*law.names} & {*top.values}]
    return [each.described() for each in (*found, *kept)]


def _table(text: str, file: str) -> TomlTable:
    try:
        values = tomllib.loads(text)
        _check_plain(values)
    except RecursionError:
        raise FileError(file, [Mistake(1, "its tables or lists are nested too deeply.")]) from None
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).rpartition(" (at ")
        line = where.removeprefix("line ").split(",")[0]  # or it is at the end of the document
        at = int(line) if line.isdigit() else max(1, len(text.splitlines()))
        raise FileError(file, [Mistake(at, f"not valid TOML: {what or error}.")]) from None
    except ValueError as error:  # of a number, which makes its line the longest
        what = "a number has too many digits" if "digits" in str(error) else str(error)
        lines = text.splitlines()
        raise FileError(file, [Mistake(1 + lines.index(max(lines, key=len)), f"{what}.")]) from None
    return TomlTable(values, (), Notes(text))


def _check_plain(values: Any, depth: int = DEEPEST) -> None:
    """Refuse what no campaign needs, and what would break whoever reads on."""
    if isinstance(values, int) and abs(values) >= 2**63:
        raise ValueError("a whole number has too many digits")
    if isinstance(values, dict | list):
        if not depth:
            raise RecursionError
        for value in values.values() if isinstance(values, dict) else values:
            _check_plain(value, depth - 1)


def _settings(top: TomlTable, path: Path) -> Settings | None:
    top.only(_TOP)
    name = top.need("name", "a text in quotes")
    if name is not None and not (name.strip() and name.isprintable()):
        top.note("name must be a text on one line, and not empty.", "name")
    parameters, around = _read_parameters(top), _read_environment(top)
    space = _read_space(top, {**parameters, **around})
    columns = {**parameters, **{name: each.column for name, each in around.items()}}
    uncertainties, in_use = (
        _uncertainties(_tables(top, key), columns, path.parent, key)
        for key in ("uncertainty", "deployment")
    )
    is_exact_in_use = top.values.get("deployment") == "exact"
    if is_exact_in_use and in_use:
        in_use[0].table.note(
            'the file says deployment = "exact" for all parameters; remove one of the two.'
        )
    measured = _read_outcomes(top, columns) if "outcomes" in top.values else None
    if measured is None:
        measured = _read_value(top, columns)
    others: dict[str, Any] = {
        "surrogate": top.get("surrogate", "a text in quotes", "default"),
        "acquisition": top.get("acquisition", "a text in quotes", "default"),
        "noise": top.one_of("noise", ("measurement", "product"), "measurement"),
        "seed": _at_least(top, "seed", "a whole number", 0, 0),
        "n_initial": _at_least(
            top, "n_initial", "a whole number", 1, n_initial_for(len(parameters))
        ),
        "storage": _storage(top, path),
        "uncertainties_in_use": _in_use(uncertainties, in_use, is_exact_in_use, around),
    }
    before = {} if space is None else _read_before(top, space)
    if space is None or name is None or top.notes.mistakes:
        return None
    kept = {key: value for key, value in top.values.items() if key != "storage"}
    return Settings(
        path=path,
        name=name,
        outcomes={name: want for name, (want, _, _) in measured.items()},
        units={name: unit for name, (_, unit, _) in measured.items()},
        plausible={name: bounds for name, (_, _, bounds) in measured.items()},
        unnamed="outcomes" not in top.values,
        space=space,
        before=before,
        uncertainties=uncertainties,
        top=replace(top, values=kept),
        **others,
    )


def _at_least(top: TomlTable, key: str, kind: str, least: int, default: Any) -> Any:
    value = top.get(key, kind, default)
    if value is not None and not value >= least:
        top.note(f"{key} must be >= {least}, got {value}.", key)
        return default
    return value


def _storage(top: TomlTable, path: Path) -> StorageURL:
    """Read the storage; no message may quote it, since it may hold a password."""
    default = f"sqlite:///{path.stem}.db"
    given = top.values.get("storage", default)
    if not isinstance(given, str):
        top.note("storage must be a text in quotes.", "storage")
        given = default
    try:
        url = StorageURL(os.environ.get(STORAGE_VARIABLE) or given)
        url.file(path.parent)
    except StorageError as error:
        top.note(str(error), "storage")
        return StorageURL(default)
    return url


# -- parameters


def _read_parameters(top: TomlTable) -> dict[str, Parameter]:
    """Read the tables [parameters.<name>]; those with mistakes are noted and left out."""
    table = top.sub("parameters")
    if table is None or not table.values:
        if "parameters" not in top.values or table is not None:
            top.note("there are no parameters: write a table [parameters.<name>] for each.")
        return {}
    types = {"float": Float, "integer": Integer, "categorical": Categorical}
    made = {}
    for name in table.values:
        if (own := table.sub(name)) is not None:
            usual = "categorical" if "choices" in own.values else "float"
            kind = own.one_of("type", types, usual)
            keys = {"categorical": ()}.get(kind, ("unit", "log", "step"))
            others = ("type", "uncertainty", "before")
            made[name] = _made(own, name, types[kind], kind, others, keys)
    return {name: parameter for name, parameter in made.items() if parameter is not None}


def _read_environment(top: TomlTable) -> dict[str, Environment]:
    """Read the tables [environment.<name>]: what nobody sets."""
    table, made = top.sub("environment"), {}
    for name in () if table is None else table.values:
        if table is not None and (own := table.sub(name)) is not None:
            if name in (top.values.get("parameters") or ()):
                own.note(f"{name!r} is a parameter: nobody sets the environment. Remove one.")
            keys = ("typical", "unit", "log")
            made[name] = _made(own, name, Environment, "environment", ("law",), keys)
    return {name: around for name, around in made.items() if around is not None}


def _made(
    table: TomlTable, name: str, build: Any, kind: str, own: Sequence[str], optional: Sequence[str]
) -> Any:
    """Make a parameter, or the environment, from its table; or note what is wrong with it."""
    _check_parameter_name(table, name)
    needed = ("choices",) if kind == "categorical" else ("low", "high")
    table.only([*own, "deployment", *needed, *optional])
    number = "a whole number" if kind == "integer" else "a number"
    kinds = {"choices": "a list", "log": "true or false", "unit": "a text in quotes"}
    values = {key: table.need(key, kinds.get(key, number)) for key in needed}
    given = [key for key in optional if key in table.values]
    values |= {key: table.get(key, kinds.get(key, number)) for key in given}
    if None in values.values():
        return None
    try:
        parameter = build(**values)
        check_parameter(parameter.column if kind == "environment" else parameter)
    except (ValueError, TypeError) as error:
        table.note_error(error)
        return None
    return parameter


def _read_before(top: TomlTable, space: Space) -> dict[str, Any]:
    """Read with which value the experiments were made that are older than a parameter."""
    found = {}
    for name, parameter in space.parameters.items():
        table = top.values["parameters"][name]
        if "before" in table:
            try:
                number = parameter.encode(table["before"], allow_outside=True)
                found[name] = parameter.decode(number)
            except (ValueError, TypeError) as error:
                TomlTable(table, ("parameters", name), top.notes).note(f"before: {error}", "before")
    return found


def _check_parameter_name(table: TomlTable, name: str) -> None:
    if name in RESERVED or name.startswith(EXECUTED_COLUMN):
        table.note(f"a parameter cannot be called {name!r}: tables use that name.")
    if not name.strip() or name.isdigit() or set(name) & set("={}[]"):
        table.note(
            f"a parameter cannot be called {name!r}: the name must not be empty or a number, nor "
            "contain any of = { } [ ]."
        )


def _read_space(top: TomlTable, parameters: Mapping[str, Any]) -> Space | None:
    """Read the constraints; parameters that have mistakes of their own are not there."""
    texts = top.get("constraints", "a list", [])
    if not parameters or top.notes.mistakes:
        return None
    try:
        return Space(parameters, texts)
    except ValueError as error:
        top.note(str(error), "constraints")
        return None


# -- outcomes

_GOALS: dict[str, Any] = {"maximize": Maximize, "minimize": Minimize}
_KEYS = ("goal", "measure", "at_most", "at_least", "probability", "unit", "low", "high")

Measured = dict[str, tuple[Want, str | None, Bounds]]
"""What is wanted of each outcome, its unit, and between which values it can lie."""


def _read_value(top: TomlTable, parameters: Collection[str]) -> Measured:
    """Read the one value of a file without [outcomes]."""
    table = top.sub("value") or TomlTable({}, ("value",), top.notes)
    table.only(["name", "unit", "low", "high"])
    name = table.get("name", "a text in quotes", VALUE)
    if name != VALUE:
        _check_outcome_name(table, name, {*parameters, *RESERVED})
    want = _GOALS[top.one_of("direction", _GOALS, "maximize")](_read_measure(top))
    return {name: (want, table.get("unit", "a text in quotes"), _plausible(table))}


def _plausible(table: TomlTable) -> Bounds:
    """Read between which values an outcome can lie."""
    low, high = (table.get(key, "a number") for key in ("low", "high"))
    if low is not None and high is not None and not low < high:
        table.note(f"low must be below high, got {low:g} and {high:g}.", "low")
    return low, high


def _read_outcomes(top: TomlTable, parameters: Collection[str]) -> Measured:
    """Read the tables [outcomes.<name>]; what has mistakes is noted and left out."""
    table = top.sub("outcomes")
    if table is None:
        return {}
    for key in ("direction", "value", "measure"):
        if key in top.values:
            top.note(
                f"remove {key!r}: the file has [outcomes], and each has its own goal and unit.",
                key,
            )
    if not table.values:
        top.note("outcomes is empty: write a table [outcomes.<name>] for each.", "outcomes")
        return {}
    found = {name: _outcome(table, name, {*parameters, *RESERVED}) for name in table.values}
    measured = {name: outcome for name, outcome in found.items() if outcome is not None}
    wanted = {name: want for name, (want, *_) in measured.items()}
    n_goals = len(objectives(wanted))
    if len(measured) < len(found):
        return measured
    if not 1 <= n_goals <= MAX_OBJECTIVES:
        top.note(
            f'one to {MAX_OBJECTIVES} outcomes need a goal ("maximize" or "minimize"), got '
            f"{n_goals}; all others can have limits.",
            "outcomes",
        )
        return measured
    try:
        check_outcomes(wanted)
    except ValueError as error:
        top.note(str(error), "outcomes")
    return measured


def _outcome(
    outcomes: TomlTable, name: str, taken: Collection[str]
) -> tuple[Want, str | None, Bounds] | None:
    table = outcomes.sub(name)
    if table is None:
        return None
    _check_outcome_name(table, name, taken)
    table.only(_KEYS)
    is_limit = bool({"at_least", "at_most"} & set(table.values))
    if ("goal" in table.values) == is_limit:
        table.note(
            f'outcome {name!r} needs either goal = "maximize" or "minimize", or a limit: '
            "at_most, at_least or both."
        )
        return None
    unit = table.get("unit", "a text in quotes")
    for key, where in (("measure", "a goal"), ("probability", "a limit")):
        if key in table.values and is_limit == (key == "measure"):
            other = "a limit" if is_limit else "a goal"
            table.note(f"{key} belongs to {where}, not to {other}.", key)
    try:
        goal = None if is_limit else table.one_of("goal", _GOALS, "maximize")
        want = _limit(table) if goal is None else _GOALS[goal](_read_measure(table))
        return None if want is None else (want, unit, _plausible(table))
    except (ValueError, TypeError) as error:
        table.note_error(error)
        return None


def _limit(table: TomlTable) -> Want | None:
    probability = check_kept_share(table.values.get("probability", 0.95))
    keys = [key for key in ("at_least", "at_most") if table.get(key, "a number") is not None]
    limits = [check_limit(table.values[key], key) for key in keys]
    if len(limits) == 2 and not limits[0] < limits[1]:
        raise ValueError("at_least must be below at_most, got {:g} and {:g}.".format(*limits))
    if not limits:
        return None  # what is there is no number, which was noted
    kind: Any = Between if len(limits) == 2 else AtLeast if keys == ["at_least"] else AtMost
    made: Want = kind(*limits, probability)
    return made


def _read_measure(table: TomlTable) -> Measure:
    """Read the measure of a goal, or of the whole file."""
    text = table.get("measure", "a text in quotes", "mean")
    try:
        return measures.from_text(text)
    except ValueError as error:
        table.note(f"measure: {error}", "measure")
        return measures.Mean()


def _check_outcome_name(table: TomlTable, name: str, taken: Collection[str]) -> None:
    if name in taken or name.startswith(EXECUTED_COLUMN) or name.isdigit():
        table.note(f"an outcome cannot be called {name!r}: something else has that name.")
    elif not name.isprintable() or name != name.strip() or name.startswith("-") or "=" in name:
        table.note(
            f"an outcome cannot be called {name!r}: airbo tell could not read it. Leave out =, a - "
            "or a blank at the beginning, and line breaks."
        )


# -- uncertainties

_LIMITS = ("clip_low", "clip_high")

Tables = Sequence[tuple[TomlTable, tuple[str, ...]]]
"""Tables about an uncertainty, each with the parameters that it is about."""


@dataclass(frozen=True)
class FileUncertainty:
    """How some parameters are missed, as the file says it."""

    names: tuple[str, ...]
    description: dict[str, Any]
    """As JSON holds it; see ``airbo.uncertainty.from_dict``."""
    table: TomlTable = field(compare=False, repr=False)
    """Where it stands in the file."""

    def described(self) -> dict[str, Any]:
        """Return what events hold of it."""
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
        around = {n: e for n, e in space.environment.items() if n in self.names}
        own = {n: p for n, p in space.parameters.items() if n in self.names} or space.parameters
        try:
            by_columns(Space({**own, **around}), {self.names: made})
        except (ValueError, TypeError) as error:
            text = str(error).replace(".clipped(low=..., high=...)", "clip_low and clip_high")
            self.table.note(text.replace(".clipped(low=...)", "clip_low"))
        return made


def _in_use(
    uncertainties: Sequence[FileUncertainty],
    in_use: Sequence[FileUncertainty],
    is_exact: bool,
    around: Collection[str],
) -> tuple[FileUncertainty, ...] | None:
    """Complete what the file says of use: the laws of the environment stay unless it names them.

    So do the errors of the parameters where it speaks of the environment alone.
    """
    if not in_use and not is_exact:
        return None
    named = {name for u in in_use for name in u.names}
    speaks_of_parameters = is_exact or not named <= {*around}
    kept = (u for u in uncertainties if not named & {*u.names})
    return (*in_use, *(u for u in kept if {*u.names} <= {*around} or not speaks_of_parameters))


def _uncertainties(
    tables: Tables, parameters: Mapping[str, Parameter], folder: Path, key: str
) -> tuple[FileUncertainty, ...]:
    """Read the uncertainties of single parameters and of groups."""
    found: list[FileUncertainty] = []
    used: set[str] = set()
    for table, names in tables:
        for name in used & set(names):
            table.note(f"parameter {name!r} has more than one {key}.")
        used |= set(names)
        extra = () if isinstance(table.path[-1], str) else ("parameters",)
        description = _description(table, Place(names, folder), extra)
        if description is None or not set(names) <= set(parameters):
            continue
        found.append(FileUncertainty(names, description, table))
        for name in names:
            if isinstance(parameters[name], Categorical) and not is_exact(description):
                table.note(
                    f"Parameter {name!r} is categorical: uncertainty on categories is not "
                    "supported. Leave it out to have it set exactly."
                )
        called = names[0] if len(names) == 1 else names
        try:
            check_width(description, len(names))
            check_uncertainty(description, [parameters[name] for name in names])
        except ValueError as error:
            table.note_error(ValueError(f"The uncertainty of {called!r} does not fit: {error}"))
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


def _tables(top: TomlTable, key: str) -> Tables:
    """Return the tables that stand under a parameter or an environment, and those of groups."""
    known, found = list[str](), []
    law = "law" if key == "uncertainty" else key
    for group, word in (("parameters", key), ("environment", law)):
        declared = top.values.get(group)
        for name, values in declared.items() if isinstance(declared, dict) else ():
            known.append(name)
            if isinstance(values, dict) and word in values:
                table = TomlTable(values, (group, name), top.notes).sub(word)
                found += [] if table is None else [(table, (name,))]
    is_exact_in_use = key == "deployment" and top.values.get(key) == "exact"
    for table in [] if is_exact_in_use else top.subs(key):
        names = table.need("parameters", "a list") or []
        unknown = [name for name in names if name not in known]
        for name in unknown:
            table.note(f"unknown parameter {name!r}{nearest(str(name), known)}", "parameters")
        if "parameters" in table.values and len(set(map(str, names))) < max(len(names), 1):
            table.note(f"parameters must be different names, got {names}.", "parameters")
        elif names and not unknown:
            found.append((table, tuple(names)))
    return found
