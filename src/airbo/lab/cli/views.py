"""Tables for people."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

from airbo.lab.file import Settings
from airbo.lab.record import Experiment
from airbo.measures import InSpec, Mean, Target
from airbo.outcomes import Aim, Limit, expected_words
from airbo.words import parameter_rows, plus_minus, shown, with_unit

if TYPE_CHECKING:
    from airbo.optimizer import Recommendation
    from airbo.optimizer.recommendation import OutcomeEstimate

BRACKETS = "Brackets are 90% intervals (model uncertainty)."


def heading(name: str, unit: str | None) -> str:
    """Write a name with its unit, for the head of a column."""
    return f"{name} [{unit}]" if unit else name


def text_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int,
    is_drawn: bool = False,
) -> Table:
    """Make a table of texts; brackets in them are brackets, not markup.

    Args:
        title: What stands above it.
        header: One text per column.
        rows: The cells.
        left: How many of the last columns are not numbers and begin at the left.
        is_drawn: Whether the last column is a drawing, which is shown whole: the others are broken.
    """
    table = Table(title=Text(title), title_justify="left")
    for i, text in enumerate(header):
        justify: Literal["left", "right"] = "left" if i >= len(header) - left else "right"
        whole = is_drawn and i == len(header) - 1
        table.add_column(Text(text), justify=justify, no_wrap=whole)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def design_table(settings: Settings, experiments: Sequence[Experiment], *, title: str) -> Table:
    """List pending experiments, one per row, with units in the head."""
    names = [heading(name, settings.unit(name)) for name in settings.space.names]
    rows = [
        [str(e.number), *(shown(value) for value in e.design.values()), ago(e.age())]
        for e in experiments
    ]
    return text_table(title, ["trial", *names, "asked"], rows, left=0)


def outcome_line(settings: Settings, name: str, estimate: "OutcomeEstimate") -> str:
    """Say what to expect of one outcome, and how surely its limit is kept."""
    want, unit = settings.outcomes.get(name), settings.units.get(name)
    quality = "" if estimate.capability is None else estimate.capability.words
    if estimate.within is None and isinstance(want, Aim):
        measure = want.measure
        by = "" if isinstance(measure, Mean | InSpec | Target) else f", the {measure.words}"
        return f"{name}: {quality or expected_words(want, estimate, unit) + by}"
    if not isinstance(want, Limit):  # whether a design can be used
        return f"{name}: {estimate.within:.1%} of executed inputs work."
    return (
        f"{name}: {with_unit(plus_minus(estimate), unit)}. Required: {want.words(name, unit)}"
        f". Expect {quality}. The probability that the design meets this requirement is "
        f"{estimate.holds:.2f}."
    )


def front_table(
    settings: Settings, found: "Sequence[Recommendation]", compromise: "Recommendation"
) -> Table:
    """List the designs of a front, and mark the compromise."""
    wanted = settings.outcomes.items()
    names = [heading(name, settings.unit(name)) for name in settings.space.names]
    names += [heading(name, unit) for name, unit in settings.units.items()]
    rows = [
        [
            *(shown(value) for value in best.design.values()),
            *(expected_words(want, best.outcomes[name]) for name, want in wanted),
            "compromise" if best.design == compromise.design else "",
        ]
        for best in found
    ]
    return text_table("The front: designs to choose from", [*names, ""], rows, left=1)


def what_to_expect(settings: Settings, best: "Recommendation") -> str:
    """Say what to expect of a recommended design, by the measure of the campaign."""
    unknown = "(± one standard deviation, model uncertainty)."
    name, want, unit = settings.value_name, settings.measure, settings.value_unit
    if best.capability is not None:
        return f"Expect {best.capability.words}. {BRACKETS}"
    if isinstance(want, Mean):
        value = with_unit(plus_minus(best), unit)
        return f"Expected {name}: {value}, on average over where the design lands {unknown}"
    said = outcome_line(settings, name, best.outcomes[name])
    return f"{said}." if isinstance(want, Target) else f"{said} {unknown}"


def ago(age: timedelta) -> str:
    """Write how long ago something was.

    >>> ago(timedelta(minutes=3)), ago(timedelta(hours=30)), ago(timedelta(days=4))
    ('3 min ago', '30 h ago', '4 days ago')
    """
    minutes = age.total_seconds() / 60
    if minutes < 1:
        return "just now"
    if minutes < 120:
        return f"{minutes:.0f} min ago"
    return f"{minutes / 60:.0f} h ago" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days ago"


def parameter_table(settings: Settings) -> Table:
    """List the parameters and how accurately each is set."""
    hits = {"set in the experiments": settings.described_uncertainty}
    if settings.described_deployment is not None:
        hits["set in use"] = settings.described_deployment
    rows = parameter_rows(settings.space, *hits.values())
    header = ["name", "values", *hits]
    return text_table("Parameters", header, rows, left=len(header))
