"""The parameters of a campaign file: their tables, and the constraints on them."""

from collections.abc import Mapping
from typing import Any

from airbo.campaign.limits import check_parameter
from airbo.campaign.toml_errors import TomlTable
from airbo.observed import EXECUTED_COLUMN, STATUS, VALUE
from airbo.space import Space
from airbo.space.parameters import Categorical, Float, Integer, Parameter

RESERVED = ("trial", "asked", "told", VALUE, STATUS)
"""Columns of tables that no parameter can be called."""


def read_parameters(top: TomlTable) -> dict[str, Parameter]:
    """Read the tables [parameters.<name>]; those with mistakes are noted and left out."""
    table = top.sub("parameters")
    if table is None or not table.values:
        if "parameters" not in top.values or table is not None:
            top.note("there are no parameters: write a table [parameters.<name>] for each.")
        return {}
    made = {name: _parameter(table, name) for name in table.values}
    return {name: parameter for name, parameter in made.items() if parameter is not None}


def _parameter(parameters: TomlTable, name: str) -> Parameter | None:
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
    except (ValueError, TypeError) as error:
        table.note_error(error)
        return None
    try:
        check_parameter(parameter)
    except ValueError as error:
        table.note_beyond(error)
    return parameter


def _check_name(table: TomlTable, name: str) -> None:
    if name in RESERVED or name.startswith(EXECUTED_COLUMN):
        table.note(f"a parameter cannot be called {name!r}: tables use that name.")
    if not name.strip() or name.isdigit() or set(name) & set("={}[]"):
        table.note(
            f"a parameter cannot be called {name!r}: the name must not be empty or a number, nor "
            "contain any of = { } [ ]."
        )


def read_space(top: TomlTable, parameters: Mapping[str, Parameter]) -> Space | None:
    """Read the constraints; parameters that have mistakes of their own are not there."""
    texts = top.get("constraints", "a list", [])
    if not parameters or top.notes.mistakes:
        return None
    try:
        return Space(parameters, texts)
    except ValueError as error:
        top.note(str(error), "constraints")
        return None
