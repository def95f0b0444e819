"""The Optuna sampler: it builds an optimizer from the trials of a study."""

import copy
import logging
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from airbo.acquisition import find_acquisition
from airbo.integrations.optuna.search_space import SearchSpace
from airbo.integrations.optuna.trials import (
    OUTCOMES,
    FinishedTrial,
    Trials,
    executed_of,
    fixed_design,
    given_of,
    has_rival,
    odd_outcomes,
    publish,
    study_outcomes,
    uncertainty_of,
    within,
)
from airbo.measures import Measure
from airbo.measures.kinds import check_kept_share
from airbo.measures.posterior import Noise, check_noise
from airbo.observed import is_usable, whole_number
from airbo.optimizer import Optimizer, Recommendation
from airbo.optimizer.surrogate import SurrogateFactory, find_surrogate
from airbo.outcomes import Maximize, Want, check_outcomes, first_objective, named_outcomes
from airbo.space import Space
from airbo.space.parameters import Environment
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.in_cube import ByName
from airbo.uncertainty.kinds import group

MAX_TRIES = 4
"""How often to choose again when another worker has just chosen the same parameters."""

_logger = logging.getLogger(__name__)
_one_at_a_time = threading.RLock()
"""Threads of one process take turns: torch, NumPy and warnings have global state."""


