"""Ask, tell, recommend: the one object with state."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model_list_gp_regression import ModelListGP

from airbo.measures import InSpec, Measure
from airbo.measures.kinds import check_level
from airbo.measures.posterior import SEARCH, Effort, MeasureModel, Noise
from airbo.observed import check_choice
from airbo.optimizer.choice import CONFIDENCE, Choice
from airbo.optimizer.goals import OutcomeGoal
from airbo.optimizer.objective import Objective
from airbo.optimizer.recommendation import Evaluation, Predictor, Recommendation
from airbo.optimizer.recorded import Recorded, alone, whole_number
from airbo.optimizer.search import initial_design, next_design
from airbo.optimizer.surrogate import FittedModel, value_unit
from airbo.seeds import reproducible
from airbo.space import Design

if TYPE_CHECKING:
    import pandas as pd


class Optimizer(Recorded):
    """Finds the design with the best expected value, one experiment or one batch at a time.

    You tell values in your own direction; inside, they are maximized. The state is the record of
    observations and of proposed designs, and the model is refitted from this record. So an
    optimizer restored from JSON, or from a pickle, continues as the saved one would have, up to the
    rounding of sums on this machine (which searches by a measure, or for limits, can enlarge).
    Threads may share an optimizer: its methods run one at a time.
    """

    # -- asking

    @overload
    def ask(self, *, number: int | None = None) -> Design: ...
    @overload
    def ask(self, n: int, *, number: int | None = None) -> list[Design]: ...
    def ask(self, n: int | None = None, *, number: int | None = None) -> Design | list[Design]:
        """Propose the next design, or ``n`` designs that go together.

        Designs that were asked for and not told yet are taken into account.

        Args:
            n: How many designs to return, in a list; None: a single design, without a list.
            number: The number of this experiment in the whole campaign, from 0. Use it if several
                optimizers with one seed share the work: each number has its own random numbers. By
                default, the number of designs that this optimizer has proposed so far.
        """
        with self._lock:
            if number is not None:
                self._history.n_asked = whole_number("number", number, least=0)
            if n is None:
                return self._ask_one()
            return [self._ask_one() for _ in range(whole_number("n", n, least=1))]

    def _ask_one(self) -> Design:
        history = self._history
        n = len(history.observations) + len(history.pending)
        with reproducible(self.seed, "ask", history.n_asked):
            if n < self.n_initial or not self._can_choose():
                Z = initial_design(history, self.initial, self.seed)
            elif self._goals is not None:
                self._models()
                Z = self._goals.next_design(history)
            else:
                record, model = self._record, self._model()
                judged = self._objective.judged(model, value_unit(record.values), SEARCH)
                Z = next_design(record, model, judged, self._surrogate, self._acquisition)
        [design] = history.points.cube.to_designs(Z)
        history.ask(design)
        return dict(design)

    def _can_choose(self) -> bool:
        """Say whether every outcome was measured at least once."""
        if self._goals is not None:
            return self._goals.are_known(self._history)
        return bool(self._record.known)

    # -- looking

    @property
    @alone
    def model(self) -> GPyTorchModel:
        """The surrogate, fitted to all observations, in the unit cube and with maximized values.

        This is a copy: changing it does not affect the optimizer. With
        limits or several objectives it is the list of the models of all outcomes.
        """
        if self._goals is not None:
            return copy.deepcopy(self._models())
        return self._fitted(self._shown_model)

    @alone
    def recommend(
        self,
        policy: Literal["observed", "anywhere"] | None = None,
        confidence: float = CONFIDENCE,
    ) -> Recommendation:
        """Return the design that is best by the measure, under the deployment uncertainty.

        With limits, it is the best of those designs that keep them. With several objectives, it is
        the compromise: the design of the front that gives up least, by the objective by which it
        gives up most, in shares of the range of that objective along the front.

        Args:
            policy: ``"observed"``: the best of the designs that were tried, as in the paper.
                ``"anywhere"``: the best in the whole space. By default it is the best of those
                tried, unless another one is clearly better: by a quarter of a standard deviation of
                the difference. That other one has to wait until the model has chosen designs.
                Where experiments failed, or with limits or several objectives, the default is
                ``"observed"``. If the uncertainty in use differs from that of the experiments, it
                is ``"anywhere"``, because the best design then need not have been tried.
            confidence: How sure the model has to be that all limits are kept.
        """
        policy = self._policy(policy)
        check_level(confidence, "confidence")
        if self._goals is not None:
            with reproducible(self.seed, "recommend"):
                return self._choice(policy, confidence).recommend()
        predictor, record = self._predictor(), self._record
        with reproducible(self.seed, "recommend"):
            if policy == "observed":
                best = predictor.best_of(record.tried)
            else:
                find = predictor.best_anywhere if policy == "anywhere" else predictor.best
                best = find(record)
        predictor.warn_if_blind(best, record)
        return best

    @alone
    def front(
        self,
        policy: Literal["observed", "anywhere"] | None = None,
        confidence: float = CONFIDENCE,
    ) -> list[Recommendation]:
        """Return the designs that keep all limits and that no other one beats by all objectives.

        They stand in the order of the first objective, the best first.

        Args:
            policy: As for ``recommend``.
            confidence: As for ``recommend``.
        """
        if self._goals is None:
            return [self.recommend(policy, confidence)]
        with reproducible(self.seed, "recommend"):
            return self._choice(self._policy(policy), confidence).front()

    def _policy(
        self, given: Literal["observed", "anywhere"] | None
    ) -> Literal["observed", "anywhere"] | None:
        if given is None:
            if self.deployment != self.uncertainty:
                return "anywhere"
            known, told = self._record.known, self._record.observations
            careful = len(known) <= self.n_initial or len(known) < len(told)
            return "observed" if careful or self._goals is not None else None
        check_choice("policy", given, "observed", "anywhere")
        return given

    def _choice(self, policy: Literal["observed", "anywhere"] | None, confidence: float) -> Choice:
        assert self._goals is not None
        assert policy is not None
        self._models()
        return Choice(self._goals, self._history, policy, confidence)

    def _models(self) -> ModelListGP:
        """Return the models of all outcomes, as the optimizer uses them."""
        assert self._goals is not None
        with reproducible(self.seed, "fit"):
            return self._goals.model(self._history)

    def _goal(self, name: str | None) -> OutcomeGoal:
        """Return the goal of an outcome, with its model; others may not have been measured yet."""
        assert self._goals is not None
        goal = self._goals.named_goal(name)
        if self._goals.are_known(self._history):
            self._models()
        else:
            with reproducible(self.seed, "fit"):
                goal.model(self._history)
        return goal

    @alone
    def predict(self, designs: Any) -> "pd.DataFrame":
        """Return mean and standard deviation of the measure of designs.

        Args:
            designs: One dict, several dicts, or a table.
        """
        import pandas as pd

        cube = self._history.points.cube
        X = cube.columns(designs)
        rows = self.space.to_designs(X)
        if self._goals is not None:
            self._models()
            predicted = self._goals.predicted(self._history, cube.from_columns(X))
            return pd.DataFrame(rows).assign(**predicted)
        means, stds = self._predictor().predict(cube.from_columns(X))
        return pd.DataFrame(rows).assign(mean=means.numpy(), std=stds.numpy())

    @alone
    def evaluate(
        self,
        design: Mapping[str, Any],
        measure: Measure | None = None,
        noise: Noise | None = None,
        outcome: str | None = None,
    ) -> Evaluation:
        """Return the posterior of any measure of any design, under the uncertainty in use.

        Args:
            design: The design, tried or not.
            measure: What is asked; by default what the optimizer decides by.
            noise: As for ``Optimizer``, and by default as there.
            outcome: Which outcome is meant, where there are several; by default the first
                objective.
        """
        plain = self.space.checked(design, allow_outside=True)
        noise = self.noise if noise is None else noise
        if self._goals is not None:
            goal = self._goal(outcome)
            return goal.predictor(self._history, measure, noise).evaluate(plain)
        if outcome not in (None, *(self.outcomes or ())):
            raise ValueError(f"Unknown outcome {outcome!r}; there is only one.")
        own = self.measure if measure is None else measure
        return self._predictor(replace(self._objective, measure=own, noise=noise)).evaluate(plain)

    def _looked_at(self, design: Mapping[str, Any] | None) -> Design:
        if design is None:
            return self.recommend().design
        return self.space.checked(design, allow_outside=True)

    @alone
    def _limits(self, measure: InSpec | None, effort: Effort) -> list[MeasureModel]:
        """Return draws of all values that have limits."""
        if self._goals is not None:
            if measure is not None:
                raise ValueError("With several outcomes, the limits are theirs: leave measure out.")
            self._models()
            with reproducible(self.seed, "fit"):
                found = self._goals.limits(self._history, effort)
            if not found:
                raise ValueError("No outcome has limits to keep: AtMost, AtLeast or Between.")
            return found
        own = self.measure if measure is None else measure
        if not isinstance(own, InSpec):
            raise ValueError(
                "There are no limits to keep. Use measure=measures.InSpec(...), or outcomes with "
                "AtMost, AtLeast or Between."
            )
        predictor = self._predictor(replace(self._objective, measure=own))
        return [predictor.objective.drawn(predictor.model, predictor.unit, effort)]

    @alone
    def _predictor_of(
        self, outcome: str | None, measure: Measure | None
    ) -> tuple[Predictor, str | None]:
        """Return the predictor of an outcome, and its name where there are several."""
        if self._goals is not None:
            goal = self._goal(outcome)
            return goal.predictor(self._history, measure), goal.name
        if outcome not in (None, *(self.outcomes or ())):
            raise ValueError(f"Unknown outcome {outcome!r}; there is only one.")
        own = self.measure if measure is None else measure
        return self._predictor(replace(self._objective, measure=own)), outcome

    def _predictor(self, objective: Objective | None = None) -> Predictor:
        model = self._model()
        return Predictor(objective or self._objective, model, value_unit(self._record.values))

    def _model(self) -> GPyTorchModel:
        """Return the model that the optimizer uses."""
        return self._fitted(self._own_model)

    def _fitted(self, last: FittedModel) -> GPyTorchModel:
        """Return the model of all observations; fit it again only if there are new ones."""
        known = self._record.known
        if not known:
            raise ValueError("There is no model yet: no experiment has given a value.")
        with reproducible(self.seed, "fit"):
            return last.of(known, self._surrogate)

    @alone
    def of_outcome(self, name: str | None = None) -> "Optimizer":
        """Return an optimizer of the expected value of one outcome, with the record of it.

        Its direction is the side on which an outcome keeps its limit.

        Args:
            name: Of the outcome; by default the value, or the first objective.
        """
        record, surrogate = self._record, self._surrogate
        if self._goals is not None:
            goal = self._goals.named_goal(name)
            record, surrogate = goal.history(self._history), goal.objective.surrogate
        alone = Optimizer(
            self.space,
            self.uncertainty,
            surrogate.direction,
            self.surrogate,
            self.acquisition,
            self.seed,
            deployment=self._deployment,
            n_initial=self.n_initial,
            initial=self.initial,
        )
        plain = [replace(o, infeasible=False) for o in record.observations]
        alone._history = replace(record, observations=plain)
        return alone
