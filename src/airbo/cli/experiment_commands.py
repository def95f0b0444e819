"""Commands about experiments: ask, tell, recommend."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    from airbo.campaign import Campaign, Settings, Told
    from airbo.optimizer import Recommendation
    from airbo.optimizer.handover import Handover
    from airbo.optimizer.outlook import Outlook


def ask(
    n: Annotated[int, typer.Option("-n", help="How many designs.", min=1)] = 1,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Choose the next designs to try; what is pending is taken into account."""
    with reporting(as_json) as out:
        from airbo.cli.views import design_table

        campaign = open_campaign(file)
        for given_up in campaign.tidy():
            out.note(f"Experiment {given_up.number} was not answered in time and is given up.")
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
        bool, typer.Option("--not-measured", help="Drop the executed inputs that were told.")
    ] = False,
    uncertainty: Annotated[
        str | None, typer.Option(help="TOML: what this experiment was made under.")
    ] = None,
    correct: Annotated[
        bool,
        typer.Option("--correct", help="Replace what was told; the rest stays as it was."),
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

        campaign = open_campaign(file)
        space = campaign.settings.space
        report = report_in(words, space, campaign.settings.outcomes)
        measured = named_values(executed or [], space)
        if measured and len(report.outcomes) > 1:
            raise CampaignError("--executed is for one experiment at a time.")
        if measured and not_measured:
            raise CampaignError("--executed and --not-measured contradict each other.")
        under = read_under(campaign.settings, uncertainty)
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
    correct: Annotated[bool, typer.Option("--correct", help="Replace what was told.")] = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report experiments that gave no value.

    A failed experiment was tried: the model looks elsewhere for a while. One that was given up says
    nothing about its design.
    """
    with reporting(as_json) as out:
        campaign = open_campaign(file)
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

        campaign = open_campaign(file)
        now, settings = campaign.status(), campaign.settings
        out.show(
            f"Campaign {settings.name!r}: {now.n_ok} experiments with a value, {now.n_failed} "
            f"failed, {now.n_given_up} given up, {len(now.pending)} pending."
        )
        if now.n_excluded:
            out.show(f"{now.n_excluded} of them excluded: the model does not know them.")
        if now.best is not None:
            value = value_with_unit(settings, now.best.value)
            design = assignments(settings.space, now.best.design)
            out.show(f"Best observed: {value} in experiment {now.best.number} ({design}).")
        if now.pending:
            out.show(
                design_table(settings, now.pending, title="Pending: airbo tell, or airbo fail")
            )
        if now.n_ok:
            out.show("What more experiments can bring: airbo recommend.")
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


def show_compromise(
    out: Output, settings: "Settings", best: "Recommendation", handed: "Handover"
) -> None:
    """Say which design to use where there are several outcomes, and what to expect of each."""
    from dataclasses import asdict

    from airbo.cli.views import outcome_line
    from airbo.optimizer.outlook_words import MEAN_ONLY
    from airbo.words import assignments

    out.show(f"Use {assignments(settings.space, best.design)}. {best.reason}")
    for name, estimate in best.outcomes.items():
        out.show(outcome_line(settings, name, estimate))
    out.show(
        "Values are means over where the design lands; ± is one standard deviation of what the "
        f"model does not know. {MEAN_ONLY}"
    )
    found = {name: asdict(estimate) for name, estimate in best.outcomes.items()}
    out.result({"design": best.design, "outcomes": found, "holds": best.holds,
                "reason": best.reason, **show_handover(out, settings, handed)})  # fmt: skip


def show_handover(out: Output, settings: "Settings", handed: "Handover") -> dict[str, Any]:
    """Say how far parameters may be set elsewhere, and which error to pay for; return both."""
    from airbo.optimizer.handover_words import budget_sentences, window_sentences

    units = {name: outcome.unit for name, outcome in (settings.named or {}).items()}
    if handed.window is not None:
        out.show(*window_sentences(handed.window, settings.space))
    for budget in handed.budgets:
        name = budget.outcome or settings.value_name
        out.show(*budget_sentences(budget, name, units.get(name, settings.value_unit)))
    return handed.to_dict()


def recommend(
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Look at all designs, not only those tried.")
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(help="A difference of values that does not matter to you.", min=0),
    ] = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say which design to use, what to expect of it, and whether more experiments are worth it."""
    with reporting(as_json) as out:
        from airbo import measures
        from airbo.cli.views import what_to_expect
        from airbo.optimizer.outlook_words import MEAN_ONLY
        from airbo.words import assignments

        campaign = open_campaign(file)
        settings, outlook = campaign.settings, None
        policy: Literal["anywhere"] | None = "anywhere" if anywhere else None
        with out.working("Fitting the model and looking ahead ..."):
            one_thread()
            if settings.measure == measures.Mean() and settings.named is None:
                # what lies ahead is known of expected values
                outlook = campaign.look_ahead(tolerance, policy)
            best = outlook.recommendation if outlook else campaign.recommend(policy)
            handed = campaign.handover(best.design)
        if settings.named is not None:
            return show_compromise(out, settings, best, handed)
        out.show(f"Use {assignments(settings.space, best.design)}.")
        out.show(what_to_expect(settings, best))
        data = {"design": best.design, "mean": best.mean, "std": best.std,
                "unit": settings.value_unit}  # fmt: skip
        if outlook is not None:
            from airbo.optimizer.outlook_words import sentences

            out.show(*sentences(outlook, settings.space, settings.value_name, settings.value_unit))
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
