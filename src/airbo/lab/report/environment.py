"""What nobody sets: values against it, and how much of the scatter in use it explains."""

import numpy as np
import plotly.graph_objects as go

from airbo import words
from airbo.analysis import tolerance_budget
from airbo.lab.report import page, style
from airbo.lab.report.findings import Estimate, Findings, OutcomeFindings
from airbo.lab.report.page import Section
from airbo.measures import Mean
from airbo.models.draws import has_function
from airbo.observed import EXECUTED_COLUMN, VALUE

N_DAYS = 25
"""Values of the environment along a curve."""


def environment_section(findings: Findings) -> Section | None:
    """Show values against the environment; None where there is none."""
    names = [name for name in findings.space.environment if name not in findings.given]
    if not names:
        return None
    said = [text for outcome in findings.parts for text in scatter_words(outcome, names)]
    explained = page.note(
        "Line: the expected value of the recommended design on a day with this value, and a band "
        "of two standard deviations (model uncertainty). Dots: experiments that measured it, at "
        "whatever settings they had."
    )
    figures = [
        (f"{outcome.name} against {name}", environment_figure(outcome, name))
        for outcome in findings.parts
        for name in names
    ]
    verdict = page.verdict(" ".join(said)) if said else ""
    return Section("environment", "What nobody sets", (verdict, page.charts(figures), explained))


def scatter_words(outcome: OutcomeFindings, names: list[str]) -> list[str]:
    """Say how much of the scatter of the recommended design each environment explains."""
    findings = outcome.findings
    if not has_function(outcome.model.model):
        return []
    budget = tolerance_budget(
        findings.optimizer, findings.best.design, outcome.name, given=findings.given
    )
    found = []
    for part in budget.contributions:
        if set(part.parameters) <= set(names):
            share, rest = part.share.value, part.scatter_if_halved.value
            which = words.listed(list(part.parameters))
            found.append(
                f"{which} explains {words.percent(share)} of the scatter of {outcome.name} in use; "
                f"half the variation of it would leave {words.percent(rest)} of the scatter."
            )
    return found


def on_days(outcome: OutcomeFindings, name: str) -> tuple[np.ndarray, Estimate]:
    """Return values of an environment, and what to expect of the recommended design on each."""
    findings = outcome.findings
    days, means, stds = findings.grid(name, N_DAYS), [], []
    for day in days.tolist():
        given = {**findings.given, name: day}
        model = findings.optimizer.outcome_model(outcome.name, Mean(), given=given)
        mean, std = model.predict(model.surrogate.points.of([findings.best.design]))
        means.append(mean.item())
        stds.append(std.item())
    return days, Estimate(np.array(means), np.array(stds))


def environment_figure(outcome: OutcomeFindings, name: str) -> go.Figure:
    """Draw the expected value along an environment, and the experiments that measured it."""
    parameter = outcome.findings.parameter(name)
    days, expected = on_days(outcome, name)
    figure = go.Figure()
    low, high = expected.mean - 2 * expected.std, expected.mean + 2 * expected.std
    around = np.concatenate([low, high[::-1]])
    style.scatter(figure, np.concatenate([days, days[::-1]]), around, mode="lines", fill="toself",
                  fillcolor=style.BAND, line={"width": 0})  # fmt: skip
    said = [f"{words.value(parameter, d)}: {words.plus_minus(expected[i])}"
            for i, d in enumerate(days.tolist())]  # fmt: skip
    style.scatter(figure, days, expected.mean, "recommended design", said, mode="lines",
                  line={"color": style.MODEL})  # fmt: skip
    column, known = EXECUTED_COLUMN + name, outcome.known
    if column in known:
        there = known[known[column].notna()]
        values = there[VALUE].to_numpy(dtype=np.float64)
        measured = there[column].to_numpy(dtype=np.float64)
        hover = [f"experiment {n}" for n in there.index]
        style.scatter(figure, measured, values, "observed", hover,
                      marker={"color": style.DATA, "size": 6})  # fmt: skip
    style.styled(figure, height=320)
    axis = style.axis(name, parameter)
    return figure.update_layout(xaxis=axis, yaxis={"title": style.plain(outcome.label)})
