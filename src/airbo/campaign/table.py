"""A table of the campaign file that notes mistakes with their lines, all of them."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airbo.campaign.errors import Mistake
from airbo.campaign.lines import Lines, Path

_KINDS: dict[str, tuple[type, ...]] = {
    "a text in quotes": (str,),
    "a number": (int, float),
    "a whole number": (int,),
    "true or false": (bool,),
    "a list": (list,),
    "a table": (dict,),
    "a list of tables": (list,),
}


@dataclass
class Notes:
    """Mistakes found so far."""

    lines: Lines
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, path: Path, text: str) -> None:
        """Note a mistake at a key, or at the nearest table around it."""
        self.mistakes.append(Mistake(self.lines.of(*path), text))


@dataclass(frozen=True)
class Table:
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
        is_kind = isinstance(value, _KINDS[kind])
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
            self.note(f"{key} must be one of {listed(choices)}, got {value!r}.", key)
            return default
        return str(value)

    def sub(self, key: str) -> "Table | None":
        """Return the table under a key."""
        values = self.get(key, "a table")
        return None if values is None else Table(values, (*self.path, key), self.notes)

    def subs(self, key: str) -> "list[Table]":
        """Return the tables of a list."""
        entries = self.get(key, "a list of tables", [])
        return [Table(e, (*self.path, key, i), self.notes) for i, e in enumerate(entries)]

    def only(self, known: Iterable[str]) -> None:
        """Note keys that mean nothing here, with the nearest one that does."""
        known = list(known)
        for key in self.values:
            if key not in known:
                self.note(f"unknown key {key!r}{nearest(key, known)}", key)


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word is near an unknown one."""
    known = list(known)
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else f"; there are {listed(known)}."


def listed(words: Iterable[str]) -> str:
    """Write words one after the other."""
    return ", ".join(map(repr, words))
