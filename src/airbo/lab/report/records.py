"""What a report is based on: values, experiments, every change, and the settings."""

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from airbo import words
from airbo.lab.report import page, style
from airbo.lab.report.answer import lands
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.lab.report.page import Section
from airbo.observed import EXECUTED_COLUMN, OK, STATUS, VALUE, is_usable
from airbo.optimizer.surrogate import SURROGATES

if TYPE_CHECKING:
    from airbo.lab import Record

MOST_EXPERIMENTS = 200
"""Number of experiments on the page, the latest ones; `airbo export` has all."""
MOST_CHANGES = 200
"""Number of changes on the page, the latest ones; `airbo export --history` has all."""


# -- observed values


def progress_section(findings: Findings) -> Section:
    """Show all observed values in order."""
    single = findings.is_single
    figures = [("" if single else o.name, progress_figure(o)) for o in findings.parts]
    explained = page.note(
        "Observed values scatter, so the largest and the smallest are often luck."
    )
    return Section("progress", "Progress", (explained, page.charts(figures)))


def progress_figure(outcome: OutcomeFindings) -> go.Figure:
    """Draw all observed values over the numbers by which people call the experiments.

    Where there are limits, values out of spec have another colour.
    """
    findings, known = outcome.findings, outcome.known[VALUE]
    numbers = np.array(findings.numbers)
    failed = (findings.optimizer.observations[STATUS] != OK).to_numpy()
    within = np.array([outcome.is_in_spec(value) for value in known], dtype=bool)
    groups = [("observed", within, style.DATA)]
    if outcome.limits:
        groups = [("in spec", within, style.MODEL), ("out of spec", ~within, style.FAILURE)]
    figure = go.Figure()
    for name, chosen, color in groups:
        shown = known[chosen]
        style.scatter(
            figure,
            shown.index.to_numpy(),
            shown.to_numpy(dtype=np.float64),
            name,
            [f"experiment {i}: {words.with_unit(words.number(v), outcome.unit)}"
             for i, v in shown.items()],
            marker={"color": color, "size": 8},
        )  # fmt: skip
    if failed.any():
        said = [f"experiment {i} failed" for i in numbers[failed]]
        cross = {"color": style.FAILURE, "size": 10, "symbol": "x"}
        low = [0.03] * int(failed.sum())
        style.scatter(figure, numbers[failed], low, "failed", said, yaxis="y2", marker=cross)
    for limit in outcome.limits:
        figure.add_hline(limit, line=style.LIMIT)
    style.styled(figure, height=400)
    ends = [float(numbers.min()) - 0.5, float(numbers.max()) + 0.5] if len(numbers) else [0.5, 1.5]
    return figure.update_layout(
        xaxis={"title": "number of the experiment", "range": ends, "tickformat": "d"},
        yaxis={"title": style.plain(outcome.label)},
        # failed experiments have no value: they stand on the lower edge, whatever the scale
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )


# -- experiments


def experiments_section(findings: Findings, record: "Record | None") -> Section | None:
    """List all experiments: what was set, what came of it, and what people wrote about it."""
    rows = _recorded(findings, record) if record is not None else _told(findings)
    if not rows:
        return None
    parts = []
    if len(rows) > MOST_EXPERIMENTS:
        parts.append(page.note(f"The latest {MOST_EXPERIMENTS} of {len(rows)} experiments."))
    units = {n: words.unit_of(findings.parameter(n)) for n in findings.space.whole.names}
    header = ["number", *(words.label(n, unit) for n, unit in units.items())]
    header += [*(outcome.label for outcome in findings.parts), "remarks"]
    shown = rows[-MOST_EXPERIMENTS:]
    listed = page.table(header, [row for row, _ in shown], _faded(shown))
    parts.append(page.folded(words.plural(len(shown), "experiment"), listed, is_open=True))
    return Section("experiments", "Experiments", tuple(parts))


def _faded(rows: "Sequence[tuple[list[str], bool]]") -> list[int]:
    return [i for i, (_, is_left_out) in enumerate(rows) if is_left_out]


def _recorded(findings: Findings, record: "Record") -> list[tuple[list[str], bool]]:
    """Return the cells of each experiment of a campaign, and whether it is left out."""
    rows = []
    for e in record.experiments:
        if not e.has_outcome:
            continue
        left_out = [] if e.excluded is None else [f"left out: {e.excluded}"]
        failed = [words.result(e, {})] if e.outcome == "failed" else []
        remarks = [*_is_recommended(findings, e.design), *failed, *left_out, *e.notes]
        measured = {n: v for n, v in e.executed.items() if n in findings.space.environment}
        cells = _cells(findings, e.number, {**e.design, **measured}, e.outcomes, remarks)
        rows.append((cells, e.excluded is not None))
    return rows


