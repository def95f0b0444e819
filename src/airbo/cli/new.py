"""A new campaign file: from answers or flags to its text."""

import json
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

import typer

Ranges = Sequence[str]


@dataclass(frozen=True)
class NewParameter:
    """A parameter as the user describes it, not checked yet."""

    name: str
    low: str = ""
    high: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    is_integer: bool = False
    uncertainty: str = ""
    """Its inline table, or nothing if it is hit exactly."""


@dataclass(frozen=True)
class NewCampaign:
    """What a new file says."""

    name: str
    direction: str
    value_name: str
    value_unit: str
    parameters: list[NewParameter] = field(default_factory=list)
    storage: str = ""


# -- from answers or flags


def from_questions() -> NewCampaign:
    """Ask a few questions."""
    name = typer.prompt("Name of the campaign")
    direction = typer.prompt(
        "Is the value to be large or small (maximize/minimize)", "maximize", value_proc=_direction
    )
    value_name = typer.prompt("What do you measure", "value")
    unit = typer.prompt("Its unit (Enter: none)", "", show_default=False)
    parameters: list[NewParameter] = []
    while True:
        done = " (Enter: no more)" if parameters else ""
        names = {parameter.name for parameter in parameters}
        next_name = typer.prompt(
            f"Name of a parameter{done}",
            "" if parameters else None,
            show_default=False,
            value_proc=partial(_new_name, names),
        )
        if not next_name:
            return NewCampaign(name, direction, value_name, unit, parameters)
        parameters.append(_ask_parameter(next_name))


def _ask_parameter(name: str) -> NewParameter:
    question = f"  {name}: smallest value, or choices such as A,B"
    low = typer.prompt(question, value_proc=_number_or_choices)
    if "," in low:
        return NewParameter(name, choices=_choices(low))
    high = typer.prompt(f"  {name}: largest value", value_proc=partial(_above, low))
    unit = typer.prompt(f"  {name}: unit (Enter: none)", "", show_default=False)
    question = f"  {name}: by how much is it missed, as a standard deviation (Enter: hit exactly)"
    std = typer.prompt(question, "", show_default=False, value_proc=_deviation)
    return NewParameter(name, low, high, unit, uncertainty=f"{_NORMAL}{std} }}" if std else "")


def _direction(text: str) -> str:
    if text not in ("maximize", "minimize"):
        raise typer.BadParameter(f"Write maximize or minimize, not {text!r}.")
    return text


def _new_name(known: Collection[str], text: str) -> str:
    if text in known:
        raise typer.BadParameter(f"There is a parameter {text!r} already.")
    return text


def _number_or_choices(text: str) -> str:
    if "," not in text:
        return _number(text)
    if all(part.strip().replace(".", "").isdigit() for part in text.split(",")):
        raise typer.BadParameter(
            f"{text!r} may be a number: write a decimal point, not a comma. Choices that are "
            "numbers are written into the file."
        )
    return text


def _above(low: str, text: str) -> str:
    high = _number(text)
    if not float(high) > float(low):
        raise typer.BadParameter(f"It must be larger than {low}.")
    return high


def _deviation(text: str) -> str:
    std = _number(text) if text else ""
    if std and float(std) < 0:
        raise typer.BadParameter("It must not be negative.")
    return std


def _number(text: str) -> str:
    """Return a number as a campaign file can hold it: .5 is 0.5 there."""
    from airbo.words import number_of

    try:
        number = number_of(text, "it")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return repr(number)
    return text


_NORMAL = '{ kind = "normal", std = '


def from_flags(
    name: str,
    direction: str,
    value: str,
    storage: str,
    floats: Ranges,
    integers: Ranges,
    choices: Ranges,
    uncertainties: Ranges,
) -> NewCampaign:
    """Read flags such as ``speed=50:200:m/min`` and ``speed=normal:2``."""
    value_name, _, unit = value.partition(":")
    hits = dict(_named(text, "--uncertainty", "speed=normal:2") for text in uncertainties)
    parameters = [
        *(_range(text, "--parameter", False) for text in floats),
        *(_range(text, "--integer", True) for text in integers),
        *(_choice(text) for text in choices),
    ]
    for missing in hits.keys() - {p.name for p in parameters}:
        raise typer.BadParameter(f"--uncertainty names {missing!r}, which is no parameter.")
    with_hits = [
        NewParameter(**{**vars(p), "uncertainty": _uncertainty(hits[p.name])})
        if p.name in hits
        else p
        for p in parameters
    ]
    return NewCampaign(name, direction, value_name, unit, with_hits, storage)


