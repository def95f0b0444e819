"""The first screen of a report: what to set, what to expect, and whether to go on."""

from itertools import combinations

import plotly.graph_objects as go

from airbo import words
from airbo.analysis.words import MEAN_ONLY, chance, outlook_sentences
from airbo.lab.prediction import single_run
from airbo.lab.report import page, style
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.lab.report.page import Section, Tile
from airbo.measures import InSpec, Mean, Target
from airbo.measures.capability import Capability, cpk_words
from airbo.observed import VALUE
from airbo.optimizer.recommendation import OutcomeEstimate
from airbo.outcomes import Limit, Want, expected_words, objectives

NEAR_BOUND = 0.005
"""A design closer to a bound than this, relative to the range, counts as being on it."""
AHEAD = 10
"""Number of further experiments that the first screen considers."""


def answer_section(findings: Findings) -> Section:
    """Say what to set and what to expect, or why that cannot be said yet."""
    if findings.missing:
        what = (
            "given a value" if findings.is_single else f"measured {words.listed(findings.missing)}"
        )
        why = f"No experiment has {what} yet: there is nothing to recommend."
        return Section("answer", "", (page.lead(why, doubt=True),))
    tiles = [
        tile
        for name, estimate in findings.expected.items()
        for tile in _outcome_tiles(findings, name, estimate)
    ]
    ahead: list[str] = []
    if findings.is_by_mean:
        [outcome] = findings.parts
        tiles += [*_single_runs(outcome), _left(outcome)]
        said = outlook_sentences(outcome.outlook, findings.space, outcome.name, outcome.unit)
        ahead = [page.points(said)]
    lead = page.lead(_lead(findings), doubt=findings.is_doubtful)
    settings = page.answer(settings_rows(findings), tiles)
    return Section("answer", "", (lead, settings, *ahead, page.note(_note(findings))))


def _lead(findings: Findings) -> str:
    if findings.best.reason:
        return findings.best.reason
    [(name, want)] = objectives(findings.outcomes).items()
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


def _note(findings: Findings) -> str:
    """Say what the numbers mean."""
    goals = [
        f"{'' if findings.is_single else f'{o.name}: '}{o.want.better(o.unit)}."
        for o in findings.parts
    ]
    has_shares = any(e.capability for e in findings.expected.values())
    shares = (
        "Shares are those of executed inputs: where the design lands. Intervals of shares, Cpk and "
        "ppm hold 90% of what the model believes."
    )
    over = ", wherever the design lands" if findings.uncertain else ""
    return " ".join(
        [
            *(goal[0].upper() + goal[1:] if findings.is_single else goal for goal in goals),
            f"The expected value is the mean of many repetitions{over}. ± is one standard "
            "deviation (model uncertainty).",
            *([shares] if has_shares else []),
            *([] if findings.is_by_mean else [MEAN_ONLY]),
        ]
    )


# -- what to set


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
    return at_end + (f"lands at {lands(findings, name)}" if name in findings.uncertain else "")


def lands(findings: Findings, name: str) -> str:
    """Say where a parameter lands, 95 of 100 times."""
    low, high = findings.executed_interval(name)
    text = words.between(low, high)
    return words.with_unit(text, words.unit_of(findings.parameter(name)))


def _bound_reached(findings: Findings, name: str) -> str | None:
    if findings.space.names.index(name) in findings.space.categorical_columns:
        return None
    [position] = findings.positions_of(name, findings.center)
    if position <= NEAR_BOUND:
        return "lower"
    return "upper" if position >= 1 - NEAR_BOUND else None


# -- what to expect


def _outcome_tiles(findings: Findings, name: str, estimate: OutcomeEstimate) -> list[Tile]:
    """Show one outcome: in several tiles where it is alone, in one where there are others."""
    if name not in findings.outcomes:  # whether a design can be used
        return [Tile(f"{name}: works", words.percent(estimate.within or 0.0), "of executed inputs")]
    outcome = next(o for o in findings.parts if o.name == name)
    want = outcome.want
    if isinstance(want, Limit):
        return [_limit_tile(outcome, want, estimate)]
    expected = Tile(
        f"Expected {name}",
        outcome.written(outcome.here),
        f"95% sure: {words.interval(outcome.here)}",
    )
    if isinstance(want.measure, Mean):
        return [expected]
    main = _measure_tiles(outcome, want, estimate)
    return [*main, expected] if findings.is_single else main[:1]


