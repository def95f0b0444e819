"""What people type into forms: fields, and how they are read. All mistakes are named at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airbo.lab import Experiment, Settings
from airbo.space.parameters import Categorical
from airbo.words import typed_number, typed_value, value

NOTE_FIELD, WHY_FIELD, TABLE_FIELD = "note", "why", "table"
EXECUTED_FIELD, SET_FIELD, DESIGN_FIELD, GIVEN_FIELD = "executed:", "set:", "design:", "given:"
OUTCOME_FIELD = "outcome:"
NOT_CHOSEN = ""
"""Entry of a choice that nobody made: then it is as asked."""


@dataclass(frozen=True)
class Entry:
    """One thing to fill in."""

    name: str
    """In the form."""
    label: str
    unit: str = ""
    hint: str = ""
    choices: Sequence[str] = ()
    is_text: bool = False
    value: str = ""
    """What the field holds at first."""

    def at(self, given: Any) -> "Entry":
        """Return the field with something in it."""
        return replace(self, value=str(given))


class EntryError(Exception):
    """An entry cannot be used."""

    def __init__(self, mistakes: Mapping[str, str]) -> None:
        """Say what is wrong, by the name of the field."""
        super().__init__(" ".join(mistakes.values()))
        self.mistakes = dict(mistakes)


# -- which fields there are


def value_fields(settings: Settings, told: Experiment | None = None) -> list[Entry]:
    """Return a field for each outcome that an experiment gives, or gave."""
    known = {} if told is None else told.outcomes
    hint = "" if settings.is_single else "empty: not measured"
    return [
        Entry(OUTCOME_FIELD + name, name, unit or "", hint, value=_plain(known.get(name)))
        for name, unit in settings.units.items()
    ]


def missing_fields(settings: Settings, e: Experiment, sent: Mapping[str, str]) -> list[Entry]:
    """Return a field for each outcome that was not measured yet, or that somebody has just sent."""
    fields = [replace(field, hint="") for field in value_fields(settings)]
    return [f for f in fields if f.label not in e.outcomes or f.name in sent]


def _plain(value: float | None) -> str:
    return "" if value is None else repr(value)


def executed_fields(settings: Settings, experiment: Experiment) -> list[Entry]:
    """Return a field for each parameter whose executed value can be measured."""
    return [
        Entry(
            EXECUTED_FIELD + name,
            name,
            settings.unit(name),
            as_asked(settings, experiment, name),
            value=_plain(experiment.executed.get(name)),
        )
        for name, parameter in settings.space.parameters.items()
        if not isinstance(parameter, Categorical)
    ]


def environment_fields(settings: Settings, e: Experiment | None = None) -> list[Entry]:
    """Return a field for what nobody sets and somebody may have measured; what was given is in it.

    An experiment that was told has in it what was measured.
    """
    known: Mapping[str, Any] = {} if e is None else e.executed if e.has_outcome else e.given
    lawful = {name for law in settings.laws for name in law.names}
    return [
        Entry(
            EXECUTED_FIELD + name,
            name,
            settings.unit(name),
            "empty: not measured" if name in lawful else "measured",
            value=_plain(known.get(name)),
        )
        for name in settings.space.environment
    ]


def given_fields(settings: Settings) -> list[Entry]:
    """Return a field for what may be known of the environment before an experiment."""
    return [
        Entry(GIVEN_FIELD + name, f"{name} today", settings.unit(name), "empty: not known")
        for name in settings.space.environment
    ]


def set_fields(settings: Settings, experiment: Experiment) -> list[Entry]:
    """Return a field for each parameter that may have been set otherwise than asked."""
    found = []
    for name, parameter in settings.space.parameters.items():
        asked = as_asked(settings, experiment, name)
        if isinstance(parameter, Categorical):
            others = [str(c) for c in parameter.choices]
            choices = [NOT_CHOSEN, *others]
            field = Entry(SET_FIELD + name, name, hint=f"as asked: {asked}", choices=choices)
        else:
            field = Entry(SET_FIELD + name, name, settings.unit(name), asked)
        found.append(field)
    return found


def as_asked(settings: Settings, experiment: Experiment, name: str) -> str:
    """Write what was asked for, as the hint in an empty field."""
    parameter, unit = settings.space.parameters[name], settings.unit(name)
    return value(parameter, experiment.design[name]).removesuffix(unit).strip()


def design_fields(settings: Settings, with_environment: bool = False) -> list[Entry]:
    """Return a field for each parameter of a design that nobody asked for."""
    found, space = [], settings.space
    for name, parameter in (space.whole if with_environment else space).parameters.items():
        if isinstance(parameter, Categorical):
            choices = [NOT_CHOSEN, *(str(c) for c in parameter.choices)]
            field = Entry(DESIGN_FIELD + name, name, hint="choose one", choices=choices)
        else:
            low, high = (value(parameter, parameter.decode(end)) for end in parameter.range)
            field = Entry(DESIGN_FIELD + name, name, settings.unit(name), f"{low} to {high}")
        found.append(field)
    return found


def note_fields() -> list[Entry]:
    """Return the field for a note."""
    return [Entry(NOTE_FIELD, "note", is_text=True)]


def why_fields() -> list[Entry]:
    """Return the field for a reason."""
    return [Entry(WHY_FIELD, "why", is_text=True)]


# -- reading them


def read_values(settings: Settings, form: Mapping[str, str]) -> dict[str, float]:
    """Read what an experiment gave: those outcomes that were measured."""
    mistakes, found = {}, {}
    fields = value_fields(settings)
    for field in fields:
        try:
            if text := form.get(field.name, "").strip():
                found[field.label] = typed_number(text, field.label, field.unit)
        except ValueError as error:
            mistakes[field.name] = str(error)
    if not found and not mistakes:
        what = f"the {fields[0].label}" if len(fields) == 1 else "what was measured"
        mistakes[fields[0].name] = f"Enter {what}. If there is none, say that it failed."
    if mistakes:
        raise EntryError(mistakes)
    return found


def read_numbers(settings: Settings, form: Mapping[str, str], prefix: str) -> dict[str, float]:
    """Read numbers of input and environment that were measured, or are given; empty: neither."""
    return _read_named(
        settings,
        form,
        prefix,
        lambda name, text: typed_number(text, name, settings.unit(name)),
    )


def read_set(settings: Settings, form: Mapping[str, str]) -> dict[str, Any]:
    """Read what was set otherwise than asked; what is empty is as asked."""
    return _read_named(
        settings, form, SET_FIELD, lambda name, text: typed_value(settings.space, name, text)
    )


def _read_named(
    settings: Settings, form: Mapping[str, str], prefix: str, read: Callable[[str, str], Any]
) -> dict[str, Any]:
    mistakes, found = {}, {}
    for field, text in form.items():
        name = field.removeprefix(prefix)
        if not field.startswith(prefix) or not text.strip():
            continue
        try:
            if name not in settings.space.whole.names:
                raise ValueError(f"There is no parameter {name!r} any more.")
            found[name] = read(name, text)
        except ValueError as error:
            mistakes[field] = str(error)
    if mistakes:
        raise EntryError(mistakes)
    return found


def read_design(settings: Settings, form: Mapping[str, str], whole: bool = True) -> dict[str, Any]:
    """Read a design that nobody asked for; ``whole``: with all parameters.

    Otherwise it may name the environment, too.
    """
    mistakes, found = {}, {}
    for field in design_fields(settings, with_environment=not whole):
        name, text = field.label, form.get(field.name, "")
        try:
            if not text.strip() and not whole:
                continue
            if not text.strip():
                raise ValueError(f"Enter {name}.")
            found[name] = typed_value(settings.space.whole, name, text)
        except ValueError as error:
            mistakes[field.name] = str(error)
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
