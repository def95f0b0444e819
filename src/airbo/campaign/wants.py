"""The outcomes of a campaign file: what is measured, and what is wanted of it.

.. code-block:: toml

    [outcomes.strength]
    goal = "maximize"
    unit = "MPa"

    [outcomes.leak]
    at_most = 0.2
    probability = 0.95
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from airbo import measures
from airbo.campaign.toml_errors import TomlTable
from airbo.measures import Measure
from airbo.measures.kinds import check_kept_share
from airbo.observed import EXECUTED_COLUMN
from airbo.outcomes import (
    MAX_OBJECTIVES,
    AtLeast,
    AtMost,
    Between,
    Maximize,
    Minimize,
    Want,
    check_limit,
    check_outcomes,
    objectives,
)

_MORE = ("_std", "_within", "_within_std", "_holds")
"""What the table of the front adds to the name of an outcome."""
_HOLDS = "holds"
"""Its column for all limits together."""
_KEYS = ("goal", "measure", "at_most", "at_least", "probability", "unit")


@dataclass(frozen=True)
class NamedOutcome:
    """One outcome, as the file has it."""

    want: Want
    unit: str | None


def read_outcomes(top: TomlTable, taken: Collection[str]) -> dict[str, NamedOutcome] | None:
    """Read the tables [outcomes.<name>]; None if there are none, or mistakes.

    Args:
        top: The file.
        taken: Names that tables use for something else.
    """
    if "outcomes" not in top.values:
        return None
    table = top.sub("outcomes")
    if table is None:
        return None
    for key in ("direction", "value", "measure"):
        if key in top.values:
            top.note(
                f"remove {key!r}: the file has [outcomes], and each has its own goal and unit.",
                key,
            )
    if not table.values:
        top.note("outcomes is empty: write a table [outcomes.<name>] for each.", "outcomes")
        return None
    found = {name: _outcome(table, name, taken) for name in table.values}
    named = {name: outcome for name, outcome in found.items() if outcome is not None}
    if len(named) < len(found):
        return None
    n_goals = len(objectives({name: outcome.want for name, outcome in named.items()}))
    if not 1 <= n_goals <= MAX_OBJECTIVES:
        top.note(
            f'one to {MAX_OBJECTIVES} outcomes need a goal ("maximize" or "minimize"), got '
            f"{n_goals}; all others can have limits.",
            "outcomes",
        )
        return None
    try:
        check_outcomes({name: outcome.want for name, outcome in named.items()})
    except ValueError as error:
        top.note(str(error), "outcomes")
        return None
    return named


def first_objective(named: Mapping[str, NamedOutcome] | None) -> dict[str, Any]:
    """Return the direction, name, unit and measure of the value that a trial of Optuna has."""
    if named is None:
        return {}
    name, aim = next(iter(objectives({n: o.want for n, o in named.items()}).items()))
    about = {"direction": aim.direction, "measure": aim.measure}
    return {**about, "value_name": name, "value_unit": named[name].unit}


def _outcome(outcomes: TomlTable, name: str, taken: Collection[str]) -> NamedOutcome | None:
    table = outcomes.sub(name)
    if table is None:
        return None
    columns = {n + more for n in outcomes.values for more in _MORE if n != name}
    _check_name(table, name, {*taken, *columns, _HOLDS})
    table.only(_KEYS)
    is_limit = bool({"at_least", "at_most"} & set(table.values))
    if ("goal" in table.values) == is_limit:
        table.note(
            f'outcome {name!r} needs either goal = "maximize" or "minimize", or a limit: '
            "at_most, at_least or both."
        )
        return None
    given: dict[str, Any] = {
        "goal": _goal(table) if "goal" in table.values else None,
        "low": table.get("at_least", "a number"),
        "high": table.get("at_most", "a number"),
    }
    unit = table.get("unit", "a text in quotes")
    if is_limit and given["low"] is None and given["high"] is None:
        return None  # neither is a number, which was noted
    try:
        return NamedOutcome(_want(table, **given), unit)
    except (ValueError, TypeError) as error:
        table.note_error(error)
        return None


def read_measure(table: TomlTable) -> Measure:
    """Read the measure of a goal, or of the whole file."""
    text = table.get("measure", "a text in quotes", "mean")
    try:
        return measures.from_text(text)
    except ValueError as error:
        table.note(f"measure: {error}", "measure")
        return measures.Mean()


def _check_name(table: TomlTable, name: str, taken: Collection[str]) -> None:
    if name in taken or name.startswith(EXECUTED_COLUMN) or name.isdigit():
        table.note(f"an outcome cannot be called {name!r}: something else has that name.")
    elif not name.isprintable() or name != name.strip() or name.startswith("-") or "=" in name:
        table.note(
            f"an outcome cannot be called {name!r}: airbo tell could not read it. Leave out =, a - "
            "or a blank at the beginning, and line breaks."
        )


def _goal(table: TomlTable) -> str:
    return table.one_of("goal", ("maximize", "minimize"), "maximize")


def _want(
    table: TomlTable, goal: str | None, low: float | int | None, high: float | int | None
) -> Want:
    if goal is not None:
        if "probability" in table.values:
            table.note("probability belongs to a limit, not to a goal.", "probability")
        measure = read_measure(table)
        return Maximize(measure) if goal == "maximize" else Minimize(measure)
    if "measure" in table.values:
        table.note("measure belongs to a goal, not to a limit.", "measure")
    probability = check_kept_share(table.values.get("probability", 0.95))
    if high is None:
        return AtLeast(check_limit(low, "at_least"), probability)
    high = check_limit(high, "at_most")
    if low is None:
        return AtMost(high, probability)
    low = check_limit(low, "at_least")
    if not low < high:
        raise ValueError(f"at_least must be below at_most, got {low:g} and {high:g}.")
    return Between(low, high, probability)
