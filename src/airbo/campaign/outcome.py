"""What is said about an experiment: understood and checked once, before anything is written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from airbo.campaign.adviser import optimizer_from
from airbo.campaign.config import Settings
from airbo.campaign.errors import AlreadyTold, CampaignError
from airbo.campaign.experiment import Experiment, Record, Stage
from airbo.campaign.history import differences
from airbo.campaign.limits import check_place
from airbo.campaign.optuna.attributes import (
    EXECUTED,
    INFEASIBLE_DESIGN,
    OUTCOMES,
    STAMP,
    UNCERTAINTY,
    UNITS,
    describe_uncertainty,
    read_uncertainty,
)
from airbo.observed import check_executed, check_value
from airbo.outcomes import check_values
from airbo.space import Design, Space
from airbo.space.parameters import Categorical
from airbo.words import quoted

if TYPE_CHECKING:
    from airbo.optimizer import Optimizer

SAME_DESIGN = 1e-5
"""Designs closer than this, relative to the ranges, differ only by the rounding of a print."""

Done = Literal["told", "already told", "corrected", "added"]


@dataclass(frozen=True)
class Told:
    """What telling did."""

    experiment: Experiment
    done: Done
    before: Experiment | None = None
    """What was known of the experiment until then; None: nothing was."""

    @property
    def changes(self) -> list[str]:
        """What is different now, in words."""
        return [] if self.before is None else differences(self.before, self.experiment)


@dataclass(frozen=True)
class Outcome:
    """What is said about an experiment; nothing is written yet."""

    design: Design
    value: float | None
    """None if it failed."""
    executed: Mapping[str, Any]
    uncertainty: Any
    """Description of what it was made under, where that was said; None: nothing was."""
    in_force: Any
    """Description of what it was made under otherwise."""
    experiment: Experiment | None = None
    """What it is about; None: a design that nobody asked for."""
    correct: bool = False
    """Whether it may replace another outcome."""
    gave_up: bool = False
    """Whether the experiment was not run and will not be."""
    stamp: Mapping[str, Any] = field(default_factory=dict)
    """Who says it, and when."""
    outcomes: Mapping[str, float] | None = None
    """What was measured, where the campaign has several outcomes; ``value`` is the first objective,
    if that was."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of what was measured, as for an experiment."""
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""

    @property
    def outcome(self) -> Stage:
        """What became of the experiment."""
        if self.gave_up:
            return "given up"
        return "failed" if self.value is None and not self.outcomes else "ok"

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the trial that holds it."""
        under = self.in_force if self.uncertainty is None else self.uncertainty
        executed = {EXECUTED: dict(self.executed)} if self.executed else {}
        stamp = {STAMP: dict(self.stamp)} if self.stamp else {}
        several = {} if self.outcomes is None else {OUTCOMES: dict(self.outcomes)}
        units = {UNITS: dict(self.units)} if self.units and self.outcome == "ok" else {}
        cannot = {INFEASIBLE_DESIGN: True} if self.infeasible else {}
        return {UNCERTAINTY: under, **executed, **stamp, **several, **units, **cannot}

    @property
    def moves(self) -> bool:
        """Whether another design was set than the one that was asked for."""
        return self.experiment is not None and self.design != self.experiment.design

    def agrees(self, experiment: Experiment, fully: bool = False) -> bool:
        """Say whether an experiment has this outcome already.

        Args:
            experiment: What was told before.
            fully: Whether an outcome without a measured input says that there is none; otherwise
                it says nothing about it.
        """
        said = self.uncertainty is None or _same(self.uncertainty, experiment.uncertainty)
        own, known = dict(self.executed), dict(experiment.executed)
        measured = own == known or _same(own, known)
        silent = not self.executed and not fully
        same = experiment.outcome == self.outcome
        same = same and dict(experiment.outcomes) == dict(self.outcomes or {})
        same = same and (bool(self.outcomes) or experiment.value == self.value)
        same = same and experiment.infeasible == self.infeasible
        return same and not self.moves and said and (measured or silent)

    def check_free(self) -> None:
        """Refuse a report that contradicts an earlier one, unless it is a correction."""
        known = self.experiment
        if known is None or not known.has_outcome or self.correct or self.agrees(known):
            return
        if known.outcomes and known.outcomes.items() <= (self.outcomes or {}).items():
            return  # what was measured later contradicts nothing
        raise AlreadyTold(f"Experiment {known.number} was told before: {in_words(known)}.")


@dataclass(frozen=True)
class Listener:
    """Understands what is said, given the file and all experiments so far."""

    settings: Settings
    record: Record
    uncertainty: Any = None
    """Description of what the experiments were made under, where that is said."""
    allow_outside: bool = False
    """Whether designs that were not asked for may lie outside the ranges."""
    stamp: Mapping[str, Any] = field(default_factory=dict)
    """Who says it, and when."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        record: Record,
        uncertainty: Any = None,
        allow_outside: bool = False,
        stamp: Mapping[str, Any] | None = None,
    ) -> "Listener":
        """Take an uncertainty by name, or its description."""
        if uncertainty is not None and not isinstance(uncertainty, list):
            if not isinstance(uncertainty, Mapping):
                raise CampaignError("The uncertainty of an experiment is given by parameter name.")
            try:
                uncertainty = describe_uncertainty(uncertainty)
            except AttributeError:
                raise CampaignError(
                    f"Each uncertainty must be an airbo.uncertainty, got {uncertainty!r}."
                ) from None
        known = record if settings.named is None else record.named(settings.value_name)
        return cls(settings, known, uncertainty, allow_outside, stamp or {})

    def outcome(
        self,
        what: int | Mapping[str, Any],
        value: Any,
        executed: Mapping[str, Any] | None = None,
        correct: bool = False,
        again: bool = False,
        design: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Find out what is meant, and check it; see ``Campaign.tell``."""
        if isinstance(what, Mapping):
            said = self._said(what, value, executed, self.allow_outside)
            experiment = self._experiment_with(said, again)
        else:
            experiment = self.record.get(what)
            moved = {**experiment.design, **self._moved(experiment, design or {})}
            said = self._said(moved, value, executed, allow_outside=True)
        if experiment is not None:
            said = self._about(said, experiment, executed, is_moved=bool(design))
        outcome = replace(said, correct=correct)
        self._check(outcome)
        outcome.check_free()
        return outcome

    def _about(
        self,
        said: Outcome,
        experiment: Experiment,
        executed: Mapping[str, Any] | None,
        is_moved: bool,
    ) -> Outcome:
        """Complete what is said with what is known: a correction keeps what nobody speaks of."""
        keeps = executed is None and experiment.has_outcome
        if said.outcomes:  # what was measured at another time
            said = self._with_outcomes(said, {**experiment.outcomes, **said.outcomes})
        return replace(
            said,
            experiment=experiment,
            design=said.design if is_moved else experiment.design,
            executed=experiment.executed if keeps else said.executed,
            in_force=self._in_force(experiment),
            units={**experiment.units, **said.units},
        )

    def _with_outcomes(self, said: Outcome, outcomes: Mapping[str, float]) -> Outcome:
        """Complete what is said of several outcomes."""
        return replace(said, outcomes=outcomes, value=outcomes.get(self.settings.value_name))

    def _moved(self, experiment: Experiment, design: Mapping[str, Any]) -> dict[str, Any]:
        """Check parameters that were set otherwise than asked."""
        space, known = self.settings.space, dict(experiment.design)
        low = {name: p.decode(p.range[0]) for name, p in space.parameters.items()}
        try:  # the others may lie outside: they were asked for, or told, before the file changed
            plain = Space(space.parameters).checked({**low, **design}, self.allow_outside)
            moved = {name: plain[name] for name in design if plain[name] != known[name]}
            if moved and not self.allow_outside and not space.meets({**known, **moved}):
                space.check({**known, **moved})  # says which constraint
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        return moved

    def given_up(self, number: int, correct: bool = False) -> Outcome:
        """Say that an experiment was not run and will not be."""
        known = self.record.get(number)
        said = self._said(known.design, None, None, allow_outside=True)
        outcome = replace(
            said,
            experiment=known,
            in_force=self._in_force(known),
            correct=correct,
            gave_up=True,
        )
        outcome.check_free()
        return outcome

    def added(self, design: Mapping[str, Any], value: Any, executed: Mapping[str, Any]) -> Outcome:
        """Check what is said about a design that is another experiment in any case."""
        outcome = self._said(design, value, executed, self.allow_outside)
        self._check(outcome)
        return outcome

    def _said(
        self,
        design: Mapping[str, Any],
        value: Any,
        executed: Mapping[str, Any] | None,
        allow_outside: bool,
    ) -> Outcome:
        """Read plain values, as the space and the optimizer write them."""
        space = self.settings.space
        for name in executed or {}:
            if isinstance(space.parameters.get(name), Categorical):
                raise CampaignError(f"executed: {name!r} is a choice, which is always hit exactly.")
        try:
            plain = space.checked(design, allow_outside)
            measured = check_executed(space, plain, executed or {})
            wanted = self.settings.outcomes
            several = None if wanted is None else check_values(wanted, value) or {}
            number = check_value(value) if several is None else None
            check_place(space, plain, "the design")
            check_place(space, measured, "executed")
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        said = Outcome(
            plain,
            number,
            measured,
            self.uncertainty,
            self._in_force(None),
            stamp=self.stamp,
            units=self.settings.units,
        )
        return said if several is None else self._with_outcomes(said, several)

    def _in_force(self, experiment: Experiment | None) -> Any:
        known = None if experiment is None else experiment.uncertainty
        return self.settings.described_uncertainty if known is None else known

    def _experiment_with(self, said: Outcome, again: bool) -> Experiment | None:
        """Return the experiment that a design without a number is about, if there is one."""
        space = self.settings.space
        alike = [
            e
            for e in self.record.experiments
            if space.distance(e.design, said.design) < SAME_DESIGN
        ]
        pending = [e for e in alike if e.is_pending]
        if pending:
            return pending[0]
        known = [e for e in alike if e.has_outcome and said.agrees(e)]
        return known[0] if known and not again else None

    # -- what no model could use

    def _check(self, outcome: Outcome) -> None:
        """Refuse it; PyTorch is asked only where plain numbers cannot tell."""
        space = self.settings.space
        for name, value in {**outcome.design, **outcome.executed}.items():
            if space.parameters[name].log and value <= 0:
                raise CampaignError(
                    f"Parameter {name!r} is logarithmic and must be > 0, got {float(value)}."
                )
        if not self._is_unusual(outcome):
            return
        try:
            under = read_uncertainty(outcome.attributes[UNCERTAINTY])
            told = outcome.value if outcome.outcomes is None else outcome.outcomes or None
            self._optimizer.tell(outcome.design, told, outcome.executed, under, allow_outside=True)
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        self._accepted.append(outcome.attributes[UNCERTAINTY])

    def _is_unusual(self, outcome: Outcome) -> bool:
        """Say whether only a model can tell that the outcome can be used.

        That is so for an uncertainty that no experiment has had yet, for a design outside the
        ranges, and where some of the parameters that are missed together were measured.
        """
        under, measured = outcome.attributes[UNCERTAINTY], set(outcome.executed)
        return (
            (
                under not in self._accepted
                and all(e.uncertainty != under for e in self.record.experiments)
            )
            or not self._is_inside(outcome.design)
            or any(measured & (own := set(row["parameters"])) not in (set(), own) for row in under)
        )

    def _is_inside(self, design: Design) -> bool:
        try:
            self.settings.space.check(design)
        except ValueError:
            return False
        return True

    @cached_property
    def _accepted(self) -> list[Any]:
        """Uncertainties that a model can use, as an earlier row showed."""
        return []

    @cached_property
    def _optimizer(self) -> "Optimizer":
        return optimizer_from(self.settings, [])


def cannot_be_used(settings: Settings, outcome: Outcome) -> Outcome:
    """Say of a failed experiment that its design cannot be used."""
    if settings.outcomes is None:
        raise CampaignError("Infeasible designs need [outcomes] in the campaign file.")
    if outcome.outcomes:
        raise CampaignError(
            f"infeasible=True is for experiments that failed; this one has outcomes: "
            f"{quoted(outcome.outcomes)}."
        )
    cannot = replace(outcome, infeasible=True)
    cannot.check_free()
    return cannot


def check_once(outcomes: Sequence[Outcome]) -> None:
    """Refuse several outcomes of one experiment that contradict each other."""
    said: dict[int, dict[str, Any]] = {}
    for outcome in outcomes:
        if outcome.experiment is None:
            continue
        number = outcome.experiment.number
        own = {"value": outcome.value, "design": outcome.design, **outcome.attributes}
        if said.setdefault(number, own) != own:
            raise CampaignError(f"Experiment {number} is reported twice, with different outcomes.")


def in_words(experiment: Experiment) -> str:
    """Say what came of an experiment."""
    if experiment.outcomes:
        return ", ".join(f"{name} = {value!r}" for name, value in experiment.outcomes.items())
    return "it failed" if experiment.value is None else f"its value is {experiment.value!r}"


def _same(description: Any, other: Any) -> bool:
    """Say whether two descriptions are the same once they are written as JSON."""
    return json.dumps(description, sort_keys=True) == json.dumps(other, sort_keys=True)
