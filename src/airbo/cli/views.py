"""Tables for people."""

from collections.abc import Sequence
from datetime import timedelta

from rich.table import Table
from rich.text import Text

from airbo.campaign.experiments import Experiment
from airbo.campaign.kinds import NamedUncertainties
from airbo.campaign.settings import Settings
from airbo.campaign.words import shown, with_unit
from airbo.parameters import Categorical, Float, Integer, Parameter
from airbo.uncertainty import Exact, InputUncertainty


def heading(name: str, unit: str | None) -> str:
    """Write a name with its unit, for the head of a column."""
    return f"{name} [{unit}]" if unit else name


def table_of(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Table:
    """Make a table of texts; brackets in them are brackets, not markup.

    Args:
        title: What stands above it.
        header: One text per column.
        rows: The cells.
        left: How many of the last columns are not numbers and begin at the left.
    """
    table = Table(title=Text(title), title_justify="left")
    for i, text in enumerate(header):
        table.add_column(Text(text), justify="left" if i >= len(header) - left else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def design_table(
    settings: Settings, experiments: Sequence[Experiment], *, title: str, outcome: bool = False
) -> Table:
    """List experiments, one per row, with units in the head."""
    names = [heading(name, settings.unit(name)) for name in settings.space.names]
    last = heading(settings.value_name, settings.value_unit) if outcome else "asked"
    rows = [
        [
            str(e.number),
            *(shown(value) for value in e.design.values()),
            (shown(e.value) or e.outcome) if outcome else ago(e.age()),
        ]
        for e in experiments
    ]
    return table_of(title, ["trial", *names, last], rows, left=0)


def value_with_unit(settings: Settings, value: float | None) -> str:
    """Write an observed value."""
    return with_unit(value, settings.value_unit)


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
    """List the parameters and how each is hit."""
    header = ["name", "type", "range", "hit in the experiments"]
    if settings.deployment is not None:
        header.append("hit in use")
    rows = []
    for name, parameter in settings.space.parameters.items():
        cells = [name, kind_of(parameter), range_of(parameter)]
        cells.append(hit(settings, settings.uncertainty, name))
        if settings.deployment is not None:
            cells.append(hit(settings, settings.deployment, name))
        rows.append(cells)
    return table_of("Parameters", header, rows, left=len(header))


def kind_of(parameter: Parameter) -> str:
    """Name the kind of a parameter."""
    return f"{parameter.kind}, logarithmic" if parameter.log else parameter.kind


def range_of(parameter: Parameter) -> str:
    """Write what values a parameter can have, with its unit."""
    if isinstance(parameter, Categorical):
        return ", ".join(map(str, parameter.choices))
    assert isinstance(parameter, Float | Integer)
    unit = f" {parameter.unit}" if parameter.unit else ""
    step = f", in steps of {parameter.step:g}{unit}" if parameter.step not in (None, 1) else ""
    return f"{parameter.low:g} to {parameter.high:g}{unit}{step}"


def hit(settings: Settings, uncertainties: NamedUncertainties, name: str) -> str:
    """Say in words how a parameter is hit."""
    for names, uncertainty in uncertainties.items():
        group = (names,) if isinstance(names, str) else names
        if name in group:
            with_others = f" (with {', '.join(n for n in group if n != name)})"
            return in_words(uncertainty, settings.unit(name)) + (
                with_others if len(group) > 1 else ""
            )
    return "exactly"


_WITH_UNIT = ("std", "low", "high", "loc", "scale", "radius")


def in_words(uncertainty: InputUncertainty, unit: str) -> str:
    """Describe an uncertainty, with units where all its parameters are single numbers.

    >>> from airbo.uncertainty import Normal
    >>> in_words(Normal(2.0), "m/min"), in_words(Exact(), "")
    ('normal: std 2 m/min', 'exactly')
    """
    if isinstance(uncertainty, Exact):
        return "exactly"
    fields = {key: value for key, value in vars(uncertainty).items() if value is not None}
    if not all(isinstance(value, float) for value in fields.values()):
        return repr(uncertainty)
    parts = [f"{k} {with_unit(v, unit if k in _WITH_UNIT else '')}" for k, v in fields.items()]
    return f"{type(uncertainty).__name__.lower()}: {', '.join(parts)}"
