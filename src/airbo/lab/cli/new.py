"""A new campaign file: from answers or flags to its text."""

import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import typer

Table = dict[str, str]
"""What the table of a parameter says: its keys, with values as TOML writes them."""

# -- from answers or flags


def from_questions() -> str:
    """Ask a few questions; return the text of the file."""
    name = typer.prompt("Name of the campaign")
    direction = typer.prompt(
        "Do you want a large or a small value (maximize/minimize)",
        "maximize",
        value_proc=_direction,
    )
    value = typer.prompt("What do you measure", "value")
    unit = typer.prompt("Its unit (Enter: none)", "", show_default=False)
    parameters: dict[str, Table] = {}
    while True:
        done = " (Enter: no more)" if parameters else ""
        next_name = typer.prompt(
            f"Name of a parameter{done}",
            "" if parameters else None,
            show_default=False,
            value_proc=partial(_new_name, parameters),
        )
        if not next_name:
            return text_of(name, direction, f"{value}:{unit}", parameters)
        parameters[next_name] = _ask_parameter(next_name)


def _ask_parameter(name: str) -> Table:
    question = f"  {name}: smallest value, or choices such as A,B"
    low = typer.prompt(question, value_proc=partial(_number_or_choices, name))
    if "," in low:
        return _choices(low)
    high = typer.prompt(f"  {name}: largest value", value_proc=partial(_above, name, low))
    words = []
    is_whole = all(number.lstrip("+-").isdigit() for number in (low, high))
    if is_whole and typer.confirm(f"  {name}: whole numbers only"):
        words.append("integer")
    if 0 < 10 * float(low) <= float(high) and typer.confirm(
        f"  {name}: log scale (ratios matter, not differences)"
    ):
        words.append("log")
    unit = typer.prompt(f"  {name}: unit (Enter: none)", "", show_default=False)
    question = f"  {name}: by how much is it missed (Enter: hit exactly; ? for help)"
    missed = "?"
    while missed == "?":
        answered = partial(_answered, name)
        missed = typer.prompt(question, "", show_default=False, value_proc=answered)
    return _range(low, high, unit, words) | ({"uncertainty": missed} if missed else {})


_HELP = """\
    2              a standard deviation, in the unit of the parameter
    5%             a standard deviation, in percent of the value
    uniform:-1:3   anywhere from 1 below to 3 above; uniform:-10%:10% in percent
    log.csv        as in a log of deviations (actual minus asked) beside the file
  If you have a log of asked and actual values: airbo calibrate LOG.csv."""


def _answered(name: str, text: str) -> str:
    """Return the inline table of what was answered, or nothing if it is hit exactly."""
    text = text.strip()
    if text == "?":
        typer.echo(_HELP)
        return text
    if not text or ":" in text or _is_file(text):
        return text and _uncertainty(text, f"{name}: the uncertainty")
    std = _length(text, f"{name}: the standard deviation")
    if std.strip('"').startswith("-"):
        raise typer.BadParameter(f"{name}: the standard deviation must not be negative.")
    return f'{{ kind = "normal", std = {std} }}'


def _direction(text: str) -> str:
    if text not in ("maximize", "minimize"):
        raise typer.BadParameter(f"Write maximize or minimize, not {text!r}.")
    return text


def _new_name(known: Collection[str], text: str) -> str:
    if text in known:
        raise typer.BadParameter(f"There is a parameter {text!r} already.")
    return text


def _number_or_choices(name: str, text: str) -> str:
    if "," not in text:
        return _number(text, f"{name}: the smallest value")
    if all(part.strip().replace(".", "").isdigit() for part in text.split(",")):
        raise typer.BadParameter(
            f"{text!r} may be a number: write a decimal point, not a comma. Choices that are "
            "numbers are written into the file."
        )
    return text


def _above(name: str, low: str, text: str) -> str:
    high = _number(text, f"{name}: the largest value")
    if not float(high) > float(low):
        raise typer.BadParameter(f"{name}: the largest value must be larger than {low}.")
    return high


def _length(text: str, what: str) -> str:
    """Return a number in the unit of the parameter, or in percent of its value."""
    from airbo.uncertainty.kinds import in_percent

    if "%" not in text:
        return _number(text, what)
    if in_percent(text) is None:
        raise typer.BadParameter(f"{what} must be a number or percent, such as 5%, got {text!r}.")
    return toml_text(text.strip())


def _number(text: str, what: str) -> str:
    """Return a number as a campaign file can hold it: .5 is 0.5 there."""
    from airbo.words import number_of

    try:
        number = number_of(text, what)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return repr(number)
    return text


