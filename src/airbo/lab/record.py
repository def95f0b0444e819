"""What the events of a campaign add up to: its experiments, and the history of all changes.

``fold`` is a pure function. Events about different experiments do not depend on each other; an
event that was undone counts as if it had never happened, but stays in the history.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Literal

from airbo import words
from airbo.lab.errors import CampaignError
from airbo.lab.events import (
    AboutExperiment,
    Asked,
    Begun,
    Changed,
    Event,
    Excluded,
    Noted,
    Told,
    Undone,
)
from airbo.observed import VALUE
from airbo.space import Design

Stage = Literal["pending", "ok", "failed", "given up"]


@dataclass(frozen=True)
class Experiment:
    """A design and what became of it."""

    number: int
    """Its number, from 0."""
    design: Design
    outcome: Stage
    outcomes: Mapping[str, float] = field(default_factory=dict)
    """What was measured, by name."""
    executed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the executed input, and of the environment, where they were measured."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What was known of the environment when it was asked for."""
    asked: datetime | None = None
    """When it was asked for, in UTC."""
    told: datetime | None = None
    """When its outcome was told first, in UTC."""
    by: str | None = None
    """Who told its outcome first."""
    uncertainty: Any = None
    """Description of the uncertainty of the experiment; None: not known."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Known standard deviations of the noise, by the name of the outcome."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units in which it was told, by the name of the outcome."""
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""
    run: Mapping[str, Any] | None = None
    """The process that runs it unattended."""
    reason: str = ""
    """Why it was asked for, and what was expected of it then."""
    excluded: str | None = None
    """Why it is left out of the model; None if it is not."""
    notes: tuple[str, ...] = ()
    """What people wrote about it."""

    @property
    def is_pending(self) -> bool:
        """Whether somebody still has to answer."""
        return self.outcome == "pending"

    @property
    def has_outcome(self) -> bool:
        """Whether it was told, as values or as failed."""
        return self.outcome in ("ok", "failed")

    @property
    def counts(self) -> bool:
        """Whether the model knows its outcome."""
        return self.has_outcome and self.excluded is None

    def age(self, now: datetime | None = None) -> timedelta:
        """Return how long ago it was asked."""
        return timedelta(0) if self.asked is None else (now or datetime.now(UTC)) - self.asked


@dataclass(frozen=True)
class Change:
    """One entry of the history."""

    at: datetime
    """When, in UTC."""
    by: str
    what: str
    """begun, changed (the file), asked, added, told, failed, given up, imported, corrected,
    excluded, included, noted or undone."""
    numbers: tuple[int, ...]
    """The experiments that it is about."""
    text: str
    """What it changed, in words."""
    events: tuple[int, ...]
    """Positions of its events in the campaign."""
    call: str
    """Changes with the same one were made at once, and are undone together."""
    undone: bool = False
    """Whether it was taken back."""
    undoable: bool = True
    """Whether a person made it and can take it back."""

    @property
    def about(self) -> str:
        """The experiments in short, such as ``3-5, 8``."""
        return in_short(self.numbers)

    @property
    def said(self) -> str:
        """What was done, and what it changed."""
        return f"{self.what}: {self.text}" if self.text else self.what

    def __str__(self) -> str:
        experiments = "experiment" if len(self.numbers) == 1 else "experiments"
        about = f"{self.what} ({experiments} {self.about})"
        return f"{about}: {self.text}" if self.text else about


