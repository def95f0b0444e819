"""The first screen of a report: what to set, what to expect, and whether to go on."""

from collections.abc import Callable

import plotly.graph_objects as go

from airbo import words
from airbo.analysis.words import chance
from airbo.lab.prediction import single_run
from airbo.lab.report import style
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.measures import InSpec, Mean, Target
from airbo.measures.capability import cpk_words
from airbo.observed import VALUE
from airbo.optimizer.recommendation import OutcomeEstimate
from airbo.outcomes import Limit, expected_words

NEAR_BOUND = 0.005
"""A design closer to a bound than this, relative to the range, counts as being on it."""
AHEAD = 10
"""Number of further experiments that the first screen considers."""

Tile = tuple[str, str, str]
"""A number in large print: what it is, the number, and a remark."""


def lead(findings: Findings) -> str:
    """Say in a sentence what the recommended design is good for."""
    if findings.best.reason:
        return findings.best.reason
    [(name, want)] = findings.aims.items()
    if findings.is_doubtful:
        n = words.plural(len(findings.parts[0].known), "value")
        return (
            f"Too little is known to recommend a design: after {n} the model cannot tell the "
            "designs apart. If you have to choose now, take this one."
        )
    unit = findings.units.get(name)
    if isinstance(want.measure, InSpec):
        return f"Set this to get {name} in spec most often: {words.with_unit(want.where, unit)}."
    if isinstance(want.measure, Target):
        target = words.with_unit(words.number(want.measure.value), unit)
        return f"Set this to get {name} as near as possible to {target}."
    if isinstance(want.measure, Mean):
        return f"Set this to get the best {name} on average."
    return f"Set this to get the best {name} by what counts: the {want.measure.words}."


def remark(findings: Findings, name: str) -> str:
    """Say where a parameter lands, 95 of 100 times, and whether it is at the end of its range."""
    found = []
    if findings.space.names.index(name) not in findings.space.categorical_columns:
        [position] = findings.positions_of(name, findings.center)
        end = "lower" if position <= NEAR_BOUND else "upper" if position >= 1 - NEAR_BOUND else ""
        if end:
            found.append(f"the {end} end of its range: widen it, if you can")
    if name in findings.uncertain:
        between = words.between(*findings.executed_interval(name))
        unit = words.unit_of(findings.parameter(name))
        found.append(f"lands at {words.with_unit(between, unit)}")
    return "; ".join(found)


# -- what to expect


def tiles(findings: Findings) -> list[Tile]:
    """Return what to expect: several numbers of an outcome that is alone, one of each of many."""
    outcomes = {outcome.name: outcome for outcome in findings.parts}
    found = []
    for name, estimate in findings.expected.items():
        if name in outcomes:
            found += _outcome_tiles(outcomes[name], estimate)
        else:  # whether a design can be used
            works = words.percent(estimate.within or 0.0)
            found.append((f"{name}: works", works, "of executed inputs"))
    return [*found, *_mean_tiles(findings.parts[0])] if findings.is_by_mean else found


def _outcome_tiles(outcome: OutcomeFindings, estimate: OutcomeEstimate) -> list[Tile]:
    name, want, unit, c = outcome.name, outcome.want, outcome.unit, estimate.capability
    spec = "" if c is None else f"{name} {words.with_unit(want.where, unit)}"
    sure = "" if c is None else f"90% sure: {_ends(words.percent, c.share_interval)}"
    if isinstance(want, Limit):
        assert c is not None
        required = (
            f"{sure}. Required: {100 * want.probability:.12g}%. Probability that the design meets "
            f"this: {chance(estimate.holds or 0.0)}. Expected {name}: "
            f"{outcome.written(outcome.here)}."
        )
        return [(spec, words.percent(c.share), required)]
    sure_of_mean = f"90% sure: {words.interval(outcome.here)}"
    expected = (f"Expected {name}", outcome.written(outcome.here), sure_of_mean)
    if isinstance(want.measure, Mean):
        return [expected]
    if c is not None:
        main = [
            (f"In spec: {spec}", words.percent(c.share), sure),
            ("Cpk", cpk_words(c.cpk), f"90% sure: {_ends(cpk_words, c.cpk_interval)}"),
            ("Out of spec", f"{words.ppm(c.ppm)} ppm",
             f"90% sure: {_ends(words.ppm, c.ppm_interval)}"),
        ]  # fmt: skip
    elif isinstance(want.measure, Target):
        away = words.with_unit(words.number(max(0.0, -estimate.mean) ** 0.5, 3), unit)
        target = words.with_unit(f"{want.measure.value:g}", unit)
        main = [(f"{name} away from {target}", away, "root of the mean square")]
    else:
        main = [(f"{name}, {want.measure.words}", outcome.written(estimate), "what decides")]
    return [*main, expected] if outcome.findings.is_single else main[:1]


