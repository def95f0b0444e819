"""Commands about tables, studies and copies: import, export, backup."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airbo.lab.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    Outside,
    Under,
    Yes,
    insisting,
    open_campaign,
    option,
    read_under,
    reporting,
    working_on,
)
from airbo.lab.errors import CampaignError
from airbo.lab.record import fold
from airbo.lab.url import StorageURL
from airbo.words import plural

if TYPE_CHECKING:
    import pandas as pd

    from airbo.lab import Campaign, Imported


def import_(
    data: Annotated[Path | None, typer.Argument(help="A CSV or Excel file with a header.")] = None,
    study: Annotated[
        tuple[str, str] | None,
        typer.Option(help="An Optuna study instead: the URL of its storage, and its name."),
    ] = None,
    again: Annotated[bool, option("again")] = False,
    allow_outside: Outside = False,
    ignore_others: Annotated[
        bool, typer.Option("--ignore-others", help="Skip columns with other names.")
    ] = False,
    mapped: Annotated[
        list[str] | None,
        typer.Option("--map", help="A column with another name: NAME=COLUMN, as often as needed."),
    ] = None,
    uncertainty: Under = None,
    yes: Yes = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Import experiments that were done before: all rows of a CSV or Excel file, or none.

    The header names the parameters and the value, by its name in the campaign file or as "value";
    units may follow, as in "temp [C]". "status" (ok or failed) and "executed_<name>" are optional.
    Commas, semicolons or tabs between cells and decimal commas are understood. Every mistake is
    named with its line. airbo first asks about numbers that look like typing errors, all at once.
    The same table twice counts once; rows that the campaign has already are named and left out.
    From a table that airbo exported, it keeps notes, exclusions, names, times and free numbers.

    With --study, the trials of an Optuna study are imported, pending ones too.
    """
    with working_on(file, as_json) as (out, campaign):
        under = read_under(campaign.settings, uncertainty, out)
        if (data is None) == (study is None):
            raise CampaignError("Name a table, or --study URL NAME.")
        columns = dict(word.partition("=")[::2] for word in mapped or [])

        def take_over(sure: bool) -> "Imported":
            if study is not None:
                return campaign.import_study(*study, again=again, allow_outside=allow_outside)
            assert data is not None
            return campaign.import_table(
                data, again=again, allow_outside=allow_outside, ignore_others=ignore_others,
                columns=columns, uncertainty=under, sure=sure,
            )  # fmt: skip

        source = data.name if data is not None else f"study {study[1]}" if study else ""
        done = insisting(out, yes, take_over, f"Importing {source}")
        count = plural(len(done.numbers), "experiment")
        if done.already:
            out.show(f"In the campaign already: {count}. Nothing changed; --again counts them.")
        else:
            first, last = min(done.numbers), max(done.numbers)
            to_last = "" if first == last else f" to {last}"
            out.show(f"Imported {count} from {data or source}, as number {first}{to_last}.")
        if done.repeated:
            out.note(f"{done.repeated_words} --again counts them.")
        if done.n_left_out:
            out.note(f"Rows left out as pending or given up: {done.n_left_out}.")
        repeated = [{"line": line, "trial": number} for line, number in done.repeated.items()]
        found = {"imported": done.numbers, "already": done.already, "repeated": repeated}
        out.result({**found, "left_out": done.n_left_out})


def export(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv or .xlsx file; - or nothing: print CSV."),
    ] = None,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Write what can be read of a damaged storage.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Every change instead: who, when, what.")
    ] = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write all experiments as CSV or Excel, which `airbo import` reads; or all changes."""
    with reporting(as_json) as out:
        from airbo.lab.tables import to_csv, write_table

        if damaged:
            table = _rescued(file, history, out)
        else:
            campaign = open_campaign(file, out)
            table = campaign.export_history() if history else campaign.export()
        what = "change" if history else "experiment"
        if output is not None and str(output) != "-":
            write_table(table, output)
            out.show(f"Wrote {plural(len(table), what)} to {output}.")
        elif not as_json:
            typer.echo(to_csv(table), nl=False)
        rows = json.loads(table.to_json(orient="records"))
        out.result({f"{what}s": rows, "file": output})


def _rescued(file: Path, history: bool, out: Output) -> "pd.DataFrame":
    """Return what can be read of a damaged storage, and say how much is lost."""
    from airbo.lab import Settings
    from airbo.lab.store import Store
    from airbo.lab.tables import table_of, table_of_changes

    settings = Settings.read(file)
    with out.working("Reading what can be read ..."):
        found, n_lost = Store(settings.storage, settings.path.parent, settings.name).salvage()
        record = fold(found).named(settings.value_name)
    lost = "1 is lost or was" if n_lost == 1 else f"{n_lost} are lost or were"
    out.note(f"{plural(len(found), 'event')} can be read; {lost} changed, and left out.")
    return table_of_changes(record.history) if history else table_of(settings, record.experiments)


def backup(
    output: Annotated[Path, typer.Argument(help="The SQLite file to write; it must be new.")],
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Copy the campaign into a new SQLite file, also while others work on it.

    To go back to it, put it in the place of the storage.
    """
    with reporting(as_json) as out:
        n = _copied(f"sqlite:///{output.resolve()}", open_campaign(file, out), out)
        out.show(f"Wrote {plural(n, 'event')} to {output}.")
        out.result({"file": output, "events": n})


def copy(
    url: Annotated[str, typer.Argument(help="The storage, such as postgresql://ann@host/lab.")],
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Copy the campaign with its whole history to another storage, such as a server.

    To go on there, write the URL into the campaign file: storage = "URL". The password comes from
    PostgreSQL's own file ~/.pgpass, or from the environment variable PGPASSWORD.
    """
    with reporting(as_json) as out:
        n = _copied(url, campaign := open_campaign(file, out), out)
        name = campaign.settings.path.name
        wrote = f"Wrote {plural(n, 'event')} to {url}."
        out.show(f'{wrote} To go on there: storage = "{url}" in {name}.')
        out.result({"storage": url, "events": n})


def _copied(url: str, campaign: "Campaign", out: Output) -> int:
    """Copy all events to another storage; return how many there are."""
    from airbo.lab.store import Store

    settings = campaign.settings
    target = Store(StorageURL(url), settings.path.parent, settings.name)
    out.until_end.callback(target.close)
    with out.working("Copying ..."):
        return campaign.store.copy_to(target)
