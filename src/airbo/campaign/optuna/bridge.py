"""From the trials of a study to an optimizer."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from airbo.campaign.optuna.attributes import OUTCOMES, group, odd_outcomes, within
from airbo.campaign.optuna.trials import FinishedTrial, Trials
from airbo.measures import Measure
from airbo.measures.posterior import Noise
from airbo.optimizer import Optimizer
from airbo.optimizer.surrogate import SurrogateFactory
from airbo.outcomes import Want
from airbo.uncertainty.in_cube import ByName

_logger = logging.getLogger(__name__)


@dataclass
class Bridge:
    """Builds optimizers from trials; the same trials give the same optimizer."""

    uncertainty: ByName
    """The uncertainty of trials, by name or group of names."""
    deployment: ByName | None
    """The uncertainty of the answer in use; None: that of the trials."""
    surrogate: str | SurrogateFactory
    acquisition: Any
    n_startup_trials: int
    outcomes: Mapping[str, Want] | None = None
    """What trials measure, by name; None: their values and constraints."""
    probability: float = 0.95
    """Share of executed inputs that must keep each constraint."""
    measure: Measure | None = None
    """What to optimize of the distribution of values in use; None: the mean."""
    noise: Noise = "measurement"
    names: Collection[str] = ()
    """Names of parameters that are known in advance."""

    _last: tuple[Any, list[FinishedTrial], Optimizer] | None = None
    """The last optimizer and the trials it knows, so that it is told only new ones."""
    _unused: set[str | tuple[str, ...]] = field(default_factory=set)
    """Unused uncertainties, and outcomes, that airbo has warned of already."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the optimizer, which can be rebuilt."""
        return {**self.__dict__, "_last": None}

    def is_start(self, trials: Trials) -> bool:
        """Return whether the study is still in its initial trials."""
        n = len(trials.told) + len(trials.pending)
        return n < self.n_startup_trials or all(told.value is None for told in trials.told)

    def optimizer(self, trials: Trials, seed: int) -> Optimizer:
        """Return an optimizer that knows these trials and that the caller may change."""
        optimizer = self._told(trials, seed).copy()
        for design in trials.pending.values():
            optimizer.expect(design, allow_outside=True)
        return optimizer

    def _told(self, trials: Trials, seed: int) -> Optimizer:
        """Return an optimizer that knows the finished trials.

        It continues the last one if these trials start with those that the last one knew.
        """
        key, told = (trials.space, trials.wanted, seed), trials.told
        last_key, last_told, last = self._last or (None, [], None)
        if last is not None and key == last_key and last_told == told[: len(last_told)]:
            optimizer, new = last.copy(), told[len(last_told) :]
        else:
            optimizer, new = self.new_optimizer(trials, seed), told
        for trial in new:
            self._warn_of_outcomes(trial)
            trial.tell(optimizer, trials.space)
        self._last = (key, told, optimizer)
        return optimizer

    def _warn_of_outcomes(self, told: FinishedTrial) -> None:
        """Warn once of every outcome that cannot be used."""
        found = {} if self.outcomes is None else odd_outcomes(told.trial, self.outcomes)
        for name in [name for name in found if (OUTCOMES, name) not in self._unused]:
            self._unused.add((OUTCOMES, name))
            number = told.trial.number
            _logger.warning("Trial %d, user attribute %r: %s", number, OUTCOMES, found[name])

    def new_optimizer(self, trials: Trials, seed: int) -> Optimizer:
        """Return an optimizer for the search space of some trials that knows none of them."""
        deployment = self.deployment
        return Optimizer(
            trials.space.space,
            self._used("uncertainty", self.uncertainty, trials),
            trials.wanted.direction,
            self.surrogate,
            self.acquisition,
            seed,
            deployment=None if deployment is None else self._used("deployment", deployment, trials),
            n_initial=max(self.n_startup_trials, 1),
            measure=None if trials.wanted.outcomes else self.measure,
            noise=self.noise,
            outcomes=trials.wanted.outcomes,
        )

    def _used(self, what: str, given: ByName, trials: Trials) -> ByName:
        """Return the uncertainties of parameters that the model chooses; warn about all others."""
        known = {*trials.space.distributions, *trials.seen, *self.names}
        for name in (name for names in given for name in group(names)):
            if name not in known:
                hint = trials.space.space.hint(name)
                raise ValueError(
                    f"{what} names {name!r}, but no trial has such a parameter{hint} Leave it out "
                    "if only some trials will have it: the model knows only parameters that all "
                    "complete trials have."
                )
        used = within(given, trials.space.distributions)
        for names in given.keys() - used.keys() - self._unused:
            self._unused.add(names)
            _logger.warning(
                "The %s of %r is not used: the model knows only parameters that all complete "
                "trials have, with the same range and more than one value.",
                what,
                names,
            )
        return used
