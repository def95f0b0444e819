"""A new campaign file: from flags to its text."""

import json
from collections.abc import Mapping, Sequence

import typer

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
    """Read flags such as ``speed=50:200:m/min`` and ``speed=normal:2``; return the file's text."""
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
    return _text_of(name, direction, value, storage, tables, around)


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
    from airbo.uncertainty.kinds import in_percent

    if "%" not in text:
        return _number(text, f"--uncertainty {flag}")
    if in_percent(text) is None:
        raise typer.BadParameter(
            f"--uncertainty {flag} must be a number or percent, such as 5%, got {text!r}."
        )
    return toml_text(text.strip())


def _number(text: str, what: str) -> str:
    from airbo.words import number_of

    try:
        return repr(number_of(text, what)).removesuffix(".0")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


# -- its text


def _text_of(
    name: str,
    direction: str,
    value: str,
    storage: str,
    parameters: Mapping[str, Table],
    environment: Mapping[str, Table],
) -> str:
    """Write a file with comments that say what else is possible."""
    from airbo.space import n_initial_for
    from airbo.words import plural

    value_name, _, unit = value.partition(":")
    said = f"name = {toml_text(value_name)}" + (f", unit = {toml_text(unit)}" if unit else "")
    n = len(parameters)
    parts = [
        _HEAD.format(name=toml_text(name), direction=toml_text(direction), value=said),
        f"storage = {toml_text(storage)}" if storage else _STORAGE,
        _OPTIONS.format(n_initial=n_initial_for(n), parameters=plural(n, "parameter")),
        *(_parameter(name, table) for name, table in parameters.items()),
        *(_parameter(name, table, "environment") for name, table in environment.items()),
        _TAIL if environment else _ENVIRONMENT + _TAIL,
    ]
    return "\n".join(parts)


def _parameter(name: str, table: Table, group: str = "parameters") -> str:
    lines = [f"[{group}.{_key(name)}]", *(f"{key} = {text}" for key, text in table.items())]
    if group == "environment" and "law" not in table:
        lines.append('# law = { kind = "normal", std = 8 }    # now every experiment measures it')
    elif group == "parameters" and "low" in table and "uncertainty" not in table:
        lines.append(
            '# uncertainty = { kind = "normal", std = "5%" }    # without this line: set exactly'
        )
    return "\n".join([*lines, ""])


def toml_text(text: str) -> str:
    """Write a text as TOML does; its basic strings are JSON's."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else toml_text(name)


_HEAD = """\
# A campaign of airbo: its parameters, and how accurately the machine can set each of them.
# `airbo check` says what it understands of this file; `airbo ask` begins.

name = {name}
direction = {direction}               # "maximize" or "minimize" the value
value = {{ {value} }}    # what an experiment measures; low = 0, high = 100: others are questioned
"""

_STORAGE = """\
# Where the experiments are kept. By default an SQLite file beside this one. For several machines:
# storage = "postgresql://user@host/database"     # its password: in ~/.pgpass, or in PGPASSWORD"""

_OPTIONS = """\

# What follows is in force now; take the # away to change it.
# seed = 0                   # fixes all choices
# n_initial = {n_initial:<2}             # designs before the model chooses ({parameters})
# surrogate = "default"      # or "expectation", "mmd", "ugp", "erbf", "nominal", ...
# acquisition = "default"    # or "ucb-random", "ucb", "ucb-theory", "ei"
# measure = "mean"           # what counts of the values in use; or "mean-std:2", "quantile:0.9",
                             # "cvar:0.9" (the worst tenth), "worst", "in-spec:5..8", "target:50"
# noise = "measurement"      # or "product": single products differ by it, too

# constraints = ["water + ethanol <= 1"]   # linear, between parameters; designs meet all of them

# Parameters. Also possible: log = true, step = 0.5, type = "integer", choices = ["A", "B"].
# Their uncertainty is in the unit of the parameter, or in percent of its value. All kinds:
#   {{ kind = "exact" }}
#   {{ kind = "normal", std = 2.0 }}                        or std = "5%"
#   {{ kind = "uniform", low = -0.5, high = 1.0 }}          or low = "-10%", high = "10%"
#   {{ kind = "lognormal", sigma = "5%" }}                  never changes the sign
#   {{ kind = "beta", a = 0.4, b = 0.2, loc = 0.0, scale = 0.1 }}
#   {{ kind = "chi-squared", df = 3, scale = 0.5 }}         always too high
#   {{ kind = "empirical", file = "log.csv" }}              logged deviations; or deviations = [...]
#   {{ kind = "gaussian-mixture", means = [[-1.0], [1.0]], covs = [[[0.1]], [[0.1]]] }}
#   {{ kind = "relative", share = {{ kind = "beta", a = 2, b = 5, scale = 0.1 }} }}
#   {{ kind = "piecewise", edges = [9.0], pieces = [{{ kind = "exact" }}, ... ] }}
#   {{ kind = "scipy", name = "laplace", kwds = {{ scale = 0.5 }} }}
# All take clip_low and clip_high. From a log of asked and actual values: airbo calibrate LOG.csv
"""

_ENVIRONMENT = """\
# What matters and nobody sets. Measured: airbo tell 3 41.2 humidity=63; else its law counts.
# [environment.humidity]
# low = 20
# high = 90
# typical = 50
# unit = "%"
# law = { kind = "normal", std = 8 }
#
"""

_TAIL = """\
# Parameters that are missed together (also: kind = "ring", radius = 0.5, and kind = "joint" with
# marginals and correlation), and how the recommended design will be set in use:
# [[uncertainty]]
# parameters = ["x", "y"]
# kind = "normal"
# cov = [[0.04, 0.01], [0.01, 0.09]]
#
# [[deployment]]
# parameters = ["x"]
# kind = "uniform"
# low = -0.5
# high = 0.5
#
# Several outcomes, or limits: in place of direction, value and measure.
# [outcomes.strength]
# goal = "maximize"
# unit = "MPa"
# [outcomes.leak]
# at_most = 0.2
# probability = 0.95         # share of executed inputs that must keep the limit
"""
