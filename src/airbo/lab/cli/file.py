"""Commands about the campaign file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airbo.lab.cli.command import DEFAULT, AsJson, Output, one_thread, reporting
from airbo.lab.cli.new import text_from
from airbo.lab.errors import CampaignError
from airbo.lab.url import StorageURL
from airbo.words import number, plural, with_unit

if TYPE_CHECKING:
    from airbo.lab.file import Settings


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
            out.show(text_table(title, head, rows, left=1))
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
