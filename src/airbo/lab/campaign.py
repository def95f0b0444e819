"""A campaign: ask, tell and recommend over days, kept as events in a database."""

import copy
import getpass
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airbo.lab import events
from airbo.lab.advice import Adviser, Given, Policy, check_given, modelled, optimizer_from
from airbo.lab.entry import SAME_DESIGN, Entry, EntryReader, Report, check_once, check_plausible
from airbo.lab.errors import CampaignError, StorageError
from airbo.lab.file import Settings
from airbo.lab.record import Change, Experiment, Record, Status, adds_to, differences, fold
from airbo.lab.store import Outdated, Store
from airbo.space import Design, Space
from airbo.space.parameters import Categorical, Parameter
from airbo.words import quoted, same_unit

if TYPE_CHECKING:
    import pandas as pd

    from airbo.lab.prediction import Prediction
    from airbo.lab.tables import ExperimentTable, Imported, Source
    from airbo.optimizer import Optimizer, Recommendation
    from airbo.uncertainty.in_cube import NamedUncertainty

Done = Literal["told", "already told", "corrected", "added"]
C = TypeVar("C", bound="Campaign")

MOST_TRIES = 30
"""How often to choose again when somebody else has just been given the same design."""
MOST_WRITES = 200
"""How often to decide again when somebody else has just written."""


def user() -> str:
    """Return the name to sign changes with: ``AIRBO_USER``, or that of the account."""
    name = os.environ.get("AIRBO_USER", "").strip()
    try:
        return name or getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
        return "unknown"


@dataclass(frozen=True)
class Told:
    """What telling did."""

    experiment: Experiment
    done: Done
    before: Experiment | None = None
    """What was known of the experiment until then; None: nothing was."""
    changes: Sequence[str] = ()
    """What is different now, in words."""


