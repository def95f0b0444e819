"""The first and the last section of a report: what to set, and what that is based on."""

import numpy as np

from airbo import __version__, words
from airbo.analysis.words import chance, outlook_sentences
from airbo.measures import InSpec, Target
from airbo.observed import EXECUTED_COLUMN, VALUE
from airbo.optimizer import Design
from airbo.optimizer.surrogate import SURROGATES
from airbo.report.beliefs import Estimate
from airbo.report.findings import Findings
from airbo.report.page import Page, Tile

NEAR_BOUND = 0.005
"""A design closer to a bound than this, relative to the range, counts as being on it."""
AHEAD = 10
"""Number of further experiments that the first screen considers."""

# -- what to set, and what to expect


def add_answer(page: Page, findings: Findings) -> None:
    """Add what to set and what to expect, or why that cannot be said yet."""
    if not len(findings.known):
        page.lead("No experiment has given a value yet: there is nothing to recommend.", doubt=True)
        return
    if findings.doubt is not None:
        n = len(findings.known)
        page.lead(
            f"Too little is known to recommend a design: after {n} value{'s' if n != 1 else ''} "
            "the model cannot tell the designs apart. If you have to choose now, take this one.",
            doubt=True,
        )
    else:
        page.lead(f"Set this to get the best {findings.name} on average.")
    page.answer(settings_rows(findings), _tiles(findings))
    page.points(outlook_sentences(findings.outlook, findings.space, findings.name, findings.unit))
    page.note(_what_it_means(findings))


def settings_rows(findings: Findings) -> list[tuple[str, str, str]]:
    """Return what to set: name, value in the digits of the machine, and where it lands."""
    design = findings.best.design
    return [
        (name, findings.shown(name, design[name]), _remark(findings, name))
        for name in findings.space.names
    ]


def _remark(findings: Findings, name: str) -> str:
    """Say where a parameter lands, and whether it stands at the end of its range."""
    end = _bound_reached(findings, name)
    at_end = f"the {end} end of its range: widen it, if you can. " if end else ""
    return at_end + ("" if name not in findings.uncertain else f"lands at {_lands(findings, name)}")


def _tiles(findings: Findings) -> list[Tile]:
    best, unit = findings.best, findings.unit
    estimate = Estimate(np.array(best.mean), np.array(best.std))
    tiles = [
        Tile(
            f"Expected {findings.name}",
            words.with_unit(words.plus_minus(estimate), unit),
            f"95% sure: {words.interval(estimate)}",
        )
    ]
    if findings.optimizer.deployment == findings.optimizer.uncertainty:
        single = findings.beliefs.expected(findings.center, noise=True)[0]
        tiles.append(
            Tile("Single runs", words.with_unit(words.interval(single), unit), "19 of 20 lie here")
        )
    return [*tiles, _gained(findings), _left(findings)]


def _gained(findings: Findings) -> Tile:
    """Compare with the best of the first designs, as the model judges it today."""
    first = _best_at_first(findings)
    k = min(findings.optimizer.n_initial, len(findings.known))
    title = "Gain since the start"
    if first is None or len(findings.known) <= k:
        return Tile(title, "—", "The first experiments are not over.")
    if first == findings.best.design:
        return Tile(title, "0", f"The best design is among the first {k} values.")
    gain = findings.difference([first, findings.best.design])
    shown = words.with_unit(words.plus_minus(gain, signed=True), findings.unit)
    return Tile(title, shown, f"Against the best of the first {k} designs, judged today.")


def _best_at_first(findings: Findings) -> Design | None:
    """Return the best of the initial designs by its expected value."""
    table = findings.optimizer.observations
    rows = table[table["value"].notna()].head(findings.optimizer.n_initial)
    designs: list[Design] = rows[list(findings.space.names)].to_dict("records")  # type: ignore[assignment]
    inside = [t.design for t in findings.tried if t.design in designs]
    return inside[0] if inside else None


def _left(findings: Findings) -> Tile:
    outlook = findings.outlook
    gain, sign = outlook.gains[AHEAD], "+" if findings.sign > 0 else "−"
    shown = words.with_unit(f"{sign}{words.number(gain, 2)}", findings.unit)
    tolerance = words.with_unit(words.number(outlook.tolerance, 2), findings.unit)
    return Tile(
        "Left to gain",
        shown,
        f"Expected from {AHEAD} more experiments. Chance that nothing is better by more than "
        f"{tolerance}: {chance(outlook.probability)}.",
    )


