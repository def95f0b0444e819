"""Commands about what was told before: take it back, leave it out, remark on it."""

from typing import TYPE_CHECKING, Annotated

import typer

from airbo.cli.command import DEFAULT, AsJson, File, Output, as_data, open_campaign, reporting

if TYPE_CHECKING:
    from airbo.campaign import Experiment

Number = Annotated[int, typer.Argument(help="The number of the experiment.", min=0)]


def undo(file: File = DEFAULT, as_json: AsJson = False) -> None:
    """Take back the last tell, fail, import, correction, exclusion or note; again: the one before.

    An experiment that was asked for is pending again. The history keeps what you take back.
    """
    with reporting(as_json) as out:
        campaign = open_campaign(file, out)
        taken_back = campaign.undo()
        for change in taken_back:
            out.show(f"Taken back: {change}.")
        numbers = {n for change in taken_back for n in change.numbers}
        pending = [e.number for e in campaign.experiments if e.is_pending and e.number in numbers]
        if pending:
            out.show(f"Pending again: {', '.join(map(str, pending))}.")
        data = [
            {"what": c.what, "experiments": list(c.numbers), "text": c.text, "by": c.by, "at": c.at}
            for c in taken_back
        ]
        out.result({"undone": data, "pending": pending})


def exclude(
    number: Number,
    why: Annotated[str, typer.Option(help="The reason, for the history.")],
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Keep an experiment, but leave it out of the model."""
    with reporting(as_json) as out:
        found = open_campaign(file, out).exclude(number, why)
        _show(out, found, f"Experiment {number} is left out of the model: {found.excluded}.")


def include(number: Number, file: File = DEFAULT, as_json: AsJson = False) -> None:
    """Include an experiment in the model again that you excluded."""
    with reporting(as_json) as out:
        found = open_campaign(file, out).include(number)
        _show(out, found, f"Experiment {number} counts in the model again.")


def note(
    number: Number,
    text: Annotated[str, typer.Argument(help="The text of the note.")],
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write a note on an experiment; the model does not read it."""
    with reporting(as_json) as out:
        found = open_campaign(file, out).note(number, text)
        _show(out, found, f"Experiment {number}: {found.notes[-1]}")


def _show(out: Output, experiment: "Experiment", text: str) -> None:
    out.show(text)
    out.result({"experiment": as_data(experiment)})
