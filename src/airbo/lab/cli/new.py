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
    log: bool = False
    step: str = ""
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
        "Do you want a large or a small value (maximize/minimize)",
        "maximize",
        value_proc=_direction,
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
    low = typer.prompt(question, value_proc=partial(_number_or_choices, name))
    if "," in low:
        return NewParameter(name, choices=_choices(low))
    high = typer.prompt(f"  {name}: largest value", value_proc=partial(_above, name, low))
    whole = _is_whole(low) and _is_whole(high) and typer.confirm(f"  {name}: whole numbers only")
    wide = float(low) > 0 and float(high) >= 10 * float(low)
    log = wide and typer.confirm(f"  {name}: log scale (ratios matter, not differences)")
    unit = typer.prompt(f"  {name}: unit (Enter: none)", "", show_default=False)
    missed = typer.prompt(
        f"  {name}: by how much is it missed (Enter: hit exactly; ? for help)",
        "",
        show_default=False,
        value_proc=partial(_answered, name),
    )
    return NewParameter(name, low, high, unit, is_integer=whole, log=log, uncertainty=missed)


def _is_whole(number: str) -> bool:
    return number.lstrip("+-").isdigit()


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
        raise typer.BadParameter("Now you.")
    if not text:
        return ""
    if ":" in text or _is_file(text):
        return _uncertainty(text, f"{name}: the uncertainty")
    return f'{{ kind = "normal", std = {_deviation(text, name)} }}'


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


def _deviation(text: str, name: str) -> str:
    """Return a standard deviation as a campaign file can hold it."""
    what = f"{name}: the standard deviation"
    std = _length(text, what)
    if std.strip('"').startswith("-"):
        raise typer.BadParameter(f"{what} must not be negative.")
    return std


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
    """Read NAME=LOW:HIGH, then in any order a unit and the words log, integer and step=STEP."""
    example = "passes=1:5" if is_integer else "speed=50:200:m/min or dose=0.1:10:mg:log"
    name, rest = _named(text, flag, example)
    low, _, others = rest.partition(":")
    high, *words = others.split(":")
    if not high:
        raise typer.BadParameter(f"{flag} is written as {example}, got {text!r}.")
    low, high = (_number(number, f"{flag} {text}: the range") for number in (low, high))
    steps = [word.removeprefix("step=") for word in words if word.startswith("step=")]
    units = [w for w in words if w not in ("log", "integer", "") and not w.startswith("step=")]
    if len(units) > 1 or len(steps) > 1:
        raise typer.BadParameter(
            f"{flag} {text}: after the range come at most one unit and the words log, integer and "
            f"step=STEP, got {':'.join(words)!r}."
        )
    return NewParameter(
        name, low, high, "".join(units),
        is_integer=is_integer or "integer" in words, log="log" in words,
        step="".join(_number(step, f"{flag} {text}: the step") for step in steps),
    )  # fmt: skip


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


def text_of(campaign: NewCampaign) -> str:
    """Write a file with comments that say what else is possible."""
    from airbo.space import n_initial_for

    value = f"name = {toml_text(campaign.value_name)}"
    if campaign.value_unit:
        value += f", unit = {toml_text(campaign.value_unit)}"
    storage = f"storage = {toml_text(campaign.storage)}" if campaign.storage else _STORAGE
    n = len(campaign.parameters)
    parts = [
        _HEAD.format(
            name=toml_text(campaign.name), direction=toml_text(campaign.direction), value=value
        ),
        storage,
        _OPTIONS.format(n_initial=n_initial_for(n), parameters=_counted(n)),
        *map(_parameter, campaign.parameters),
        _TAIL,
    ]
    return "\n".join(parts)


def _counted(n: int) -> str:
    return "1 parameter" if n == 1 else f"{n} parameters"


def _parameter(parameter: NewParameter) -> str:
    lines = [f"[parameters.{_key(parameter.name)}]"]
    if parameter.choices:
        lines.append(f"choices = [{', '.join(map(toml_text, parameter.choices))}]")
    else:
        kind = ['type = "integer"'] if parameter.is_integer else []
        unit = [f"unit = {toml_text(parameter.unit)}"] if parameter.unit else []
        scale = ["log = true"] if parameter.log else []
        scale += [f"step = {parameter.step}"] if parameter.step else []
        lines += [*kind, f"low = {parameter.low}", f"high = {parameter.high}", *scale, *unit]
        lines.append(
            f"uncertainty = {parameter.uncertainty}"
            if parameter.uncertainty
            else '# uncertainty = { kind = "normal", std = "5%" }    # now it is hit exactly'
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
# storage = "postgresql://user@host/database"
# storage_password_file = "password.txt"          # or the environment: AIRBO_STORAGE_PASSWORD"""

_OPTIONS = """\

# What follows is in force now; take the # away to change it.
# seed = 0                   # fixes all choices
# n_initial = {n_initial:<2}             # designs before the model chooses ({parameters})
# surrogate = "default"      # or "expectation", "mmd", "ugp", "erbf", "nominal", ...
# acquisition = "default"    # or "ucb-random", "ucb", "ucb-theory", "ei"
# measure = "mean"           # what counts of the values in use; or "mean-std:2", "quantile:0.9",
                             # "cvar:0.9" (the worst tenth), "worst", "in-spec:5..8", "target:50"
# noise = "measurement"      # or "product": single products differ by it, too
# Not in force: airbo gives up a design without a result after this time.
# give_up_after_hours = 72

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
#   {{ kind = "torch", name = "Gumbel", parameters = {{ loc = 0.0, scale = 0.5 }} }}
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
"""