def _what_it_means(findings: Findings) -> str:
    goal = "Larger" if findings.sign > 0 else "Smaller"
    over = ", wherever the design lands" if findings.uncertain else ""
    return (
        f"{goal} is better. The expected value is the mean of many repetitions{over}. ± is one "
        "standard deviation (model uncertainty)."
    )


def _bound_reached(findings: Findings, name: str) -> str | None:
    column = findings.space.names.index(name)
    if column in findings.space.categorical_columns:
        return None
    position = findings.cube.axes.from_columns(findings.center)[0, column].item()
    if position <= NEAR_BOUND:
        return "lower"
    return "upper" if position >= 1 - NEAR_BOUND else None


# -- parameters, how they are hit, and the settings of the optimizer


def add_settings(page: Page, findings: Findings) -> None:
    """Add parameters, how they are hit, and how the optimizer was set up."""
    page.section("Settings")
    optimizer, space = findings.optimizer, findings.space
    differs = optimizer.deployment != optimizer.uncertainty
    header = ["parameter", "values", "how it is hit" + (" in the experiments" if differs else "")]
    header += ["how it is hit in use"] if differs else []
    header += ["lands, 95 of 100 times"] if len(findings.known) else []
    rows = []
    for name, parameter in space.parameters.items():
        row = [name, words.choices(parameter), words.hit(space, optimizer.uncertainty, name)]
        row += [words.hit(space, optimizer.deployment, name)] if differs else []
        row += [_lands_or_not(findings, name)] if len(findings.known) else []
        rows.append(row)
    page.table(header, rows)
    page.table(["setting", ""], _setting_rows(findings))


def _lands_or_not(findings: Findings, name: str) -> str:
    return _lands(findings, name) if name in findings.uncertain else "on the design"


def _lands(findings: Findings, name: str) -> str:
    low, high = (findings.bare(name, end) for end in findings.executed_interval(name))
    return words.with_unit(f"{low} to {high}", words.unit_of(findings.parameter(name)))


def _setting_rows(findings: Findings) -> list[list[str]]:
    optimizer, table = findings.optimizer, findings.optimizer.observations
    meet = "; ".join(findings.space.constraints)
    return [
        *_wanted_rows(findings),
        *([["designs meet", meet]] if meet else []),
        ["experiments", f"{len(table)}, {len(findings.known)} of them with a value"],
        *_unusual_rows(findings),
        ["pending", str(len(optimizer.pending))],
        ["surrogate", surrogate_name(findings)],
        ["acquisition", _code(optimizer.acquisition)],
        ["initial designs", f"{optimizer.n_initial}, {optimizer.initial}"],
        ["seed", str(optimizer.seed)],
        ["airbo", __version__],
    ]


def _unusual_rows(findings: Findings) -> list[list[str]]:
    """Count experiments outside the ranges, and those with a measured executed input."""
    table, rows = findings.optimizer.observations, []
    measured = [column for column in table.columns if column.startswith(EXECUTED_COLUMN)]
    n_measured = int(table[measured].notna().any(axis=1).sum()) if measured else 0
    if findings.n_outside:
        limits = "ranges or constraints" if findings.space.constraints else "ranges"
        rows.append([f"experiments outside the {limits}", str(findings.n_outside)])
    if n_measured:
        rows.append(["experiments with a measured executed input", str(n_measured)])
    return rows


def _wanted_rows(findings: Findings) -> list[list[str]]:
    """Say what decides: outcomes with their limits, or the measure; and whether noise counts."""
    by = findings.decided_by
    noise = ["noise", "a property of the product: limits and all measures but the mean count it"]
    counts = [noise] if by.noise == "product" else []
    if [*by.outcomes] != [VALUE]:
        return [*([name, want.words(name)] for name, want in by.outcomes.items()), *counts]
    measure = ["measure", by.measure.words]
    if isinstance(by.measure, InSpec | Target):  # larger is better, whatever the direction
        return [measure, *counts]
    return [["better", "larger" if findings.sign > 0 else "smaller"], measure, *counts]


def surrogate_name(findings: Findings) -> str:
    """Name the surrogate, and say which one the default is."""
    if findings.optimizer.surrogate != "default":
        return _code(findings.optimizer.surrogate)
    names = [n for n, s in SURROGATES.items() if s is SURROGATES["default"]]
    return f"default: {names[-1]}"


def _code(setting: object) -> str:
    if isinstance(setting, str):
        return setting
    return getattr(setting, "__name__", None) or repr(setting)
