"""A new campaign file: from flags to its text."""

import json
from collections.abc import Sequence

import typer

from airbo.space import n_initial_for
from airbo.uncertainty.kinds import in_percent
from airbo.words import number_of, plural

Table = dict[str, str]
"""What the table of a parameter says: its keys, with values as TOML writes them."""
EXAMPLE = ("speed=50:200:m/min", "tool=A,B"), ("speed=normal:2",)
"""Parameters and uncertainties of a file to edit."""


def text_from(
    name: str,
    direction: str,
    value: str,
    storage: str,
    parameters: Sequence[str],
    uncertainties: Sequence[str],
    environment: Sequence[str] = (),
) -> str:
    """Read flags such as ``speed=50:200:m/min`` and ``speed=normal:2``; return the file's text.

    It has comments that say what else is possible.
    """
    from jinja2 import Environment, PackageLoader

    if not parameters and not environment:
        parameters, uncertainties = EXAMPLE
    tables = dict(_parameter_in(text) for text in parameters)
    around = dict(_parameter_in(text, "--environment") for text in environment)
    for text in uncertainties:
        own, missed = _named(text, "--uncertainty", "speed=normal:2")
        if own not in tables and own not in around:
            raise typer.BadParameter(f"--uncertainty names {own!r}, which is no parameter.")
        table, key = (around, "law") if own in around else (tables, "uncertainty")
        table[own][key] = _uncertainty(missed)
    templates = Environment(  # noqa: S701 - TOML, not HTML
        loader=PackageLoader("airbo.lab.cli"), trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    templates.globals |= {"toml": toml_text, "key": _key, "plural": plural}
    what, _, unit = value.partition(":")
    return templates.get_template("campaign.toml").render(
        name=name, direction=direction, value=what, unit=unit, storage=storage,
        n_initial=n_initial_for(len(tables)), parameters=tables, environment=around,
    )  # fmt: skip


def _named(text: str, flag: str, example: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not (name.strip() and equals and rest.strip()):
        raise typer.BadParameter(f"{flag} is written as {example}, got {text!r}.")
    return name.strip(), rest.strip()


def _parameter_in(text: str, flag: str = "--parameter") -> tuple[str, Table]:
    """Read NAME=A,B,C, or NAME=LOW:HIGH and a unit and words such as log, integer and step=STEP."""
    example = "speed=50:200:m/min, dose=0.1:10:mg:log or tool=A,B"
    name, rest = _named(text, flag, example)
    low, *words = rest.split(":")
    if not words and "," in rest:
        choices = (choice.strip() for choice in rest.split(",") if choice.strip())
        return name, {"choices": f"[{', '.join(map(toml_text, choices))}]"}
    if not words:
        raise typer.BadParameter(f"{flag} is written as {example}, got {text!r}.")
    what = f"{flag} {text}: the range"
    table = {"low": _number(low, what), "high": _number(words[0], what)}
    for word in filter(None, words[1:]):
        if word == "log":
            table["log"] = "true"
        elif word == "integer":
            table["type"] = '"integer"'
        elif word.startswith(("step=", "typical=")):
            key, _, number = word.partition("=")
            table[key] = _number(number, f"the {key}")
        elif "unit" not in table:
            table["unit"] = toml_text(word)
        else:
            raise typer.BadParameter(
                f"{flag} {text}: after the range come at most one unit and the words log, integer, "
                "step=STEP and, of the environment, typical=VALUE."
            )
    return name, table


_SHORT = {"normal": ("std",), "uniform": ("low", "high"), "lognormal": ("sigma",)}


def _uncertainty(text: str) -> str:
    """Write ``normal:2``, ``normal:5%`` or ``log.csv`` as an inline table."""
    if text.lower().endswith((".csv", ".xlsx")):
        return f'{{ kind = "empirical", file = {toml_text(text)} }}'
    kind, *numbers = text.split(":")
    if len(numbers) != len(_SHORT.get(kind, ())) or not numbers:
        shapes = ", ".join(":".join([k, *map(str.upper, keys)]) for k, keys in _SHORT.items())
        raise typer.BadParameter(
            f"--uncertainty is written as one of {shapes} or FILE.csv, with numbers in the unit of "
            f"the parameter or in percent; other kinds are written into the file. Got {text!r}."
        )
    given = (f"{key} = {_length(n, text)}" for key, n in zip(_SHORT[kind], numbers, strict=True))
    return f'{{ kind = "{kind}", {", ".join(given)} }}'


def _length(text: str, flag: str) -> str:
    """Return a number in the unit of the parameter, or in percent of its value."""
    if "%" not in text:
        return _number(text, f"--uncertainty {flag}")
    if in_percent(text) is None:
        raise typer.BadParameter(
            f"--uncertainty {flag} must be a number or percent, such as 5%, got {text!r}."
        )
    return toml_text(text.strip())


def _number(text: str, what: str) -> str:
    try:
        return repr(number_of(text, what)).removesuffix(".0")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def toml_text(text: str) -> str:
    """Write a text as TOML does; its basic strings are JSON's."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else toml_text(name)
