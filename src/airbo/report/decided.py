"""The first screen if a measure or several outcomes decide: what to set, and what to expect."""

import warnings
from collections.abc import Mapping
from functools import cached_property
from itertools import combinations

from torch import Tensor

from airbo import words
from airbo.analysis import Handover
from airbo.analysis.words import MEAN_ONLY, as_percent
from airbo.measures import InSpec, Mean, Target
from airbo.measures.capability import Capability
from airbo.observed import INFEASIBLE, STATUS, VALUE
from airbo.optimizer import Optimizer, Recommendation, TooLittleDataWarning
from airbo.optimizer.recommendation import OutcomeEstimate
from airbo.outcomes import Aim, Limit, Want, expected_words, objectives
from airbo.report.findings import Findings
from airbo.report.frame import settings_rows
from airbo.report.front import front_figure
from airbo.report.in_spec import Bounds, add_in_spec
from airbo.report.page import Page, Tile


class Decided:
    """The findings of an optimizer that decides by a measure, or by several outcomes."""

    def __init__(self, optimizer: Optimizer, name: str, unit: str | None,
                 units: Mapping[str, str | None]) -> None:  # fmt: skip
        """Look at an optimizer.

        Args:
            optimizer: It is not changed.
            name: What the observed values are, where an experiment has one.
            unit: Their unit.
            units: Units of the outcomes, by name.
        """
        self.optimizer = optimizer
        self.outcomes: Mapping[str, Want] = (
            optimizer.outcomes if [*optimizer.outcomes] != [VALUE] else {}
        )
        self.units = units if self.is_several else {name: unit}
        self.name = name

    @property
    def is_several(self) -> bool:
        """Whether there are several outcomes, one of which may be that a design can be used."""
        status = self.optimizer.observations[STATUS]
        return len(self.outcomes) > 1 or bool((status == INFEASIBLE).any())

    @property
    def missing(self) -> list[str]:
        """Outcomes that no experiment has measured."""
        table = self.optimizer.observations
        return [name for name in self.outcomes if self.is_several and not table[name].notna().any()]

    @property
    def nothing(self) -> Findings:
        """What is known before the first experiment."""
        first = self.optimizer.of_outcome(next(iter(self.outcomes)))
        return Findings(first.as_of(0), self.name, decided_by=self.optimizer)

    @cached_property
    def _answer(self) -> tuple[Recommendation, bool]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            best = self.optimizer.recommend()
        return best, any(issubclass(w.category, TooLittleDataWarning) for w in caught)

    @property
    def best(self) -> Recommendation:
        """The recommendation."""
        return self._answer[0]

    @property
    def is_doubtful(self) -> bool:
        """Whether too little is known to recommend a design."""
        return self._answer[1]

    @cached_property
    def parts(self) -> list[Findings]:
        """What is known of the mean of each outcome, at the recommended design."""
        names = list(self.outcomes) if self.is_several else [self.name]
        return [
            Findings(
                self.optimizer.of_outcome(name if self.is_several else None),
                name,
                self.units.get(name),
                self.best.design,
                self.is_several,
                self.optimizer,
            )
            for name in names
        ]

    @property
    def limited(self) -> list[tuple[Findings, Bounds, Capability]]:
        """The values that have limits: what is known of them, the limits, how they are kept."""
        found = {name: e.capability for name, e in self.best.outcomes.items()}
        known = found if self.is_several else {self.name: self.best.capability}
        by_name = {part.name: part for part in self.parts}
        return [(by_name[name], self._bounds(name), c) for name, c in known.items() if c]

    def _bounds(self, name: str) -> Bounds:
        want = self.outcomes.get(name)
        if isinstance(want, Limit):
            return want.bounds
        measure = want.measure if want is not None else self.optimizer.measure
        assert isinstance(measure, InSpec)
        return measure.low, measure.high

    def values(self, name: str) -> Tensor:
        """Return draws of the values of an outcome at the recommended design, in use."""
        outcome = name if self.is_several else None
        return self.optimizer.outcome_model(outcome).values(self.best.design)

    @cached_property
    def handover(self) -> Handover:
        """Operating window and tolerance budgets, where there are limits."""
        return Handover.of(self.optimizer, self.best.design)


def add_decision(page: Page, decided: Decided) -> None:
    """Add what to set, and what to expect of every outcome."""
    best = decided.best
    lead = best.reason or f"Set this to get the best {_by(decided)}."
    page.lead(lead, doubt=decided.is_doubtful)
    tiles = _outcome_tiles(decided) if decided.is_several else measure_tiles(decided)
    page.answer(settings_rows(decided.parts[0]), tiles)
    has_limits = any(e.capability for e in best.outcomes.values())
    ends = "; intervals of shares, Cpk and ppm hold 90% of what it believes" if has_limits else ""
    intervals = ends if decided.is_several else "; intervals hold 90% of what it believes"
    page.note(
        f"± is one standard deviation (model uncertainty){intervals}. Shares are those of executed "
        f"inputs: where the design lands. {MEAN_ONLY}"
    )


