"""A TOML file whose mistakes are named with their lines, all of them at once."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airbo.lab.errors import Mistake
from airbo.words import nearest, quoted

Path = tuple[str | int, ...]

_TYPES: dict[str, tuple[type, ...]] = {
    "a text in quotes": (str,),
    "a number": (int, float),
    "a whole number": (int,),
    "true or false": (bool,),
    "a list": (list,),
    "a table": (dict,),
    "a list of tables": (list,),
}


LONG = 50
"""A statement of more lines ends with a line that begins with the end of its value."""
_ENDINGS = ("]", "}", '"""', "'''")


class Notes:
    r"""Mistakes found so far in a text that is valid TOML, each with its line.

    Keys inside inline tables and arrays stand where the outer key begins.

    >>> notes = Notes("name = 'a'\n[[parts]]\n[[parts]]\nsize = 3")
    >>> notes.line("parts", 1, "size"), notes.line("parts", 1, "weight"), notes.line("unknown")
    (4, 3, 1)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.mistakes: list[Mistake] = []

    def add(self, path: Path, text: str) -> None:
        """Note a mistake at a key, or at the nearest table around it."""
        self.mistakes.append(Mistake(self.line(*path), text))

    def line(self, *path: str | int) -> int:
        """Return the line of a key, or of the nearest table around it; 1 if there is none."""
        around = (path[:length] for length in range(len(path), 0, -1))
        return next((self._lines[own] for own in around if own in self._lines), 1)

    @cached_property
    def _lines(self) -> dict[Path, int]:
        found: dict[Path, int] = {}
        counts: dict[Path, int] = {}
        table: Path = ()
        statement, begin = "", 1
        for number, line in enumerate(self.text.split("\n"), start=1):
            begin = begin if statement else number
            statement += f"{line}\n"
            if number - begin > LONG and not line.lstrip().startswith(_ENDINGS):
                continue
            try:  # a statement is whole where it can be read alone
                names = _names(tomllib.loads(statement))
            except tomllib.TOMLDecodeError:
                continue
            if (head := statement.lstrip()).startswith("["):
                table, names = _table(names, head.startswith("[["), counts), []
            path = (*table, *names)
            for length in range(1, len(path) + 1):
                found.setdefault(path[:length], begin)
            statement = ""
        return found


def _table(names: list[str], is_entry: bool, counts: dict[Path, int]) -> Path:
    """Return the path of a table; one of an array has its position there, too."""
    path: Path = ()
    for i, name in enumerate(names, start=1):
        path = (*path, name)
        if is_entry and i == len(names):
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _names(values: Any) -> list[str]:
    """Return the names of what one statement is about."""
    names = []
    while isinstance(values, dict) and len(values) == 1:
        [(name, values)] = values.items()
        names.append(name)
    return names


@dataclass(frozen=True)
class TomlTable:
    """Keys and values at one place of the file."""

    values: Mapping[str, Any]
    path: Path
    notes: Notes

    @property
    def label(self) -> str:
        """How messages call this table."""
        named = [str(p + 1) if isinstance(p, int) else p for p in self.path]
        return ".".join(named) if named else "the file"

    def note(self, text: str, key: str | None = None) -> None:
        """Note a mistake of the table, or of one key."""
        where = self.path if key is None else (*self.path, key)
        self.notes.add(where, f"{self.label}: {text}" if self.path else text)

    def note_error(self, error: Exception) -> None:
        """Note what a constructor refused, at the first key that its message names."""
        text = str(error)
        named = (word for word in re.findall(r"\w+", text) if word in self.values)
        self.note(text, next(named, None))

    def get(self, key: str, kind: str, default: Any = None) -> Any:
        """Return a value of the expected kind; note what else came and return the default."""
        if key not in self.values:
            return default
        value = self.values[key]
        is_kind = isinstance(value, _TYPES[kind])
        if is_kind and kind == "a list of tables":
            is_kind = all(isinstance(entry, dict) for entry in value)
        if not is_kind or (isinstance(value, bool) and kind != "true or false"):
            self.note(f"{key} must be {kind}, got {value!r}.", key)
            return default
        return value

    def need(self, key: str, kind: str) -> Any:
        """Return a value, and note if it is missing."""
        if key not in self.values:
            self.note(f"{key} is missing; it is {kind}.")
        return self.get(key, kind)

    def one_of(self, key: str, choices: Iterable[str], default: str) -> str:
        """Return one of some words."""
        value = self.get(key, "a text in quotes", default)
        if value not in choices:
            self.note(f"{key} must be one of {quoted(choices)}, got {value!r}.", key)
            return default
        return str(value)

    def sub(self, key: str) -> "TomlTable | None":
        """Return the table under a key."""
        values = self.get(key, "a table")
        return None if values is None else TomlTable(values, (*self.path, key), self.notes)

    def subs(self, key: str) -> "list[TomlTable]":
        """Return the tables of a list."""
        entries = self.get(key, "a list of tables", [])
        return [TomlTable(e, (*self.path, key, i), self.notes) for i, e in enumerate(entries)]

    def only(self, known: Iterable[str]) -> None:
        """Note keys that mean nothing here, with the nearest one that does."""
        known = list(known)
        for key in self.values:
            if key not in known:
                self.note(f"unknown key {key!r}{nearest(key, known)}", key)