def _named(text: str, flag: str, example: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not (name.strip() and equals and rest.strip()):
        raise typer.BadParameter(f"{flag} is written as {example}, got {text!r}.")
    return name.strip(), rest.strip()


def _range(text: str, flag: str, is_integer: bool) -> NewParameter:
    example = "passes=1:5" if is_integer else "speed=50:200:m/min"
    name, rest = _named(text, flag, example)
    low, _, others = rest.partition(":")
    high, _, unit = others.partition(":")
    if not high:
        raise typer.BadParameter(f"{flag} is written as {example}, got {text!r}.")
    low, high = (_in(flag, text, number) for number in (low, high))
    return NewParameter(name, low, high, unit, is_integer=is_integer)


def _in(flag: str, text: str, number: str) -> str:
    """Return a number of a flag, or say in which flag it is none."""
    try:
        return _number(number)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{flag} {text}: {error.message}") from None


def _choice(text: str) -> NewParameter:
    name, rest = _named(text, "--choice", "tool=A,B")
    return NewParameter(name, choices=_choices(rest))


def _choices(text: str) -> tuple[str, ...]:
    return tuple(choice.strip() for choice in text.split(",") if choice.strip())


_SHORT = {
    "normal": ("std",),
    "uniform": ("low", "high"),
    "beta": ("a", "b", "loc", "scale"),
    "chi-squared": ("df", "loc", "scale"),
}


def _uncertainty(text: str) -> str:
    """Write ``normal:2`` or ``log.csv`` as an inline table."""
    if text.endswith(".csv"):
        return f'{{ kind = "empirical", file = {toml_text(text)} }}'
    kind, *numbers = text.split(":")
    if kind not in _SHORT or not 1 <= len(numbers) <= len(_SHORT[kind]):
        shapes = ", ".join(":".join([k, *map(str.upper, keys)]) for k, keys in _SHORT.items())
        raise typer.BadParameter(
            f"--uncertainty is written as one of {shapes} or FILE.csv; other kinds are written "
            f"into the file. Got {text!r}."
        )
    given = ", ".join(
        f"{k} = {_in('--uncertainty', text, v)}"
        for k, v in zip(_SHORT[kind], numbers, strict=False)
    )
    return f'{{ kind = "{kind}", {given} }}'


# -- its text


def text_of(campaign: NewCampaign) -> str:
    """Write a file with comments that say what else is possible."""
    value = f"name = {toml_text(campaign.value_name)}"
    if campaign.value_unit:
        value += f", unit = {toml_text(campaign.value_unit)}"
    storage = f"storage = {toml_text(campaign.storage)}" if campaign.storage else _STORAGE
    parts = [
        _HEAD.format(
            name=toml_text(campaign.name), direction=toml_text(campaign.direction), value=value
        ),
        storage,
        _OPTIONS,
        *map(_parameter, campaign.parameters),
        _TAIL,
    ]
    return "\n".join(parts)


def _parameter(parameter: NewParameter) -> str:
    lines = [f"[parameters.{_key(parameter.name)}]"]
    if parameter.choices:
        lines.append(f"choices = [{', '.join(map(toml_text, parameter.choices))}]")
    else:
        kind = ['type = "integer"'] if parameter.is_integer else []
        unit = [f"unit = {toml_text(parameter.unit)}"] if parameter.unit else []
        lines += [*kind, f"low = {parameter.low}", f"high = {parameter.high}", *unit]
        lines.append(
            f"uncertainty = {parameter.uncertainty}"
            if parameter.uncertainty
            else '# uncertainty = { kind = "normal", std = 1.0 }    # now it is hit exactly'
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
value = {{ {value} }}    # what an experiment measures
"""

_STORAGE = """\
# Where the experiments are kept. By default an SQLite file beside this one. For several machines:
# storage = "postgresql://user@host/database"
# storage_password_file = "password.txt"          # or the environment: AIRBO_STORAGE_PASSWORD"""

_OPTIONS = """\

# seed = 0                   # fixes all choices
# n_initial = 8              # designs spread over the space before the model chooses
# give_up_after_hours = 72   # a design that nobody answers for so long is no longer waited for
# surrogate = "default"      # or "expectation" (the same), "mmd", "ugp", "skl", "erbf", "nominal"
# acquisition = "ucb-random" # or "ucb", "ucb-theory", "ei"
# measure = "mean"           # what counts of the values in use; or "mean-std:2", "quantile:0.9",
                             # "cvar:0.9" (the worst tenth), "worst", "in-spec:5..8", "target:50"
# noise = "measurement"      # or "product": single products differ by it, too

# constraints = ["water + ethanol <= 1"]   # linear, between parameters; designs meet all of them

# Parameters. Also possible: log = true, step = 0.5, type = "integer", choices = ["A", "B"].
# An uncertainty is in the unit of its parameter. Kinds: exact, normal (std), uniform (low, high),
# beta (a, b, loc, scale), chi-squared (df, loc, scale), gaussian-mixture (means, covs, weights),
# relative (share), lognormal (sigma), empirical (file = "log.csv": logged deviations), piecewise,
# scipy, torch; for two, ring (radius).
"""

_TAIL = """\
# Parameters that are missed together, and how the recommended design will be hit in use:
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
"""
