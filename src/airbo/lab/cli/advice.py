"""Commands that say what was found: recommend, front, predict, report."""

import datetime
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from airbo.lab.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    one_thread,
    open_campaign,
    reporting,
)

if TYPE_CHECKING:
    import pandas as pd

    from airbo.analysis import Handover, Outlook
    from airbo.lab import Campaign, Settings
    from airbo.lab.prediction import Prediction
    from airbo.optimizer import Recommendation

Anywhere = Annotated[
    bool | None,
    typer.Option(
        "--anywhere/--tried",
        help="Look at all designs, or only at those tried. Default: those tried, unless another "
        "one is clearly better.",
    ),
]
_MEANS = (
    "Values are averages over where the design lands, unless another measure is named (± one "
    "standard deviation, model uncertainty)."
)


def policy_of(anywhere: bool | None) -> Literal["observed", "anywhere"] | None:
    """Return where to look for designs."""
    if anywhere is None:
        return None
    return "anywhere" if anywhere else "observed"


def show_compromise(
    out: Output, settings: "Settings", best: "Recommendation", handed: "Handover"
) -> None:
    """Say which design to use where there are several outcomes, and what to expect of each."""
    from airbo.analysis.words import MEAN_ONLY
    from airbo.lab.cli.views import BRACKETS, outcome_line
    from airbo.outcomes import objectives
    from airbo.words import assignments

    out.show(f"Use {assignments(settings.space, best.design)}. {best.reason}".strip())
    for name, estimate in best.outcomes.items():
        out.show(outcome_line(settings, name, estimate))
    has_limits = any(estimate.capability for estimate in best.outcomes.values())
    out.show(" ".join([_MEANS, *([BRACKETS] if has_limits else []), MEAN_ONLY]))
    if len(objectives(settings.outcomes)) > 1:
        out.show("The other designs to choose from: airbo front.")
    out.result({**as_recommended(best), **show_handover(out, settings, handed)})


def show_handover(out: Output, settings: "Settings", handed: "Handover") -> dict[str, Any]:
    """Print the operating window and the tolerance budgets; return both."""
    from airbo.analysis.words import budget_sentences, window_sentences

    if handed.window is not None:
        out.show(*window_sentences(handed.window, settings.space))
    for budget in handed.budgets:
        name = budget.outcome or settings.value_name
        out.show(*budget_sentences(budget, name, settings.units.get(name)))
    return handed.to_dict()


def as_recommended(best: "Recommendation") -> dict[str, Any]:
    """Describe for programs what to expect of a design with several outcomes."""
    found = {name: asdict(estimate) for name, estimate in best.outcomes.items()}
    return {"design": best.design, "outcomes": found, "holds": best.holds, "reason": best.reason}