class AIRBOSampler(BaseSampler):
    """Proposes parameters with the best expected value when they cannot be set exactly.

    Nothing that matters is kept in the sampler: each trial is chosen from the trials that the study
    has at that moment, so that many processes on one storage work together. Running and enqueued
    trials are pending designs; failed ones, and those with infinite values, failed experiments.
    Studies may have up to three objectives, and trials constraints.

    Random numbers depend only on the seed and the number of the trial.
    """

    def __init__(
        self,
        uncertainty: ByName | None = None,
        *,
        deployment: ByName | None = None,
        surrogate: str | SurrogateFactory = "default",
        acquisition: Any = "default",
        measure: Measure | None = None,
        noise: Noise = "measurement",
        n_startup_trials: int = 10,
        independent_sampler: BaseSampler | None = None,
        search_space: Space | Mapping[str, BaseDistribution] | None = None,
        outcomes: Mapping[str, Want] | None = None,
        constraint_probability: float = 0.95,
        warn_independent_sampling: bool = True,
        seed: int | None = None,
        environment: Mapping[str, Environment] | None = None,
    ) -> None:
        """Specify how accurately parameters can be set, and how to choose them.

        Args:
            uncertainty: How accurately the trials set their parameters, by parameter name or tuple
                of names, in the units of the parameters. All other parameters are set exactly.
            deployment: The same for the later use of the answer; by default as in the trials.
            surrogate: As for ``airbo.Optimizer``.
            acquisition: As for ``airbo.Optimizer``.
            measure: What to optimize of the distribution of values in use, one of
                ``airbo.measures``; by default the mean.
            noise: As for ``airbo.Optimizer``.
            n_startup_trials: Trials that are spread over the space before the model chooses.
            independent_sampler: Draws the first trials, and parameters that not all trials have. By
                default the first trials are a Sobol sequence as soon as the parameters are known;
                everything else is uniform random.
            search_space: The parameters, if you know them in advance: Optuna's distributions, or an
                ``airbo.Space``, which may have constraints. By default those that all complete
                trials have, with the same ranges.
            outcomes: What trials measure, by name, as for ``airbo.Optimizer``: the objectives in
                the order of the study's values. A trial reports everything else in its user
                attribute ``outcomes``. By default the values and constraints of the trials.
            constraint_probability: Share of executed inputs that must keep each constraint that
                trials set with ``trial.set_constraint``.
            warn_independent_sampling: Whether to warn when the model does not choose a parameter.
            seed: Makes all choices reproducible; None: a random seed.
            environment: What no trial sets, by name. A trial reports what it measured of it in its
                user attribute ``executed``. If you know it before the trial, enqueue one with the
                user attribute ``given``.
        """
        find_surrogate(surrogate)
        find_acquisition(acquisition)
        self._surrogate, self._acquisition = surrogate, acquisition
        self._uncertainty = _by_name("uncertainty", {} if uncertainty is None else uncertainty)
        self._deployment = None if deployment is None else _by_name("deployment", deployment)
        self._outcomes = None if outcomes is None else check_outcomes(outcomes)
        self._measure = first_objective(named_outcomes(self._outcomes, "maximize", measure)).measure
        self._noise = check_noise(noise)
        self._probability = check_kept_share(constraint_probability, "constraint_probability")
        self._n_startup_trials = whole_number("n_startup_trials", n_startup_trials, least=0)
        self._given = None if search_space is None else SearchSpace.of(search_space)
        self._environment = dict(environment or {})
        for name, around in self._environment.items():
            if not isinstance(around, Environment):
                raise TypeError(
                    f"environment: {name!r} must be an airbo.Environment, got {around!r}."
                )
        if self._given is not None:
            self._environment |= self._given.environment
            self._given = replace(self._given, environment=self._environment)
        if independent_sampler is not None and self._given and self._given.constraints:
            raise ValueError(
                "An independent sampler draws one parameter at a time and cannot meet the "
                "constraints of the search space. Leave one of them out."
            )
        self._independent_sampler = independent_sampler
        self._warn_independent_sampling = warn_independent_sampling
        self._seed = None if seed is None else whole_number("seed", seed, least=0)
        self._drawn_seed: int | None = None
        self._last: tuple[Any, list[FinishedTrial], Optimizer] | None = None
        """The last optimizer and the trials it knows, so that it is told only new ones."""
        self._warned: set[str | tuple[str, ...]] = set()
        """Uncertainties and outcomes without effect of which airbo has warned already."""
        if self._given is not None:  # report misfits now, not in the first trial
            self._new_optimizer(Trials(self._given.with_choice(), {"value": Maximize()}))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the optimizer, which can be rebuilt."""
        return {**self.__dict__, "_last": None}

    @property
    def seed(self) -> int:
        """The seed that was given, or one that was drawn."""
        if self._seed is not None:
            return self._seed
        if self._drawn_seed is None:
            self._drawn_seed = int(np.random.SeedSequence().generate_state(1)[0])
        return self._drawn_seed

    def reseed_rng(self) -> None:
        """Draw another seed if none was given.

        A given seed stays. Random numbers depend on the number of the trial, so workers with the
        same seed do not repeat each other.
        """
        self._drawn_seed = None
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    # -- parameters that the model chooses

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that all complete trials have and that have several values."""
        return dict(self._space_of(study).distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose the parameters of a trial, given all other trials."""
        if not search_space:
            return {}
        space = SearchSpace(search_space, environment=self._environment)
        if self._given is not None:
            space = replace(self._given, distributions=search_space)
        with _one_at_a_time:
            return self._choose(study, trial, space)

    def _choose(self, study: Study, trial: FrozenTrial, space: SearchSpace) -> dict[str, Any]:
        """Choose and publish the parameters of a trial; none: the model does not choose yet."""
        params: dict[str, Any] = {}
        for more_tries in reversed(range(MAX_TRIES)):
            trials = self._read(study, space, leave_out=trial.number)
            if self._independent_sampler is not None and self._is_start(trials):
                return {}
            given = given_of(trial, space)
            design = self._optimizer(trials).ask(number=trial.number, given=given)
            fixed = fixed_design(trial, space)
            design = space.space.mended(design | fixed, keep=fixed) or design | fixed

            # another process may have chosen the same during this search, or at the same moment
            known = {trial.number, *trials.pending}
            params = space.params(design)
            publish(study, trial.number, params)
            if not more_tries or not has_rival(study, space, design, known):
                break
        return params

    def _is_start(self, trials: Trials) -> bool:
        """Return whether the study is still in its initial trials."""
        n = len(trials.told) + len(trials.pending)
        return n < self._n_startup_trials or all(t.outcomes is None for t in trials.told)

    def _space_of(self, study: Study) -> SearchSpace:
        if self._given is not None:
            return self._given.with_choice()
        common = intersection_search_space(study.get_trials(deepcopy=False))
        return replace(SearchSpace.of(common).with_choice(), environment=self._environment)

    # -- from trials to an optimizer

    def look(self, study: Study) -> tuple[Trials, Optimizer]:
        """Return the trials of a study, and an optimizer that knows them.

        Changing the optimizer leaves the study as it is.
        """
        space = self._space_of(study)
        if not space.distributions:
            raise ValueError(
                "The model has no parameter to choose: the study has no complete trial, or its "
                "complete trials have no parameter with the same range in common."
            )
        with _one_at_a_time:
            trials = self._read(study, space)
            return trials, self._optimizer(trials)

    def _read(self, study: Study, space: SearchSpace, leave_out: int | None = None) -> Trials:
        trials = study.get_trials(deepcopy=False)
        wanted = study_outcomes(study, trials, self._outcomes, self._measure, self._probability)
        return Trials.of(study, trials, space, wanted, leave_out)

    def _optimizer(self, trials: Trials) -> Optimizer:
        """Return an optimizer that knows these trials and that the caller may change.

        It continues the last one if these trials start with those that the last one knew.
        """
        key, told = (trials.space, trials.outcomes, self.seed), trials.told
        last_key, known, last = self._last or (None, [], None)
        if last is not None and key == last_key and known == told[: len(known)]:
            optimizer, new = last.copy(), told[len(known) :]
        else:
            optimizer, new = self._new_optimizer(trials), told
        for trial in new:
            self._warn_of_outcomes(trial)
            trial.tell(optimizer, trials.space)
        self._last = (key, told, optimizer)
        optimizer = optimizer.copy()
        for number, design in trials.pending.items():
            optimizer.expect(design, allow_outside=True, given=trials.given.get(number))
        return optimizer

    def _new_optimizer(self, trials: Trials) -> Optimizer:
        """Return an optimizer for the search space of some trials that knows none of them."""
        deployment = self._deployment
        return Optimizer(
            trials.space.space,
            self._used("uncertainty", self._uncertainty, trials),
            surrogate=self._surrogate,
            acquisition=self._acquisition,
            seed=self.seed,
            deployment=None if deployment is None else self._used("deployment", deployment, trials),
            n_initial=max(self._n_startup_trials, 1),
            noise=self._noise,
            outcomes=trials.outcomes,
        )

    def _used(self, what: str, given: ByName, trials: Trials) -> ByName:
        """Return the uncertainties of parameters that the model chooses; warn about all others."""
        known = {*trials.space.distributions, *trials.seen}
        known |= set() if self._given is None else self._given.distributions.keys()
        known |= self._environment.keys()
        for name in (name for names in given for name in group(names)):
            if name not in known:
                hint = trials.space.space.hint(name)
                raise ValueError(
                    f"{what} names {name!r}, but no trial has such a parameter{hint} Leave it out "
                    "if only some trials will have it: the model knows only parameters that all "
                    "complete trials have."
                )
        used = within(given, {*trials.space.distributions, *self._environment})
        for names in given.keys() - used.keys() - self._warned:
            self._warned.add(names)
            _logger.warning(
                "The %s of %r is not used: the model knows only parameters that all complete "
                "trials have, with the same range and more than one value.",
                what,
                names,
            )
        return used

    def _warn_of_outcomes(self, told: FinishedTrial) -> None:
        """Warn once of every outcome that cannot be used."""
        found = {} if self._outcomes is None else odd_outcomes(told.trial, self._outcomes)
        for name in [name for name in found if (OUTCOMES, name) not in self._warned]:
            self._warned.add((OUTCOMES, name))
            number = told.trial.number
            _logger.warning("Trial %d, user attribute %r: %s", number, OUTCOMES, found[name])

    # -- parameters that the model does not know

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw one parameter without the model."""
        sampler = self._independent_sampler
        if sampler is None:
            entropy = [self.seed, trial.number, zlib.crc32(param_name.encode())]
            sampler = RandomSampler(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        if self._warn_independent_sampling:
            self._warn_of(sampler, study, trial, param_name)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _warn_of(self, sampler: BaseSampler, study: Study, trial: FrozenTrial, name: str) -> None:
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(complete) < max(self._n_startup_trials, 1):
            return
        _logger.warning(
            "The parameter `%s` in Trial#%d is sampled independently by `%s`: the model of "
            "`AIRBOSampler` knows only parameters that all complete trials have, with the same "
            "range. Set `warn_independent_sampling` to `False` if this is intended.",
            name,
            trial.number,
            type(sampler).__name__,
        )

    # -- before and after

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Pass the trial on to the independent sampler."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Check the value and the user attributes of a trial while they can still be corrected."""
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)
        if state == TrialState.COMPLETE and values and not all(map(is_usable, values)):
            _logger.warning(
                "Trial %d gave %s, which no model can use; airbo counts it as failed.",
                trial.number,
                ", ".join(str(value) for value in values if not is_usable(value)),
            )
        try:
            executed_of(trial, self._environment)
            uncertainty_of(trial, SearchSpace.of(trial.distributions).with_choice())
        except ValueError as error:
            raise ValueError(f"Trial {trial.number}: {error}") from error


def _by_name(what: str, given: Any) -> ByName:
    """Return an uncertainty by name; raise ``TypeError`` if it is not one."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{what} must be a dict from names of parameters, or tuples of names, to "
            f"uncertainties, got {given!r}."
        )
    for names, uncertainty in given.items():
        is_group = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        if not (isinstance(names, str) or (is_group and names)):
            raise TypeError(f"{what}: expected a name or a tuple of names, got {names!r}.")
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(
                f"The {what} of {names!r} must be an airbo.uncertainty, got {uncertainty!r}."
            )
    return dict(given)


# -- the answer of a study, rather than its luckiest trial


def optimizer_of(study: Study, sampler: AIRBOSampler | None = None) -> Optimizer:
    """Return an optimizer with the observations of a study; changing it leaves the study as it is.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
    """
    _, optimizer = _sampler(study, sampler).look(study)
    return optimizer


def recommend(
    study: Study,
    *,
    sampler: AIRBOSampler | None = None,
    policy: Literal["observed", "anywhere"] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Recommendation:
    """Return the design with the best expected value, and what to expect of it.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
        policy: Where to look; see ``airbo.Optimizer.recommend``.
        given: What is known of the environment of today, by name.
    """
    trials, optimizer = _sampler(study, sampler).look(study)
    best = optimizer.recommend(policy, given=given)
    return replace(best, design=trials.space.params(best.design))


def front(
    study: Study,
    *,
    sampler: AIRBOSampler | None = None,
    policy: Literal["observed", "anywhere"] | None = None,
    given: Mapping[str, Any] | None = None,
) -> list[Recommendation]:
    """Return the designs that keep all constraints and that no other one beats in expectation.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
        policy: Where to look; see ``airbo.Optimizer.recommend``.
        given: What is known of the environment of today, by name.
    """
    trials, optimizer = _sampler(study, sampler).look(study)
    best = optimizer.front(policy, given=given)
    return [replace(r, design=trials.space.params(r.design)) for r in best]


def robust_trial(study: Study, *, sampler: AIRBOSampler | None = None) -> FrozenTrial:
    """Return the trial whose parameters have the best expected value.

    ``study.best_trial`` is the one with the best value so far, which may have been luck.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
    """
    trials, optimizer = _sampler(study, sampler).look(study)
    best = optimizer.recommend("observed").design
    for told in trials.told:
        design = optimizer.space.checked(told.design, allow_outside=True)
        if told.outcomes is not None and design == best:
            return copy.deepcopy(told.trial)
    raise AssertionError(f"No trial has the recommended design {best}.")


def _sampler(study: Study, given: AIRBOSampler | None) -> AIRBOSampler:
    sampler = study.sampler if given is None else given
    if not isinstance(sampler, AIRBOSampler):
        raise TypeError(
            "The study needs an AIRBOSampler. Create it with one, or pass one as sampler=...; "
            f"got {type(sampler).__name__}."
        )
    return sampler
