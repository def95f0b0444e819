"""What somebody reports of an experiment: understood, checked and questioned; nothing is stored."""

import contextlib
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airbo import words
from airbo.lab.advice import optimizer_from
from airbo.lab.errors import AlreadyTold, CampaignError, Doubtful
from airbo.lab.events import Abandoned, Failed, Told
from airbo.lab.file import Settings
from airbo.lab.limits import check_place
from airbo.lab.record import Experiment, Record
from airbo.measures.kinds import bounds_words
from airbo.observed import check_executed, check_noise_of
from airbo.outcomes import check_values
from airbo.space import Design, Space
from airbo.space.parameters import Categorical
from airbo.uncertainty.kinds import describe_uncertainty, read_uncertainty

if TYPE_CHECKING:
    from airbo.optimizer import Optimizer

SAME_DESIGN = 1e-5
"""Designs closer than this, relative to the ranges, differ only by the rounding of a print."""

FAR_OUTSIDE = 0.5
"""How far outside its range a parameter may land without a question, in ranges."""
MANY_DEVIATIONS = 6.0
"""How far from the mean of the others a value may lie, in their standard deviations."""
MANY = 8
"""Fewer values than this have no reliable standard deviation: only a decimal slip shows."""
FEW = 3
"""With fewer other values, no value counts as unusual."""
ALIKE, SLIP = 3.0, 7.0
"""Where all others agree within the first factor, the second one looks like a decimal slip."""
MOST_QUESTIONED = 20
"""Number of lines of a table that are questioned one by one."""


@dataclass(frozen=True)
class Report:
    """What somebody says about one experiment; see ``Campaign.tell``."""

    what: int | Mapping[str, Any]
    value: Any = None
    _: KW_ONLY
    design: Mapping[str, Any] | None = None
    executed: Mapping[str, Any] | None = None
    noise: Any = None
    uncertainty: Any = None
    infeasible: bool = False
    gave_up: bool = False
    note: str | None = None
    correct: bool = False
    again: bool = False
    allow_outside: bool = False


@dataclass(frozen=True)
class Entry:
    """A report that was understood and checked."""

    design: Design
    outcomes: Mapping[str, float]
    """What was measured, by name; nothing, if it failed or was given up."""
    executed: Mapping[str, Any]
    uncertainty: Any = None
    """Description of what it was made under, where that was said; None: nothing was."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Known standard deviations of the noise, by outcome."""
    experiment: Experiment | None = None
    """What it is about; None: a design that nobody asked for."""
    correct: bool = False
    """Whether it may replace another outcome."""
    gave_up: bool = False
    """Whether the experiment was not run and will not be."""
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""

    @property
    def is_known(self) -> bool:
        """Whether its experiment has this outcome already."""
        known = self.experiment
        return known is not None and not known.is_pending and self.agrees(known, self.correct)

    def agrees(self, known: Experiment, fully: bool = False) -> bool:
        """Say whether an experiment has this outcome already.

        Args:
            known: What was told before.
            fully: Whether a report without a measured input says that there is none; otherwise it
                says nothing about it.
        """
        said, own = (json.dumps(u, sort_keys=True) for u in (self.uncertainty, known.uncertainty))
        silent = not self.executed and not fully
        outcome = "given up" if self.gave_up else "ok" if self.outcomes else "failed"
        return (
            (known.outcome, dict(known.outcomes)) == (outcome, dict(self.outcomes))
            and known.infeasible == self.infeasible
            and (self.experiment is None or dict(known.design) == dict(self.design))
            and (self.uncertainty is None or said == own)
            and (silent or dict(self.executed) == dict(known.executed))
            and (not self.noise or dict(self.noise) == dict(known.noise))
        )

    def check_free(self, units: Mapping[str, str | None]) -> None:
        """Refuse a report that contradicts an earlier one, unless it is a correction."""
        known = self.experiment
        if known is None or not known.has_outcome or self.correct or self.agrees(known):
            return
        is_more = known.outcomes and known.outcomes.items() < self.outcomes.items()
        if is_more and self.agrees(replace(known, outcomes=self.outcomes)):
            return  # what was measured later contradicts nothing
        said = words.result(known, units)
        raise AlreadyTold(f"Experiment {known.number} was told before: {said}.")

    def fact(self, number: int, settings: Settings, **more: Any) -> Told | Failed | Abandoned:
        """Return the event that stores it."""
        if self.gave_up:
            return Abandoned(number)
        common = {"executed": dict(self.executed), "uncertainty": self.uncertainty, **more}
        if not self.outcomes:
            return Failed(number, dict(self.design), infeasible=self.infeasible, **common)
        kept = {} if self.experiment is None else self.experiment.units
        units = {n: settings.units.get(n) or kept.get(n) for n in self.outcomes}
        return Told(
            number,
            dict(self.design),
            {settings.event_name(name): value for name, value in self.outcomes.items()},
            noise={settings.event_name(name): std for name, std in self.noise.items()},
            units={settings.event_name(name): unit for name, unit in units.items() if unit},
            **common,
        )