def recommend(
    anywhere: Anywhere = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="A difference of values that does not matter to you.", min=0),
    ] = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say which design to use, what to expect of it, and whether more experiments are worth it."""
    with reporting(as_json) as out:
        campaign = open_campaign(file, out)
        outlook, policy = None, policy_of(anywhere)
        with out.working("Fitting the model and looking ahead ..."):
            one_thread()
            adviser = campaign.adviser()
            if adviser.knows_outlook:
                outlook = adviser.look_ahead(tolerance, policy)
            best = outlook.recommendation if outlook else adviser.recommend(policy)
            handed = adviser.handover(best.design)
        if adviser.is_about_one_value:
            show_best(out, campaign.settings, best, outlook, handed)
        else:
            show_compromise(out, campaign.settings, best, handed)


def show_best(
    out: Output,
    settings: "Settings",
    best: "Recommendation",
    outlook: "Outlook | None",
    handed: "Handover",
) -> None:
    """Say which design to use where one value decides, and what to expect of it."""
    from airbo import measures
    from airbo.analysis.words import MEAN_ONLY, outlook_sentences
    from airbo.lab.cli.views import unit_of_measure, what_to_expect
    from airbo.words import assignments

    out.show(f"Use {assignments(settings.space, best.design)}.")
    out.show(what_to_expect(settings, best))
    unit = unit_of_measure(settings.measure, settings.value_unit)
    data: dict[str, Any] = {"design": best.design, "mean": best.mean, "std": best.std, "unit": unit}
    data["outcomes"] = as_recommended(best)["outcomes"]
    if outlook is not None:
        out.show(
            *outlook_sentences(outlook, settings.space, settings.value_name, settings.value_unit)
        )
        data["outlook"] = as_outlook(outlook)
    else:
        out.show(MEAN_ONLY)
        data["measure"] = measures.to_text(settings.measure)
    if best.capability is not None:
        data["capability"] = best.capability.to_dict()
    out.result({**data, **show_handover(out, settings, handed)})


def as_outlook(outlook: "Outlook") -> dict[str, Any]:
    """Describe for programs what further experiments can bring."""
    lucky = outlook.luckiest
    return {
        "gains": {str(n): gain for n, gain in outlook.gains.items()},
        "tolerance": outlook.tolerance,
        "probability": outlook.probability,
        "n_values": outlook.n_values,
        "spread": outlook.spread,
        "n_confirmations": outlook.n_confirmations,
        "luckiest": None if lucky is None else asdict(lucky),
    }


# -- several objectives


def front_(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv or .xlsx file; -: print CSV."),
    ] = None,
    anywhere: Anywhere = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """List the designs to choose from if two or three objectives conflict.

    No other design is better by all objectives than one on the front, and every design on it keeps
    the limits of the file. The first row is the best by the first objective.
    """
    with reporting(as_json) as out:
        from airbo.lab.errors import CampaignError
        from airbo.outcomes import objectives

        campaign = open_campaign(file, out)
        settings = campaign.settings
        if len(objectives(settings.outcomes)) < 2:
            raise CampaignError(
                f"The campaign has one objective, {settings.value_name}, so that one design is the "
                "best: airbo recommend. A front needs two or three outcomes with a goal."
            )
        with out.working("Fitting the models and looking for the front ..."):
            one_thread()
            adviser = campaign.adviser()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ``recommend`` says the same of an empty front
                found = adviser.front(policy_of(anywhere))
            best = adviser.recommend(policy_of(anywhere))
        if output is not None:
            _write_front(settings, found, output, out)
        else:
            _show_front(settings, found, best, out)
        rows = [as_recommended(each) for each in found]
        out.result({"front": rows, "compromise": best.design, "reason": best.reason,
                    "file": output})  # fmt: skip


def _show_front(
    settings: "Settings", found: "Sequence[Recommendation]", best: "Recommendation", out: Output
) -> None:
    from airbo.lab.cli.views import front_table

    if not found:
        out.show(
            "The front is empty: no design is known yet to keep all limits. airbo recommend names "
            "the one that is most likely to."
        )
        return
    out.show(front_table(settings, found, best), _MEANS, best.reason)


def _write_front(
    settings: "Settings", found: "Sequence[Recommendation]", path: Path, out: Output
) -> None:
    from airbo.lab.tables import to_csv, write_table

    table = _front_frame(settings, found)
    if str(path) == "-":
        if not out.as_json:
            typer.echo(to_csv(table), nl=False)
        return
    write_table(table, path)
    out.show(f"Wrote {len(table)} designs to {path}.")


def _front_frame(settings: "Settings", found: "Sequence[Recommendation]") -> "pd.DataFrame":
    """Return a table of the front: the design, what to expect of each outcome, and how surely."""
    import pandas as pd

    rows = []
    for best in found:
        row: dict[str, Any] = dict(best.design)
        for name, estimate in best.outcomes.items():
            known = asdict(replace(estimate, capability=None)).items()
            numbers = {name if key == "mean" else f"{name}_{key}": v for key, v in known}
            row |= {key: value for key, value in numbers.items() if value is not None}
        rows.append(row | {"holds": best.holds})
    columns = list(rows[0]) if rows else [*settings.space.names, *settings.outcomes]
    return pd.DataFrame(rows, columns=columns)


# -- what to expect at given settings


def predict(
    settings_: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=VALUE]...",
            help="What to set; the others are as recommended. A parameter may be named several "
            "times: then all combinations are predicted.",
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="A CSV or Excel file with a design in each row.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv or .xlsx file; -: print CSV."),
    ] = None,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Designs may lie outside the ranges.")
    ] = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say what to expect at settings of your choice, tried or not.

    Of every outcome: the expected value, what a single run will give, how well limits are kept,
    with 90% intervals; and how far the nearest experiments are.
    """
    with reporting(as_json) as out:
        campaign = open_campaign(file, out)
        settings = campaign.settings
        with out.working("Fitting the model ..."):
            one_thread()
            designs = designs_in(settings, settings_ or [], table, allow_outside)
            found = campaign.adviser().predict(designs, allow_outside)
        if output is not None:
            _write_predictions(found, output, out)
        else:
            _show_predictions(settings, found, designs, out)
        out.result({"predictions": [each.to_dict() for each in found], "file": output})


