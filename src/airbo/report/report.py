"""The report: what was found, how sure that is, and what it is based on."""

import datetime
import os
from collections.abc import Mapping
from pathlib import Path

from airbo import __version__, words
from airbo.measures import Mean
from airbo.observed import OK, STATUS, VALUE, whole_number
from airbo.optimizer import Design, Optimizer
from airbo.report.decided import Decided, add_decision, add_front, add_limits
from airbo.report.findings import Findings, Tried
from airbo.report.frame import add_answer, add_settings, surrogate_name
from airbo.report.handover import add_budget, add_window
from airbo.report.importance import importance_figure, importance_verdict, importances
from airbo.report.logbook import Logbook, add_changes, add_failures
from airbo.report.page import Page
from airbo.report.pairs import pair_figure, pairs_by_influence
from airbo.report.precision import (
    ALL,
    Found,
    Offer,
    change_verdict,
    gains,
    precision_figure,
    precision_offers,
    strictness,
    times,
)
from airbo.report.progress import MAX_EARLIER, earlier_recommendations, progress_figure
from airbo.report.slices import Slice, parameter_figure
from airbo.report.trust import left_out, trust_figure, trust_verdict

MAX_PAIRS = 10
MAX_SIDE_BY_SIDE = 3
N_BEST_TRIED = 10


