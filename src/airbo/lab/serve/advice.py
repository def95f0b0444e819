"""What needs a model: choosing designs, and what was found. Runs in processes of its own."""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from airbo.lab.serve.jobs import Deliver

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from airbo.lab import Campaign, Settings
    from airbo.lab.advice import Adviser
    from airbo.optimizer import Recommendation
    from airbo.report import Findings

N_PAIRS = 3
"""Pairs of parameters that are drawn: those that matter most."""
N_STATES = 6
"""Number of earlier states in the chart of progress."""
_DOUBT = "Too little is known yet to tell the designs apart. If you have to choose now:"


@dataclass(frozen=True)
class Advice:
    """The recommendation, and how far it can be trusted."""

    rows: list[tuple[str, str, str]]
    """What to set, in the digits that the machine can hold: name, value, unit."""
    tiles: list[tuple[str, str]]
    """What to expect: label and number."""
    sentences: list[str]
    """Whether it is worth going on, and what the recommendation is based on."""
    doubt: str = ""
    """Why the model cannot be trusted yet."""
    front: list[list[str]] = field(default_factory=list)
    """The designs to choose from where there are several objectives: a header, then rows."""


@dataclass(frozen=True)
class Chart:
    """A chart for the page."""

    key: str
    title: str
    figure: str
    """As JSON for Plotly."""
    verdict: str = ""
    """What it says, in a sentence."""

    @cached_property
    def digest(self) -> str:
        """A text that changes with the figure."""
        return hashlib.sha256(self.figure.encode()).hexdigest()[:16]


def choose_designs(path: Path, n: int, key: str | None, report: Deliver) -> None:
    """Choose the next designs, which are then pending; those of one key are chosen once."""
    with _opened(path) as campaign:
        for i in range(n):
            asked = campaign.ask(key=None if key is None else f"{key}:{i}")
            for experiment in asked:
                report(experiment.number)


def work_out(path: Path, report: Deliver) -> None:
    """Work out the recommendation, and then the charts, one after the other."""
    with _opened(path) as campaign:
        settings, record = campaign.settings, campaign.record()
        adviser = campaign.adviser(record)
        best, is_doubtful = _recommended(adviser)
        several = [name for name, want in settings.outcomes.items() if not _is_limit(want)]
        front = adviser.front() if len(several) > 1 else []
        report(_advice(adviser, best, is_doubtful, front))
        for a, b in combinations(several, 2):
            report(_front_chart(adviser, best, front, (a, b)))
        _report_outcomes(adviser, best, report)


def _recommended(adviser: "Adviser") -> "tuple[Recommendation, bool]":
    """Return the recommendation, and whether too little is known to trust it."""
    from airbo.optimizer import TooLittleDataWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        best = adviser.recommend()
    return best, any(issubclass(w.category, TooLittleDataWarning) for w in caught)


def _is_limit(want: object) -> bool:
    from airbo.outcomes import Limit

    return isinstance(want, Limit)


def _advice(
    adviser: "Adviser",
    best: "Recommendation",
    is_doubtful: bool,
    front: "Sequence[Recommendation]",
) -> Advice:
    from airbo.lab.serve.view import design_rows
    from airbo.outcomes import Limit, expected_words

    settings = adviser.settings
    tiles: list[tuple[str, str]] = []
    reasons = _outlook(adviser) if adviser.knows_outlook else [best.reason] if best.reason else []
    for name, estimate in best.outcomes.items():
        want = settings.outcomes.get(name)
        tiles.append((f"Expected {name}", expected_words(want, estimate, settings.units.get(name))))
        if estimate.within is not None and isinstance(want, Limit):
            tiles.append((f"{name} {want.where}", f"{estimate.within:.1%} of runs"))
            reasons.append(
                f"{want.words(name)} is what the file asks for. The probability that this design "
                f"reaches it is {estimate.holds:.2f}."
            )
    if not adviser.knows_outlook:
        reasons += _window(adviser, best)
    unsafe = best.holds is not None and best.holds < 0.5
    return Advice(
        rows=design_rows(settings, best.design),
        tiles=tiles,
        sentences=reasons,
        doubt=best.reason if unsafe else _DOUBT if is_doubtful else "",
        front=_front_rows(settings, front),
    )