def in_short(numbers: Sequence[int]) -> str:
    """Write numbers so that ranges are short.

    >>> in_short([3, 4, 5, 8])
    '3-5, 8'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)


@dataclass(frozen=True)
class Record:
    """All that is known of a campaign at one moment. Nobody changes it: share it freely."""

    experiments: list[Experiment]
    """In the order of their numbers."""
    history: list[Change]
    """The oldest first."""
    events: Sequence[Event] = ()
    begun: Mapping[str, Any] = field(default_factory=dict)
    """What the file said when the campaign began."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """What it said when the last event was written."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """Of parameters that came later: the value that former experiments were made with."""

    @property
    def version(self) -> str:
        """A text that changes with every event."""
        return self.events[-1].digest if self.events else ""

    @property
    def next_number(self) -> int:
        """A number that no experiment ever had."""
        facts = (event.fact for event in self.events)
        return 1 + max((f.number for f in facts if isinstance(f, AboutExperiment)), default=-1)

    @property
    def pending(self) -> list[Experiment]:
        """The experiments that somebody still has to answer."""
        return [e for e in self.experiments if e.is_pending]

    @property
    def changes(self) -> list[Change]:
        """What people changed, the oldest first."""
        return [c for c in self.history if c.undoable or c.what == "undone"]

    @property
    def last_change(self) -> list[Change]:
        """What an undo takes back: the last change, and what was said in the same call."""
        standing = [c for c in self.history if c.undoable and not c.undone]
        return [c for c in standing if c.call == standing[-1].call]

    @cached_property
    def by_number(self) -> dict[int, Experiment]:
        """The experiments by what people call them."""
        return {e.number: e for e in self.experiments}

    def get(self, number: int) -> Experiment:
        """Return the experiment that people call ``number``."""
        found = self.by_number.get(number)
        if found is None:
            numbers = [e.number for e in self.pending]
            pending = f"pending: {', '.join(map(str, numbers))}" if numbers else "none is pending"
            raise CampaignError(f"There is no experiment {number} ({pending}).")
        return found

    def numbers_of(self, call: str) -> list[int]:
        """Return the experiments that the events of one call are about, each once."""
        facts = (event.fact for event in self.events if event.call == call)
        return list(dict.fromkeys(f.number for f in facts if isinstance(f, AboutExperiment)))

    def completed(
        self, before: Mapping[str, Any], names: Sequence[str], uncertainty: Sequence[Any]
    ) -> "Record":
        """Give experiments that are older than a parameter its value, and its uncertainty.

        Args:
            before: The values, by name; the file may correct those of earlier events.
            names: All parameters, in their order.
            uncertainty: Of the file now.
        """
        before = {name: v for name, v in {**self.before, **before}.items() if name in names}
        if not before:
            return self
        experiments = []
        for e in self.experiments:
            new = {name: value for name, value in before.items() if name not in e.design}
            if new:
                # hit as the file says now, as far as that is about new parameters alone
                own = [u for u in uncertainty if set(u["parameters"]) <= set(new)]
                under = None if e.uncertainty is None else [*e.uncertainty, *own]
                design = {**e.design, **new}
                ordered = {name: design[name] for name in names if name in design}
                e = replace(e, design={**ordered, **design}, uncertainty=under)
            experiments.append(e)
        return replace(self, before=before, experiments=experiments)

    def named(self, first: str) -> "Record":
        """Give values that were told without a name the name of the first objective."""
        if first == VALUE:
            return self
        return replace(self, experiments=[_named(e, first) for e in self.experiments])


def _named(e: Experiment, first: str) -> Experiment:
    def name(given: Mapping[str, Any]) -> dict[str, Any]:
        return {first if key == VALUE else key: value for key, value in given.items()}

    if not e.outcomes:
        return e
    return replace(e, outcomes=name(e.outcomes), units=name(e.units), noise=name(e.noise))


def fold(events: Sequence[Event]) -> Record:
    """Return what events, in their order, add up to.

    It never fails: an event about an experiment that does not exist changes nothing, as where a
    part of the events was lost.
    """
    folding = _Folding()
    for event in events:
        if isinstance(event.fact, AboutExperiment):
            folding.about(event, event.fact)
        elif isinstance(event.fact, Undone):
            folding.undo(event, event.fact)
        else:
            folding.file_says(event, event.fact)
    folding.join_rows()
    found = sorted(folding.experiments.items())
    experiments = [experiment for _, experiment in found if experiment is not None]
    said = (folding.begun, folding.file, folding.before)
    return Record(experiments, folding.history, events, *said)


class _Folding:
    """The state while events are gone through."""

    def __init__(self) -> None:
        self.experiments: dict[int, Experiment | None] = {}
        self.history: list[Change] = []
        self.begun: Mapping[str, Any] = {}
        self.file: Mapping[str, Any] = {}
        self.before: Mapping[str, Any] = {}
        self._standing: dict[int, dict[int, tuple[Event, Any]]] = {}
        """By number and position: the events that count, and the uncertainty of the file then."""
        self._place: dict[int, int] = {}
        """Where in the history an event is."""
        self._rows: list[tuple[int, int]] = []
        """Experiments and positions of the further events of the import that was added last."""

    def about(self, event: Event, fact: AboutExperiment) -> None:
        under = self.file.get("uncertainty")
        self._standing.setdefault(fact.number, {})[event.seq] = event, under
        before = self.experiments.get(fact.number)
        after = self.experiments[fact.number] = _applied(before, event, under)
        last = self.history[-1] if self.history else None
        if last and (last.what, last.call) == ("imported", event.call):
            self._rows.append((fact.number, event.seq))
            self._place[event.seq] = len(self.history) - 1
        else:
            what, text, undoable = _described(fact, before, after, self.file.get("outcomes", {}))
            self._add(event, what, (fact.number,), text, undoable)

    def join_rows(self) -> None:
        """Make one change of all rows of an import."""
        if self._rows:
            last = self.history[-1]
            numbers = tuple(dict.fromkeys([*last.numbers, *(number for number, _ in self._rows)]))
            events = (*last.events, *(seq for _, seq in self._rows))
            text = f"{words.plural(len(numbers), 'row')} of {last.text.partition(' of ')[2]}"
            self.history[-1] = replace(last, numbers=numbers, text=text, events=events)
            self._rows = []

    def undo(self, event: Event, fact: Undone) -> None:
        self.join_rows()
        taken_back = set(fact.events)
        for number, standing in self._standing.items():
            if taken_back & standing.keys():
                for seq in taken_back & standing.keys():
                    del standing[seq]
                self.experiments[number] = None
                for earlier, under in standing.values():
                    known = self.experiments[number]
                    self.experiments[number] = _applied(known, earlier, under)
        places = sorted({self._place[seq] for seq in taken_back if seq in self._place})
        changes = [self.history[place] for place in places]
        for place in places:
            self.history[place] = replace(self.history[place], undone=True)
        numbers = sorted({number for change in changes for number in change.numbers})
        text = "; ".join(f"{change.what}: {change.text}" for change in changes)
        self._add(event, "undone", numbers, text, undoable=False)

    def file_says(self, event: Event, fact: Begun | Changed) -> None:
        names = [name for name in fact.file if fact.file[name] != self.file.get(name)]
        self.file = fact.file
        self.before = {**self.before, **fact.file.get("before", {})}
        if isinstance(fact, Begun):
            self.begun = fact.file
            self._add(event, "begun", (), "the campaign", undoable=False)
        else:
            self._add(event, "changed", (), f"the file: {', '.join(names)}", undoable=False)

    def _add(
        self, event: Event, what: str, numbers: Iterable[int], text: str, undoable: bool = True
    ) -> None:
        self.join_rows()
        self._place[event.seq] = len(self.history)
        self.history.append(
            Change(event.at, event.by, what, tuple(numbers), text, (event.seq,), event.call,
                   undoable=undoable)
        )  # fmt: skip


def _applied(e: Experiment | None, event: Event, under: Any) -> Experiment | None:
    """Return what an experiment is after an event.

    Args:
        e: What it was before; None: there was none.
        event: What happened.
        under: The uncertainty of the file then.
    """
    fact = event.fact
    if isinstance(fact, Asked):
        if e is None:
            asked = _moment(fact.at, event)
            return Experiment(fact.number, fact.design, "pending", asked=asked, uncertainty=under,
                              run=fact.run, reason=fact.reason, given=fact.given)  # fmt: skip
        return replace(e, run=fact.run) if e.is_pending else e
    if isinstance(fact, Told):
        asked = _moment(fact.asked or fact.at, event)
        new = Experiment(fact.number, fact.design, "pending", asked=asked, uncertainty=under)
        after = answered(e or new, fact)
        if e is not None and e.has_outcome:
            return after
        return replace(after, told=_moment(fact.at, event), by=fact.by or event.by)
    if e is None:
        return None
    if isinstance(fact, Noted):
        return replace(e, notes=(*e.notes, fact.text))
    return replace(e, excluded=fact.why) if isinstance(fact, Excluded) else e


def answered(e: Experiment, told: Told) -> Experiment:
    """Return what an experiment is after a report; who told it first, and when, stays."""
    return replace(
        e,
        design=told.design,
        outcome="ok" if told.outcomes else "given up" if told.gave_up else "failed",
        outcomes=told.outcomes,
        executed=told.executed,
        uncertainty=e.uncertainty if told.uncertainty is None else told.uncertainty,
        noise=told.noise,
        units=told.units,
        infeasible=told.infeasible,
    )


def _moment(text: str | None, event: Event) -> datetime:
    return event.at if text is None else datetime.fromisoformat(text)


def _described(
    fact: AboutExperiment,
    before: Experiment | None,
    after: Experiment | None,
    units: Mapping[str, str | None],
) -> tuple[str, str, bool]:
    """Say what an event changed: what, in words, and whether it can be undone."""
    if isinstance(fact, Asked):
        design = words.pairs(fact.design)
        design += f", given {words.pairs(fact.given)}" if fact.given else ""
        return "asked", design if before is None else "another process runs it", False
    if isinstance(fact, Noted):
        return "noted", fact.text, True
    if isinstance(fact, Excluded) and fact.why is None:
        return "included", "the model knows it again", True
    if isinstance(fact, Excluded):
        return "excluded", fact.why or "", True
    assert after is not None
    if fact.source is not None:
        return "imported", f"1 row of {fact.source}", True
    if (
        before is not None
        and before.has_outcome
        and not fact.gave_up
        and not adds_to(before, after)
    ):
        return "corrected", ", ".join(differences(before, after, units)) or "nothing", True
    if fact.gave_up:
        return "given up", "", True
    measured = words.pairs(after.executed)
    text = words.result(after, units) + (f", measured {measured}" if measured else "")
    if before is None:
        return "added", text, True
    what = "failed" if after.outcome == "failed" else "told"
    return what, ", ".join([text, *_moved(before, after)]), True


def adds_to(before: Experiment, after: Experiment) -> bool:
    """Say whether an outcome was measured later, and nothing that was known has changed."""
    more = replace(before, outcomes=after.outcomes, units=after.units, noise=after.noise)
    is_more = before.outcomes.items() < after.outcomes.items()
    keeps_noise = before.noise.items() <= after.noise.items()
    return bool(before.outcomes) and is_more and keeps_noise and more == after


def differences(
    before: Experiment, after: Experiment, units: Mapping[str, str | None]
) -> list[str]:
    """Say what a correction changed."""
    found = []
    was, now = (words.result(e, units) for e in (before, after))
    if was != now or dict(before.outcomes) != dict(after.outcomes):
        found.append(f"{was} → {now}")
    found += _moved(before, after)
    for name in dict.fromkeys([*before.executed, *after.executed]):
        old, new = before.executed.get(name), after.executed.get(name)
        if old != new:
            was, now = ("not measured" if v is None else words.shown(v) for v in (old, new))
            found.append(f"measured {name} {was} → {now}")
    if dict(before.noise) != dict(after.noise):
        found.append(f"known noise {words.pairs(before.noise)} → {words.pairs(after.noise)}")
    if before.uncertainty != after.uncertainty and before.has_outcome:
        found.append("made under another uncertainty")
    return found


def _moved(before: Experiment, after: Experiment) -> list[str]:
    """Say which parameters were set otherwise than was known."""
    return [
        f"{name} {words.shown(before.design.get(name))} → {words.shown(value)}"
        for name, value in after.design.items()
        if before.design.get(name, value) != value
    ]


@dataclass(frozen=True)
class Status:
    """Where a campaign stands."""

    n_ok: int
    n_failed: int
    n_given_up: int
    n_excluded: int
    """Those among them that somebody excluded from the model."""
    pending: list[Experiment]
    waiting: list[tuple[Experiment, list[str]]]
    """Experiments with values, and the outcomes of each that were not measured yet."""
    best: Experiment | None
    """The experiment with the best observed value: the luckiest, not the recommended one."""