@dataclass(frozen=True)
class EntryReader:
    """Understands what is said, given the file and all experiments so far."""

    settings: Settings
    record: Record

    def entry(self, report: Report) -> Entry:
        """Find out what is meant, and check it."""
        what, known = report.what, None
        if isinstance(what, Mapping):
            if report.gave_up:
                raise CampaignError("Only an experiment that has a number can be given up.")
            said = self._said(report, self._checked(what, report.allow_outside))
            known = self._experiment_with(said, report.again)
        else:
            known = self.record.get(what)
            said = self._said(report, self._moved(known, report))
        if known is not None:
            said = _about(said, known, report)
        if not report.gave_up:
            self._check(said)
        said.check_free(self.settings.units)
        return said

    def added(self, report: Report) -> Entry:
        """Check what is said about a design that is another experiment in any case."""
        assert isinstance(report.what, Mapping)
        entry = self._said(report, self._checked(report.what, report.allow_outside))
        self._check(entry)
        return entry

    def _checked(self, design: Mapping[str, Any], allow_outside: bool) -> Design:
        """Read a design that was not asked for."""
        space = self.settings.space
        try:
            plain = space.checked(design, allow_outside)
            check_place(space, plain, "the design")
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        return plain

    def _moved(self, experiment: Experiment, report: Report) -> Design:
        """Return a design of which some parameters were set otherwise than asked."""
        space, known = self.settings.space, dict(experiment.design)
        if not report.design:
            return known
        low = {name: p.decode(p.range[0]) for name, p in space.parameters.items()}
        try:  # the others may lie outside: they were asked for, or told, before the file changed
            plain = Space(space.parameters).checked({**low, **report.design}, report.allow_outside)
            moved = {name: plain[name] for name in report.design if plain[name] != known[name]}
            if moved and not report.allow_outside and not space.meets({**known, **moved}):
                space.check({**known, **moved})  # says which constraint
            check_place(space, moved, "the design")
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        return {**known, **moved}

    def _said(self, report: Report, design: Design) -> Entry:
        """Read plain values, as the optimizer writes them."""
        space, executed = self.settings.space, report.executed or {}
        for name in executed:
            if isinstance(space.parameters.get(name), Categorical):
                raise CampaignError(f"executed: {name!r} is a choice, which is always set exactly.")
        try:
            measured = check_executed(space, design, executed)
            outcomes = check_values(self.settings.outcomes, report.value) or {}
            noise = check_noise_of(outcomes, report.noise, self.settings.is_single)
            check_place(space.whole, measured, "executed")
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        if outcomes and report.infeasible:
            raise CampaignError(
                "infeasible=True is for experiments that failed; this one has outcomes: "
                f"{words.quoted(outcomes)}."
            )
        return Entry(
            design,
            outcomes,
            measured,
            _description(report.uncertainty),
            noise,
            correct=report.correct,
            gave_up=report.gave_up,
            infeasible=report.infeasible,
        )

    def _experiment_with(self, said: Entry, again: bool) -> Experiment | None:
        """Return the experiment that a design without a number is about, if there is one."""
        away = self.settings.space.distance
        alike = [e for e in self.record.experiments if away(e.design, said.design) < SAME_DESIGN]
        pending = [e for e in alike if e.is_pending]
        known = [e for e in alike if e.has_outcome and not again and said.agrees(e)]
        return next(iter([*pending, *known]), None)

    # -- what no model could use

    def _check(self, entry: Entry) -> None:
        """Refuse it; PyTorch is asked only where plain numbers cannot tell."""
        parameters = self.settings.space.whole.parameters
        for name, value in {**entry.design, **entry.executed}.items():
            if parameters[name].log and value <= 0:
                raise CampaignError(
                    f"Parameter {name!r} is logarithmic and must be > 0, got {float(value)}."
                )
        known = None if entry.experiment is None else entry.experiment.uncertainty
        said = (entry.uncertainty, known, self.settings.described_uncertainty)
        under = next(each for each in said if each is not None)
        groups = [set(row["parameters"]) for row in under]
        for name in self.settings.space.environment if entry.outcomes or entry.infeasible else ():
            if name not in entry.executed and not any(name in own for own in groups):
                raise CampaignError(
                    f"{name!r} has no law, so every experiment has to measure it: say what it was, "
                    f"as in {name}=50, or write a law into the file."
                )
        is_partly_measured = any(0 < len(own & set(entry.executed)) < len(own) for own in groups)
        is_inside = entry.experiment is not None and entry.design == entry.experiment.design
        if not is_inside:
            with contextlib.suppress(ValueError):
                self.settings.space.check(entry.design)
                is_inside = True
        if under in self._usable and is_inside and not is_partly_measured:
            return
        try:
            self._optimizer.tell(
                entry.design,
                entry.outcomes or None,
                entry.executed,
                read_uncertainty(under),
                allow_outside=True,
            )
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        self._usable.append(under)

    @cached_property
    def _usable(self) -> list[Any]:
        """Uncertainties that a model can use, as an earlier experiment showed."""
        told = [e.uncertainty for e in self.record.experiments if e.uncertainty is not None]
        return list({json.dumps(each, sort_keys=True): each for each in told}.values())

    @cached_property
    def _optimizer(self) -> "Optimizer":
        return optimizer_from(self.settings, [])