def _outlook(adviser: "Adviser") -> list[str]:
    """Say what further experiments can bring."""
    from airbo.analysis.words import outlook_sentences

    settings = adviser.settings
    outlook = adviser.look_ahead()
    return outlook_sentences(outlook, settings.space, settings.value_name, settings.value_unit)


def _window(adviser: "Adviser", best: "Recommendation") -> list[str]:
    """Say how far settings may move, where there are limits."""
    from airbo.analysis.words import window_sentences

    window = adviser.handover(best.design).window
    return window_sentences(window, adviser.settings.space) if window else []


def _front_rows(settings: "Settings", front: "Sequence[Recommendation]") -> list[list[str]]:
    from airbo.lab.serve.view import design_rows
    from airbo.outcomes import expected_words
    from airbo.words import label

    header = [label(name, settings.unit(name)) for name in settings.space.names]
    header += [label(name, unit) for name, unit in settings.units.items()]
    rows = [
        [
            *(value for _, value, _ in design_rows(settings, each.design)),
            *(
                expected_words(want, each.outcomes[name])
                for name, want in settings.outcomes.items()
            ),
        ]
        for each in front
    ]
    return [header, *rows] if rows else []


# -- charts


def _report_outcomes(adviser: "Adviser", best: "Recommendation", report: Deliver) -> None:
    """Draw the charts of every outcome that was measured."""
    from airbo.report import Findings

    settings, is_several = adviser.settings, not adviser.settings.is_single
    for name, unit in settings.units.items():
        one = adviser.optimizer.of_outcome(name)
        # where the mean of one value decides, the chart of progress can show earlier answers
        design = None if adviser.knows_outlook else best.design
        findings = Findings(one, name, unit, design, is_several, adviser.optimizer)
        report_charts(findings, report, N_STATES if adviser.knows_outlook else 0)


def _front_chart(
    adviser: "Adviser",
    best: "Recommendation",
    front: "Sequence[Recommendation]",
    names: tuple[str, str],
) -> Chart:
    """Draw the front of two objectives."""
    from airbo.report.front import front_figure

    settings, (a, b) = adviser.settings, names
    runs = [e.outcomes for e in adviser.experiments if e.counts and {a, b} <= e.outcomes.keys()]
    observed = ([run[a] for run in runs], [run[b] for run in runs])
    figure = front_figure(settings.space, observed, front, best, names, dict(settings.units))
    return _chart(f"front {a} {b}", f"{a} against {b}", figure)


def report_charts(findings: "Findings", report: Deliver, n_states: int) -> None:
    """Make the charts of one outcome, the quickest first."""
    from airbo.report import (
        Slice,
        earlier_recommendations,
        importance_figure,
        importances,
        left_out,
        parameter_figure,
        progress_figure,
        trust_figure,
    )
    from airbo.report.importance import importance_verdict
    from airbo.report.pairs import pair_figure, pairs_by_influence
    from airbo.report.trust import trust_verdict

    def show(key: str, title: str, figure: "go.Figure", verdict: str = "") -> None:
        report(_chart(f"{findings.name}: {key}", findings.titled(title), figure, verdict))

    show("progress", "Progress", progress_figure(findings))
    left = left_out(findings)
    if left is not None:
        verdict, _ = trust_verdict(left)
        show("trust", "Can the model be believed?", trust_figure(findings, left), verdict)
    slices = [Slice(findings, name) for name in findings.space.names]
    if len(slices) > 1:
        shares = importances(findings)
        show("importances", "What matters", importance_figure(shares), importance_verdict(shares))
    for along in slices:
        show(f"along {along.name}", f"Along {along.name}", parameter_figure(along))
    for a, b in pairs_by_influence(findings, slices)[:N_PAIRS]:
        show(f"pair {a} {b}", f"{b} over {a}", pair_figure(findings, a, b))
    if n_states:
        earlier = earlier_recommendations(findings, n_states)
        show("progress", "Progress", progress_figure(findings, earlier))


def _chart(key: str, title: str, figure: "go.Figure", verdict: str = "") -> Chart:
    return Chart(key, title, figure.to_json(), verdict)


def _opened(path: Path) -> "Campaign":
    """Open a campaign in a process that needs nothing but it."""
    import torch

    from airbo.lab import Campaign

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return Campaign.open(path)
