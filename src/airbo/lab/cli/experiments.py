"""Commands about experiments: ask, tell, fail, status; undo, exclude, include, note; run."""

import shlex
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airbo.lab.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    Outside,
    Under,
    WithGiven,
    Yes,
    insisting,
    one_thread,
    option,
    read_each,
    read_given,
    read_under,
    working_on,
)
from airbo.lab.errors import CampaignError
from airbo.lab.fields import FIELDS
from airbo.words import (
    assignments,
    measured,
    nearest,
    pairs,
    plural,
    result,
    shown,
    typed_number,
    typed_value,
)

if TYPE_CHECKING:
    from airbo.lab import Campaign, Experiment, Told
    from airbo.lab.run import CommandResult
    from airbo.space import Space

Correct = Annotated[bool, option("correct")]
Number = Annotated[int, typer.Argument(help=FIELDS["trial"].says, min=0)]
Why = Annotated[str | None, option("why")]


def ask(
    n: Annotated[int, option("n", "-n", max=None)] = 1,
    given: WithGiven = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Choose the next designs to try; what is pending is taken into account."""
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.cli.views import design_table
        from airbo.lab.data import experiment_data

        with out.working("Choosing a design ..." if n == 1 else f"Choosing {n} designs ..."):
            one_thread()
            asked = campaign.ask(n, given=read_given(campaign.settings, given))
        settings = campaign.settings
        out.show(design_table(settings, asked, title="Try these designs"))
        out.show(*(f"{e.number}: {e.reason}" for e in asked))
        first = asked[0].number
        told = [f"{name}=VALUE" for name in settings.outcomes]
        told = ["VALUE"] if settings.is_single else told
        for name in settings.space.environment:
            told.append(f"{name}={shown(asked[0].given.get(name, 'MEASURED'))}")
        value = shlex.join(told)  # a name may have blanks
        out.show(f"Then: airbo tell {first} {value}   (or, without a value: airbo fail {first})")
        out.result({"asked": [experiment_data(settings, e) for e in asked]})


def tell(
    words: Annotated[
        list[str],
        typer.Argument(
            help="NUMBER VALUE, NUMBER=VALUE ..., NAME=VALUE ... VALUE, or, if you set another "
            "value than asked, NUMBER NAME=VALUE ... VALUE. With outcomes: NUMBER OUTCOME=VALUE "
            "... What you measured of the environment is named in the same way: humidity=63."
        ),
    ],
    executed: Annotated[list[str] | None, option("executed")] = None,
    noise: Annotated[list[str] | None, option("noise")] = None,
    not_measured: Annotated[
        bool, typer.Option("--not-measured", help="Drop the executed inputs that you reported.")
    ] = False,
    uncertainty: Under = None,
    correct: Correct = False,
    again: Annotated[bool, option("again")] = False,
    allow_outside: Outside = False,
    note: Annotated[str | None, option("note")] = None,
    yes: Yes = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report what experiments gave. The same report twice counts once."""
    with working_on(file, as_json) as (out, campaign):
        space = campaign.settings.space
        values, moved, around = report_in(words, space, campaign.settings.units)
        measured = read_given(campaign.settings, executed)
        if measured and len(values) > 1:
            raise CampaignError("--executed is for one experiment at a time.")
        measured |= around
        if measured and not_measured:
            raise CampaignError("--executed and --not-measured contradict each other.")
        under = read_under(campaign.settings, uncertainty, out) if uncertainty else None
        told = insisting(out, yes, lambda sure: campaign.tell_all(
            values, design=moved or None, uncertainty=under,
            executed=measured or ({} if not_measured else None),
            noise=_noise(noise or [], campaign.settings.units),
            correct=correct, again=again, allow_outside=allow_outside, sure=sure, note=note,
        ))  # fmt: skip
        show_told(out, campaign, told)


def fail(
    numbers: Annotated[list[int], typer.Argument(help="Numbers of experiments.", min=0)],
    gave_up: Annotated[bool, option("gave_up")] = False,
    infeasible: Annotated[bool, option("infeasible")] = False,
    why: Why = None,
    correct: Correct = False,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report experiments that gave no value.

    A failed experiment was tried: the model looks elsewhere for a while. An abandoned experiment
    does not inform the model.
    """
    with working_on(file, as_json) as (out, campaign):
        failed = [(n, None) for n in numbers]
        told = campaign.tell_all(
            failed, correct=correct, infeasible=infeasible, gave_up=gave_up, note=why
        )
        show_told(out, campaign, told)
        if why is not None:
            out.show(f"Noted: {told[0].experiment.notes[-1]}")


def show_told(out: Output, campaign: "Campaign", told: "list[Told]") -> None:
    """Say what telling did."""
    from airbo.lab.data import told_data, told_words

    settings = campaign.settings
    for t in told:
        e = t.experiment
        out.show(told_words(settings, t))
        if t.done == "corrected" and e.executed and t.before and t.before.executed == e.executed:
            out.show(f"The executed input stays as it was measured: {pairs(e.executed)}.")
        elif t.done == "told" and t.before is not None and t.before.is_pending:
            out.show(f"Changed: {', '.join(t.changes)}.")
    out.result({"told": told_data(settings, told)})


def status(file: File = DEFAULT, as_json: AsJson = False) -> None:
    """Say where the campaign stands: what is done, and what is pending."""
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.cli.views import design_table
        from airbo.lab.data import status_data

        now, settings = campaign.status(), campaign.settings
        experiments = plural(now.n_ok, "experiment")
        out.show(
            f"Campaign {settings.name!r}: {experiments} with a value, {now.n_failed} "
            f"failed, {now.n_given_up} given up, {len(now.pending)} pending."
        )
        if now.n_excluded:
            out.show(f"{now.n_excluded} of them excluded from the model.")
        if now.best is not None:
            value = result(now.best, settings.units)
            design = assignments(settings.space, now.best.design)
            called = settings.best_called(now.best).capitalize()
            out.show(f"{called}: {value} in experiment {now.best.number} ({design}).")
        if now.pending:
            out.show(
                design_table(settings, now.pending, title="Pending: airbo tell, or airbo fail")
            )
        if now.n_ok and campaign.adviser().knows_outlook:
            out.show("Is it worth going on? airbo recommend says what more experiments can bring.")
        for e, missing in now.waiting:
            out.show(f"Experiment {e.number} waits for a measurement: {', '.join(missing)}.")
        out.result(status_data(settings, now))


def undo(file: File = DEFAULT, as_json: AsJson = False) -> None:
    """Take back the last tell, fail, import, correction, exclusion or note; again: the one before.

    An experiment that airbo asked for becomes pending again. The history keeps what you take back.
    """
    with working_on(file, as_json) as (out, campaign):
        taken_back = campaign.undo()
        for change in taken_back:
            out.show(f"Taken back: {change}.")
        numbers = {n for change in taken_back for n in change.numbers}
        pending = [e.number for e in campaign.record().pending if e.number in numbers]
        if pending:
            out.show(f"Pending again: {', '.join(map(str, pending))}.")
        data = [
            {"what": c.what, "experiments": list(c.numbers), "text": c.text, "by": c.by, "at": c.at}
            for c in taken_back
        ]
        out.result({"undone": data, "pending": pending})


def exclude(
    number: Number,
    why: Annotated[str, option("why")],
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Keep an experiment, but leave it out of the model."""
    with working_on(file, as_json) as (out, campaign):
        found = campaign.exclude(number, why)
        _show(
            out, campaign, found, f"Experiment {number} is left out of the model: {found.excluded}."
        )


def include(number: Number, file: File = DEFAULT, as_json: AsJson = False) -> None:
    """Include an experiment in the model again that you excluded."""
    with working_on(file, as_json) as (out, campaign):
        found = campaign.include(number)
        _show(out, campaign, found, f"Experiment {number} counts in the model again.")


def note(
    number: Number,
    text: Annotated[str, typer.Argument(help="The text of the note.")],
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write a note on an experiment; the model does not read it."""
    with working_on(file, as_json) as (out, campaign):
        found = campaign.note(number, text)
        _show(out, campaign, found, f"Experiment {number}: {found.notes[-1]}")


def _show(out: Output, campaign: "Campaign", experiment: "Experiment", text: str) -> None:
    from airbo.lab.data import experiment_data

    out.show(text)
    out.result({"experiment": experiment_data(campaign.settings, experiment)})


# -- unattended

AS_CTRL_C = ("SIGTERM", "SIGHUP")
"""Signals that do what Ctrl-C does; Windows lacks one."""


def run(
    command: Annotated[
        str,
        typer.Option(
            help="The command that runs one experiment, with the names of parameters in braces."
        ),
    ],
    budget: Annotated[
        int, typer.Option(help="Total number of experiments in the campaign.", min=1)
    ],
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds after which an experiment counts as failed.", min=0),
    ] = None,
    max_failures: Annotated[
        int, typer.Option(help="Stop after this many failures in a row.", min=1)
    ] = 5,
    given: WithGiven = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Do experiments unattended: ask, run the command, tell, until the budget is used.

    The last line that the command prints is the value. Where the file has several outcomes, it is
    JSON: {"strength": 410, "leak": 0.05}; leave out what was not measured. An exit code other than
    0, or a time-out, is a failed experiment. No shell sees the command. After a crash, start it
    again: it continues. Several machines can run it at the same time.
    """
    with working_on(file, as_json) as (out, campaign):
        from airbo.lab.run import Command, run_unattended

        settings = campaign.settings
        known = read_given(settings, given)
        one_thread()

        def show(e: "Experiment", result: "CommandResult", n_done: int) -> None:
            value = result.value
            answer = measured(value, settings.units) if value else f"failed, {result.reason}"
            design = assignments(settings.space, e.design)
            out.err.print(f"{n_done}/{budget}  {e.number}: {design} → {answer}", markup=False)

        for name in AS_CTRL_C:
            if number := getattr(signal, name, None):
                out.until_end.callback(signal.signal, number, signal.signal(number, _interrupt))
        doing = Command(command, settings.space, timeout, tuple(settings.outcomes))
        steps = run_unattended(
            campaign, doing, budget, max_failures=max_failures, given=known, on_step=show
        )
        n_failed = sum(result.value is None for _, result in steps)
        out.show(f"Done: {plural(len(steps), 'experiment')} here, {n_failed} of them failed.")
        done = [
            {
                "trial": e.number,
                "value": (result.value or {}).get(settings.value_name),
                **({"outcomes": result.value} if result.value else {}),
                "reason": result.reason,
            }
            for e, result in steps
        ]
        out.result({"done": done})


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


# -- what stands behind ``airbo tell``

USAGE = (
    "write: airbo tell 3 1.25, airbo tell 3=1.25 4=1.31, airbo tell speed=120 depth=0.5 1.25, or, "
    "if you set another speed than asked in experiment 3, airbo tell 3 speed=120 1.25"
)


Reports = list[tuple[int | dict[str, Any], dict[str, float]]]
Report = tuple[Reports, dict[str, Any], dict[str, float]]
"""Experiments by number, or a design, with what was measured, by name; parameters that were set
otherwise than asked; and what was measured of the environment."""


def report_in(words: Sequence[str], space: "Space", units: Mapping[str, str | None]) -> Report:
    """Read the words of ``airbo tell``.

    Args:
        words: What stands behind it.
        space: The parameters.
        units: The outcomes and their units. A single one need not be named.
    """
    try:
        return _report(words, space, units)
    except ValueError as error:
        text = str(error)
        if any(word in text for word in ("'nan'", "'inf'", "'-inf'", "'failed'", "'fail'")):
            leave_out = " Leave out what was not measured." if len(units) > 1 else ""
            text += f"{leave_out} For an experiment that gave no value: airbo fail NUMBER."
        raise CampaignError(text) from None


def _report(words: Sequence[str], space: "Space", units: Mapping[str, str | None]) -> Report:
    """Read a number or a design, and outcomes by name; or numbers with a bare value each."""
    named: dict[str, str] = {}
    bare: list[str] = []
    for word in words:
        name, equals, text = word.strip().partition("=")
        if equals and name in named:
            raise ValueError(f"{name!r} is named twice: which one counts?")
        if equals:
            named[name] = text
        else:
            bare.append(name)
    set_by_nobody = {name: named.pop(name) for name in space.environment if name in named}
    around, no_around = read_each(set_by_nobody, partial(typed_value, space.whole))
    only = next(iter(units)) if len(units) == 1 else ""
    if only and named and not no_around and all(map(_is_number, named)) and not bare:
        numbered = {int(n): typed_number(text, only, units[only]) for n, text in named.items()}
        return [(n, {only: v}) for n, v in numbered.items()], {}, around
    if only and only not in named and 1 <= len(bare) <= 2:
        named[only] = bare.pop()
    known = [*units, *space.whole.names]
    unknown = [f"Unknown name {n!r}{nearest(n, known)}" for n in named if n not in known]
    told = {name: named[name] for name in units if name in named}
    measured, no_values = read_each(told, lambda n, text: typed_number(text, n, units[n]))
    moved = {name: named[name] for name in space.names if name in named}
    design, no_settings = read_each(moved, partial(typed_value, space))
    if wrong := [*unknown, *no_around.values(), *no_values.values(), *no_settings.values()]:
        raise ValueError("\n".join(wrong))
    if measured and len(bare) == 1 and _is_number(bare[0]):
        return [(int(bare[0]), measured)], design, around
    if measured and design and not bare:
        return [(design, measured)], {}, around
    example = " ".join(f"{name}=1.25" for name in units)
    several = f"write: airbo tell 3 {example}; leave out what was not measured"
    raise ValueError(
        f"This is not understood: {' '.join(words)!r}. Please {USAGE if only else several}."
    )


def _is_number(text: str) -> bool:
    """Say whether this is the number of an experiment; ² is a digit too, but not for ``int``."""
    return text.isascii() and text.isdigit() and len(text) < 19


def _noise(words: Sequence[str], units: Mapping[str, str | None]) -> dict[str, float] | None:
    """Read the known noise of outcomes; that of a single one need not be named."""
    found = {}
    for word in words:
        name, equals, text = word.strip().rpartition("=")
        name = name if equals or len(units) > 1 else next(iter(units))
        if name not in units:
            raise CampaignError(f"--noise: unknown outcome {name!r}{nearest(name, units)}")
        try:
            found[name] = typed_number(text, "--noise", units[name])
        except ValueError as error:
            raise CampaignError(str(error)) from None
    return found or None