def _ends(write: Callable[[float], str], ends: tuple[float, float]) -> str:
    low, high = map(write, ends)
    return f"{low} to {high}"


def _mean_tiles(outcome: OutcomeFindings) -> list[Tile]:
    """Show, where the mean of one outcome decides, where single runs lie and what is left."""
    findings, outlook, unit = outcome.findings, outcome.outlook, outcome.unit
    ends = single_run(findings.optimizer, findings.best.design, outcome.name, findings.given)
    found = []
    if ends is not None:  # else the model cannot say
        runs = words.with_unit(words.between(*ends), unit)
        found.append(("Single runs", runs, "9 of 10 lie here"))
    sign = "+" if outcome.want.sign > 0 else "−"
    gain = words.with_unit(f"{sign}{words.number(outlook.gains[AHEAD], 2)}", unit)
    tolerance = words.with_unit(words.number(outlook.tolerance, 2), unit)
    explained = (
        f"Expected from {AHEAD} more experiments. Chance that nothing is better by more than "
        f"{tolerance}: {chance(outlook.probability)}."
    )
    return [*found, ("Left to gain", gain, explained)]


# -- the front


def front_table(findings: Findings) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of the designs that no other one beats."""
    parameters = findings.space.parameters
    header = [words.label(n, words.unit_of(p)) for n, p in parameters.items()]
    rows = [
        [*(findings.bare(n, r.design[n]) for n in parameters),
         *(expected_words(o.want, r.outcomes[o.name]) for o in findings.parts)]
        for r in findings.front
    ]  # fmt: skip
    return [*header, *(outcome.label for outcome in findings.parts)], rows


def front_figure(findings: Findings, a: OutcomeFindings, b: OutcomeFindings) -> go.Figure:
    """Draw single runs, the front and the compromise: one objective against another."""
    both = a.known.index.intersection(b.known.index)
    figure = go.Figure()
    observed = {"color": style.DATA, "size": 6, "opacity": 0.5}
    style.scatter(
        figure, a.known.loc[both, VALUE], b.known.loc[both, VALUE], "observed",
        [f"experiment {n}" for n in both], marker=observed,
    )  # fmt: skip
    ordered = sorted(findings.front, key=lambda r: r.outcomes[a.name].mean)
    x, y = ([r.outcomes[o.name] for r in ordered] for o in (a, b))
    style.scatter(
        figure, [e.mean for e in x], [e.mean for e in y], "front, expected",
        [words.design(findings.space, r.design) for r in ordered], mode="lines+markers",
        error_x={"array": [e.std for e in x], "thickness": 1, "width": 3},
        error_y={"array": [e.std for e in y], "thickness": 1, "width": 3},
        line={"color": style.MODEL, "width": 1.5, "dash": "dot"}, marker={"size": 9},
    )  # fmt: skip
    here = findings.expected
    x_here, y_here = [here[a.name].mean], [here[b.name].mean]
    style.scatter(figure, x_here, y_here, "compromise", marker=style.STAR)
    figure.update_layout(
        xaxis={"title": style.plain(a.label)}, yaxis={"title": style.plain(b.label)}
    )
    return style.styled(figure, height=400)