def designs_in(
    settings: "Settings", words: Sequence[str], table: Path | None, allow_outside: bool
) -> list[dict[str, Any]]:
    """Read designs from words such as ``speed=120``, or from a table."""
    from airbo.lab.errors import CampaignError
    from airbo.lab.tables import read_designs
    from airbo.words import typed_value

    if table is not None and words:
        raise CampaignError("Name settings, or a table: not both.")
    if table is not None:
        return read_designs(settings, table, allow_outside)
    given: dict[str, list[Any]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise CampaignError(f"Settings are written as name=value, got {word!r}.")
        try:
            given.setdefault(name, []).append(typed_value(settings.space, name, text))
        except ValueError as error:
            raise CampaignError(f"{word}: {error}") from None
    return [dict(zip(given, values, strict=True)) for values in product(*given.values())]


def _show_predictions(
    settings: "Settings",
    found: "Sequence[Prediction]",
    designs: Sequence[dict[str, Any]],
    out: Output,
) -> None:
    from airbo.lab.cli.views import prediction_table
    from airbo.lab.prediction import sentences
    from airbo.words import assignments, listed

    others = [n for n in settings.space.names if any(n not in design for design in designs)]
    as_best = f" ({listed(others)} as recommended)" if others else ""
    if len(found) == 1:
        out.show(f"At {assignments(settings.space, found[0].design)}{as_best}:")
        out.show(*sentences(settings, found[0]))
    else:
        out.show(prediction_table(settings, found))
        if others:
            out.show(f"As recommended: {listed(others)}.")
        if any(each.is_far for each in found):
            out.show("far: no experiment is near, so the model's general beliefs decide.")
    means = "Brackets are 90% intervals" if len(found) == 1 else "± one standard deviation"
    out.show(f"{means} (model uncertainty); values are those in use.")


def _write_predictions(found: "Sequence[Prediction]", path: Path, out: Output) -> None:
    from airbo.lab.prediction import as_table
    from airbo.lab.tables import to_csv, write_table
    from airbo.words import plural

    table = as_table(found)
    if str(path) == "-":
        if not out.as_json:
            typer.echo(to_csv(table), nl=False)
        return
    write_table(table, path)
    out.show(f"Wrote {plural(len(table), 'prediction')} to {path}.")


# -- the report


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
        from airbo.lab.errors import CampaignError

        campaign = open_campaign(file, out)
        if not campaign.status().n_ok:
            raise CampaignError("There is nothing to report yet: no experiment gave a value.")
        path = output or file.with_suffix(".html")
        _write_page(campaign, path, history, out)
        out.show(f"Wrote {path}.")
        out.result({"file": path})


def _write_page(campaign: "Campaign", path: Path, history: int, out: Output) -> None:
    """Write the report of a campaign."""
    from airbo.lab.errors import StorageError
    from airbo.lab.report import write_report

    one_thread()
    settings, record = campaign.settings, campaign.record()
    try:
        write_report(
            campaign.optimizer(record),
            path,
            title=settings.name,
            units=settings.units,
            date=datetime.date.today(),
            history=history,
            numbers=[e.number for e in campaign.modelled(record)],
            record=record,
            progress=out.err.is_terminal and not out.as_json,
        )
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from None
