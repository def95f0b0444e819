"""What people type into forms, and how it is read; all mistakes are named at once."""

from collections.abc import Callable, Mapping
from typing import Any

from airbo.lab import Settings
from airbo.words import typed_number, typed_value

EXECUTED_FIELD, SET_FIELD, DESIGN_FIELD, GIVEN_FIELD = "executed:", "set:", "design:", "given:"
OUTCOME_FIELD, NOISE_FIELD = "outcome:", "noise:"
"""How the names of fields begin; the name of a parameter or of an outcome follows."""


class EntryError(Exception):
    """An entry cannot be used."""

    def __init__(self, mistakes: Mapping[str, str]) -> None:
        """Say what is wrong, by the name of the field."""
        super().__init__(" ".join(mistakes.values()))
        self.mistakes = dict(mistakes)


def read_values(settings: Settings, form: Mapping[str, str]) -> dict[str, float]:
    """Read what an experiment gave: those outcomes that were measured."""
    found = read(settings, form, OUTCOME_FIELD)
    if not found:
        what = f"the {settings.value_name}" if settings.is_single else "what was measured"
        text = f"Enter {what}. If there is none, say that it failed."
        raise EntryError({OUTCOME_FIELD + settings.value_name: text})
    return found


def read_whole_design(settings: Settings, form: Mapping[str, str]) -> dict[str, Any]:
    """Read a design that nobody asked for."""
    fields = {name: DESIGN_FIELD + name for name in settings.space.names}
    [design, *_] = read_all(
        lambda: read(settings, form, DESIGN_FIELD),
        *(lambda n=n: read_text(form, fields[n], f"Enter {n}.") for n in fields),
    )
    return dict(design)


def read(settings: Settings, form: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Read all fields with a prefix that are filled in, by the names that follow it."""
    space, units = settings.space.whole, settings.units
    mistakes, found = {}, {}
    for field, text in form.items():
        name = field.removeprefix(prefix)
        if not field.startswith(prefix) or not text.strip():
            continue
        try:
            is_outcome = prefix in (OUTCOME_FIELD, NOISE_FIELD)
            if name not in (units if is_outcome else space.names):
                raise ValueError(f"There is no {name!r} any more.")
            if is_outcome:
                found[name] = typed_number(text, name, units[name])
            elif prefix == EXECUTED_FIELD:  # a whole number may land between two
                found[name] = typed_number(text, name, settings.unit(name))
            else:
                found[name] = typed_value(space, name, text)
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
