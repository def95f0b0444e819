"""What somebody reports of an experiment: understood, checked and questioned; nothing is stored."""

import contextlib
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airbo import words
from airbo.lab.advice import optimizer_from
from airbo.lab.errors import AlreadyTold, CampaignError, Doubtful
from airbo.lab.events import Told
from airbo.lab.file import Settings
from airbo.lab.limits import check_place
from airbo.lab.record import Experiment, Record, adds_to, answered
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

    told: Told
    """What it says, with all that is known of its experiment and that it does not speak of."""
    experiment: Experiment | None = None
    """What it is about; None: a design that nobody asked for."""
    correct: bool = False
    """Whether it may replace another outcome."""

    @property
    def is_known(self) -> bool:
        """Whether its experiment has this outcome already; the file may have got a unit since."""
        known = self.experiment
        return (
            known is not None
            and not known.is_pending
            and replace(answered(known, self.told), units=known.units) == known
        )

    def check_free(self, units: Mapping[str, str | None]) -> None:
        """Refuse a report that contradicts an earlier one, unless it is a correction."""
        known = self.experiment
        if known is None or not known.has_outcome or self.correct or self.is_known:
            return
        if not adds_to(known, answered(known, self.told)):
            said = words.result(known, units)
            raise AlreadyTold(f"Experiment {known.number} was reported before: {said}.")

    def fact(self, number: int, settings: Settings, **more: Any) -> Told:
        """Return the event that stores it; it calls outcomes as all events do."""
        told, called = self.told, settings.event_name
        for field in ("outcomes", "noise", "units"):
            more[field] = {called(name): value for name, value in getattr(told, field).items()}
        return replace(told, number=number, **more)


@dataclass(frozen=True)
class EntryReader:
    """Understands what is said, given the file and all experiments so far."""

    settings: Settings
    record: Record

    def entry(self, report: Report) -> Entry:
        """Find out what is meant, and check it."""
        what = report.what
        if isinstance(what, Mapping):
            if report.gave_up:
                raise CampaignError("Only an experiment that has a number can be given up.")
            said = self._said(report, self._checked(what, report.allow_outside))
            found = self._about_same(said, report) or Entry(said)
        else:
            known = self.record.get(what)
            found = self._about(self._said(report, self._moved(known, report)), known, report)
        if not report.gave_up:
            self._check(found)
        found.check_free(self.settings.units)
        return found

    def added(self, report: Report) -> Entry:
        """Check what is said about a design that is another experiment in any case."""
        assert isinstance(report.what, Mapping)
        entry = Entry(self._said(report, self._checked(report.what, report.allow_outside)))
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

    def _said(self, report: Report, design: Design) -> Told:
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
        return Told(
            -1,
            design,
            outcomes,
            measured,
            _description(report.uncertainty),
            noise,
            self._units(outcomes, {}),
            infeasible=report.infeasible,
            gave_up=report.gave_up,
        )

    def _units(self, names: Iterable[str], known: Mapping[str, str]) -> dict[str, str]:
        """Return the units of outcomes: those of the file, or as told before."""
        units = self.settings.units
        return {name: unit for name in names if (unit := units.get(name) or known.get(name))}

    def _about_same(self, said: Told, report: Report) -> Entry | None:
        """Return what is said as about the experiment with this design, if there is one."""
        away = self.settings.space.distance
        alike = [e for e in self.record.experiments if away(e.design, said.design) < SAME_DESIGN]
        about = [self._about(said, e, report) for e in alike if e.is_pending or e.has_outcome]
        pending = [entry for entry in about if entry.experiment and entry.experiment.is_pending]
        known = [entry for entry in about if entry.is_known and not report.again]
        return next(iter([*pending, *known]), None)

    def _about(self, said: Told, known: Experiment, report: Report) -> Entry:
        """Complete what is said with what is known: a correction keeps what nobody speaks of."""
        keeps = report.executed != {} and not report.gave_up
        kept = (known.executed if known.has_outcome else known.given) if keeps else {}
        more: dict[str, Any] = {"executed": {**kept, **said.executed}}
        if said.outcomes:
            outcomes = more["outcomes"] = {**known.outcomes, **said.outcomes}
            more["noise"] = {**known.noise, **said.noise}
            more["units"] = self._units(outcomes, known.units)
        design = said.design if report.design else known.design
        return Entry(replace(said, design=design, **more), known, report.correct)

    # -- what no model could use

    def _check(self, entry: Entry) -> None:
        """Refuse it; PyTorch is asked only where plain numbers cannot tell."""
        told, space = entry.told, self.settings.space
        for name, value in {**told.design, **told.executed}.items():
            if space.whole.parameters[name].log and value <= 0:
                raise CampaignError(
                    f"Parameter {name!r} is logarithmic and must be > 0, got {float(value)}."
                )
        known = None if entry.experiment is None else entry.experiment.uncertainty
        said = (told.uncertainty, known, self.settings.described_uncertainty)
        under = next(each for each in said if each is not None)
        groups = [set(row["parameters"]) for row in under]
        for name in space.environment if told.outcomes or told.infeasible else ():
            if name not in told.executed and not any(name in own for own in groups):
                raise CampaignError(
                    f"{name!r} has no law, so every experiment has to measure it: say what it was, "
                    f"as in {name}=50, or write a law into the file."
                )
        is_partly_measured = any(0 < len(own & set(told.executed)) < len(own) for own in groups)
        is_inside = entry.experiment is not None and told.design == entry.experiment.design
        if not is_inside:
            with contextlib.suppress(ValueError):
                space.check(told.design)
                is_inside = True
        if under in self._usable and is_inside and not is_partly_measured:
            return
        try:
            self._optimizer.tell(
                told.design,
                told.outcomes or None,
                told.executed,
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
        return json.loads(json.dumps(describe_uncertainty(uncertainty)))  # as events are read
    except AttributeError:
        raise CampaignError(
            f"Each uncertainty must be an airbo.uncertainty, got {uncertainty!r}."
        ) from None


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
    told += [entry.told.outcomes for _, entry in new]
    for name in settings.outcomes:
        values = [outcomes[name] for outcomes in told if name in outcomes]
        far = far_values(values)
        for i, entry in new:
            value = entry.told.outcomes.get(name)
            if value is not None and (text := _about_value(settings, name, value, values, far)):
                doubts.append((i, text))
    if doubts:
        listed = [f"Line {lines[i]}: {t}" if lines else t for i, t in sorted(doubts)]
        n_more = len(listed) - MOST_QUESTIONED
        more = [f"There are {n_more} more such lines."] if n_more > 0 else []
        raise Doubtful([*listed[:MOST_QUESTIONED], *more])


def _about_input(settings: Settings, entry: Entry) -> Iterator[str]:
    known = {} if entry.experiment is None else entry.experiment.executed
    for name, value in entry.told.executed.items():
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
    said, unit = f"{name} = {words.number(value)} is", settings.units.get(name)
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
