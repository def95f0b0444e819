"""The settings of an optimizer, what it was told, and how both are saved."""

import copy
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from airbo.acquisition import find_acquisition
from airbo.coordinates import NamedUncertainty, by_columns
from airbo.measures import Measure
from airbo.measures.posterior import Noise
from airbo.observed import Direction, check_choice
from airbo.optimizer.goals import Goals, one_direction, one_measure
from airbo.optimizer.objective import Objective, check_acquisition, check_several
from airbo.optimizer.reading import NOT_GIVEN, Rules, as_table, check_names, read, read_one
from airbo.optimizer.record import History, Points
from airbo.optimizer.state import State, understood
from airbo.optimizer.surrogate import FittedModel, Surrogate, SurrogateFactory, find_surrogate
from airbo.outcomes import Want, check_outcomes
from airbo.space import Design, Space, n_initial_for
from airbo.uncertainty import InputUncertainty

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")
R = TypeVar("R")
Own = TypeVar("Own", bound="Recorded")


def alone(
    method: Callable[Concatenate[Own, P], R],
) -> Callable[Concatenate[Own, P], R]:
    """Let only one thread at a time use an optimizer."""

    @wraps(method)
    def locked(self: Own, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked


class Recorded:
    """What an optimizer knows: its settings, and the record of observations and proposals."""

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
        initial: Literal["sobol", "random"] = "sobol",
        outcomes: Mapping[str, Want] | None = None,
        measure: Measure | None = None,
        noise: Noise = "measurement",
    ) -> None:
        """Start without observations.

        Args:
            space: The parameters of a design, or a dict of them.
            uncertainty: How accurately the experiments set the parameters, by name or tuple of
                names, in the units of the parameters; None: exactly.
            direction: Whether larger or smaller values are better.
            surrogate: ``"default"``, which is ``"relevance"``; ``"expectation"``, ``"mmd"`` (the
                paper's), ``"ugp"``, ``"energy"``, ``"wasserstein"``, ``"skl"``, ``"erbf"``,
                ``"nominal"``, or a function (train_X, train_Y) -> BoTorch model, which may have
                further arguments uncertainty, deployment and bounds.
            acquisition: ``"default"``, which is ``"balanced"``; ``"ucb-random"``, ``"ucb"`` (the
                paper's), ``"ucb-theory"``, ``"ei"``, one of ``airbo.acquisition`` with other
                settings, or a function that builds a BoTorch acquisition from a model.
            seed: Makes all choices reproducible.
            deployment: How accurately the recommended design will be set in use; by default as in
                the experiments.
            n_initial: Number of designs that fill the space before the model chooses; by default
                2 (d + 1), at least 5 and at most 20.
            initial: How these are spread: scrambled Sobol or uniform random.
            outcomes: What an experiment measures, by name, and what is wanted of it: ``Maximize``,
                ``Minimize``, ``AtMost``, ``AtLeast`` or ``Between``; None: one value.
            measure: What counts of the values f(x') over where a design lands, one of
                ``airbo.measures``; by default their mean.
            noise: ``"measurement"``: observation noise says nothing about the product, and no
                measure counts it; ``"product"``: single products differ by it, too.
        """
        self.space = space if isinstance(space, Space) else Space(space)
        self.outcomes = None if outcomes is None else check_outcomes(outcomes)
        check_names(self.space, self.outcomes)
        check_choice("direction", direction, "maximize", "minimize")
        check_choice("initial", initial, "sobol", "random")
        self.uncertainty = by_columns(self.space, uncertainty)
        self._deployment = None if deployment is None else by_columns(self.space, deployment)
        self.direction: Direction = one_direction(self.outcomes, direction)
        self.surrogate = surrogate
        points, build = Points(self.space), find_surrogate(surrogate)
        under = (self.uncertainty, self.deployment)
        self._surrogate = Surrogate(points, build, *under, self.direction)
        self.acquisition = acquisition
        self._acquisition = find_acquisition(acquisition)
        self.seed = whole_number("seed", seed, least=0)
        self.measure = one_measure(self.outcomes, measure)
        self.noise: Noise = noise
        self._objective = Objective(self._surrogate, self.measure, noise, self.seed)
        check_acquisition(self._acquisition, self.measure)
        self._goals: Goals | None = None
        if self.outcomes is not None and len(self.outcomes) > 1:
            self._goals = self._several_goals()
        n_first = n_initial_for(self.space.d) if n_initial is None else n_initial
        self.n_initial = whole_number("n_initial", n_first, least=1)
        self.initial: Literal["sobol", "random"] = initial
        self._history = History(points)
        self._start_without_models()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, and the models, which are refitted."""
        left_out = ("_lock", "_own_model", "_shown_model", "_last_under")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start without a model."""
        self.__dict__.update(state)
        self._start_without_models()

    def _start_without_models(self) -> None:
        self._last_under: tuple[NamedUncertainty, InputUncertainty] | None = None
        self._own_model, self._shown_model = FittedModel(), FittedModel()
        self._lock = threading.RLock()

    def _several_goals(self) -> Goals:
        """Return what is wanted of all outcomes, whether a design can be used among them."""
        assert self.outcomes is not None
        check_several(self.outcomes, self.acquisition, self._surrogate.build)
        return Goals.of(self.outcomes, self._objective)

    @property
    def _settings(self) -> dict[str, Any]:
        """The arguments that make an optimizer like this one, without its record."""
        return {
            "space": self.space,
            "uncertainty": self.uncertainty,
            "deployment": self._deployment,
            "direction": self.direction,
            "surrogate": self.surrogate,
            "acquisition": self.acquisition,
            "seed": self.seed,
            "n_initial": self.n_initial,
            "initial": self.initial,
            "measure": self.measure,
            "noise": self.noise,
            "outcomes": self.outcomes,
        }

    @property
    def _record(self) -> History:
        """What is known of the one outcome that a single model is made of."""
        if self.outcomes is None or self._goals is not None:
            return self._history
        return self._history.of(next(iter(self.outcomes)))

    @property
    def _rules(self) -> Rules:
        return Rules(self.space, self._surrogate.check, self.outcomes)

    @property
    def deployment(self) -> InputUncertainty:
        """The uncertainty of the recommended design in use."""
        return self.uncertainty if self._deployment is None else self._deployment

    # -- telling

    @alone
    def tell(
        self,
        design: "Mapping[str, Any] | Sequence[Mapping[str, Any]] | pd.Series | pd.DataFrame",
        value: Any = NOT_GIVEN,
        executed: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
        uncertainty: NamedUncertainty = None,
        allow_outside: bool = False,
        infeasible: bool = False,
    ) -> None:
        """Report the result of an experiment. An invalid report raises and changes nothing.

        Args:
            design: The design that was asked for, by the optimizer or by anybody else; a list of
                them; or a table of observations, with a column for each parameter, one for the
                value, or for each outcome, and, where executed inputs were measured,
                ``executed_<name>``.
            value: The observed value, or a dict of outcomes, of which those that were not measured
                may be left out; None or NaN if the experiment failed. With a list of designs, a
                list of values. With a table, the name of the column of values, ``"value"`` if not
                given.
            executed: Parameters of the executed input, where they were measured; with a list of
                designs, a list.
            uncertainty: What this experiment was made under, if not what the others were.
            allow_outside: Whether designs may lie outside the bounds of the space.
            infeasible: Whether a failed experiment failed because its design cannot be used. What
                works is then a limit of its own. Other failures say nothing of their design.
        """
        under = None if uncertainty is None else self._by_columns(uncertainty)
        new = read(self._rules, design, value, executed, under, allow_outside, infeasible)
        if self._goals is None and any(o.infeasible for o in new):
            self._goals = self._several_goals()
        for observation in new:
            self._history.tell(observation)

    def _by_columns(self, given: NamedUncertainty) -> InputUncertainty:
        """Translate and check an uncertainty; thousands of observations may have the same one."""
        if self._last_under is None or self._last_under[0] != given:
            self._last_under = given, by_columns(self.space, given)
        return self._last_under[1]

    @alone
    def expect(self, design: Mapping[str, Any], allow_outside: bool = False) -> None:
        """Add a pending design that did not come from this optimizer.

        Args:
            design: The design of an experiment that is running or planned.
            allow_outside: Whether it may lie outside the bounds of the space.
        """
        plain = self.space.checked(design, allow_outside)
        self._history.ask(plain)

    @alone
    def forget(self, design: Mapping[str, Any]) -> None:
        """Remove a pending design whose value will never be told."""
        plain = self.space.checked(design, allow_outside=True)
        if not self._history.answer(plain):
            raise ValueError(f"The design {plain} is not pending.")

    # -- looking

    @property
    @alone
    def observations(self) -> "pd.DataFrame":
        """All experiments, including failed ones, in the order in which they were told."""
        return as_table(self._rules, self._history.observations)

    @property
    @alone
    def pending(self) -> list[Design]:
        """Designs that were asked for and not told yet."""
        return [dict(design) for design in self._history.pending]

    # -- saving

    @alone
    def copy(self: Own) -> Own:
        """Return an independent optimizer in the same state.

        The two share fitted models: neither refits what the other has fitted to the same
        observations.
        """
        twin = copy.copy(self)
        twin._history = self._history.copy()
        twin._own_model, twin._lock = self._own_model, self._lock  # one model, one thread at a time
        return twin

    @alone
    def as_of(self: Own, n: int) -> Own:
        """Return an optimizer with only the first ``n`` observations and no pending designs."""
        earlier = copy.copy(self)
        known = self._history.observations[: whole_number("n", n, least=0)]
        earlier._history = History(self._history.points, known, n_asked=len(known))
        return earlier

    @alone
    def with_surrogate(self: Own, surrogate: str | SurrogateFactory) -> Own:
        """Return an optimizer with the same record and another surrogate."""
        other = type(self)(**{**self._settings, "surrogate": surrogate})
        other._history = self._history.copy()
        return other

    @alone
    def to_json(self) -> str:
        """Return the whole state as text.

        The text does not contain code: pass a callable uncertainty, surrogate or acquisition to
        ``from_json`` again.
        """
        history = self._history
        return State(
            self._settings, history.observations, history.pending, history.n_asked
        ).to_json()

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
        given = {name: setting for name, setting in given.items() if setting is not None}
        state = State.from_json(text, given, uncertainties or {})
        with understood():
            optimizer = cls(**state.settings)
            space, rules, history = optimizer.space, optimizer._rules, optimizer._history
            for o in state.observations:
                told = o.value if optimizer.outcomes is None else o.outcomes or None
                fields = (o.design, told, o.executed, o.uncertainty, True, o.infeasible)
                history.observations.append(read_one(rules, *fields))
            if optimizer._goals is None and any(o.infeasible for o in history.observations):
                optimizer._goals = optimizer._several_goals()
            history.pending = [
                space.checked(design, allow_outside=True) for design in state.pending
            ]
            history.n_asked = whole_number("n_asked", state.n_asked, least=0)
            return optimizer


def whole_number(name: str, value: object, least: int) -> int:
    """Return the value as an int; raise ``ValueError`` if it is not one, or too small."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
    return number