class Campaign:
    """Experiments that last for days, shared by several people or machines.

    All state is in the storage, and every method reads what is new in it: several processes can
    work on one campaign, and one that is killed loses nothing that it has reported.
    """

    def __init__(self, settings: Settings) -> None:
        """Open the campaign that settings describe; ``Campaign.open`` is the usual way."""
        self.settings = settings
        self.by = user()
        self.store = Store(settings.storage, settings.path.parent, settings.name)
        self._record = Record([], [])
        try:
            check_fit(self.record(), settings)
        except CampaignError:
            self.close()
            raise

    @classmethod
    def open(cls: type[C], path: str | Path = "campaign.toml") -> C:
        """Open the campaign of a file. The first ask, or tell, begins it.

        Raises:
            DamageError: If something that was told is missing from the storage, or was changed
            there.
            CampaignError: If the file has mistakes, the storage cannot be used, or it belongs to
                another campaign.
        """
        return cls(Settings.read(path))

    def close(self) -> None:
        """Close the connections to the storage; leaving a ``with`` block does so too."""
        self.store.close()

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def signed(self: C, by: str) -> C:
        """Return the same campaign, where changes are signed with another name.

        By default they are signed with ``AIRBO_USER``, or with the name of the account.
        """
        found = copy.copy(self)
        found.by = by
        return found

    # -- reading

    def record(self) -> Record:
        """Return all that is known now. Only what is new is read."""
        known = self._record.events
        if not known and not self.store.is_there:
            return self._record
        new = self.store.read(known[-1] if known else None)
        if new:
            self._remember(new)
        return self._record

    def _remember(self, new: Sequence[events.Event]) -> None:
        settings, record = self.settings, fold([*self._record.events, *new])
        named, under = record.named(settings.value_name), settings.described["uncertainty"]
        self._record = named.completed(settings.before, settings.space.names, under)

    @property
    def experiments(self) -> list[Experiment]:
        """All experiments, pending ones too, in the order of their numbers."""
        return self.record().experiments

    def experiment(self, number: int) -> Experiment:
        """Return the experiment with a number."""
        return self.record().get(number)

    def history(self) -> list[Change]:
        """Return every change of the campaign, the oldest first: who, when, what."""
        return self.record().history

    def status(self, record: Record | None = None) -> Status:
        """Say where the campaign stands."""
        record, settings = record or self.record(), self.settings
        outcomes = [e.outcome for e in record.experiments]
        told = [e for e in record.experiments if e.counts and e.outcomes]
        missing = [(e, [n for n in settings.outcomes if n not in e.outcomes]) for e in told]
        name, want = next(iter(settings.outcomes.items()))
        rivals = [e for e in told if settings.is_single and name in e.outcomes]
        return Status(
            n_ok=outcomes.count("ok"),
            n_failed=outcomes.count("failed"),
            n_given_up=outcomes.count("given up"),
            n_excluded=sum(e.excluded is not None for e in record.experiments),
            pending=record.pending,
            waiting=[(e, names) for e, names in missing if names],
            best=max(rivals, key=lambda e: want.merit(e.outcomes[name]), default=None),
        )

    # -- changing

    def _change(
        self, key: str | None, decide: Callable[[Record], Sequence[events.Fact]]
    ) -> tuple[str, Record, bool]:
        """Decide what to write, and write it, all or nothing.

        Args:
            key: Of the call; one that was written before is not written again.
            decide: Returns the events, given what is known. It is called again if somebody else
                has written meanwhile, so it must be quick.

        Returns:
            The key, what is known now, and whether anything was written.
        """
        call = events.new_key() if key is None else key
        if not events.is_key(call):
            raise CampaignError("A key is a text of 1 to 200 printable characters, without #.")
        for attempt in range(MOST_WRITES):
            record = self.record()
            if any(event.call == call for event in record.events):
                return call, record, False
            facts = decide(record)
            if not facts:
                return call, record, False
            try:
                last = record.events[-1] if record.events else None
                new = self.store.append(self._events(record, facts, call), last)
            except Outdated:
                time.sleep(min(0.001 * attempt, 0.05))
                continue
            self._remember(new)
            return call, self._record, True
        raise StorageError(f"The storage {self.store} is too busy: others keep writing to it.")

    def _events(
        self, record: Record, facts: Sequence[events.Fact], call: str
    ) -> list[events.Event]:
        """Sign events; where the file is new, or another one, that is written before them."""
        now, described = datetime.now(UTC), self.settings.described
        signs = "".join(c if c.isprintable() else " " for c in self.by)  # any database holds these
        by = " ".join(signs.split()) or "unknown"
        found = [*zip(events.keys_of(call, len(facts)), facts, strict=True)]
        if record.file != described:
            says = events.Changed if record.events else events.Begun
            found.insert(0, (events.new_key(), says(described)))
        return [events.Event(0, now, by, key, fact) for key, fact in found]

    # -- asking

    def ask(
        self,
        n: int = 1,
        *,
        given: Given = None,
        key: str | None = None,
        run: Mapping[str, Any] | None = None,
        budget: int | None = None,
    ) -> list[Experiment]:
        """Choose the next designs; what is pending is taken into account.

        Args:
            n: How many.
            given: What is known beforehand, by name: the environment of today, and parameters that
                have to have this value.
            key: Made by the caller, one for each call: the same call twice counts once.
            run: The process that runs them unattended, as ``airbo run`` describes itself.
            budget: How many experiments may be done, or under way in runs; none is chosen beyond.
        """
        from airbo.observed import whole_number

        n, call = whole_number("n", n, least=1), key or events.new_key()
        given = check_given(self.settings, given)
        around = {name: v for name, v in given.items() if name in self.settings.space.environment}
        for tries_left in reversed(range(MOST_TRIES)):
            known = self.record()
            if (budget is not None and n_under_way(known) >= budget) or known.numbers_of(call):
                break
            chosen = self._choose(known, n, given)

            def decide(
                record: Record, known: Record = known, chosen: Any = chosen, last: int = tries_left
            ) -> list[events.Fact]:
                if budget is not None and n_under_way(record) >= budget:
                    return []
                new = [e for e in record.experiments if e.number not in known.by_number]
                others = [e.design for e in new if e.outcome != "given up"]
                away = (self.settings.space.distance(d, o) for d, _ in chosen for o in others)
                if last and min(away, default=1.0) < SAME_DESIGN:
                    return []  # somebody else was given the same meanwhile
                return [
                    events.Asked(record.next_number + i, design, run, reason=why, given=around)
                    for i, (design, why) in enumerate(chosen)
                ]

            if self._change(call, decide)[2]:
                break
        record = self._record
        return [record.get(number) for number in record.numbers_of(call)]

    def _choose(self, record: Record, n: int, given: Mapping[str, Any]) -> list[tuple[Design, str]]:
        """Choose designs, and say why; no transaction is open meanwhile."""
        from airbo.lab.digits import as_held, digits_of
        from airbo.lab.prediction import FIRST, reason

        settings, known = self.settings, self.modelled(record)
        digits = digits_of(settings.space, settings.uncertainty)
        chosen = []
        try:
            optimizer = self.optimizer(record)
            for i in range(n):
                is_initial = optimizer.is_initial
                design = optimizer.ask(number=record.next_number + i, given=given)
                held = as_held(settings.space, digits, design, given)
                why = FIRST if is_initial else reason(optimizer, settings, known, held, given)
                chosen.append((held, why))
        except ValueError as error:
            raise CampaignError(f"No design can be chosen. {error}") from error
        return chosen

    def claim(
        self, number: int, run: Mapping[str, Any], instead_of: Mapping[str, Any] | None
    ) -> bool:
        """Let another process run a pending experiment; False: somebody else was faster."""

        def decide(record: Record) -> list[events.Fact]:
            known = record.get(number)
            if not known.is_pending or known.run != instead_of:
                return []
            return [events.Asked(number, known.design, dict(run))]

        return self._change(None, decide)[2]

    # -- telling

    def tell(
        self,
        what: int | Mapping[str, Any],
        value: Any,
        *,
        design: Mapping[str, Any] | None = None,
        executed: Mapping[str, Any] | None = None,
        noise: "float | Mapping[str, float] | None" = None,
        uncertainty: "NamedUncertainty | list[dict[str, Any]]" = None,
        correct: bool = False,
        again: bool = False,
        allow_outside: bool = False,
        sure: bool = False,
        note: str | None = None,
        key: str | None = None,
    ) -> Told:
        """Report what an experiment gave.

        The same report twice counts once, so that after a crash it can simply be repeated.

        Args:
            what: The number of the experiment, or a design: a pending one, or one that was never
                asked for.
            value: What was measured, as a dict by the names of the outcomes; the bare value will
                do where the file has one. None or NaN if the experiment failed.
            design: Parameters that you set to other values than asked, if ``what`` is a number.
            executed: Parameters of the executed input, and of the environment, where they were
                measured. What it does not name stays as told before, or as given when the
                experiment was asked for. ``{}``: nothing was measured.
            noise: The standard deviation of the noise of this value, if it is known; with several
                outcomes a dict of them, by name.
            uncertainty: The uncertainty of this experiment, by name, if not that of the file; or
                its description, as ``airbo.uncertainty.kinds.describe_uncertainty`` returns it.
            correct: Whether to replace another outcome that was told before.
            again: Whether a design and value that are known already are another experiment.
            allow_outside: Whether a design that was not asked for may lie outside the ranges.
            sure: Whether to store numbers that look like typing errors.
            note: Something to write about the experiment; it is taken back with the report.
            key: Made by the caller, one for each report: the same key twice counts once. A report
                with a key is not compared with others: the same design and value under another key
                are another experiment.

        Raises:
            AlreadyTold: If the experiment has another outcome and ``correct`` is not set.
            Doubtful: If a number looks like a typing error and ``sure`` is not set.
            CampaignError: If there is no such experiment, or something is wrong with the report.
        """
        report = Report(
            what,
            value,
            design=design,
            executed=executed,
            noise=noise,
            uncertainty=uncertainty,
            note=note,
            correct=correct,
            again=again,
            allow_outside=allow_outside,
        )
        return self._tell([report], sure, key)[0]

    def tell_all(
        self,
        reports: Sequence[tuple[int | Mapping[str, Any], Any]],
        *,
        sure: bool = False,
        key: str | None = None,
        **common: Any,
    ) -> list[Told]:
        """Report several experiments; if anything is wrong with one, none of them is stored.

        Args:
            reports: Pairs of a number or design and its value.
            sure: As for ``tell``.
            key: As for ``tell``.
            common: What else is said of all of them, as for ``tell``, ``fail`` (``infeasible``) and
                ``give_up`` (``gave_up``).
        """
        return self._tell([Report(*report, **common) for report in reports], sure, key)

    def _tell(self, reports: Sequence[Report], sure: bool, key: str | None) -> list[Told]:
        """Store reports: all of them, or none."""
        if key is not None:
            reports = [replace(report, again=True) for report in reports]
        said: list[tuple[Entry, int, bool]] = []
        """Each entry, its number, and whether it is new."""

        def decide(record: Record) -> list[events.Fact]:
            reader = EntryReader(self.settings, record)
            found = [reader.entry(report) for report in reports]
            check_once(found)
            if not sure:
                check_plausible(self.settings, record, found)
            said.clear()
            number, facts = record.next_number, list[events.Fact]()
            for entry, report in zip(found, reports, strict=True):
                same = next((s for s in said if s[0] == entry), None)
                if same is not None and (entry.experiment is not None or not report.again):
                    said.append((entry, same[1], False))  # the same twice counts once
                elif entry.experiment is None:
                    said.append((entry, number, True))
                    number += 1
                else:
                    said.append((entry, entry.experiment.number, not entry.is_known))
                if said[-1][2]:
                    facts.append(entry.fact(said[-1][1], self.settings))
                note = None if report.note is None else _text(report.note)
                known = () if entry.experiment is None else entry.experiment.notes
                if note is not None and same is None and note not in known:
                    facts.append(events.Noted(said[-1][1], note))
            return facts

        call, record, _ = self._change(key, decide)
        if not said:  # the same call was made before
            return [Told(record.get(n), "already told") for n in record.numbers_of(call)]
        found = []
        for entry, number, is_new in said:
            now, before = record.get(number), entry.experiment
            if not is_new:
                found.append(Told(now, "already told"))
            elif before is None:
                found.append(Told(now, "added"))
            elif not before.has_outcome and entry.told.design == before.design:
                found.append(Told(now, "told"))
            else:
                is_correction = before.has_outcome and not adds_to(before, now)
                changes = differences(before, now, self.settings.units)
                found.append(Told(now, "corrected" if is_correction else "told", before, changes))
        return found

    def fail(
        self,
        what: int | Mapping[str, Any],
        *,
        correct: bool = False,
        infeasible: bool = False,
        why: str | None = None,
        key: str | None = None,
    ) -> Told:
        """Report that an experiment was tried and gave no value.

        Args:
            what: As for ``tell``.
            correct: As for ``tell``.
            infeasible: Whether it failed because its design cannot be used.
            why: The reason, as a note on the experiment.
            key: As for ``tell``.
        """
        report = Report(what, correct=correct, infeasible=infeasible, note=why)
        return self._tell([report], False, key)[0]

    def give_up(
        self,
        number: int,
        *,
        correct: bool = False,
        note: str | None = None,
        key: str | None = None,
    ) -> Told:
        """Report that an experiment will not be run; the model learns nothing from it.

        Args:
            number: Of the experiment.
            correct: Whether to replace an outcome that was told before.
            note: As for ``fail``.
            key: As for ``tell``.
        """
        report = Report(number, correct=correct, gave_up=True, note=note)
        return self._tell([report], False, key)[0]

    # -- what was told before

    def undo(self, *, key: str | None = None) -> list[Change]:
        """Take back the last change: a report, an import, a correction, an exclusion or a note.

        An experiment that airbo asked for becomes pending again. Called again, it takes back the
        change before. What is taken back stays in the history. To restore it, tell it again.

        Returns:
            What was taken back: all that was said in the same call.

        Raises:
            CampaignError: If there is nothing to take back.
        """
        taken_back: list[Change] = []

        def decide(record: Record) -> list[events.Fact]:
            taken_back[:] = record.last_change
            if not taken_back:
                raise CampaignError("There is nothing to undo: nothing was reported yet.")
            return [events.Undone(sorted(seq for c in taken_back for seq in c.events))]

        self._change(key, decide)
        return taken_back

    def exclude(self, number: int, why: str, *, key: str | None = None) -> Experiment:
        """Keep an experiment, but leave it out of the model, and say why."""
        why = _text(why)

        def leave_out(known: Experiment) -> events.Fact:
            if not known.has_outcome:
                raise CampaignError(
                    f"Experiment {number} has no outcome that could be excluded: it is "
                    f"{known.outcome}."
                )
            return events.Excluded(number, why)

        return self._say_of(number, leave_out, key)

    def include(self, number: int, *, key: str | None = None) -> Experiment:
        """Include an experiment in the model again that was excluded."""

        def take_in(known: Experiment) -> events.Fact:
            if known.excluded is None:
                raise CampaignError(f"Experiment {number} is not excluded.")
            return events.Excluded(number, None)

        return self._say_of(number, take_in, key)

    def note(self, number: int, text: str, *, key: str | None = None) -> Experiment:
        """Write something about an experiment, for people to read."""
        text = _text(text)
        return self._say_of(number, lambda known: events.Noted(number, text), key)

    def _say_of(
        self, number: int, decide: Callable[[Experiment], events.Fact], key: str | None
    ) -> Experiment:
        return self._change(key, lambda record: [decide(record.get(number))])[1].get(number)

    # -- tables

    def import_table(
        self,
        source: "Source",
        *,
        again: bool = False,
        allow_outside: bool = False,
        ignore_others: bool = False,
        columns: Mapping[str, str] | None = None,
        uncertainty: "NamedUncertainty | list[dict[str, Any]]" = None,
        sure: bool = False,
    ) -> "Imported":
        """Import experiments that were done before: all rows, or none.

        Args:
            source: A CSV or Excel file, a table or a stream of CSV, with a column for each
                parameter and for the value, or the outcomes; where there is such, ``status`` (ok or
                failed) and ``executed_<name>``. Of a table that was exported, numbers that are
                free, notes, exclusions, times and names are kept.
            again: Whether a table that was imported before, and rows that the campaign has already,
                count once more.
            allow_outside: Whether designs may lie outside the ranges of the file.
            ignore_others: Whether to skip columns with other names.
            columns: Columns of the table that have other names than parameters and outcomes, by
                the name of these.
            uncertainty: The uncertainty of these experiments, if not that of the file.
            sure: Whether to store numbers that look like typing errors.

        Raises:
            FileError: If there are mistakes; each is named with its line, and nothing is changed.
            Doubtful: If numbers look like typing errors and ``sure`` is not set.
        """
        from airbo.lab.tables import read_experiments

        reader = EntryReader(self.settings, self.record())
        common = {"uncertainty": uncertainty, "allow_outside": allow_outside}
        table = read_experiments(reader, source, ignore_others, columns or {}, common)
        return self._import(table, again, sure)

    def _import(self, table: "ExperimentTable", again: bool, sure: bool) -> "Imported":
        from airbo.lab.tables import Imported

        found: dict[str, Any] = {}

        def decide(record: Record) -> list[events.Fact]:
            found["known"] = table.known(record)
            if found["known"] and not again:
                return []
            found["repeated"] = {} if again else table.repeated(record)
            new = table.without(found["repeated"])
            if not sure:
                lines = [row.line for row in new.rows]
                entries = [row.entry for row in new.rows]
                check_plausible(self.settings, record, entries, lines)
            return new.facts(self.settings, record)

        call, record, is_new = self._change(table.new_call(self.record()), decide)
        if not is_new:
            numbers = record.numbers_of(found.get("known") or call)
            return Imported(numbers or [*found["repeated"].values()], already=True)
        return Imported(record.numbers_of(call), False, table.n_left_out, found["repeated"])

    def import_study(
        self, url: str, name: str, *, again: bool = False, allow_outside: bool = False
    ) -> "Imported":
        """Import the trials of an Optuna study: all or none.

        The values of a trial are those of the objectives in the file, in their order. Trials that
        are running or waiting are pending experiments; abandoned ones are left out.

        Args:
            url: The storage of the study.
            name: Its name.
            again: Whether a study that was imported before counts once more.
            allow_outside: Whether designs may lie outside the ranges of the file.

        Raises:
            FileError: If trials do not fit the file; each is named, and nothing is changed.
        """
        from airbo.lab.tables import read_trials

        reader = EntryReader(self.settings, self.record())
        return self._import(read_trials(reader, url, name, allow_outside), again, sure=True)

    def export(self) -> "pd.DataFrame":
        """Return all experiments as a table that ``import_table`` reads."""
        from airbo.lab.tables import table_of

        return table_of(self.settings, self.experiments)

    def export_history(self) -> "pd.DataFrame":
        """Return every change as a table: when, who, what, which experiments."""
        from airbo.lab.tables import table_of_changes

        return table_of_changes(self.history())

    # -- what the model says

    def adviser(self, record: Record | None = None) -> Adviser:
        """Return an adviser, which fits the model once and answers several questions."""
        return Adviser(self.settings, (record or self.record()).experiments)

    def recommend(self, policy: Policy | None = None, given: Given = None) -> "Recommendation":
        """Return the design with the best expected value; see ``Optimizer.recommend``.

        A design that nobody has tried has the digits that the machine can hold.
        """
        return self.adviser().recommend(policy, given)

    def front(self, policy: Policy | None = None, given: Given = None) -> "list[Recommendation]":
        """Return the designs that no other one beats by all objectives; see ``Optimizer.front``."""
        return self.adviser().front(policy, given)

    def predict(self, design: Mapping[str, Any], *, allow_outside: bool = False) -> "Prediction":
        """Return what to expect at a design: of every outcome, on average and in a single run.

        Args:
            design: What it does not name is set as recommended. It may name the environment, too;
                what it does not name of that follows its law.
            allow_outside: Whether it may lie outside the ranges.
        """
        return self.adviser().predict(design, allow_outside)

    def modelled(self, record: Record | None = None) -> list[Experiment]:
        """Return the experiments that ``optimizer`` was told, in that order."""
        return modelled(self.settings, (record or self.record()).experiments)

    def optimizer(self, record: Record | None = None) -> "Optimizer":
        """Return an optimizer that knows all experiments. What you tell it is not kept.

        It is what reports and pictures are made from.
        """
        return optimizer_from(self.settings, (record or self.record()).experiments)