def _description(uncertainty: Any) -> Any:
    """Describe an uncertainty that is given by name; a description stays as it is."""
    if uncertainty is None or isinstance(uncertainty, list):
        return uncertainty
    if not isinstance(uncertainty, Mapping):
        raise CampaignError("The uncertainty of an experiment is given by parameter name.")
    try:
        return describe_uncertainty(uncertainty)
    except AttributeError:
        raise CampaignError(
            f"Each uncertainty must be an airbo.uncertainty, got {uncertainty!r}."
        ) from None


def _about(said: Entry, known: Experiment, report: Report) -> Entry:
    """Complete what is said with what is known: a correction keeps what nobody speaks of."""
    keeps = report.executed != {} and not report.gave_up
    kept = (known.executed if known.has_outcome else known.given) if keeps else {}
    return replace(
        said,
        experiment=known,
        design=said.design if report.design else known.design,
        outcomes={**known.outcomes, **said.outcomes} if said.outcomes else {},
        executed={**kept, **said.executed},
        noise={**known.noise, **said.noise} if said.outcomes else {},
    )


def check_once(entries: Sequence[Entry]) -> None:
    """Refuse several outcomes of one experiment that contradict each other."""
    said: dict[int, Entry] = {}
    for entry in entries:
        if entry.experiment is not None:
            number = entry.experiment.number
            if said.setdefault(number, entry) != entry:
                raise CampaignError(
                    f"Experiment {number} is reported twice, with different outcomes."
                )


