"""``airbo calibrate``: from asked and actual values to an uncertainty."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airbo.lab.cli.command import DEFAULT, AsJson, File, Output, open_campaign, reporting
from airbo.lab.errors import CampaignError, StorageError
from airbo.words import hit, kind, nearest, number, plural, with_unit

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from airbo.calibrate import Belief, Learned, Log
    from airbo.lab import Experiment, Settings

FEWEST = 8
"""Values that a law is learned from, at least."""
_SHOWN = 6
"""Candidates in the table, for each parameter; all of them are in --json."""


def calibrate(
    log: Annotated[
        Path | None,
        typer.Argument(help="A CSV or Excel file with a header; default: the campaign's own."),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(help="asked=actual or name:asked=actual, by the columns; again for more."),
    ] = None,
    lag: Annotated[
        int | None,
        typer.Option(help="Rows by which actual lags behind asked; default: estimated.", min=0),
    ] = None,
    keep_outliers: Annotated[bool, typer.Option("--keep-outliers", help="Keep outliers.")] = False,
    environment: Annotated[
        str | None,
        typer.Option(help="Learn the law of this environment from what the campaign measured."),
    ] = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Learn from a log of asked and actual values how accurate the machine is.

    Columns are paired by their names, such as speed_asked and speed_actual, speed_sp and speed_pv,
    or speed and speed_measured; --pair names others. Rows are in the order of time.

    It prints what it found, what it compared, and lines for campaign.toml.

    Without a log, airbo looks at the executed inputs that were measured during the campaign, and
    says whether the uncertainty in the file is believable.
    """
    with reporting(as_json) as out:
        if environment is not None:
            return _calibrate_environment(file, environment, keep_outliers, out)
        if log is None:
            return _calibrate_campaign(file, lag or 0, keep_outliers, out)
        with out.working("Comparing kinds of uncertainty ..."):
            found, learned = _learned(log, pair or [], lag, keep_outliers)
        listed = ", ".join(f"{p.name} ({p.asked} → {p.actual})" for p in found.pairs)
        out.show(f"{len(found.asked)} rows; asked → actual: {listed}.")
        if found.unused:
            out.show(f"Not used: {', '.join(found.unused)}.")
        _show(out, learned)
        pairs = {p.name: [p.asked, p.actual] for p in found.pairs}
        out.result({"pairs": pairs, "unused": found.unused, **_as_data(learned)})


def _calibrate_campaign(file: Path, lag: int, keep_outliers: bool, out: Output) -> None:
    """Compare the inputs that were measured during a campaign with what its file says."""
    from airbo.uncertainty import learn

    campaign = open_campaign(file, out)
    with out.working("Comparing what was measured with the file ..."):
        asked, actual = _measured(campaign.settings, campaign.experiments)
        found = _beliefs(campaign.settings, asked, actual)
    counts = ", ".join(f"{b.parameter} ({b.n})" for b in found)
    n = plural(len(asked), "experiment")
    out.show(f"Executed inputs were measured in {n}: {counts}.", "")
    out.show(*(belief.text for belief in found))
    names = [b.parameter for b in found if not b.is_believable]
    data: dict[str, Any] = {}
    if names:
        with out.working("Comparing kinds of uncertainty ..."):
            learned = learn(
                asked[names].astype(float), actual[names], lag=lag, keep_outliers=keep_outliers
            )
        out.show("", f"What the measured inputs alone say of {', '.join(names)}:")
        _show(out, learned)
        data = _as_data(learned)
    verdicts = [
        {"parameter": b.parameter, "n": b.n, "p_value": b.p_value, "text": b.text,
         "believable": b.is_believable}
        for b in found
    ]  # fmt: skip
    out.result({"beliefs": verdicts, **data})


def _calibrate_environment(file: Path, name: str, keep_outliers: bool, out: Output) -> None:
    """Learn the law of what nobody sets: its deviations from what is typical."""
    from airbo.uncertainty import learn

    campaign = open_campaign(file, out)
    around = campaign.settings.space.environment
    if name not in around:
        raise CampaignError(f"There is no environment {name!r}{nearest(name, around)}")
    actual = [float(e.executed[name]) for e in campaign.experiments if name in e.executed]
    if len(actual) < FEWEST:
        raise CampaignError(
            f"{name} was measured in {plural(len(actual), 'experiment')}; a law needs {FEWEST}. "
            f"For example: airbo tell 3 1.25 {name}=..."
        )
    # the deviation of a day is what was measured minus what is typical: the mean, with 3 digits
    typical = float(f"{sum(actual) / len(actual):.3g}")
    typical = min(max(typical, around[name].low), around[name].high)
    with out.working("Comparing kinds of uncertainty ..."):
        learned = learn({name: [typical] * len(actual)}, {name: actual}, lag=0,
                        keep_outliers=keep_outliers)  # fmt: skip
    toml = learned.toml.replace("[parameters.", "[environment.").replace(".uncertainty]", ".law]")
    unit = around[name].unit
    reach = with_unit(f"{number(min(actual))} to {number(max(actual))}", unit)
    law = kind(learned.uncertainty, unit)
    out.show(
        f"{name} was measured in {plural(len(actual), 'experiment')}: {reach}, typically "
        f"{with_unit(number(typical), unit)}. Its law: {law}.", "", _table(learned), "",
    )  # fmt: skip
    out.show(f"For campaign.toml: typical = {typical:g} in [environment.{name}], and its law:", "")
    if not out.as_json:
        typer.echo(toml, nl=False)
    data = {"environment": name, "n": len(actual), "typical": typical}
    out.result({**data, **_as_data(learned), "toml": toml})


