"""What a campaign file says.

A file is read without PyTorch. Names, keys, ranges, numbers and shapes are checked at once; what
only a model can tell (a matrix that is no covariance, a logarithmic parameter that may land below
zero, the name of a surrogate) is said by ``Settings.check``, before anything is asked.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airbo.campaign.errors import FileError, Mistake, StorageError
from airbo.campaign.missed import Missed, of_single, read_missed, tables_of
from airbo.campaign.parameter_tables import RESERVED, read_parameters, read_space
from airbo.campaign.storage_url import StorageURL
from airbo.campaign.toml_errors import Lines, Notes, TomlTable
from airbo.campaign.wants import NamedOutcome, first_objective, read_measure, read_outcomes
from airbo.measures import Measure
from airbo.observed import VALUE, Direction
from airbo.outcomes import Want, named_outcomes
from airbo.space import Space, n_initial_for
from airbo.space.parameters import Parameter

if TYPE_CHECKING:
    from airbo.uncertainty import InputUncertainty

    NamedUncertainties = dict[str | tuple[str, ...], InputUncertainty]

STORAGE_VARIABLE = "AIRBO_STORAGE"
"""Environment variable that replaces the storage of the file."""
PASSWORD_VARIABLE = "AIRBO_STORAGE_PASSWORD"
"""Environment variable that holds the password of a database server."""
PASSWORD_FILE = "storage_password_file"
"""Key of the file: another file, beside it, that holds the password and nothing else."""

MOST_HOURS = 1_000_000
EARLIER = (
    " An earlier airbo accepted this, so the campaign can be read (status, tell, export). No model "
    "can be made of it: for more designs, begin a new campaign and import the exported table."
)
_TOP = (
    "name", "direction", "value", "seed", "surrogate", "acquisition", "measure", "noise",
    "n_initial", "storage", PASSWORD_FILE, "give_up_after_hours", "parameters",
    "constraints", "uncertainty", "deployment", "outcomes",
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
    named: Mapping[str, NamedOutcome] | None
    """The outcomes by name, where there are several; value_name is then the first objective."""
    space: Space
    missed: tuple[Missed, ...]
    """Where designs may land in the experiments."""
    missed_in_use: tuple[Missed, ...] | None
    """Where the recommended design may land when it is used; None: as in the experiments."""
    surrogate: str
    acquisition: str
    measure: Measure
    """What counts of the values over where a design lands; that of the first objective."""
    noise: Literal["measurement", "product"]
    """Whether observation noise counts as a property of the product."""
    seed: int
    n_initial: int
    storage: StorageURL
    """Where the experiments are kept."""
    give_up_after_hours: float | None
    """When a design that nobody answered no longer counts as pending."""
    top: TomlTable = field(compare=False, repr=False)
    """The file itself, for messages about it."""
    beyond: tuple[Mistake, ...] = field(default=(), compare=False)
    """What exceeds the limits of this version in a campaign that an earlier one began."""

    @classmethod
    def read(cls, path: str | Path, begun: bool = False) -> "Settings":
        """Read a campaign file.

        Args:
            path: The file.
            begun: Whether what exceeds the limits may be an older campaign, and is noted only.

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
        return parse(text, path, begun)

    def unit(self, name: str) -> str:
        """Return the unit of a parameter, or nothing."""
        return getattr(self.space.parameters[name], "unit", None) or ""

    @property
    def outcomes(self) -> dict[str, Want] | None:
        """What is wanted of each outcome; None: there is one value."""
        named = self.named
        return None if named is None else {name: outcome.want for name, outcome in named.items()}

    @property
    def units(self) -> dict[str, str]:
        """Units of the outcomes by name, where they have one; that of a trial's value first."""
        named = {name: outcome.unit for name, outcome in (self.named or {}).items()}
        return {name: unit for name, unit in ({VALUE: self.value_unit} | named).items() if unit}

    # -- as plain data

    @cached_property
    def described_uncertainty(self) -> list[dict[str, Any]]:
        """The uncertainty of the experiments as the attributes of a trial hold it."""
        return [missed.described() for missed in self.missed]

    @property
    def described_deployment(self) -> list[dict[str, Any]] | None:
        """The uncertainty in use, in the same way."""
        used = self.missed_in_use
        return None if used is None else [missed.described() for missed in used]

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
                check_settings(
                    named_outcomes(self.outcomes, self.direction, self.measure),
                    self.acquisition,
                    SURROGATES[self.surrogate],
                )
        except ValueError as error:
            self.top.note(str(error), "measure")
        made: list[Any] = [
            None
            if group is None
            else {m.names[0] if len(m.names) == 1 else m.names: m.built(self.space) for m in group}
            for group in (self.missed, self.missed_in_use)
        ]
        if notes.mistakes:
            raise FileError(str(self.path), notes.mistakes)
        if self.beyond:
            raise FileError(
                str(self.path), [replace(m, text=m.text + EARLIER) for m in self.beyond]
            )
        return made[0], made[1]


def parse(text: str, path: Path, begun: bool = False) -> Settings:
    """Read the text of a campaign file that stands, or will stand, at ``path``."""
    top = _table(text, str(path))
    settings = _settings(top, path)
    if settings is None or (settings.beyond and not begun):
        raise FileError(str(path), [*top.notes.mistakes, *top.notes.beyond])
    return settings