def write_report(
    optimizer: Optimizer,
    path: str | os.PathLike[str],
    *,
    title: str = "Report",
    value_name: str = "value",
    value_unit: str | None = None,
    date: datetime.date | str | None = None,
    history: int = MAX_EARLIER,
    logbook: Logbook | None = None,
    progress: bool = False,
    units: Mapping[str, str | None] | None = None,
) -> Path:
    """Write one HTML page that says what was found; it works offline and needs no other file.

    Args:
        optimizer: What to report on; it is not changed.
        path: The file to write. It is replaced only when the whole page is ready.
        title: The heading of the page.
        value_name: What the observed values are, such as ``"roughness"``.
        value_unit: Their unit.
        date: What the page is dated; by default it has no date.
        history: Number of earlier states of the record to which the model is refitted, to show the
            recommendation over time; 0: none.
        logbook: What people wrote down beside the values: ``Logbook.of(campaign)``.
        progress: Whether to show a progress bar.
        units: Units of the outcomes by name, where there are several.

    Returns:
        The path.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"A report is a file, but {str(target)!r} is a folder")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r} to write a report to.")
    n_states = whole_number("history", history, least=0)
    subtitle = _subtitle(optimizer, date)
    decided = Decided(optimizer, value_name, value_unit, units or {})
    is_known = (optimizer.observations[STATUS] == OK).any()
    if decided.is_several or (is_known and optimizer.measure != Mean()):
        html = _decided_page(decided, title, subtitle, logbook)
    else:
        alone = optimizer if [*optimizer.outcomes] == [VALUE] else optimizer.of_outcome()
        findings = Findings(alone, value_name, value_unit, decided_by=optimizer)
        html = _page(findings, title, subtitle, n_states, logbook, progress)
    _replace(target, html)
    return target


def _replace(target: Path, text: str) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8") as page:
            page.write(text)
            page.flush()
            os.fsync(page.fileno())  # else a power cut may leave an empty page under the new name
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _page(
    findings: Findings,
    title: str,
    subtitle: str,
    n_states: int,
    logbook: Logbook | None,
    progress: bool,
) -> str:
    page = Page(title, subtitle)
    add_answer(page, findings)
    if len(findings.known):
        slices = [Slice(findings, name) for name in findings.space.names]
        _add_trust(page, findings)
        _add_importances(page, findings)
        _add_slices(page, findings, slices)
        _add_pairs(page, findings, slices)
        _add_progress(page, findings, n_states, progress)
        _add_best(page, findings)
        _add_precision(page, findings)
    elif len(findings.optimizer.observations):
        _add_progress(page, findings, 0, progress)
    _add_records(page, findings, logbook)
    return page.html()


def _decided_page(decided: Decided, title: str, subtitle: str, logbook: Logbook | None) -> str:
    """Write the page where a measure decides, or several outcomes do."""
    page = Page(title, subtitle)
    if decided.missing:
        page.lead(
            f"No experiment has measured {words.listed(decided.missing)} yet: there is nothing to "
            "recommend.",
            doubt=True,
        )
        _add_records(page, decided.nothing, logbook)
        return page.html()
    add_decision(page, decided)
    add_front(page, decided)
    add_limits(page, decided)
    if decided.handover.window is not None:
        add_window(page, decided.parts[0], decided.handover.window)
    by_name = {part.name: part for part in decided.parts}
    for budget in decided.handover.budgets:
        add_budget(page, by_name[budget.outcome or decided.name], budget)
    for part in decided.parts:
        slices = [Slice(part, name) for name in part.space.names]
        _add_trust(page, part)
        _add_importances(page, part)
        _add_slices(page, part, slices)
        _add_pairs(page, part, slices)
        _add_progress(page, part, 0, progress=False)
    _add_records(page, decided.parts[0], logbook)
    return page.html()


def _add_records(page: Page, findings: Findings, logbook: Logbook | None) -> None:
    if logbook is not None:
        add_failures(page, logbook)
        add_changes(page, logbook)
    add_settings(page, findings)


def _subtitle(optimizer: Optimizer, date: datetime.date | str | None) -> str:
    table = optimizer.observations
    n, n_failed = len(table), int((table[STATUS] != OK).sum())
    parts = [f"{n} experiment{'s' if n != 1 else ''}"]
    parts += [f"{n_failed} of them failed"] if n_failed else []
    n_pending = len(optimizer.pending)
    parts += [f"{n_pending} pending"] if n_pending else []
    parts += [str(date)] if date is not None else []
    return " · ".join([*parts, f"airbo {__version__}"])


# -- charts


def _add_trust(page: Page, findings: Findings) -> None:
    page.section(findings.titled("Can the model be believed?"))
    left = left_out(findings)
    verdict, doubt = trust_verdict(left)
    if left is None:
        page.verdict(verdict, doubt)
        return
    notes = [
        "Each design was predicted without its own values, from all others. A perfect model lies "
        "on the dashed line; bars are ± two standard deviations of a single value.",
    ]
    page.beside(trust_figure(findings, left), verdict, doubt, notes)


def _add_importances(page: Page, findings: Findings) -> None:
    if findings.space.d == 1:
        return
    page.section(findings.titled("What matters"))
    shares = importances(findings)
    notes = [
        "The share of the differences in the expected value, over the whole space, that a "
        "parameter takes part in, alone or together with others. Where parameters act together, "
        "the shares add up to more than 100%.",
    ]
    page.beside(importance_figure(shares), importance_verdict(shares), False, notes)


def _add_progress(page: Page, findings: Findings, n_states: int, progress: bool) -> None:
    page.section(findings.titled("Progress"))
    earlier = earlier_recommendations(findings, n_states, progress) if n_states else []
    if earlier:
        page.note(
            "Solid: the expected value of the design that would have been recommended after so "
            "many experiments, as today's model judges it. Dotted: what was believed of it then, "
            f"± one standard deviation. The model was fitted again at {len(earlier)} of the "
            "states on the way. Observed values scatter, so the largest and the smallest are "
            "often luck."
        )
    page.charts([("", progress_figure(findings, earlier))])


def _add_slices(page: Page, findings: Findings, slices: list[Slice]) -> None:
    page.section(findings.titled("Along each parameter"))
    page.note(
        "The other parameters are as recommended (star). Blue: the expected value in use, ± two "
        "standard deviations (model uncertainty). Faded and dotted: no experiment was "
        "made there. Orange: what was observed, the fainter the more the other parameters differ. "
        + _nominal_view(findings)
    )
    page.charts([(_slice_title(findings, s.name), parameter_figure(s)) for s in slices])


def _nominal_view(findings: Findings) -> str:
    if not findings.uncertain:
        return "Designs are hit exactly in use."
    text = (
        "Grey, dashed: the value if the design were hit exactly. Below each chart: where the "
        "recommended design lands."
    )
    return f"{text} {_second_model(findings)}" if findings.second_model else text


def _second_model(findings: Findings) -> str:
    return (
        f"The surrogate of this optimization ({surrogate_name(findings)}) cannot say what other "
        "uncertainties would do; a second model, ugp, was fitted to the same experiments for that."
    )


def _slice_title(findings: Findings, name: str) -> str:
    return name if name in findings.uncertain else f"{name} (hit exactly)"


def _add_pairs(page: Page, findings: Findings, slices: list[Slice]) -> None:
    pairs = pairs_by_influence(findings, slices)
    if not pairs:
        return
    page.section(findings.titled("Pairs of parameters"))
    page.note(
        "The expected value in use; bright is good. The other parameters are as recommended, but "
        "those of the designs shown may differ: hover over a point to see all of it."
    )
    shown = pairs[:MAX_PAIRS]
    figures = [(f"{b} over {a}", pair_figure(findings, a, b)) for a, b in shown]
    if len(figures) <= MAX_SIDE_BY_SIDE:
        page.charts(figures)
        return
    left_out = len(pairs) - len(shown)
    if left_out:
        page.note(
            f"The {len(shown)} pairs that change the expected value most; "
            f"{left_out} others are left out."
        )
    page.choice("Pair of parameters", figures)


# -- tables


def _add_best(page: Page, findings: Findings) -> None:
    page.section("The best designs tried")
    if not findings.tried:
        page.text("No design inside the present ranges has been tried.")
        return
    page.note(
        "Ordered by the expected value, which the model works out from all experiments together. "
        "The observed mean is that of the runs of this very design, often a single one."
    )
    parameters = findings.space.parameters
    header = [words.label(n, words.unit_of(p)) for n, p in parameters.items()]
    header += [words.label("expected", findings.unit), "experiments"]
    header += [words.label("observed mean", findings.unit)]
    rows = [_tried_row(findings, row) for row in findings.tried[:N_BEST_TRIED]]
    page.table(["", *header], [[str(i), *row] for i, row in enumerate(rows, start=1)])


def _tried_row(findings: Findings, row: Tried) -> list[str]:
    cells = [findings.bare(name, row.design[name]) for name in findings.space.names]
    failed = f" + {row.n_failed} failed" if row.n_failed else ""
    count = f"{row.n_values}{failed}"
    return [*cells, words.plus_minus(row.expected), count, words.number(row.observed)]


def _add_precision(page: Page, findings: Findings) -> None:
    page.section("What precision would buy")
    offers = precision_offers(findings)
    if not offers:
        page.text("Designs are hit exactly in use: there is no precision to gain.")
        return
    strict = strictness(offers)
    page.verdict(_summary(findings, offers, strict))
    page.note(
        "What to expect if the deviations from the design were half or twice as large: at the "
        "recommended design, and at the best design for them. Changes are relative to the current "
        "deviations, ± one standard deviation. Several changes are compared here, so one counts "
        f"as clear only beyond {words.number(strict, 2)} standard deviations. Nobody has tried "
        "these precisions: this is what the model makes of the experiments."
    )
    if findings.second_model:
        page.note(_second_model(findings) + _disagreement(findings, offers[0]))
    page.charts([("", precision_figure(findings, offers))])
    header = ["deviations", "recommended design", "change", "best design for it", "", "change"]
    page.table(header, [_offer_row(findings, offer, strict) for offer in offers])


def _summary(findings: Findings, offers: list[Offer], strict: float) -> str:
    """Say first what all deviations halved would do, whatever the others do."""
    joint = next(o for o in reversed(offers) if o.factor < 1)
    found = joint.best or joint.same
    if found is None:
        return f"{joint.who} halved: not possible."
    who = "all deviations were" if joint.who == ALL else f"the deviations of {joint.who} were"
    text = f"If {who} halved: {change_verdict(findings, found.change, strict)}."
    clear = [offer.who for offer in gains(findings, offers, strict) if offer is not joint]
    others = [offer for offer in offers if offer.factor < 1 and offer is not joint]
    if clear:
        return f"{text} Halving those of {words.listed(clear)} alone is a clear gain, too."
    return f"{text} Halving those of one parameter alone is no clear gain." if others else text


def _disagreement(findings: Findings, today: Offer) -> str:
    """Say so where the second model expects something else of the recommended design."""
    if today.same is None:
        return ""
    other, best = today.same.expected, findings.best
    apart = abs(float(other.mean) - best.mean)
    if apart <= 2 * (float(other.std) ** 2 + best.std**2) ** 0.5:
        return ""
    return (
        f" The two do not agree on the recommended design ({words.plus_minus(other)} here): "
        "do not rely on this section."
    )


def _offer_row(findings: Findings, offer: Offer, strict: float) -> list[str]:
    who = "as it is" if offer.factor == 1.0 else f"{offer.who} {times(offer.factor)}"
    if offer.same is None:
        return [who, f"not possible. {offer.impossible}", "", "", "", ""]
    best = _found_cells(findings, offer.best, strict)
    design = _in_digits(findings, offer.best.design) if offer.best else "not looked up"
    return [who, *_found_cells(findings, offer.same, strict), design, *best]


def _in_digits(findings: Findings, design: Design) -> str:
    return ", ".join(f"{name} {findings.shown(name, value)}" for name, value in design.items())


def _found_cells(findings: Findings, found: Found | None, strict: float) -> list[str]:
    if found is None:
        return ["", ""]
    return [words.plus_minus(found.expected), change_verdict(findings, found.change, strict)]
