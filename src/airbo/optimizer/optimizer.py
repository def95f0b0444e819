"""Ask, tell, recommend: the one object with state."""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model_list_gp_regression import ModelListGP

from airbo.acquisition import find_acquisition
from airbo.measures import Measure
from airbo.measures.kinds import check_level
from airbo.measures.posterior import Noise
from airbo.observed import Direction, check_choice, check_executed, whole_number
from airbo.optimizer.choice import CONFIDENCE, Choice, Policy
from airbo.optimizer.goal import Goal, OutcomeModel, check_knows_f, check_settings, goals_of
from airbo.optimizer.reading import NOT_GIVEN, Reader, check_names
from airbo.optimizer.recommendation import Evaluation, Recommendation
from airbo.optimizer.record import History, Points
from airbo.optimizer.search import initial_design, next_design
from airbo.optimizer.state import damage_reported, from_json, to_json
from airbo.optimizer.surrogate import Surrogate, SurrogateFactory, find_surrogate
from airbo.outcomes import Want, first_objective, named_outcomes, objectives
from airbo.seeds import reproducible
from airbo.space import Design, Space, n_initial_for
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.in_cube import NamedUncertainty, by_columns

if TYPE_CHECKING:
    import pandas as pd

Given = Mapping[str, Any] | None
"""What is known before an experiment: of the environment, and of the design itself."""
P = ParamSpec("P")
R = TypeVar("R")
Own = TypeVar("Own", bound="Optimizer")


