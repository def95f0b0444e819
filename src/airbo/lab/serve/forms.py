"""What people type into forms, and how it is read; all mistakes are named at once."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from airbo.lab import Settings
from airbo.words import typed_number, typed_value

EXECUTED_FIELD, SET_FIELD, DESIGN_FIELD, GIVEN_FIELD = "executed:", "set:", "design:", "given:"
OUTCOME_FIELD = "outcome:"
"""How the names of fields begin; the name of a parameter or of an outcome follows."""


class EntryError(Exception):
    """An entry cannot be used."""

    def __init__(self, mistakes: Mapping[str, str]) -> None:
        """Say what is wrong, by the name of the field."""
        super().__init__(" ".join(mistakes.values()))
        self.mistakes = dict(mistakes)


def read_values(settings: Settings, form: Mapping[str, str]) -> dict[str, float]:
    """Read what an experiment gave: those outcomes that were measured."""
    units = settings.units
    found = _read(form, OUTCOME_FIELD, units, lambda n, text: typed_number(text, n, units[n]))
    if not found:
        what = f"the {settings.value_name}" if settings.is_single else "what was measured"
        text = f"Enter {what}. If there is none, say that it failed."
        raise EntryError({OUTCOME_FIELD + next(iter(units)): text})
    return found


def read_numbers(settings: Settings, form: Mapping[str, str], prefix: str) -> dict[str, float]:
    """Read numbers of input and environment that were measured, or are given; empty: neither."""
    names, unit = settings.space.whole.names, settings.unit
    return _read(form, prefix, names, lambda n, text: typed_number(text, n, unit(n)))


def read_set(settings: Settings, form: Mapping[str, str]) -> dict[str, Any]:
    """Read what was set otherwise than asked; what is empty is as asked."""
    space = settings.space
    return _read(form, SET_FIELD, space.names, lambda n, text: typed_value(space, n, text))


def read_design(settings: Settings, form: Mapping[str, str]) -> dict[str, Any]:
    """Read a part of a design, and of the environment."""
    space = settings.space.whole
    return _read(form, DESIGN_FIELD, space.names, lambda n, text: typed_value(space, n, text))


def read_whole_design(settings: Settings, form: Mapping[str, str]) -> dict[str, Any]:
    """Read a design that nobody asked for."""
    fields = {name: DESIGN_FIELD + name for name in settings.space.names}
    [design, *_] = read_all(
        lambda: read_design(settings, form),
        *(lambda n=n: read_text(form, fields[n], f"Enter {n}.") for n in fields),
    )
    return dict(design)


def _read(
    form: Mapping[str, str], prefix: str, known: Collection[str], read: Callable[[str, str], Any]
) -> dict[str, Any]:
    """Read all fields with a prefix that are filled in."""
    mistakes, found = {}, {}
    for field, text in form.items():
        name = field.removeprefix(prefix)
        if not field.startswith(prefix) or not text.strip():
            continue
        try:
            if name not in known:
                raise ValueError(f"There is no {name!r} any more.")
            found[name] = read(name, text)
        except ValueError as error:
            mistakes[field] = str(error)
    if mistakes:
        raise EntryError(mistakes)
    return found


def read_text(form: Mapping[str, str], name: str, empty: str) -> str:
    """Read a text that must not be empty."""
    text = form.get(name, "").strip()
    if not text:
        raise EntryError({name: empty})
    return text


def read_all(*readers: Callable[[], Any]) -> list[Any]:
    """Call readers and gather the mistakes of all of them."""
    found: list[Any] = []
    mistakes: dict[str, str] = {}
    for read in readers:
        try:
            found.append(read())
        except EntryError as error:
            mistakes |= error.mistakes
    if mistakes:
        raise EntryError(mistakes)
    return found
