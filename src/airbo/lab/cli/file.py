"""Commands about the campaign file."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from airbo.lab.cli.command import DEFAULT, AsJson, Output, one_thread, reporting
from airbo.lab.errors import CampaignError
from airbo.lab.url import StorageURL
from airbo.space import n_initial_for
from airbo.uncertainty.kinds import in_percent
from airbo.words import nearest, number, plural, typed_number, with_unit

if TYPE_CHECKING:
    from airbo.lab.file import Settings

_T = TypeVar("_T")


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = DEFAULT,
    name: Annotated[str | None, typer.Option(help="Name of the campaign.")] = None,
    direction: Annotated[str, typer.Option(help="maximize or minimize.")] = "maximize",
    value: Annotated[str, typer.Option(help="What is measured: NAME:UNIT.")] = "value",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="A number: NAME=LOW:HIGH:UNIT, then :log, :integer, :step=STEP. Or choices: "
            "NAME=A,B,C."
        ),
    ] = None,
    uncertainty: Annotated[
        list[str] | None,
        typer.Option(help="NAME=normal:2, NAME=normal:5%, NAME=uniform:LOW:HIGH, NAME=log.csv."),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            help="What nobody sets: NAME=LOW:HIGH:UNIT, then :log, :typical=VALUE. Its law: "
            "--uncertainty."
        ),
    ] = None,
    storage: Annotated[str, typer.Option(help="URL of the storage; default: an SQLite file.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a campaign file with comments that say what else is possible.

    Without --parameter it holds an example to edit.
    """
    with reporting(as_json) as out:
        from airbo.lab.file import parse
        from airbo.lab.tables import write_whole

        if storage:
            StorageURL(storage)  # refuses a password, before it stands in a file
        if file.exists() and not force:
            raise CampaignError(f"{file} exists already; --force replaces it.")
        own = name or file.resolve().parent.name or "campaign"
        flags = (parameter or [], uncertainty or [], environment or [])
        text = text_from(own, direction, value, storage, *flags)
        with out.working("Checking the file ..."):
            parse(text, file).check()
        write_whole(file, text)
        to_do = "Look at it" if parameter else "Replace its parameters by yours"
        out.show(f"Wrote {file}. {to_do}, then: airbo check {file}")
        out.result({"file": str(file)})