# -- numbers that are possible but look like typing errors: they are questioned


def check_plausible(
    settings: Settings, record: Record, entries: Sequence[Entry], lines: Sequence[int] = ()
) -> None:
    """Question what looks like a typing error, all of it at once.

    Args:
        settings: The campaign file.
        record: What is known before.
        entries: What is said. Each is compared with the others as well.
        lines: Where they stand, if that is in a table.

    Raises:
        Doubtful: If there is such.
    """
    new = [(i, entry) for i, entry in enumerate(entries) if not entry.is_known]
    doubts = [(i, text) for i, entry in new for text in _about_input(settings, entry)]
    own = {entry.experiment.number for _, entry in new if entry.experiment is not None}
    told = [e.outcomes for e in record.experiments if e.counts and e.number not in own]
    for name in settings.outcomes:
        values = [v[name] for v in (*told, *(entry.outcomes for _, entry in new)) if name in v]
        far = far_values(values)
        for i, entry in new:
            value = entry.outcomes.get(name)
            if value is not None and (text := _about_value(settings, name, value, values, far)):
                doubts.append((i, text))
    if doubts:
        listed = [f"Line {lines[i]}: {t}" if lines else t for i, t in sorted(doubts)]
        n_more = len(listed) - MOST_QUESTIONED
        more = [f"There are {n_more} more such lines."] if n_more > 0 else []
        raise Doubtful([*listed[:MOST_QUESTIONED], *more])


def _about_input(settings: Settings, entry: Entry) -> Iterator[str]:
    known = {} if entry.experiment is None else entry.experiment.executed
    for name, value in entry.executed.items():
        parameter = settings.space.whole.parameters[name]
        if known.get(name) == value or isinstance(parameter, Categorical):
            continue
        low, high, at = (
            # on the scale of the parameter
            (math.log(v) if v > 0 else -math.inf) if parameter.log else v
            for v in (*parameter.range, value)
        )
        if max(low - at, at - high) > FAR_OUTSIDE * (high - low):
            reach = " to ".join(map(words.number, parameter.range))
            reach = words.with_unit(reach, words.unit_of(parameter))
            said = f"{name}: an executed input of {words.number(value)}"
            yield f"{said} is far outside the range {reach}."


def _about_value(
    settings: Settings, name: str, value: float, values: list[float], far: set[float]
) -> str:
    """Question a value that cannot be, or is far from all others; or say nothing."""
    said, unit = f"A {name} of {words.number(value)} is", settings.units.get(name)
    low, high = settings.plausible.get(name, (None, None))
    if (low is not None and value < low) or (high is not None and value > high):
        between = words.with_unit(bounds_words(low, high), unit)
        return f"{said} not plausible: the file says {between}."
    if value not in far:
        return ""
    others = _without(values, value)
    reach = f"{words.number(min(others))} to {words.number(max(others))}"
    return f"{said} far from all others, which are {words.with_unit(reach, unit)}."


def far_values(values: list[float]) -> set[float]:
    """Return the values that are far from all others."""
    mean = statistics.fmean(values or [0.0])
    found = set()
    for value in sorted(set(values), key=lambda v: -abs(v - mean)):
        if is_far(value, _without(values, value)):
            found.add(value)
        elif len(values) > MANY:
            break  # values nearer to the mean are nearer to the others, too
    return found


def _without(values: list[float], value: float) -> list[float]:
    others = [*values]
    others.remove(value)
    return others


def is_far(value: float, others: list[float]) -> bool:
    """Say whether a value is far from all others."""
    if len(others) < FEW:
        return False
    if len(others) < MANY:
        sizes = [abs(other) for other in others]
        alike = min(others) * max(others) > 0 and max(sizes) < ALIKE * min(sizes)
        return alike and not min(sizes) / SLIP < abs(value) < max(sizes) * SLIP
    mean = statistics.fmean(others)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in others) / (len(others) - 1))
    return abs(value - mean) > MANY_DEVIATIONS * deviation > 0
