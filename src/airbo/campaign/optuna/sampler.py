"""The Optuna sampler: it builds an optimizer from the trials of a study."""

import logging
import threading
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from airbo.acquisition import find_acquisition
from airbo.campaign.optuna.attributes import (
    DESIGN,
    FIXED,
    check_by_name,
    executed_of,
    uncertainty_of,
)
from airbo.campaign.optuna.bridge import Bridge
from airbo.campaign.optuna.counting import Counted
from airbo.campaign.optuna.search_space import SearchSpace
from airbo.campaign.optuna.trials import Trials, has_rival
from airbo.campaign.optuna.wanted import Wants
from airbo.digits import Digits, as_held
from airbo.measures import Mean, Measure
from airbo.measures.kinds import check_kept_share
from airbo.measures.posterior import Noise, check_noise
from airbo.observed import is_usable, whole_number
from airbo.optimizer import Optimizer
from airbo.optimizer.surrogate import SurrogateFactory, find_surrogate
from airbo.outcomes import Want, check_outcomes, first_objective, named_outcomes
from airbo.space import Design, Space
from airbo.uncertainty.in_cube import ByName, by_columns

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
        consider_pruned_trials: bool = False,
        warn_independent_sampling: bool = True,
        seed: int | None = None,
        digits: Mapping[str, Digits] | None = None,
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
                the order of the study's values. What else was measured, a trial says in its user
                attribute ``outcomes``. By default the values and constraints of the trials.
            constraint_probability: Share of executed inputs that must keep each constraint that
                trials set with ``trial.set_constraint``.
            consider_pruned_trials: Whether a pruned trial counts with the last value that it
                reported. Otherwise it is a failed experiment.
            warn_independent_sampling: Whether to warn when the model does not choose a parameter.
            seed: Makes all choices reproducible; None: a random seed.
            digits: How to round proposed numbers, by name; by default they are not rounded.
        """
        self._digits = dict(digits or {})
        find_surrogate(surrogate)
        find_acquisition(acquisition)
        self._given = None if search_space is None else SearchSpace.of(search_space)
        named = None if outcomes is None else check_outcomes(outcomes)
        self._bridge = Bridge(
            check_by_name("uncertainty", {} if uncertainty is None else uncertainty),
            None if deployment is None else check_by_name("deployment", deployment),
            surrogate,
            acquisition,
            whole_number("n_startup_trials", n_startup_trials, least=0),
            named,
            check_kept_share(constraint_probability, "constraint_probability"),
            first_objective(named_outcomes(named, "maximize", measure)).measure,
            check_noise(noise),
            names=() if self._given is None else tuple(self._given.distributions),
        )
        if independent_sampler is not None and self._given and self._given.constraints:
            raise ValueError(
                "An independent sampler draws one parameter at a time and cannot meet the "
                "constraints of the search space. Leave one of them out."
            )
        self._independent_sampler = independent_sampler
        self._use_pruned = consider_pruned_trials
        self._warn_independent_sampling = warn_independent_sampling
        self._seed = None if seed is None else whole_number("seed", seed, least=0)
        self._drawn_seed: int | None = None
        if self._given is not None:  # report misfits now, not in the first trial
            self._bridge.new_optimizer(Trials(self._given.with_choice()), seed=0)

    @property
    def seed(self) -> int:
        """The seed that was given, or one that was drawn."""
        if self._seed is not None:
            return self._seed
        if self._drawn_seed is None:
            self._drawn_seed = int(np.random.SeedSequence().generate_state(1)[0])
        return self._drawn_seed

    @property
    def _wants(self) -> Wants:
        bridge = self._bridge
        return Wants(bridge.outcomes, bridge.probability, bridge.measure or Mean())

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
        space = self._described(search_space)
        with _one_at_a_time:
            design = self._choose(study, trial, space)
        return {} if design is None else space.params(design)

    def _choose(self, study: Study, trial: FrozenTrial, space: SearchSpace) -> Design | None:
        """Choose and publish the design of a trial; None: the model does not choose yet."""
        for more_tries in reversed(range(MAX_TRIES)):
            trials = Trials.of(study, space, self._wants, self._use_pruned, leave_out=trial.number)
            if self._independent_sampler is not None and self._bridge.is_start(trials):
                return None
            design = self._bridge.optimizer(trials, self.seed).ask(number=trial.number)
            design = as_held(space.space, self._digits, design)
            fixed = space.design(trial.system_attrs.get(FIXED, {}))
            design = space.space.mended(design | fixed, keep=fixed) or design | fixed

            # another process may have chosen the same during this search
            known = {trial.number, *trials.pending}
            if more_tries and has_rival(study, space, design, known):
                continue
            study._storage.set_trial_system_attr(trial._trial_id, DESIGN, design)
            # or at the same moment
            if not has_rival(study, space, design, known):
                break
        return design

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
            trials = Trials.of(study, space, self._wants, self._use_pruned)
            return trials, self._bridge.optimizer(trials, self.seed)

    def _space_of(self, study: Study) -> SearchSpace:
        if self._given is not None:
            return self._given.with_choice()
        return SearchSpace.of(intersection_search_space(Counted.of(study).trials)).with_choice()

    def _described(self, distributions: Mapping[str, BaseDistribution]) -> SearchSpace:
        """Return the parameters that Optuna wants chosen, with the given units."""
        if self._given is None:
            return SearchSpace(distributions)
        return SearchSpace(distributions, self._given.parameters, self._given.constraints)

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
        complete = [t for t in Counted.of(study).trials if t.state == TrialState.COMPLETE]
        if len(complete) < max(self._bridge.n_startup_trials, 1):
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
            executed_of(trial)
            self._check_uncertainty(trial)
        except ValueError as error:
            raise ValueError(f"Trial {trial.number}: {error}") from error

    def _check_uncertainty(self, trial: FrozenTrial) -> None:
        """Raise ``ValueError`` if no model could use the uncertainty of a trial."""
        space = SearchSpace.of(trial.distributions).with_choice()
        under = uncertainty_of(trial, space.distributions)
        if under:
            by_columns(space.space, under)
