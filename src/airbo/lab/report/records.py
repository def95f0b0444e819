"""What a report is based on: values, experiments and settings."""

from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from airbo import words
from airbo.lab.record import Experiment
from airbo.lab.report import style
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.observed import EXECUTED_COLUMN, INFEASIBLE, OK, STATUS, VALUE, is_usable
from airbo.optimizer.surrogate import SURROGATES

if TYPE_CHECKING:
    from airbo.lab import Record

MOST_EXPERIMENTS = 200
"""Number of experiments on the page, the latest ones; `airbo export` has all."""
MOST_CHANGES = 200
"""Number of changes on the page, the latest ones; `airbo export --history` has all."""


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


def experiment_table(
    findings: Findings, record: "Record | None"
) -> tuple[list[str], list[list[str]], list[int], int]:
    """List the latest experiments: what was set, what came of it, and what people wrote about it.

    Returns:
        The head, the rows, which of them are left out of the model, and how many there are in all.
    """
    known = told_to(findings) if record is None else record.experiments
    told = [e for e in known if e.has_outcome]
    shown, inputs = told[-MOST_EXPERIMENTS:], findings.space.whole.parameters
    header = ["number", *(words.label(n, words.unit_of(p)) for n, p in inputs.items())]
    header += [*(outcome.label for outcome in findings.parts), "remarks"]
    rows = []
    for e in shown:
        is_best = not findings.missing and e.design == findings.best.design
        remarks = ["recommended"] if is_best else []
        remarks += [words.result(e, {})] if e.outcome == "failed" else []
        remarks += [] if e.excluded is None else [f"left out: {e.excluded}"]
        around = findings.space.environment
        put = {**{n: v for n, v in e.executed.items() if n in around}, **e.design}
        values = (e.outcomes.get(outcome.name) for outcome in findings.parts)
        rows.append(
            [
                str(e.number),
                *(findings.bare(n, put[n]) if n in put else "" for n in inputs),
                *("" if value is None else words.number(value, 5) for value in values),
                "; ".join([*remarks, *e.notes]),
            ]
        )
    return header, rows, [i for i, e in enumerate(shown) if e.excluded is not None], len(told)


def told_to(findings: Findings) -> list[Experiment]:
    """Return the experiments of an optimizer, where nobody kept a record."""
    rows = findings.optimizer.observations.to_dict("records")
    return [
        Experiment(
            number,
            {n: row[n] for n in findings.space.names},
            "ok" if row[STATUS] == OK else "failed",
            {n: row[n] for n in findings.outcomes if is_usable(row[n])},
            {
                n: row[EXECUTED_COLUMN + n]
                for n in findings.space.environment
                if is_usable(row.get(EXECUTED_COLUMN + n))
            },
            infeasible=row[STATUS] == INFEASIBLE,
        )
        for number, row in zip(findings.numbers, rows, strict=True)
    ]


def setting_rows(findings: Findings) -> list[list[str]]:
    """Say what is wanted of each outcome, and how the optimizer was set up."""
    optimizer, table = findings.optimizer, findings.optimizer.observations
    meet = "; ".join(findings.space.constraints)
    n_ok = int((table[STATUS] == OK).sum())
    product = "a property of the product: limits and all measures but the mean count it"
    default = [n for n, s in SURROGATES.items() if s is SURROGATES["default"]][-1]
    surrogate = f"default: {default}" if optimizer.surrogate == "default" else optimizer.surrogate
    return [
        *([o.name, o.want.words(o.name, o.unit)] for o in findings.parts),
        *([["noise", product]] if optimizer.noise == "product" else []),
        *([["designs meet", meet]] if meet else []),
        ["experiments", f"{len(table)}, {n_ok} of them with a value"],
        ["pending", str(len(optimizer.pending))],
        ["surrogate", style.code(surrogate)],
        ["acquisition", style.code(optimizer.acquisition)],
        ["initial designs", str(optimizer.n_initial)],
        ["seed", str(optimizer.seed)],
        ["airbo", version("airbo")],
    ]