def _measure_tiles(outcome: OutcomeFindings, want: Want, estimate: OutcomeEstimate) -> list[Tile]:
    """Show the measure that an objective counts by."""
    c = estimate.capability
    if c is not None:
        spec = f"{outcome.name} {words.with_unit(want.where, outcome.unit)}"
        low, high = c.cpk_interval
        return [
            Tile(f"In spec: {spec}", words.percent(c.share), f"90% sure: {_interval(c)}"),
            Tile("Cpk", cpk_words(c.cpk), f"90% sure: {cpk_words(low)} to {cpk_words(high)}"),
            Tile("Out of spec", f"{words.ppm(c.ppm)} ppm",
                 f"90% sure: {words.ppm(c.ppm_interval[0])} to {words.ppm(c.ppm_interval[1])}"),
        ]  # fmt: skip
    if isinstance(want.measure, Target):
        away = words.number(max(0.0, -estimate.mean) ** 0.5, 3)
        target = words.with_unit(f"{want.measure.value:g}", outcome.unit)
        title = f"{outcome.name} away from {target}"
        return [Tile(title, words.with_unit(away, outcome.unit), "root of the mean square")]
    return [
        Tile(f"{outcome.name}, {want.measure.words}", outcome.written(estimate), "what decides")
    ]


def _limit_tile(outcome: OutcomeFindings, want: Limit, estimate: OutcomeEstimate) -> Tile:
    """Show how often a limit is kept."""
    c = estimate.capability
    assert c is not None
    return Tile(
        f"{outcome.name} {words.with_unit(want.where, outcome.unit)}",
        words.percent(c.share),
        f"90% sure: {_interval(c)}. Required: {100 * want.probability:.12g}%. Probability that the "
        f"design meets this: {chance(estimate.holds or 0.0)}. Expected {outcome.name}: "
        f"{outcome.written(outcome.here)}.",
    )


def _interval(c: Capability) -> str:
    low, high = c.share_interval
    return f"{words.percent(low)} to {words.percent(high)}"


# -- where the mean of one outcome decides


def _single_runs(outcome: OutcomeFindings) -> list[Tile]:
    """Show where single runs lie, if the model can say."""
    findings = outcome.findings
    ends = single_run(findings.optimizer, findings.best.design, outcome.name)
    if ends is None:
        return []
    return [
        Tile("Single runs", words.with_unit(words.between(*ends), outcome.unit), "9 of 10 lie here")
    ]


def _left(outcome: OutcomeFindings) -> Tile:
    outlook, unit = outcome.outlook, outcome.unit
    sign = "+" if outcome.want.sign > 0 else "−"
    shown = words.with_unit(f"{sign}{words.number(outlook.gains[AHEAD], 2)}", unit)
    tolerance = words.with_unit(words.number(outlook.tolerance, 2), unit)
    return Tile(
        "Left to gain",
        shown,
        f"Expected from {AHEAD} more experiments. Chance that nothing is better by more than "
        f"{tolerance}: {chance(outlook.probability)}.",
    )


# -- the front


def front_section(findings: Findings) -> Section | None:
    """Show the designs that no other one beats; None where there is one objective."""
    names = list(objectives(findings.outcomes))
    if len(names) < 2:
        return None
    if findings.best.holds is not None and findings.is_doubtful:
        return Section(
            "front", "The front", (page.text(f"There is no front yet. {findings.best.reason}"),)
        )
    explained = page.note(
        "Designs that keep all limits and that no other one beats by all objectives. Star: the "
        "compromise, which is recommended above. If you weigh the objectives otherwise, choose "
        "another design of the table."
    )
    outcomes = {o.name: o for o in findings.parts}
    pairs = [(outcomes[a], outcomes[b]) for a, b in combinations(names, 2)]
    figures = [(f"{b.name} over {a.name}", front_figure(findings, a, b)) for a, b in pairs]
    parameters = findings.space.parameters
    header = [words.label(n, words.unit_of(p)) for n, p in parameters.items()]
    header += [outcome.label for outcome in findings.parts]
    rows = [
        [*(findings.bare(n, r.design[n]) for n in parameters),
         *(expected_words(o.want, r.outcomes[o.name]) for o in findings.parts)]
        for r in findings.front
    ]  # fmt: skip
    parts = explained, page.charts(figures), page.table(header, rows)
    return Section("front", "The front", parts)


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