def from_flags(
    name: str,
    direction: str,
    value: str,
    storage: str,
    parameters: Sequence[str],
    uncertainties: Sequence[str],
) -> str:
    """Read flags such as ``speed=50:200:m/min`` and ``speed=normal:2``; return the file's text."""
    tables = dict(_parameter_in(text) for text in parameters)
    for text in uncertainties:
        own, hit = _named(text, "--uncertainty", "speed=normal:2")
        if own not in tables:
            raise typer.BadParameter(f"--uncertainty names {own!r}, which is no parameter.")
        tables[own]["uncertainty"] = _uncertainty(hit)
    return text_of(name, direction, value, tables, storage)


def _named(text: str, flag: str, example: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not (name.strip() and equals and rest.strip()):
        raise typer.BadParameter(f"{flag} is written as {example}, got {text!r}.")
    return name.strip(), rest.strip()


def _parameter_in(text: str) -> tuple[str, Table]:
    """Read NAME=A,B,C, or NAME=LOW:HIGH and a unit and the words log, integer and step=STEP."""
    example = "speed=50:200:m/min, dose=0.1:10:mg:log or tool=A,B"
    name, rest = _named(text, "--parameter", example)
    low, colon, others = rest.partition(":")
    if not colon and "," in rest:
        return name, _choices(rest)
    high, *words = others.split(":")
    if not high:
        raise typer.BadParameter(f"--parameter is written as {example}, got {text!r}.")
    low, high = (_number(number, f"--parameter {text}: the range") for number in (low, high))
    special = [w for w in words if w in ("log", "integer", "") or w.startswith("step=")]
    units = [word for word in words if word not in special]
    if len(units) > 1:
        raise typer.BadParameter(
            f"--parameter {text}: after the range come at most one unit and the words log, integer "
            f"and step=STEP, got {':'.join(words)!r}."
        )
    return name, _range(low, high, "".join(units), special)


def _range(low: str, high: str, unit: str, words: Sequence[str]) -> Table:
    steps = [word.removeprefix("step=") for word in words if word.startswith("step=")]
    return {
        **({"type": '"integer"'} if "integer" in words else {}),
        "low": low,
        "high": high,
        **({"log": "true"} if "log" in words else {}),
        **({"step": _number(steps[-1], "the step")} if steps else {}),
        **({"unit": toml_text(unit)} if unit else {}),
    }


def _choices(text: str) -> Table:
    choices = (choice.strip() for choice in text.split(",") if choice.strip())
    return {"choices": f"[{', '.join(map(toml_text, choices))}]"}


_SHORT = {
    "normal": ("std",),
    "uniform": ("low", "high"),
    "beta": ("a", "b", "loc", "scale"),
    "chi-squared": ("df", "loc", "scale"),
    "lognormal": ("sigma",),
}
_PLAIN = ("a", "b", "df")
"""Numbers that have no unit."""


def _is_file(text: str) -> bool:
    return text.lower().endswith((".csv", ".xlsx"))


def _uncertainty(text: str, what: str = "--uncertainty") -> str:
    """Write ``normal:2``, ``normal:5%`` or ``log.csv`` as an inline table."""
    if _is_file(text):
        return f'{{ kind = "empirical", file = {toml_text(text)} }}'
    kind, *numbers = text.split(":")
    if kind not in _SHORT or not 1 <= len(numbers) <= len(_SHORT[kind]):
        shapes = ", ".join(":".join([k, *map(str.upper, keys)]) for k, keys in _SHORT.items())
        raise typer.BadParameter(
            f"{what} is written as one of {shapes} or FILE.csv, with numbers in the unit of the "
            f"parameter or in percent; other kinds are written into the file. Got {text!r}."
        )
    given = ", ".join(
        f"{k} = {(_number if k in _PLAIN else _length)(v, f'{what} {text}: {k}')}"
        for k, v in zip(_SHORT[kind], numbers, strict=False)
    )
    return f'{{ kind = "{kind}", {given} }}'


# -- its text


def text_of(
    name: str, direction: str, value: str, parameters: Mapping[str, Table], storage: str = ""
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
        _TAIL,
    ]
    return "\n".join(parts)


def _parameter(name: str, table: Table) -> str:
    lines = [f"[parameters.{_key(name)}]", *(f"{key} = {text}" for key, text in table.items())]
    if "low" in table and "uncertainty" not in table:
        lines.append('# uncertainty = { kind = "normal", std = "5%" }    # now it is hit exactly')
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

_TAIL = """\
# Parameters that are missed together (or kind = "ring", radius = 0.5), and how the recommended
# design will be hit in use:
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