def n_under_way(record: Record) -> int:
    """Return how many experiments are done, or under way in a run."""
    return sum(e.has_outcome or (e.is_pending and e.run is not None) for e in record.experiments)


def _text(text: str) -> str:
    if not text.strip():
        raise CampaignError("The text is empty.")
    return text.strip()


# -- whether the file is still about the same thing


def check_fit(record: Record, settings: Settings) -> None:
    """Refuse a file that is about something else than the campaign was when it began."""
    if not record.events:
        return
    begun = record.events[0].fact
    if not isinstance(begun, events.Begun) or begun.format != events.FORMAT:
        raise StorageError(
            f"The campaign {settings.name!r} was made by a newer airbo; this one reads format "
            f"{events.FORMAT}."
        )
    if record.file == settings.described:
        return
    what = []
    if begun.file["direction"] != settings.direction:
        was = begun.file["direction"]
        what.append(f"the direction was {was!r} and is now {settings.direction!r}")
    what += _refused_changes(Space.from_dict(record.file), settings.space, record.before)
    told = {name: unit for e in reversed(record.experiments) for name, unit in e.units.items()}
    units = [_changed_unit(n, u, settings.units[n]) for n, u in told.items() if n in settings.units]
    what += filter(None, units)
    if what:
        raise StorageError(
            f"{settings.path.name} does not fit the trials of campaign {settings.name!r} in "
            f"{settings.storage}: {'; '.join(what)}. Put it back, or begin a new campaign "
            "with another name and storage (`airbo export` and `airbo import` carry values over; "
            "convert those that get another unit)."
        )