def _told(findings: Findings) -> list[tuple[list[str], bool]]:
    """Return the same of an optimizer, where nobody kept a record."""
    table, names = findings.optimizer.observations, list(findings.space.names)
    values = {outcome.name: outcome.values.to_numpy() for outcome in findings.parts}
    rows = []
    for i, (number, row) in enumerate(zip(findings.numbers, table.to_dict("records"), strict=True)):
        design = {name: row[name] for name in names}
        failed = [] if row[STATUS] == OK else [str(row[STATUS])]
        found = {n: float(v[i]) for n, v in values.items() if not math.isnan(v[i])}
        remarks = [*_is_recommended(findings, design), *failed]
        around = {n: row.get(EXECUTED_COLUMN + n) for n in findings.space.environment}
        measured = {n: v for n, v in around.items() if is_usable(v)}
        rows.append((_cells(findings, number, {**design, **measured}, found, remarks), False))
    return rows


def _is_recommended(findings: Findings, design: Mapping[str, Any]) -> list[str]:
    is_it = not findings.missing and design == findings.best.design
    return ["recommended"] if is_it else []


def _cells(
    findings: Findings,
    number: int,
    inputs: Mapping[str, Any],
    values: Mapping[str, float],
    remarks: Sequence[str],
) -> list[str]:
    measured = (values.get(outcome.name) for outcome in findings.parts)
    return [
        str(number),
        *(findings.bare(n, inputs[n]) if n in inputs else "" for n in findings.space.whole.names),
        *("" if value is None else words.number(value, 5) for value in measured),
        "; ".join(remarks),
    ]


# -- what people recorded


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
    summary = f"Show {words.plural(len(latest), 'change')}: who, when, what"
    return Section("history", "History", (page.folded(summary, "".join(parts)),))


# -- parameters, how accurately they are set, and the settings of the optimizer


def settings_section(findings: Findings) -> Section:
    """List parameters, how accurately they are set, and how the optimizer was set up."""
    optimizer, space = findings.optimizer, findings.space
    differs = optimizer.deployment != optimizer.uncertainty
    is_known = not findings.missing
    header = [
        "parameter",
        "values",
        "how accurately it is set" + (" in the experiments" if differs else ""),
    ]
    header += ["how accurately it is set in use"] if differs else []
    header += ["lands, 95 of 100 times"] if is_known else []
    rows = []
    for name, parameter in space.parameters.items():
        row = [name, words.choices(parameter), words.hit(space, optimizer.uncertainty, name)]
        row += [words.hit(space, optimizer.deployment, name)] if differs else []
        if is_known:
            row.append(lands(findings, name) if name in findings.uncertain else "on the design")
        rows.append(row)
    for name, around in space.environment.items():
        values = f"{words.choices(around.column)}; nobody sets it"
        laws = [words.hit(space, optimizer.uncertainty, name)]
        laws += [words.hit(space, optimizer.deployment, name)] if differs else []
        laws = ["measured each time" if law == "exactly" else law for law in laws]
        rows.append([name, values, *laws, *([""] if is_known else [])])
    settings = page.table(["setting", ""], _setting_rows(findings))
    return Section("settings", "Settings", (page.table(header, rows), settings))


def _setting_rows(findings: Findings) -> list[list[str]]:
    optimizer, table = findings.optimizer, findings.optimizer.observations
    meet = "; ".join(findings.space.constraints)
    n_ok = int((table[STATUS] == OK).sum())
    product = "a property of the product: limits and all measures but the mean count it"
    return [
        *([o.name, o.want.words(o.name, o.unit)] for o in findings.parts),
        *([["noise", product]] if optimizer.noise == "product" else []),
        *([["designs meet", meet]] if meet else []),
        ["experiments", f"{len(table)}, {n_ok} of them with a value"],
        ["pending", str(len(optimizer.pending))],
        ["surrogate", _surrogate(optimizer.surrogate)],
        ["acquisition", style.code(optimizer.acquisition)],
        ["initial designs", f"{optimizer.n_initial}, {optimizer.initial}"],
        ["seed", str(optimizer.seed)],
        ["airbo", version("airbo")],
    ]


def _surrogate(given: object) -> str:
    """Name the surrogate, and say which one the default is."""
    if given != "default":
        return style.code(given)
    names = [n for n, s in SURROGATES.items() if s is SURROGATES["default"]]
    return f"default: {names[-1]}"