def parse_uncertainty(text: str, settings: Settings) -> list[dict[str, Any]]:
    """Read the uncertainty of single experiments: TOML, one inline table per parameter.

    For example ``speed = { kind = "normal", std = 5.0 }``; an empty text: all are hit exactly.

    Returns:
        Its description, as the attributes of a trial hold it.
    """
    top = _table(text, "the uncertainty")
    top.only(settings.space.names)
    given = ((name, top.sub(name)) for name in settings.space.names if name in top.values)
    tables = [(table, (name,)) for name, table in given if table is not None]
    found = read_missed(tables, settings.space.parameters, settings.path.parent, "uncertainty")
    for missed in found:
        missed.built(settings.space)
    mistakes = [*top.notes.mistakes, *top.notes.beyond]
    if mistakes:
        raise FileError("the uncertainty", mistakes)
    return [missed.described() for missed in found]


def _table(text: str, file: str) -> TomlTable:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(file, [_broken(str(error), text)]) from None
    return TomlTable(values, (), Notes(Lines(text)))


def _broken(message: str, text: str) -> Mistake:
    """Take the line number out of what the parser said."""
    what, _, where = message.rpartition(" (at ")
    line = where.removeprefix("line ").split(",")[0]
    if line.isdigit():
        return Mistake(int(line), f"not valid TOML: {what}.")
    return Mistake(max(1, len(text.splitlines())), f"not valid TOML: {what or message}.")


def _settings(top: TomlTable, path: Path) -> Settings | None:
    top.only(_TOP)
    name = top.need("name", "a text in quotes")
    if name is not None and not name.strip():
        top.note("name must not be empty.", "name")
    value = top.sub("value") or TomlTable({}, ("value",), top.notes)
    value.only(["name", "unit"])
    parameters = read_parameters(top)
    space = read_space(top, parameters)
    missed = read_missed(tables_of(top, "uncertainty"), parameters, path.parent, "uncertainty")
    named = read_outcomes(top, (*parameters, *RESERVED))
    others: dict[str, Any] = {
        "direction": top.one_of("direction", ("maximize", "minimize"), "maximize"),
        "value_name": value.get("name", "a text in quotes", "value"),
        "value_unit": value.get("unit", "a text in quotes"),
        "measure": read_measure(top),
        "named": named,
        **first_objective(named),
        "surrogate": top.get("surrogate", "a text in quotes", "default"),
        "acquisition": top.get("acquisition", "a text in quotes", "default"),
        "noise": top.one_of("noise", ("measurement", "product"), "measurement"),
        "seed": _at_least(top, "seed", "a whole number", 0, 0),
        "n_initial": _at_least(
            top, "n_initial", "a whole number", 1, n_initial_for(len(parameters))
        ),
        "storage": _storage(top, path),
        "give_up_after_hours": _hours(top),
        "missed_in_use": _in_use(top, parameters, path.parent),
    }
    if space is None or name is None or top.notes.mistakes:
        return None
    kept = {key: value for key, value in top.values.items() if key != "storage"}
    return Settings(
        path=path,
        name=name,
        space=space,
        missed=missed,
        top=replace(top, values=kept),
        beyond=tuple(top.notes.beyond),
        **others,
    )


def _at_least(top: TomlTable, key: str, kind: str, least: int, default: Any) -> Any:
    value = top.get(key, kind, default)
    if value is not None and not value >= least:
        top.note(f"{key} must be >= {least}, got {value}.", key)
        return default
    return value


def _hours(top: TomlTable) -> float | None:
    hours = _at_least(top, "give_up_after_hours", "a number", 0, None)
    if hours is not None and hours > MOST_HOURS:
        key = "give_up_after_hours"
        top.note(f"{key} must be <= {MOST_HOURS:,}, got {hours}; leave it out for never.", key)
    return None if hours is None else float(hours)


def _storage(top: TomlTable, path: Path) -> StorageURL:
    """Read the storage; no message may quote it, since it may hold a password."""
    given = top.values.get("storage", f"sqlite:///{path.stem}.db")
    if not isinstance(given, str):
        top.note("storage must be a text in quotes.", "storage")
        given = ""
    return StorageURL(os.environ.get(STORAGE_VARIABLE) or given, _password(top, path.parent))


def _password(top: TomlTable, folder: Path) -> str | None:
    """Return the password from the environment, or from the file that is named."""
    name = top.get(PASSWORD_FILE, "a text in quotes")
    if os.environ.get(PASSWORD_VARIABLE):
        return os.environ[PASSWORD_VARIABLE]
    if name is None:
        return None
    try:
        password = (folder / name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        top.note(f"the file {name!r} with the password cannot be read.", PASSWORD_FILE)
        return None
    if not password or "\n" in password:
        top.note(f"the file {name!r} must hold the password on one line.", PASSWORD_FILE)
        return None
    return password


def _in_use(
    top: TomlTable, parameters: Mapping[str, Parameter], folder: Path
) -> tuple[Missed, ...] | None:
    if top.values.get("deployment") != "exact":
        return read_missed(tables_of(top, "deployment"), parameters, folder, "deployment") or None
    for table, _ in of_single(top, "deployment"):
        table.note('the file says deployment = "exact" for all parameters; remove one of the two.')
    return ()