def locked(
    method: Callable[Concatenate[Own, P], R],
) -> Callable[Concatenate[Own, P], R]:
    """Let only one thread at a time use an optimizer."""

    @wraps(method)
    def with_lock(self: Own, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return with_lock


class Optimizer:
    """Finds the design with the best expected value, one experiment or one batch at a time.

    You tell values in your own direction; inside, they are maximized. The state is the record of
    observations and of proposed designs, and the model is refitted from this record. So an
    optimizer restored from JSON, or from a pickle, continues as the saved one would have, up to the
    rounding of sums on this machine (which searches by a measure, or for limits, can enlarge).
    Threads may share an optimizer: its methods run one at a time.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        uncertainty: NamedUncertainty = None,
        direction: Direction = "maximize",
        surrogate: str | SurrogateFactory = "default",
        acquisition: Any = "default",
        seed: int = 0,
        *,
        deployment: NamedUncertainty = None,
        n_initial: int | None = None,
        outcomes: Mapping[str, Want] | None = None,
        measure: Measure | None = None,
        noise: Noise = "measurement",
    ) -> None:
        """Start without observations.

        Args:
            space: The parameters of a design, or a dict of them, and of the environment.
            uncertainty: How accurately the experiments set the parameters, by name or tuple of
                names, in the units of the parameters; None: exactly.
            direction: Whether larger or smaller values are better.
            surrogate: ``"default"``, which is ``"relevance"``; ``"expectation"``, ``"mmd"`` (the
                paper's), ``"ugp"``, ``"skl"``, ``"erbf"``,
                ``"nominal"``, or a function (train_X, train_Y) -> BoTorch model, which may have
                further arguments uncertainty, deployment and bounds.
            acquisition: ``"default"``, which is ``"knowledge-gradient"`` (by a measure other than
                the mean, the same as ``"ei"``); ``"ucb-random"``, ``"ucb"`` (the paper's),
                ``"ucb-theory"``, ``"ei"``, one of ``airbo.acquisition`` with other settings, or a
                function that builds a BoTorch acquisition from a model.
            seed: Makes all choices reproducible.
            deployment: How accurately the recommended design will be set in use; by default as in
                the experiments.
            n_initial: Number of designs that fill the space, in a scrambled Sobol sequence, before
                the model chooses; by default 2 (d + 1), at least 5 and at most 20.
            outcomes: What an experiment measures, by name, and what is wanted of it: ``Maximize``,
                ``Minimize``, ``AtMost``, ``AtLeast`` or ``Between``; None: one outcome called
                ``"value"``, by ``direction`` and ``measure``.
            measure: What counts of the values f(x') over where a design lands, one of
                ``airbo.measures``; by default their mean. With outcomes, each has its own.
            noise: ``"measurement"``: observation noise says nothing about the product, and no
                measure counts it; ``"product"``: single products differ by it, too.
        """
        self.space = space if isinstance(space, Space) else Space(space)
        check_choice("direction", direction, "maximize", "minimize")
        self.outcomes = named_outcomes(outcomes, direction, measure)
        check_names(self.space, self.outcomes)
        self.uncertainty = by_columns(self.space, uncertainty)
        self._deployment = None if deployment is None else by_columns(self.space, deployment)
        # what is meant where a single outcome is asked about
        first = first_objective(self.outcomes)
        self.direction: Direction = first.direction
        self.measure = first.measure
        self.noise: Noise = noise
        self.seed = whole_number("seed", seed, least=0)
        self.surrogate, build = surrogate, find_surrogate(surrogate)
        self.acquisition, self._acquisition = acquisition, find_acquisition(acquisition)
        check_settings(self.outcomes, acquisition, build)
        # each outcome has a goal with a surrogate of its own: P in experiments, Q in use
        points = Points(self.space)
        under = (self.uncertainty, self.deployment)
        self._surrogate = Surrogate(points, build, *under, self.direction)
        self._goals = goals_of(self.outcomes, self._surrogate, noise, self.seed)
        n_first = n_initial_for(self.space.d) if n_initial is None else n_initial
        self.n_initial = whole_number("n_initial", n_first, least=1)
        self._history = History(points)
        self._last_under: tuple[NamedUncertainty, InputUncertainty] | None = None
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock; goals leave out their models, which are refitted."""
        state = {name: value for name, value in self.__dict__.items() if name != "_lock"}
        return state | {"_last_under": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a lock."""
        self.__dict__.update(state)
        self._lock = threading.RLock()

    @property
    def _settings(self) -> dict[str, Any]:
        """The arguments that make an optimizer like this one, without its record."""
        return {
            "space": self.space,
            "uncertainty": self.uncertainty,
            "deployment": self._deployment,
            "surrogate": self.surrogate,
            "acquisition": self.acquisition,
            "seed": self.seed,
            "n_initial": self.n_initial,
            "noise": self.noise,
            "outcomes": self.outcomes,
        }

    @property
    def _reader(self) -> Reader:
        return Reader(self.space, self.outcomes, self._surrogate.check, self._history.asked)

    @property
    def deployment(self) -> InputUncertainty:
        """The uncertainty of the recommended design in use."""
        return self.uncertainty if self._deployment is None else self._deployment

    # -- asking

    @overload
    def ask(self, *, number: int | None = None, given: Given = None) -> Design: ...
    @overload
    def ask(self, n: int, *, number: int | None = None, given: Given = None) -> list[Design]: ...
    def ask(
        self, n: int | None = None, *, number: int | None = None, given: Given = None
    ) -> Design | list[Design]:
        """Propose the next design, or ``n`` designs that go together.

        Designs that were asked for and not told yet are taken into account.

        Args:
            n: How many designs to return, in a list; None: a single design, without a list.
            number: The number of this experiment in the whole campaign, from 0. Use it if several
                optimizers with one seed share the work: each number has its own random numbers. By
                default, the number of designs that this optimizer has proposed so far.
            given: What you know before the experiment, by name: today's environment, and
                parameters that must have a certain value. The environment that you give here also
                counts for the result, unless ``tell`` says otherwise.
        """
        with self._lock:
            points = self._points(given)
            n_designs = 1 if n is None else whole_number("n", n, least=1)
            if number is not None:
                self._history.n_asked = whole_number("number", number, least=0)
            designs = [self._ask_one(points) for _ in range(n_designs)]
            return designs[0] if n is None else designs

    def _points(self, given: Given) -> Points:
        """Return where designs lie in the unit cube, with what is given of them."""
        if not given:
            self._surrogate.check_laws(self._history.points)
            return self._history.points
        points = Points(self.space, self.space.checked_given(given))
        self._surrogate.check_laws(points)
        return points

    def _ask_one(self, points: Points) -> Design:
        history = replace(self._history, points=points)
        # the first designs fill the space; from then on, models of all outcomes choose
        with reproducible(self.seed, "ask", history.n_asked):
            if self.is_initial:
                Z = initial_design(history, self.seed)
            else:
                Z = next_design(history, self._models(points), self._acquisition)
        [design] = points.cube.to_designs(Z)
        self._history.ask(design, points.cube.known)
        return dict(design)

    @property
    def is_initial(self) -> bool:
        """Whether the next design fills the space; afterwards models choose."""
        # n_initial designs, pending and failed ones included, and every outcome measured once
        n = len(self._history.observations) + len(self._history.pending)
        all_measured = all(self._history.of(name).known for name in self.outcomes)
        return n < self.n_initial or not all_measured

    # -- telling

    @locked
    def tell(
        self,
        design: "Mapping[str, Any] | Sequence[Mapping[str, Any]] | pd.Series | pd.DataFrame",
        value: Any = NOT_GIVEN,
        executed: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
        uncertainty: NamedUncertainty = None,
        allow_outside: bool = False,
        infeasible: bool = False,
        noise: Any = None,
    ) -> None:
        """Report the result of an experiment. An invalid report raises and changes nothing.

        Args:
            design: The design, whether the optimizer proposed it or not; a list of designs; or a
                table of observations. A table has a column for each parameter, and one for each
                outcome, or ``value``. ``executed_<name>`` has measured inputs, and
                ``noise_<outcome>`` known noise.
            value: The observed value, or a dict of outcomes, of which those that were not measured
                may be left out; None or NaN if the experiment failed. With a list of designs, a
                list of values.
            executed: Parameters of the executed input, and of the environment, where they were
                measured; with a list of designs, a list. You need not repeat what you gave to
                ``ask``.
            uncertainty: The uncertainty of this experiment, if it differs from the others'.
            allow_outside: Whether designs may lie outside the bounds of the space.
            infeasible: Whether a failed experiment failed because its design cannot be used. What
                works is then a limit of its own. Other failures tell nothing about what works.
            noise: The standard deviation of the noise of this value, if it is known; with several
                outcomes, a dict; with a list of designs, one for all or a list. By default the
                model learns how large the noise is, the same for all values.
        """
        under = None if uncertainty is None else self._by_columns(uncertainty)
        # all rows are read before the first one is told: an invalid report changes nothing
        new = self._reader.read(design, value, executed, noise, under, allow_outside, infeasible)
        if any(o.infeasible for o in new):
            check_knows_f(self._surrogate.build, self._goals[-1].want.measure)
        for observation in new:
            self._history.tell(observation)

    def _by_columns(self, given: NamedUncertainty) -> InputUncertainty:
        """Translate and check an uncertainty; thousands of observations may have the same one."""
        # checked once for as long as the same one comes again
        if self._last_under is None or self._last_under[0] != given:
            self._last_under = given, by_columns(self.space, given)
        return self._last_under[1]

    @locked
    def expect(
        self, design: Mapping[str, Any], allow_outside: bool = False, given: Given = None
    ) -> None:
        """Add a pending design that did not come from this optimizer.

        Args:
            design: The design of an experiment that is running or planned.
            allow_outside: Whether it may lie outside the bounds of the space.
            given: What is known of its environment, by name.
        """
        plain = self.space.checked(design, allow_outside)
        self._history.ask(plain, check_executed(self.space, plain, given or {}, "given"))

    @locked
    def forget(self, design: Mapping[str, Any]) -> None:
        """Remove a pending design whose value will never be told."""
        plain = self.space.checked(design, allow_outside=True)
        if not self._history.answer(plain):
            raise ValueError(f"The design {plain} is not pending.")

    # -- looking

    @property
    @locked
    def observations(self) -> "pd.DataFrame":
        """All experiments, including failed ones, in the order in which they were told."""
        return self._reader.table(self._history.observations)

    @property
    @locked
    def pending(self) -> list[Design]:
        """Designs that were asked for and not told yet."""
        return [dict(o.design) for o in self._history.pending]

    @property
    @locked
    def model(self) -> GPyTorchModel:
        """The surrogate, fitted to all observations, in the unit cube and with maximized values.

        This is a copy: changing it does not affect the optimizer. With limits or several objectives
        it is the list of the models of all outcomes.
        """
        models = [copy.deepcopy(o.model) for o in self._models(self._history.points)]
        return models[0] if len(models) == 1 else ModelListGP(*models)

    @locked
    def outcome_models(self, given: Given = None) -> list[OutcomeModel]:
        """Return the models of all outcomes, as the optimizer uses them.

        If some design could not be used, the last model says which designs can be.

        Args:
            given: As for ``recommend``.
        """
        return self._models(self._points(given))

    def _models(self, points: Points) -> list[OutcomeModel]:
        # the last goal is that a design can be used at all; it counts once one could not
        used = self._goals if self._history.knows_infeasible else self._goals[:-1]
        return [goal.model(self._history).given(points) for goal in used]

    @locked
    def outcome_model(
        self,
        name: str | None = None,
        measure: Measure | None = None,
        noise: Noise | None = None,
        given: Given = None,
    ) -> OutcomeModel:
        """Return the model of one outcome; others need not have been measured yet.

        Args:
            name: Of the outcome; by default the first objective.
            measure: By default the one by which the optimizer decides.
            noise: As for ``Optimizer``, and by default as there.
            given: As for ``recommend``.
        """
        points = self._points(given)
        return self._goal(name).model(self._history, measure, noise).given(points)

    def _goal(self, name: str | None) -> Goal:
        """Return the goal of an outcome, or of the first objective."""
        wanted = next(iter(objectives(self.outcomes))) if name is None else name
        for goal in self._goals:
            if goal.name == wanted:
                return goal
        raise ValueError(f"Unknown outcome {name!r}; there are {list(self.outcomes)}.")

    def exclusive(self) -> AbstractContextManager[object]:
        """Return a context in which no other thread uses this optimizer or shares its models."""
        return self._lock

    @property
    @locked
    def record(self) -> History:
        """A copy of all that was asked and told."""
        return self._history.copy()

    @locked
    def recommend(
        self,
        policy: Policy | None = None,
        confidence: float = CONFIDENCE,
        given: Given = None,
    ) -> Recommendation:
        """Return the design that is best by the measure, under the deployment uncertainty.

        With limits, it is the best of those designs that keep them. With several objectives, it is
        the compromise. Every design of the front gives up a share of the range of each objective;
        the compromise is the design whose largest share is smallest.

        Args:
            policy: ``"observed"``: the best of the designs that were tried, as in the paper.
                ``"anywhere"``: the best in the whole space. By default it is the best of those
                tried, unless another one is clearly better: by a quarter of a standard deviation of
                the difference. That other one has to wait until the model has chosen designs.
                Where experiments failed, or with limits or several objectives, the default is
                ``"observed"``. If the uncertainty in use differs from that of the experiments, it
                is ``"anywhere"``, because the best design then need not have been tried.
            confidence: How sure the model has to be that all limits are kept.
            given: What you know of its use, by name: today's environment, and parameters that
                must have a certain value. Without it, the design is best over the law of the
                environment.
        """
        with reproducible(self.seed, "recommend"):
            return self._choice(policy, confidence, given).recommend()

    @locked
    def front(
        self,
        policy: Policy | None = None,
        confidence: float = CONFIDENCE,
        given: Given = None,
    ) -> list[Recommendation]:
        """Return the designs that keep all limits and that no other one beats by all objectives.

        They are sorted by the first objective, the best first.

        Args:
            policy: As for ``recommend``.
            confidence: As for ``recommend``.
            given: As for ``recommend``.
        """
        with reproducible(self.seed, "recommend"):
            return self._choice(policy, confidence, given).front()

    def _choice(self, policy: Policy | None, confidence: float, given: Given) -> Choice:
        # the given values hold for everything that is asked of this history
        allowed = self.policy_for(policy, given)
        check_level(confidence, "confidence")
        points = self._points(given)
        history = replace(self._history, points=points)
        return Choice(self._models(points), history, allowed, confidence)

    def policy_for(
        self, policy: Policy | None, given: Given = None, outcome: str | None = None
    ) -> Policy | None:
        """Return which designs may be recommended, by all outcomes or the mean of a single one."""
        if policy is not None:
            check_choice("policy", policy, "observed", "anywhere")
            return policy
        # what is given, and use that differs from experiments: the best one need not be tried yet
        if given or self.deployment != self.uncertainty:
            return "anywhere"
        # failures and few values make a model that is not trusted beyond what was tried
        history = self._history if outcome is None else self._history.of(outcome)
        n_known, n_told = len(history.known), len(history.observations)
        is_plain = n_known == n_told and (len(self.outcomes) == 1 or outcome is not None)
        return None if is_plain and n_known > self.n_initial else "observed"

    @locked
    def predict(self, designs: Any, given: Given = None) -> "pd.DataFrame":
        """Return mean and standard deviation of the measure of designs.

        Args:
            designs: One dict, several dicts, or a table.
            given: What is known of the environment, by name.
        """
        import pandas as pd

        # of limits too, the mean of the outcome is shown, and not a share in spec
        plain = self.space.to_designs(self.space.to_columns(designs))
        points = self._points(given)
        models = self._models(points)
        columns: dict[str, Any] = {}
        for o in models:
            means, stds = (o.of_values() if o.is_limit else o).predict(points.of(plain))
            prefix = "" if len(models) == 1 else f"{o.goal.name}_"
            columns |= {f"{prefix}mean": means.numpy(), f"{prefix}std": stds.numpy()}
        return pd.DataFrame(plain).assign(**columns)

    @locked
    def evaluate(
        self,
        design: Mapping[str, Any],
        measure: Measure | None = None,
        noise: Noise | None = None,
        outcome: str | None = None,
        given: Given = None,
    ) -> Evaluation:
        """Return the posterior of any measure of any design, under the uncertainty in use.

        Args:
            design: The design, tried or not.
            measure: By default the one by which the optimizer decides.
            noise: As for ``Optimizer``, and by default as there.
            outcome: Which outcome is meant, where there are several; by default the first
                objective.
            given: What is known of the environment, by name.
        """
        plain = self.space.checked(design, allow_outside=True)
        return self.outcome_model(outcome, measure, noise, given).evaluate(plain)

    # -- saving

    @locked
    def copy(self: Own) -> Own:
        """Return an independent optimizer in the same state.

        The two share fitted models: neither refits what the other has fitted to the same
        observations.
        """
        # goals are shared, and with them the fitted models
        twin = copy.copy(self)
        twin._history = self._history.copy()
        twin._lock = self._lock  # one model, one thread at a time
        return twin

    @locked
    def to_json(self) -> str:
        """Return the whole state as text.

        The text does not contain code: pass a callable uncertainty, surrogate or acquisition to
        ``from_json`` again.
        """
        return to_json(self._settings, self._history)

    @classmethod
    def from_json(
        cls: type[Own],
        text: str,
        *,
        uncertainty: NamedUncertainty = None,
        deployment: NamedUncertainty = None,
        surrogate: str | SurrogateFactory | None = None,
        acquisition: Any = None,
        uncertainties: Mapping[int, NamedUncertainty] | None = None,
    ) -> Own:
        """Restore an optimizer.

        Args:
            text: What ``to_json`` returned.
            uncertainty: As for ``Optimizer``, if it could not be saved; likewise the next three.
            deployment: See above.
            surrogate: See above.
            acquisition: See above.
            uncertainties: Uncertainties of single observations that could not be saved, by row.
        """
        given = {
            "uncertainty": uncertainty,
            "deployment": deployment,
            "surrogate": surrogate,
            "acquisition": acquisition,
        }
        # what is passed replaces what was saved
        given = {name: setting for name, setting in given.items() if setting is not None}
        saved = from_json(text, given, uncertainties or {})
        with damage_reported():
            optimizer = cls(**saved.settings)
            history, space = optimizer._history, optimizer.space
            # experiments are read as they were told, in their order
            for row, uncertainty in saved.rows:
                under = None if uncertainty is None else optimizer._by_columns(uncertainty)
                history.observations.append(optimizer._reader.observation(row, under))
            for waiting in saved.pending:
                plain = space.checked(waiting["design"], allow_outside=True)
                history.ask(plain, check_executed(space, plain, waiting.get("executed", {})))
            history.n_asked = whole_number("n_asked", saved.n_asked, least=0)
            return optimizer
