"""From answers or flags to a new campaign file."""

from collections.abc import Sequence

import typer

from airbo.cli.template import NewCampaign, NewParameter, quoted

Ranges = Sequence[str]


def from_questions() -> NewCampaign:
    """Ask a few questions."""
    name = typer.prompt("Name of the campaign")
    direction = typer.prompt("Is the value to be large or small (maximize/minimize)", "maximize")
    value_name = typer.prompt("What do you measure", "value")
    unit = typer.prompt("Its unit (Enter: none)", "", show_default=False)
    parameters: list[NewParameter] = []
    while True:
        done = " (Enter: no more)" if parameters else ""
        next_name = typer.prompt(f"Name of a parameter{done}", "" if parameters else None,
                                 show_default=False)  # fmt: skip
        if not next_name:
            return NewCampaign(name, direction, value_name, unit, parameters)
        parameters.append(_ask_parameter(next_name))


def _ask_parameter(name: str) -> NewParameter:
    low = typer.prompt(f"  {name}: smallest value, or choices such as A,B")
    if "," in low:
        return NewParameter(name, choices=_choices(low))
    high = typer.prompt(f"  {name}: largest value")
    unit = typer.prompt(f"  {name}: unit (Enter: none)", "", show_default=False)
    question = f"  {name}: by how much is it missed, as a standard deviation (Enter: hit exactly)"
    std = typer.prompt(question, "", show_default=False)
    return NewParameter(name, low, high, unit, uncertainty=f"{_NORMAL}{std} }}" if std else "")


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
    return NewParameter(name, low, high, unit, is_integer=is_integer)


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
        return f'{{ kind = "empirical", file = {quoted(text)} }}'
    kind, *numbers = text.split(":")
    if kind not in _SHORT or not 1 <= len(numbers) <= len(_SHORT[kind]):
        shapes = ", ".join(":".join([k, *map(str.upper, keys)]) for k, keys in _SHORT.items())
        raise typer.BadParameter(
            f"--uncertainty is written as one of {shapes} or FILE.csv; other kinds are written "
            f"into the file. Got {text!r}."
        )
    given = ", ".join(f"{k} = {v}" for k, v in zip(_SHORT[kind], numbers, strict=False))
    return f'{{ kind = "{kind}", {given} }}'