def _by(decided: Decided) -> str:
    return f"{decided.name} by what counts: the {decided.optimizer.measure.words}"


def measure_tiles(decided: Decided) -> list[Tile]:
    """Show the measure that decides, and the mean."""
    best, [part] = decided.best, decided.parts
    mean = Tile(
        f"Expected {part.name}",
        words.with_unit(words.plus_minus(part.best), part.unit),
        "on average over where the design lands",
    )
    if best.capability is not None:
        c = best.capability
        low, high = c.share_interval
        return [
            Tile("In spec", as_percent(c.share), f"{as_percent(low)} to {as_percent(high)}"),
            Tile("Cpk", f"{c.cpk:.2f}", f"{c.cpk_interval[0]:.2f} to {c.cpk_interval[1]:.2f}"),
            Tile("Out of spec", f"{c.ppm:,.0f} ppm",
                 f"{c.ppm_interval[0]:,.0f} to {c.ppm_interval[1]:,.0f}"),
            mean,
        ]  # fmt: skip
    measure = decided.optimizer.measure
    if isinstance(measure, Target):
        away = words.with_unit(words.number(max(0.0, -best.mean) ** 0.5, 3), part.unit)
        return [Tile(f"Away from {measure.value:g}", away, "root of the mean square"), mean]
    shown = words.with_unit(words.plus_minus(best), part.unit)
    return [Tile(measure.words.capitalize(), shown, "what decides"), mean]


def _outcome_tiles(decided: Decided) -> list[Tile]:
    return [
        _outcome_tile(name, decided.outcomes.get(name), estimate, decided.units.get(name))
        for name, estimate in decided.best.outcomes.items()
    ]


def _outcome_tile(name: str, want: Want | None, e: OutcomeEstimate, unit: str | None) -> Tile:
    """Show an objective with what to expect, and a limit with how often it is kept."""
    expected = expected_words(want, e, unit)
    quality = "" if e.capability is None else _quality(e.capability)
    if isinstance(want, Aim):
        by = "mean" if isinstance(want.measure, Mean) else want.measure.words
        has_unit = not isinstance(want.measure, InSpec | Target)
        note = f"95% sure: {words.interval(e)}" if has_unit else quality
        return Tile(f"{name}, {by}", expected, note)
    within, holds = e.within or 0.0, e.holds or 0.0
    if not isinstance(want, Limit):  # whether a design can be used
        return Tile(f"{name}: works", as_percent(within), "of executed inputs")
    return Tile(
        f"{name} {words.with_unit(want.where, unit)}",
        as_percent(within),
        f"Required: {100 * want.probability:.12g}%. Probability that the design meets this: "
        f"{as_percent(holds)}. {quality} Expected {name}: {expected}.",
    )


def _quality(c: Capability) -> str:
    """Write what stands beside a share in spec."""
    low, high = c.share_interval
    return (
        f"In spec: {as_percent(low)} to {as_percent(high)}. Cpk: {_cpk(c)}. Out of spec: {_ppm(c)}."
    )


def _cpk(c: Capability) -> str:
    return f"{c.cpk:.2f} ({c.cpk_interval[0]:.2f} to {c.cpk_interval[1]:.2f})"


def _ppm(c: Capability) -> str:
    return f"{c.ppm:,.0f} ppm ({c.ppm_interval[0]:,.0f} to {c.ppm_interval[1]:,.0f})"


def add_limits(page: Page, decided: Decided) -> None:
    """Add the values to expect beside their limits."""
    for part, bounds, capability in decided.limited:
        add_in_spec(page, part, bounds, capability, decided.values(part.name))


# -- the front


def add_front(page: Page, decided: Decided) -> None:
    """Add the designs that no other one beats by all objectives."""
    names = list(objectives(decided.outcomes))
    if len(names) < 2:
        return
    page.section("The front")
    if decided.best.holds is not None and decided.is_doubtful:
        page.text(f"There is no front yet. {decided.best.reason}")
        return
    front = decided.optimizer.front()
    page.note(
        "Designs that keep all limits and that no other one beats by all objectives. Star: the "
        "compromise, which is recommended above. If you weigh the objectives otherwise, choose "
        "another design of the table."
    )
    pairs = combinations(names, 2)
    table, space = decided.optimizer.observations, decided.optimizer.space
    page.charts(
        [
            (
                f"{b} over {a}",
                front_figure(
                    space, (table[a], table[b]), front, decided.best, (a, b), decided.units
                ),
            )
            for a, b in pairs
        ]
    )
    parameters = decided.optimizer.space.parameters
    header = [words.label(n, words.unit_of(p)) for n, p in parameters.items()]
    header += [words.label(name, decided.units.get(name)) for name in decided.outcomes]
    shown = decided.parts[0].bare
    rows = [
        [*(shown(n, r.design[n]) for n in parameters),
         *(expected_words(want, r.outcomes[name]) for name, want in decided.outcomes.items())]
        for r in front
    ]  # fmt: skip
    page.table(header, rows)
