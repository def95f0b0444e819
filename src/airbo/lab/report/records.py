"""What a report is based on: designs tried, failures, every change, and the settings."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from airbo import words
from airbo.lab.report import page, style
from airbo.lab.report.answer import lands
from airbo.lab.report.findings import Findings, OutcomeFindings, Tried
from airbo.lab.report.page import Section
from airbo.observed import EXECUTED_COLUMN, OK, STATUS
from airbo.optimizer.surrogate import SURROGATES

if TYPE_CHECKING:
    from airbo.lab import Experiment, Record

N_BEST_TRIED = 10
MOST_CHANGES = 200
"""Number of changes on the page, the latest ones; `airbo export --history` has all."""


def tried_section(outcome: OutcomeFindings) -> Section:
    """List the best designs that were tried."""
    key, title = f"tried {outcome.name}", outcome.titled("The best designs tried")
    if not outcome.tried:
        nothing = page.text("No design inside the present ranges has been tried.")
        return Section(key, title, (nothing,))
    explained = page.note(
        "Ordered by the expected value, which the model works out from all experiments together. "
        "The observed mean is that of the runs of this very design, often a single one."
    )
    parameters = outcome.findings.space.parameters
    header = [words.label(n, words.unit_of(p)) for n, p in parameters.items()]
    header += [words.label("expected", outcome.unit), "experiments"]
    header += [words.label("observed mean", outcome.unit)]
    rows = [
        [str(i), *_tried_row(outcome, row)]
        for i, row in enumerate(outcome.tried[:N_BEST_TRIED], start=1)
    ]
    return Section(key, title, (explained, page.table(["", *header], rows)))


def _tried_row(outcome: OutcomeFindings, row: Tried) -> list[str]:
    findings = outcome.findings
    cells = [findings.bare(name, row.design[name]) for name in findings.space.names]
    failed = f" + {row.n_failed} failed" if row.n_failed else ""
    count = f"{row.n_values}{failed}"
    return [*cells, words.plus_minus(row.expected), count, words.number(row.observed)]


# -- what people recorded


def failures_section(experiments: "Sequence[Experiment]") -> Section | None:
    """List experiments without a value and those left out, with the notes on them."""
    found = [e for e in experiments if e.outcome == "failed" or e.excluded is not None]
    if not found:
        return None
    rows = [
        [
            str(e.number),
            f"left out: {e.excluded}" if e.excluded is not None else words.result(e, {}),
            ", ".join(f"{name} = {words.shown(value)}" for name, value in e.design.items()),
            "; ".join(e.notes),
        ]
        for e in found
    ]
    listed = page.table(["experiment", "what happened", "design", "notes"], rows)
    return Section("failures", "Experiments without a value, or left out", (listed,))


def history_section(record: "Record") -> Section | None:
    """List what people changed: who, what and when."""
    changes = [c for c in record.history if c.undoable or c.what == "undone"]
    if not changes:
        return None
    latest = changes[-MOST_CHANGES:][::-1]
    parts = []
    if len(latest) < len(changes):
        parts.append(
            page.note(
                f"The latest {len(latest)} of {len(changes)} changes. `airbo export --history` "
                "writes all."
            )
        )
    faded = [i for i, change in enumerate(latest) if change.undone]
    if faded:
        parts.append(page.note("What is struck through was taken back."))
    rows = [
        [f"{c.at.astimezone():%Y-%m-%d %H:%M}", c.by or "", c.about, f"{c.what}: {c.text}"]
        for c in latest
    ]
    parts.append(page.table(["when", "who", "experiments", "what"], rows, faded))
    return Section("history", "History", tuple(parts))


# -- parameters, how they are hit, and the settings of the optimizer


def settings_section(findings: Findings) -> Section:
    """List parameters, how they are hit, and how the optimizer was set up."""
    optimizer, space = findings.optimizer, findings.space
    differs = optimizer.deployment != optimizer.uncertainty
    is_known = not findings.missing
    header = ["parameter", "values", "how it is hit" + (" in the experiments" if differs else "")]
    header += ["how it is hit in use"] if differs else []
    header += ["lands, 95 of 100 times"] if is_known else []
    rows = []
    for name, parameter in space.parameters.items():
        row = [name, words.choices(parameter), words.hit(space, optimizer.uncertainty, name)]
        row += [words.hit(space, optimizer.deployment, name)] if differs else []
        if is_known:
            row.append(lands(findings, name) if name in findings.uncertain else "on the design")
        rows.append(row)
    settings = page.table(["setting", ""], _setting_rows(findings))
    return Section("settings", "Settings", (page.table(header, rows), settings))


def _setting_rows(findings: Findings) -> list[list[str]]:
    optimizer, table = findings.optimizer, findings.optimizer.observations
    meet = "; ".join(findings.space.constraints)
    n_ok = int((table[STATUS] == OK).sum())
    product = "a property of the product: limits and all measures but the mean count it"
    return [
        *([name, want.words(name)] for name, want in findings.outcomes.items()),
        *([["noise", product]] if optimizer.noise == "product" else []),
        *([["designs meet", meet]] if meet else []),
        ["experiments", f"{len(table)}, {n_ok} of them with a value"],
        *_unusual_rows(findings),
        ["pending", str(len(optimizer.pending))],
        ["surrogate", _surrogate(optimizer.surrogate)],
        ["acquisition", style.code(optimizer.acquisition)],
        ["initial designs", f"{optimizer.n_initial}, {optimizer.initial}"],
        ["seed", str(optimizer.seed)],
        ["airbo", version("airbo")],
    ]


def _unusual_rows(findings: Findings) -> list[list[str]]:
    """Count experiments outside the ranges, and those with a measured executed input."""
    table, rows = findings.optimizer.observations, []
    measured = [column for column in table.columns if column.startswith(EXECUTED_COLUMN)]
    n_measured = int(table[measured].notna().any(axis=1).sum()) if measured else 0
    designs: list[Any] = table[list(findings.space.names)].to_dict("records")
    n_outside = findings.inside(designs).count(False) if designs else 0
    if n_outside:
        limits = "ranges or constraints" if findings.space.constraints else "ranges"
        rows.append([f"experiments outside the {limits}", str(n_outside)])
    if n_measured:
        rows.append(["experiments with a measured executed input", str(n_measured)])
    return rows


def _surrogate(given: object) -> str:
    """Name the surrogate, and say which one the default is."""
    if given != "default":
        return style.code(given)
    names = [n for n, s in SURROGATES.items() if s is SURROGATES["default"]]
    return f"default: {names[-1]}"