def check(
    file: Annotated[Path, typer.Argument(help="The campaign file.")] = DEFAULT,
    data: Annotated[
        bool,
        typer.Option(
            "--data", help="Check the storage instead: is everything there that you reported?"
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a campaign file means, where designs land, and name all mistakes by line."""
    with reporting(as_json) as out:
        if data:
            return _check_data(file, out)
        _check_file(file, out)


def _check_file(file: Path, out: Output) -> None:
    """Say what a campaign file means."""
    from airbo.lab.cli.landings import landings
    from airbo.lab.cli.views import parameter_table, text_table
    from airbo.lab.file import Settings
    from airbo.measures.kinds import bounds_words

    with out.working("Working out where designs land ..."):
        one_thread()
        settings = Settings.read(file)
        settings.check()
        found = landings(settings)
        used = landings(settings, use=True) if settings.deployment is not None else []
    out.show(_headline(settings), parameter_table(settings))
    for name, bounds in settings.plausible.items():
        if bounds != (None, None):
            between = with_unit(bounds_words(*bounds), settings.units[name])
            out.show(f"Plausible values of {name}: {between}. Others are questioned.")
    if settings.space.constraints:
        out.show(f"Designs meet: {'; '.join(settings.space.constraints)}.")
    if not found:
        out.show("Every parameter is set exactly in the experiments.")
    head = ["parameter", "asked for, or typical", "lands below (2.5%)", "(50%)", "(97.5%)", ""]
    for title, listed in (
        ("Where a design lands in the experiments", found),
        ("Where the recommended design lands in use", used),
    ):
        rows = [
            [
                row["parameter"],
                *(
                    with_unit(number(v), settings.unit(row["parameter"]))
                    for v in (row["asked"], *row["quantiles"].values())
                ),
                histogram,
            ]
            for row, histogram in listed
        ]
        if rows:
            out.show(text_table(title, head, rows, left=1, is_drawn=True))
    lands = {"lands": [row for row, _ in found], "lands_in_use": [row for row, _ in used]}
    out.result({**_described(settings), **lands})


def _check_data(file: Path, out: Output) -> None:
    """Say whether the storage holds all that was told."""
    from airbo.lab.file import Settings
    from airbo.lab.store import Store

    with out.working("Reading the storage ..."):
        settings = Settings.read(file)
        store = Store(settings.storage, settings.path.parent, settings.name)
        n = store.check() if store.is_there else 0
    out.show(f"{settings.storage}: {plural(n, 'event')}, all as they were written.")
    out.result({"storage": str(settings.storage), "events": n})


def _headline(settings: "Settings") -> str:
    from airbo.lab.cli.views import heading
    from airbo.measures.kinds import Mean

    if settings.is_single and settings.measure == Mean():
        value = heading(settings.value_name, settings.value_unit)
        goal = f"{settings.direction} the expected {value}"
    else:
        wanted = settings.outcomes.items()
        goal = "; ".join(want.words(name, settings.units[name]) for name, want in wanted)
    acquisition = f", acquisition {settings.acquisition}" if settings.is_single else ""
    return (
        f"Campaign {settings.name!r}: {goal}. Surrogate {settings.surrogate}{acquisition}. "
        f"{settings.n_initial} designs before the model chooses, seed {settings.seed}. "
        f"Storage: {settings.storage}."
    )


def _described(settings: "Settings") -> dict[str, Any]:
    from airbo.outcomes import outcomes_to_dict

    return {
        "name": settings.name,
        "direction": settings.direction,
        "value": {"name": settings.value_name, "unit": settings.value_unit},
        "outcomes": outcomes_to_dict(settings.outcomes),
        "plausible": {name: list(bounds) for name, bounds in settings.plausible.items()},
        **settings.space.to_dict(),
        "uncertainty": settings.described_uncertainty,
        "deployment": settings.described_deployment,
        "surrogate": settings.surrogate,
        "acquisition": settings.acquisition,
        "n_initial": settings.n_initial,
        "seed": settings.seed,
        "storage": str(settings.storage),
    }


# -- a new file: from flags to its text

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
    mistakes: list[str] = []

    def each(texts: Sequence[str], read: Callable[[str], _T]) -> list[_T]:
        found = []
        for text in texts:
            try:
                found.append(read(text))
            except typer.BadParameter as error:
                mistakes.append(error.message)
        return found

    tables = dict(each(parameters, _parameter_in))
    around = dict(each(environment, partial(_parameter_in, flag="--environment")))
    known = [text.partition("=")[0].strip() for text in (*parameters, *environment)]
    for own, missed in each(uncertainties, partial(_missed, known=known)):
        table, key = (around, "law") if own in around else (tables, "uncertainty")
        table.setdefault(own, {})[key] = missed
    if mistakes:
        raise typer.BadParameter(" ".join(mistakes))
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


def _missed(text: str, known: Sequence[str]) -> tuple[str, str]:
    """Read NAME=normal:2 and its like, of something that there is."""
    own, missed = _named(text, "--uncertainty", "speed=normal:2")
    if own not in known:
        near = nearest(own, known)
        raise typer.BadParameter(f"--uncertainty names {own!r}, which is no parameter{near}")
    return own, _uncertainty(missed)


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
    text = text.strip().replace(",", ".")
    if in_percent(text) is None:
        raise typer.BadParameter(
            f"--uncertainty {flag} must be a number or percent, such as 5%, got {text!r}."
        )
    return toml_text(text)


def _number(text: str, what: str) -> str:
    try:
        return repr(typed_number(text, what)).removesuffix(".0")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def toml_text(text: str) -> str:
    """Write a text as TOML does; its basic strings are JSON's."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else toml_text(name)