def _refused_changes(old: Space, new: Space, before: Mapping[str, Any]) -> list[str]:
    removed = [f"parameter {n!r} is gone" for n in old.names if n not in new.names]
    removed += [f"environment {n!r} is gone" for n in old.environment if n not in new.environment]
    added = [
        f"parameter {n!r} is new (say with which value the former experiments were made: "
        f"before = ... in [parameters.{n}])"
        for n in new.names
        if n not in old.names and n not in before
    ]
    was, now = old.whole.parameters, new.whole.parameters
    changed = [_refused_change(n, was[n], now[n]) for n in was if n in now]
    return [*removed, *added, *filter(None, changed)]


def _refused_change(name: str, old: Parameter, new: Parameter) -> str:
    if type(old) is not type(new):
        return f"parameter {name!r} was of type {old.kind!r} and is now {new.kind!r}"
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        gone = [choice for choice in old.choices if choice not in new.choices]
        if gone:
            return f"the choices of {name!r} lack {quoted(gone)}, which they had before"
    elif old.log != new.log:
        was, now = ("logarithmic" if p.log else "linear" for p in (old, new))
        return f"parameter {name!r} was {was} and is now {now}"
    return _changed_unit(name, *(getattr(p, "unit", None) for p in (old, new)))


def _changed_unit(name: str, old: str | None, new: str | None) -> str:
    if old is None or same_unit(old, new):
        return ""
    return f"the unit of {name!r} was {old!r} and is {f'now {new!r}' if new else 'gone'}"
