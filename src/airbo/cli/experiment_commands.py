"""Commands about experiments: ask, tell, status."""

from typing import TYPE_CHECKING, Annotated

import typer

from airbo.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    Yes,
    as_data,
    insisting,
    one_thread,
    open_campaign,
    read_under,
    reporting,
)

if TYPE_CHECKING:
    from airbo.campaign import Campaign, Told


def ask(
    n: Annotated[int, typer.Option("-n", help="How many designs.", min=1)] = 1,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Choose the next designs to try; what is pending is taken into account."""
    with reporting(as_json) as out:
        from airbo.cli.views import design_table

        campaign = open_campaign(file, out)
        for given_up in campaign.tidy():
            out.note(f"Experiment {given_up.number} was not reported in time, so airbo gave it up.")
        with out.working("Choosing a design ..." if n == 1 else f"Choosing {n} designs ..."):
            one_thread()
            asked = campaign.ask(n)
        out.show(design_table(campaign.settings, asked, title="Try these designs"))
        first = asked[0].number
        named = campaign.settings.outcomes or {}
        value = " ".join(f"{name}=VALUE" for name in named) or "VALUE"
        out.show(f"Then: airbo tell {first} {value}   (or, without a value: airbo fail {first})")
        out.result({"asked": [as_data(e) for e in asked]})


def tell(
    words: Annotated[
        list[str],
        typer.Argument(
            help="NUMBER VALUE, NUMBER=VALUE ..., NAME=VALUE ... VALUE, or, where you set another "
            "value than asked, NUMBER NAME=VALUE ... VALUE. With outcomes: NUMBER OUTCOME=VALUE ..."
        ),
    ],
    executed: Annotated[
        list[str] | None, typer.Option(help="A measured executed input: NAME=VALUE.")
    ] = None,
    not_measured: Annotated[
        bool, typer.Option("--not-measured", help="Drop the executed inputs that you reported.")
    ] = False,
    uncertainty: Annotated[
        str | None,
        typer.Option(help="The uncertainty of this experiment, as TOML, if not that of the file."),
    ] = None,
    correct: Annotated[
        bool,
        typer.Option("--correct", help="Replace the earlier report; the rest stays as it was."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Another experiment with the same design and value.")
    ] = False,
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="The design may lie outside the ranges.")
    ] = False,
    yes: Yes = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report what experiments gave. The same report twice counts once."""
    with reporting(as_json) as out:
        from airbo.campaign.errors import CampaignError
        from airbo.cli.telling import named_values, report_in

        campaign = open_campaign(file, out)
        space = campaign.settings.space
        names = campaign.settings.outcomes, campaign.settings.value_name
        report = report_in(words, space, *names)
        measured = named_values(executed or [], space)
        if measured and len(report.outcomes) > 1:
            raise CampaignError("--executed is for one experiment at a time.")
        if measured and not_measured:
            raise CampaignError("--executed and --not-measured contradict each other.")
        under = read_under(campaign.settings, uncertainty, out)
        told = insisting(out, yes, lambda sure: campaign.tell_all(
            report.outcomes, design=report.design, uncertainty=under,
            executed=measured or ({} if not_measured else None),
            correct=correct, again=again, allow_outside=allow_outside, sure=sure,
        ))  # fmt: skip
        show_told(out, campaign, told)


def fail(
    numbers: Annotated[list[int], typer.Argument(help="Numbers of experiments.", min=0)],
    gave_up: Annotated[
        bool, typer.Option("--gave-up", help="The experiment was not run and will not be.")
    ] = False,
    infeasible: Annotated[
        bool, typer.Option("--infeasible", help="It failed because the design cannot be used.")
    ] = False,
    correct: Annotated[bool, typer.Option("--correct", help="Replace the earlier report.")] = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report experiments that gave no value.

    A failed experiment was tried: the model looks elsewhere for a while. One that was given up says
    nothing about its design.
    """
    with reporting(as_json) as out:
        campaign = open_campaign(file, out)
        if gave_up:
            told = campaign.give_up_all(numbers, correct=correct)
        else:
            failed = [(n, None) for n in numbers]
            told = campaign.tell_all(failed, correct=correct, infeasible=infeasible)
        show_told(out, campaign, told)


def show_told(out: Output, campaign: "Campaign", told: "list[Told]") -> None:
    """Say what telling did."""
    from airbo.cli.views import outcome_with_unit
    from airbo.words import shown

    settings = campaign.settings
    for t in told:
        e = t.experiment
        outcome = outcome_with_unit(settings, e)
        words = {
            "told": f"Experiment {e.number}: {outcome}.",
            "already told": f"Experiment {e.number} was told before: {outcome}. Nothing changed.",
            "corrected": f"Experiment {e.number} is corrected: {', '.join(t.changes)}.",
            "added": f"Added as experiment {e.number}: {outcome}.",
        }
        out.show(words[t.done])
        if t.done == "corrected" and e.executed and t.before and t.before.executed == e.executed:
            kept = ", ".join(f"{name} = {shown(value)}" for name, value in e.executed.items())
            out.show(f"The executed input stays as it was measured: {kept}.")
        elif t.done == "told" and t.before is not None:
            out.show(f"Changed: {', '.join(t.changes)}.")
    out.result(
        {"told": [{**as_data(t.experiment), "done": t.done, "changes": t.changes} for t in told]}
    )


def status(file: File = DEFAULT, as_json: AsJson = False) -> None:
    """Say where the campaign stands: what is done, what is pending, what has changed."""
    with reporting(as_json) as out:
        from airbo.cli.views import design_table, value_with_unit
        from airbo.words import assignments

        campaign = open_campaign(file, out)
        now, settings = campaign.status(), campaign.settings
        experiments = "experiment" if now.n_ok == 1 else "experiments"
        out.show(
            f"Campaign {settings.name!r}: {now.n_ok} {experiments} with a value, {now.n_failed} "
            f"failed, {now.n_given_up} given up, {len(now.pending)} pending."
        )
        if now.n_excluded:
            out.show(f"{now.n_excluded} of them excluded from the model.")
        if now.best is not None:
            value = value_with_unit(settings, now.best.value)
            design = assignments(settings.space, now.best.design)
            out.show(f"Best observed: {value} in experiment {now.best.number} ({design}).")
        if now.pending:
            out.show(
                design_table(settings, now.pending, title="Pending: airbo tell, or airbo fail")
            )
        if now.n_ok and campaign.adviser().knows_outlook:
            out.show("Is it worth going on? airbo recommend says what more experiments can bring.")
        for late in now.overdue:
            out.note(f"Experiment {late.number} is overdue; the next `airbo ask` gives it up.")
        for note in now.notes:
            out.note(note)
        out.result(
            {
                "name": settings.name,
                "ok": now.n_ok,
                "failed": now.n_failed,
                "given_up": now.n_given_up,
                "excluded": now.n_excluded,
                "pending": [as_data(e) for e in now.pending],
                "overdue": [e.number for e in now.overdue],
                "best_observed": None if now.best is None else as_data(now.best),
                "notes": now.notes,
            }
        )
