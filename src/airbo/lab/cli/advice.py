"""Commands that say what was found: recommend, front, predict, report."""

import datetime
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from airbo.lab.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    Outside,
    WithGiven,
    one_thread,
    option,
    read_given,
    working_on,
)
from airbo.lab.errors import CampaignError
from airbo.lab.fields import FIELDS
from airbo.words import assignments, listed, plural

if TYPE_CHECKING:
    from airbo.lab import Campaign, Settings
    from airbo.lab.advice import Answer

Anywhere = Annotated[bool | None, option("anywhere", "--anywhere/--tried")]
_MEANS = (
    "Values are averages over where the design lands, unless another measure is named (± one "
    "standard deviation, model uncertainty)."
)


def policy_of(anywhere: bool | None) -> Literal["observed", "anywhere"] | None:
    """Return where to look for designs."""
    if anywhere is None:
        return None
    return "anywhere" if anywhere else "observed"


def recommend(
    anywhere: Anywhere = None,
    tolerance: Annotated[float | None, option("tolerance")] = None,
    given: WithGiven = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say which design to use, what to expect of it, and whether more experiments are worth it."""
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.data import answer_data

        settings, policy = campaign.settings, policy_of(anywhere)
        known = read_given(settings, given)
        with out.working("Fitting the model and looking ahead ..."):
            one_thread()
            answer = campaign.adviser().answer(policy, tolerance, known)
        if known:
            out.show(f"For {assignments(settings.space, known)}:")
        out.show(*_sentences(settings, answer))
        if answer.caution:
            out.note(answer.caution)
        out.result(answer_data(settings, answer))


def _sentences(settings: "Settings", answer: "Answer") -> list[str]:
    """Say which design to use, what to expect of it, whether to go on, and how far one may move."""
    from airbo.analysis.words import (
        MEAN_ONLY,
        budget_sentences,
        outlook_sentences,
        window_sentences,
    )
    from airbo.lab.cli.views import BRACKETS, outcome_line, what_to_expect
    from airbo.outcomes import objectives

    best, handed, name = answer.best, answer.handover, settings.value_name
    said = [f"Use {assignments(settings.space, best.design)}."]
    if answer.is_about_one_value:
        said.append(what_to_expect(settings, best))
        if answer.outlook is None:
            said.append(MEAN_ONLY)
        else:
            unit = settings.value_unit
            said += outlook_sentences(answer.outlook, settings.space, name, unit)
    else:
        said[0] = f"{said[0]} {best.reason}".strip()
        said += [outcome_line(settings, name, found) for name, found in best.outcomes.items()]
        has_limits = any(estimate.capability for estimate in best.outcomes.values())
        said.append(" ".join([_MEANS, *([BRACKETS] if has_limits else []), MEAN_ONLY]))
        if len(objectives(settings.outcomes)) > 1:
            said.append("The other designs to choose from: airbo front.")
    if handed.window is not None:
        said += window_sentences(handed.window, settings.space)
    for budget in handed.budgets:
        name = budget.outcome or settings.value_name
        said += budget_sentences(budget, name, settings.units.get(name))
    return said


# -- several objectives


def front_(
    anywhere: Anywhere = None,
    given: WithGiven = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """List the designs to choose from if two or three objectives conflict.

    No design beats one on the front in all objectives, and every design on it keeps
    the limits of the file. The first row is the best by the first objective.
    """
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.cli.views import front_table
        from airbo.lab.data import recommended_data
        from airbo.outcomes import objectives

        settings = campaign.settings
        if len(objectives(settings.outcomes)) < 2:
            raise CampaignError(
                f"The campaign has one objective, {settings.value_name}, so one design is the "
                "best: airbo recommend. A front needs two or three outcomes with a goal."
            )
        with out.working("Fitting the models and looking for the front ..."):
            one_thread()
            adviser, known = campaign.adviser(), read_given(settings, given)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ``recommend`` says the same of an empty front
                found = adviser.front(policy_of(anywhere), known)
            best = adviser.recommend(policy_of(anywhere), known)
        if found:
            out.show(front_table(settings, found, best), _MEANS, best.reason)
        else:
            out.show(
                "The front is empty: no design is known yet to keep all limits. airbo recommend "
                "names the one that is most likely to."
            )
        rows = [recommended_data(each) for each in found]
        out.result({"front": rows, "compromise": best.design, "reason": best.reason})


# -- what to expect at given settings


def predict(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help=FIELDS["settings"].says),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="A CSV or Excel file with a design in each row; the answer is a table."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With --table: a .csv or .xlsx file.")
    ] = None,
    allow_outside: Outside = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say what to expect at settings of your choice, tried or not.

    For every outcome: the expected value, what a single run will give, how well limits are kept,
    with 90% intervals; and how far the nearest experiments are.
    """
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.prediction import sentences

        settings = campaign.settings
        if table is not None:
            _predict_table(campaign, table, output, allow_outside, out)
            return
        design = read_given(settings, words)
        with out.working("Fitting the model ..."):
            one_thread()
            found = campaign.predict(design, allow_outside=allow_outside)
        others = [name for name in settings.space.names if name not in design]
        as_best = f" ({listed(others)} as recommended)" if others else ""
        at = assignments(settings.space, {**found.design, **found.given})
        out.show(f"At {at}{as_best}:")
        out.show(*sentences(settings, found))
        out.show("Brackets are 90% intervals (model uncertainty); values are those in use.")
        out.result(found.to_dict())


def _predict_table(
    campaign: "Campaign", table: Path, output: Path | None, allow_outside: bool, out: Output
) -> None:
    """Predict every row of a table."""
    from airbo.lab.prediction import as_table
    from airbo.lab.tables import read_designs, to_csv, write_table

    designs = read_designs(campaign.settings, table, allow_outside)
    with out.working("Fitting the model ..."):
        one_thread()
        adviser = campaign.adviser()
        found = [adviser.predict(design, allow_outside) for design in designs]
    if output is not None:
        write_table(as_table(found), output)
        out.show(f"Wrote {plural(len(found), 'prediction')} to {output}.")
    elif not out.as_json:
        typer.echo(to_csv(as_table(found)), nl=False)
    out.result({"predictions": [each.to_dict() for each in found], "file": output})


# -- the report


def report(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; default: beside the file.")
    ] = None,
    given: WithGiven = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page that shows what was found; it works offline and can be sent by mail."""
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.advice import check_given
        from airbo.lab.report import write_report

        if not campaign.status().n_ok:
            raise CampaignError("There is nothing to report yet: no experiment gave a value.")
        path = output or file.with_suffix(".html")
        one_thread()
        settings, record = campaign.settings, campaign.record()
        known = check_given(settings, read_given(settings, given))
        if others := [name for name in known if name not in settings.space.environment]:
            raise CampaignError(f"A report is about all values of {', '.join(others)}.")
        write_report(
            campaign.optimizer(record),
            path,
            title=settings.name,
            units=settings.units,
            date=datetime.date.today(),
            numbers=[e.number for e in campaign.modelled(record)],
            record=record,
            given=known,
            plausible=settings.plausible,
        )
        out.show(f"Wrote {path}.")
        out.result({"file": path})