def _measured(
    settings: "Settings", experiments: "Sequence[Experiment]"
) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Collect asked and actual values of all measured inputs, in the order of time.

    Raises:
        CampaignError: If nothing was measured.
    """
    import pandas as pd

    space = settings.space
    own = [e for e in experiments if {*e.executed} & {*space.names}]
    asked = pd.DataFrame([dict(e.design) for e in own], index=[e.number for e in own])
    names = [n for n in space.names if any(n in e.executed for e in own)]
    if not names:
        raise CampaignError(
            "No executed input was measured in this campaign yet; for example: airbo tell 3 1.25 "
            f"--executed {space.names[0]}=... With a log of asked and actual values: airbo "
            "calibrate LOG.csv."
        )
    actual = pd.DataFrame([{n: e.executed.get(n) for n in names} for e in own], asked.index)
    return asked, actual.astype(float)


def _beliefs(settings: "Settings", asked: "pd.DataFrame", actual: "pd.DataFrame") -> "list[Belief]":
    """Say for each measured parameter whether the uncertainty in the file is believable."""
    import numpy as np

    from airbo.calibrate import believe
    from airbo.uncertainty.in_cube import by_columns

    space = settings.space
    uncertainty = by_columns(space, settings.uncertainty)
    columns = space.to_columns(asked.to_dict("records"), allow_outside=True)
    designs = np.asarray([[*row, *space.typical] for row in columns], dtype=np.float64)
    found = []
    for name in map(str, actual):
        values = actual[name]
        there = values.notna().to_numpy()
        said = hit(space, settings.described_uncertainty, name)
        column, measured = space.names.index(name), values.to_numpy()[there]
        found.append(believe(name, uncertainty, designs[there], column, measured, said))
    return found


def _learned(
    path: Path, pairs: list[str], lag: int | None, keep_outliers: bool
) -> tuple["Log", "Learned"]:
    from airbo.calibrate import read_log
    from airbo.uncertainty import learn

    try:
        log = read_log(path, pairs)
        learned = learn(log.asked, log.actual, lag=lag, keep_outliers=keep_outliers)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise CampaignError(str(error)) from None
    return log, learned


def _show(out: Output, learned: "Learned") -> None:
    out.show("", *learned.text.split("\n"), "", _table(learned), "")
    out.show("For campaign.toml:", "")
    if not out.as_json:
        typer.echo(learned.toml, nl=False)  # as it is: a broken line could not be pasted


def _table(learned: "Learned") -> "Table":
    from rich.table import Table

    table = Table("parameter", "candidate", box=None, pad_edge=False, show_edge=False)
    for heading in ("log likelihood", "below the best", "numbers"):
        table.add_column(heading, justify="right")
    for parameters in dict.fromkeys(c.parameters for c in learned.candidates):
        own = [c for c in learned.candidates if c.parameters == parameters]
        shown = [c for i, c in enumerate(own) if i < _SHOWN or c.chosen]
        for i, c in enumerate(shown):
            table.add_row(
                ", ".join(parameters) if i == 0 else "",
                f"{c.name}  ← proposed" if c.chosen else c.name,
                f"{c.log_likelihood:.3f}",
                f"{-c.difference:.3f} ± {c.standard_error:.3f}" if c.difference else "best",
                str(c.n_numbers),
                style="bold" if c.chosen else None,
            )
    return table


def _as_data(learned: "Learned") -> dict[str, Any]:
    candidates = [
        {
            "parameters": c.parameters, "name": c.name, "log_likelihood": c.log_likelihood,
            "difference": c.difference, "standard_error": c.standard_error,
            "numbers": c.n_numbers, "proposed": c.chosen,
        }
        for c in learned.candidates
    ]  # fmt: skip
    return {
        "text": learned.text,
        "toml": learned.toml,
        "uncertainty": learned.uncertainty.to_dict(),
        "findings": [
            {"kind": f.kind, "parameters": f.parameters, "text": f.text} for f in learned.findings
        ],
        "candidates": candidates,
    }
