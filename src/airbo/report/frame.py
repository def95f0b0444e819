"""The first and the last section of a report: what to set, and what that rests on."""

import numpy as np

from airbo import __version__, words
from airbo.observed import EXECUTED_COLUMN
from airbo.optimizer.surrogate import SURROGATES
from airbo.report.beliefs import Estimate
from airbo.report.findings import Findings
from airbo.report.page import Page

NEAR_BOUND = 0.005
"""A design so near to a bound, in ranges of the parameter, stands on it."""

# -- what to set, and what to expect


def add_answer(page: Page, findings: Findings) -> None:
    """Add what to set and what to expect, or why that cannot be said yet."""
    if not len(findings.known):
        page.lead("No experiment has given a value yet: there is nothing to recommend.", doubt=True)
        return
    best = findings.best
    estimate = Estimate(np.array(best.mean), np.array(best.std))
    expected = words.with_unit(words.plus_minus(estimate), findings.unit)
    chosen = words.design(findings.space, best.design)
    if findings.doubt is not None:
        n = len(findings.known)
        page.lead(
            f"Too little is known to recommend a design: after {n} value{'s' if n != 1 else ''} "
            f"the model cannot tell the designs apart. If you have to choose now: {chosen}, with "
            f"an expected {findings.name} of {expected}.",
            doubt=True,
        )
    else:
        page.lead(f"Set {chosen}. Expect a mean {findings.name} of {expected}.")
    page.note(_what_it_means(findings, estimate))
    for name in findings.space.names:
        end = _bound_reached(findings, name)
        if end:
            page.note(
                f"{name} stands at the {end} end of its range: if the range can be made wider, "
                "there may be something better beyond."
            )


def _what_it_means(findings: Findings, estimate: Estimate) -> str:
    goal = "large" if findings.sign > 0 else "small"
    over = ", over all the places where the design may land" if findings.uncertain else ""
    text = (
        f"Values are to be {goal}. The mean is that of many repetitions{over}. "
        "± is one standard deviation of what the model does not know about it: the mean lies "
        f"between {words.interval(estimate).replace(' to ', ' and ')} in 95 of 100 cases."
    )
    if findings.optimizer.deployment == findings.optimizer.uncertainty:
        single = findings.beliefs.expected(findings.center, noise=True)[0]
        text += f" A single experiment scatters more: {words.interval(single)}."
    return text


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
        row += [_lands(findings, name)] if len(findings.known) else []
        rows.append(row)
    page.table(header, rows)
    page.table(["setting", ""], _setting_rows(findings))


def _lands(findings: Findings, name: str) -> str:
    if name not in findings.uncertain:
        return "on the design"
    low, high = map(words.number, findings.executed_interval(name))
    return words.with_unit(f"{low} to {high}", words.unit_of(findings.parameter(name)))


def _setting_rows(findings: Findings) -> list[list[str]]:
    optimizer, table = findings.optimizer, findings.optimizer.observations
    measured = [column for column in table.columns if column.startswith(EXECUTED_COLUMN)]
    n_measured = int(table[measured].notna().any(axis=1).sum()) if measured else 0
    rows = [
        ["values are to be", "large" if findings.sign > 0 else "small"],
        ["experiments", f"{len(table)}, {len(findings.known)} of them with a value"],
        ["pending", str(len(optimizer.pending))],
        ["surrogate", surrogate_name(findings)],
        ["acquisition", _code(optimizer.acquisition)],
        ["initial designs", f"{optimizer.n_initial}, {optimizer.initial}"],
        ["seed", str(optimizer.seed)],
        ["airbo", __version__],
    ]
    if n_measured:
        rows.insert(3, ["experiments with a measured executed input", str(n_measured)])
    if findings.n_outside:
        limits = "ranges or constraints" if findings.space.constraints else "ranges"
        rows.insert(3, [f"experiments outside the {limits}", str(findings.n_outside)])
    if findings.space.constraints:
        rows.insert(1, ["designs meet", "; ".join(findings.space.constraints)])
    return rows


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
