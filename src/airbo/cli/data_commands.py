"""Commands about tables and pages."""

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airbo.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    Yes,
    insisting,
    one_thread,
    open_campaign,
    quiet,
    read_under,
    reporting,
)

if TYPE_CHECKING:
    import pandas as pd

    from airbo.campaign import Campaign
    from airbo.campaign.tables import Imported


def import_(
    data: Annotated[Path, typer.Argument(help="A CSV or Excel file with a header.")],
    again: Annotated[bool, typer.Option("--again", help="Count the same table again.")] = False,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Designs may lie outside the ranges.")
    ] = False,
    ignore_others: Annotated[
        bool, typer.Option("--ignore-others", help="Skip columns with other names.")
    ] = False,
    uncertainty: Annotated[
        str | None,
        typer.Option(
            help="The uncertainty of these experiments, as TOML, if not that of the file."
        ),
    ] = None,
    yes: Yes = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Take over experiments that were done before: all rows of a CSV or Excel file, or none.

    The header names the parameters and the value, by its name in the campaign file or as "value";
    units may follow, as in "temp [C]". "status" (ok or failed) and "executed_<name>" are optional.
    Commas, semicolons or tabs between cells and decimal commas are understood. Every mistake is
    named with its line. Numbers that look like typing errors are questioned first, all at
    once. The same table twice counts once.
    """
    with reporting(as_json) as out:
        campaign = open_campaign(file, out)
        under = read_under(campaign.settings, uncertainty, out)

        def take_over(sure: bool) -> "Imported":
            return campaign.import_table(
                data, again=again, allow_outside=allow_outside, ignore_others=ignore_others,
                uncertainty=under, sure=sure,
            )  # fmt: skip

        done = insisting(out, yes, take_over, f"Importing {data.name}")
        count = f"{len(done.numbers)} experiments"
        if done.already:
            out.show(f"These {count} were imported before. Nothing changed; --again counts them.")
        else:
            first, last = done.numbers[0], done.numbers[-1]
            out.show(f"Imported {count} from {data}, as number {first} to {last}.")
        if done.n_left_out:
            out.note(f"Rows left out as pending, given up or excluded: {done.n_left_out}.")
        out.result({"imported": done.numbers, "already": done.already, "left_out": done.n_left_out})


def export(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv or .xlsx file; - or nothing: print CSV."),
    ] = None,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="What can be read of a damaged storage.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Every change instead: who, when, what.")
    ] = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write all experiments as CSV or Excel, which `airbo import` reads; or all changes."""
    with reporting(as_json) as out:
        from airbo.campaign.tables import to_csv, write_table

        if damaged:
            table = _rescued(file, out)
        else:
            campaign = open_campaign(file, out)
            with out.working("Reading the experiments ..."):
                table = campaign.export_history() if history else campaign.export()
        what = "changes" if history else "experiments"
        if output is not None and str(output) != "-":
            write_table(table, output)
            out.show(f"Wrote {len(table)} {what} to {output}.")
        elif not as_json:
            typer.echo(to_csv(table), nl=False)
        rows = json.loads(table.to_json(orient="records"))
        out.result({what: rows, "file": output})


def _rescued(file: Path, out: Output) -> "pd.DataFrame":
    """Return what can be read of a damaged storage, and say how far it can be trusted."""
    quiet()
    from airbo.campaign import Settings
    from airbo.campaign.rescue import rescue
    from airbo.campaign.tables import table_of

    settings = Settings.read(file, begun=True)
    with out.working("Reading what can be read ..."):
        found = rescue(settings)
    if found.is_certain:
        out.note(
            f"{len(found.experiments)} experiments are as they were told; {found.n_lost} trials "
            "are lost or were changed, and are left out."
        )
    else:
        out.note("No seal vouches for these experiments: compare them with your own notes.")
    return table_of(settings, found.experiments)


def restore(
    backup: Annotated[
        Path | None, typer.Argument(help="A copy of the storage; default: as it is now.")
    ] = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Go back to a backup of the storage, or let a storage that was changed count as it is now.

    airbo notices when a journal or an SQLite file no longer holds what was told. This says that it
    is meant. What was there before is kept beside it.
    """
    with reporting(as_json) as out:
        quiet()
        from airbo.campaign import Settings
        from airbo.campaign.rescue import go_back

        with out.working("Reading the storage ..."):
            done = go_back(Settings.read(file, begun=True), backup)
        out.show(f"The campaign has {done.n_experiments} experiments now.")
        for kept in done.kept:
            out.show(f"Kept what was there: {kept}")
        out.result({"experiments": done.n_experiments, "kept": [str(p) for p in done.kept]})


def report(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; default: beside the file.")
    ] = None,
    history: Annotated[
        int, typer.Option(help="How many earlier states to refit the model to.", min=0)
    ] = 12,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page that shows what was found; it works offline and can be sent by mail."""
    with reporting(as_json) as out:
        from airbo.campaign.errors import CampaignError

        campaign = open_campaign(file, out)
        if not campaign.status().n_ok:
            raise CampaignError("There is nothing to report yet: no experiment gave a value.")
        path = output or file.with_suffix(".html")
        _write_page(campaign, path, history, out)
        out.show(f"Wrote {path}.")
        out.result({"file": path})


def _write_page(campaign: "Campaign", path: Path, history: int, out: Output) -> None:
    """Write the report of a campaign."""
    from airbo.campaign.errors import StorageError
    from airbo.report import Logbook, write_report

    one_thread()
    settings = campaign.settings
    try:
        write_report(
            campaign.optimizer(),
            path,
            title=settings.name,
            value_name=settings.value_name,
            value_unit=settings.value_unit,
            date=datetime.date.today(),
            history=history,
            logbook=Logbook.of(campaign),
            progress=out.err.is_terminal and not out.as_json,
            units={name: outcome.unit for name, outcome in (settings.named or {}).items()},
        )
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from None
