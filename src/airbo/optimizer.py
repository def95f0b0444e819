"""Ask, tell, recommend: the one object with state."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import pandas as pd
import torch
from botorch.acquisition import PosteriorMean
from botorch.exceptions.errors import ModelFittingError
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float
from torch import Tensor

from airbo.acquisition import Situation, find_acquisition
from airbo.coordinates import (
    InModelCoordinates,
    NamedUncertainty,
    by_columns,
    n_model_columns,
    to_model,
    without,
)
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, NominalGP, UncertainInputGP
from airbo.record import (
    EXECUTED,
    STATUS,
    VALUE,
    Design,
    Observation,
    as_table,
    check_value,
    from_table,
)
from airbo.search import best_design
from airbo.space import Space
from airbo.uncertainty import InputUncertainty, from_dict

Direction = Literal["maximize", "minimize"]
SurrogateFactory = Callable[..., Model]

SURROGATES: dict[str, SurrogateFactory] = {
    "default": MMDGP,
    "mmd": MMDGP,
    "ugp": UGP,
    "skl": SKLGP,
    "erbf": ERBFGP,
    "nominal": NominalGP,
}

STATE_VERSION = 1
IN_CODE = "given in code"


class TooLittleDataWarning(UserWarning):
    """The model cannot tell yet which design is best."""


@dataclass(frozen=True)
class Recommendation:
    """The design that the model holds best in expectation."""

    design: Design
    mean: float
    """Expected value of the design, in the user's units and direction."""
    std: float
    """Standard deviation of that expectation: what the model does not know."""


class Optimizer:
    """Finds the design with the best expected value, one experiment, or a batch, at a time.

    Values are told in the user's direction; inside, they are maximized. The state is the record of
    observations and of designs asked for: the model is fitted anew from it, so that an optimizer
    restored from JSON goes on exactly as the one that was saved.
    """

    def __init__(
        self,
        space: Space,
        uncertainty: NamedUncertainty = None,
        direction: Direction = "maximize",
        surrogate: str | SurrogateFactory = "default",
        acquisition: Any = "ucb",
        seed: int = 0,
        *,
        deployment: NamedUncertainty = None,
        n_initial: int | None = None,
        initial: Literal["sobol", "random"] = "sobol",
    ) -> None:
        """Start with nothing known.

        Args:
            space: The parameters of a design, or a dict of them.
            uncertainty: Where a design may land during the experiments, by name or group of names in
                the units of the parameters; None: designs are hit exactly.
            direction: Whether values are to be large or small.
            surrogate: ``"default"``, ``"mmd"``, ``"ugp"``, ``"skl"``, ``"erbf"``, ``"nominal"``, or
                a function (train_X, train_Y, uncertainty, bounds) -> BoTorch model.
            acquisition: ``"ucb"``, ``"ucb-theory"``, ``"ei"``, one of ``airbo.acquisition`` with
                other settings, or a function that makes a BoTorch acquisition of a model.
            seed: Fixes all choices.
            deployment: Where the recommended design will land when it is used; by default as in
                the experiments.
            n_initial: Designs that are spread over the space before the model chooses; by default
                2 (d + 1), at least 5 and at most 20.
            initial: How these are spread: scrambled Sobol or uniform random.
        """
        self.space = space if isinstance(space, Space) else Space(space)
        reserved = {VALUE, STATUS, *(EXECUTED + name for name in self.space.names)}
        for name in reserved & set(self.space.names):
            raise ValueError(f"A parameter cannot be called {name!r}: tables use that column.")
        if direction not in ("maximize", "minimize"):
            raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}.")
        if initial not in ("sobol", "random"):
            raise ValueError(f"initial must be 'sobol' or 'random', got {initial!r}.")
        self.uncertainty = by_columns(self.space, uncertainty)
        self.deployment = (
            self.uncertainty if deployment is None else by_columns(self.space, deployment)
        )
        self.direction: Direction = direction
        self.surrogate = surrogate
        self._build = _find_surrogate(surrogate)
        self.acquisition = acquisition
        self._acquisition = find_acquisition(acquisition)
        self.seed = _whole_number("seed", seed, least=0)
        by_dimension = min(max(5, 2 * (self.space.d + 1)), 20)
        self.n_initial = (
            by_dimension if n_initial is None else _whole_number("n_initial", n_initial, least=1)
        )
        self.initial: Literal["sobol", "random"] = initial
        self._observations: list[Observation] = []
        self._pending: list[Design] = []
        self._n_asked = 0
        self._fitted: tuple[int, Model] | None = None

    # -- asking

    @overload
    def ask(self) -> Design: ...
    @overload
    def ask(self, n: int) -> list[Design]: ...
    def ask(self, n: int | None = None) -> Design | list[Design]:
        """Propose the next design, or ``n`` designs that go together.

        Whatever was asked and not told yet is taken into account.
        """
        if n is None:
            return self._ask_one()
        return [self._ask_one() for _ in range(_whole_number("n", n, least=1))]

    def _ask_one(self) -> Design:
        with _reproducible(self.seed, self._n_asked):
            known = [o for o in self._observations if not o.failed]
            if not known or len(self._observations) + len(self._pending) < self.n_initial:
                Z = self._next_initial()
            else:
                Z = self._next_best()
        [design] = self.space.decode(self.space.from_model(Z))
        self._pending.append(design)
        self._n_asked += 1
        return dict(design)

    def _next_initial(self) -> Float[Tensor, "1 d"]:
        """Return the next point of the initial sequence, skipping designs that are taken."""
        taken = self._unit([*self._pending, *(o.design for o in self._observations)])
        Z = torch.empty(1, self.space.d, dtype=torch.float64)
        for i in range(self._n_asked, self._n_asked + 100):
            Z = self.space.round(self._initial_point(i))
            if not _contains(taken, Z):
                break
        return Z

    def _initial_point(self, i: int) -> Float[Tensor, "1 d"]:
        if self.initial == "random":
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + i)
            return torch.rand(1, self.space.d, generator=generator, dtype=torch.float64)
        engine = torch.quasirandom.SobolEngine(self.space.d, scramble=True, seed=self.seed)
        return engine.fast_forward(i).draw(1, dtype=torch.float64)

    def _next_best(self) -> Float[Tensor, "1 d"]:
        """Maximize the acquisition over the space."""
        waiting = [*self._pending, *(o.design for o in self._observations if o.failed)]
        situation = Situation(
            self._model_designs([o.design for o in self._observations if not o.failed]),
            self._model_designs(waiting) if waiting else None,
        )
        return best_design(
            self._acquisition(self.model, situation), self.space, exclude=self._unit(waiting)
        )

    # -- telling

    def tell(
        self,
        design: Design | pd.DataFrame,
        value: Any = VALUE,
        executed: Mapping[str, Any] | None = None,
        uncertainty: NamedUncertainty = None,
        allow_outside: bool = False,
    ) -> None:
        """Report what an experiment gave. Nothing changes if anything is wrong with the report.

        Args:
            design: The design that was asked for, by the optimizer or by anybody else; or a table of
                observations, with a column for each parameter, one for the value and, where executed
                inputs were measured, ``executed_<name>``.
            value: The observed value; None or NaN if the experiment failed. With a table, the name
                of the column of values.
            executed: Parameters of the executed input, where they were measured.
            uncertainty: What this experiment was made under, if not what the others were.
            allow_outside: Whether designs may lie outside the bounds of the space.
        """
        if isinstance(design, pd.DataFrame):
            if executed is not None:
                raise ValueError("In a table, executed inputs stand in columns executed_<name>.")
            rows = from_table(self.space, design, value)
        else:
            if isinstance(value, str) and value == VALUE:
                raise TypeError("tell(design, value) needs a value; None says that it failed.")
            rows = [(dict(design), value, dict(executed or {}))]
        under = None if uncertainty is None else by_columns(self.space, uncertainty)
        new = [self._checked(*row, under, allow_outside, i) for i, row in enumerate(rows)]
        for observation in new:
            if observation.design in self._pending:
                self._pending.remove(observation.design)
            self._observations.append(observation)

    def forget(self, design: Design) -> None:
        """Give up a design that was asked for and that nobody will answer."""
        [design] = self.space.decode(self.space.encode(design))
        if design not in self._pending:
            raise ValueError(f"The design {design} is not pending.")
        self._pending.remove(design)

    def _checked(
        self,
        design: Mapping[str, Any],
        value: Any,
        executed: Mapping[str, Any],
        uncertainty: InputUncertainty | None,
        allow_outside: bool,
        row: int,
    ) -> Observation:
        try:
            [plain] = self.space.decode(self.space.encode(design, allow_outside))
            if allow_outside:
                plain = {**plain, **{n: _plain(design[n]) for n in design}}
            observation = Observation(
                plain, check_value(value), self._check_executed(plain, executed), uncertainty
            )
            self._made_under(observation)
        except (ValueError, TypeError) as error:
            where = f"Row {row}: " if row else ""
            raise type(error)(f"{where}{error}") from None
        return observation

    def _check_executed(self, design: Design, executed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the measured part of an executed input, as plain values."""
        for name in executed:
            if name not in self.space.names:
                raise ValueError(f"executed: unknown parameter {name!r}{self.space.hint(name)}.")
        for name, value in executed.items():
            column = self.space.names.index(name)
            if column in self.space.integer_columns:
                continue  # a whole number may have been missed by a fraction
            try:
                self.space.encode({**design, name: value}, allow_outside=True)
            except ValueError as error:
                raise ValueError(f"executed: {error}") from None
        return {name: _plain(value) for name, value in executed.items()}

    # -- looking

    @property
    def observations(self) -> pd.DataFrame:
        """All experiments, failed ones too, in the order in which they were told."""
        return as_table(self.space, self._observations)

    @property
    def pending(self) -> list[Design]:
        """Designs that were asked for and not told yet."""
        return [dict(design) for design in self._pending]

    @property
    def model(self) -> Model:
        """The surrogate, fitted to all observations, in model coordinates and maximized values."""
        known = [o for o in self._observations if not o.failed]
        if not known:
            raise ValueError("There is no model yet: no experiment has given a value.")
        if self._fitted is None or self._fitted[0] != len(self._observations):
            with _reproducible(self.seed, 0):
                self._fitted = (len(self._observations), self._fit(known))
        return self._fitted[1]

    def recommend(self, policy: Literal["observed", "anywhere"] = "observed") -> Recommendation:
        """Return the design with the best expected value under the deployment uncertainty.

        Args:
            policy: ``"observed"``: among the designs that were tried, the paper's outcome;
                ``"anywhere"``: in the whole space.
        """
        if policy not in ("observed", "anywhere"):
            raise ValueError(f"policy must be 'observed' or 'anywhere', got {policy!r}.")
        model = self.model
        tried = self._tried()
        if policy == "anywhere":
            with _reproducible(self.seed, 1):
                Z = best_design(PosteriorMean(model), self.space, start=self._unit(tried))
            candidates = self.space.decode(self.space.from_model(Z))
        else:
            candidates = tried
        means, stds = self._predict(candidates)
        best = int((self._sign * means).argmax())
        recommendation = Recommendation(candidates[best], means[best].item(), stds[best].item())
        self._warn_if_blind(recommendation)
        return recommendation

    def predict(self, designs: Any) -> pd.DataFrame:
        """Return mean and standard deviation of the expected value of designs.

        Args:
            designs: One dict, several dicts, or a table.
        """
        rows = self.space.decode(self.space.encode(designs))
        means, stds = self._predict(rows)
        return pd.DataFrame(rows).assign(mean=means.numpy(), std=stds.numpy())

    def _tried(self) -> list[Design]:
        """Return the distinct observed designs inside the space."""
        distinct: list[Design] = []
        for o in self._observations:
            if not o.failed and o.design not in distinct:
                distinct.append(o.design)
        inside = [d for d in distinct if self._is_inside(d)]
        return inside or distinct

    def _is_inside(self, design: Design) -> bool:
        try:
            self.space.check(design)
        except ValueError:
            return False
        return True

    def _predict(self, designs: Sequence[Design]) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            posterior = self.model.posterior(self._model_designs(designs))
        mean, variance = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)
        return self._sign * mean, variance.sqrt()

    def _warn_if_blind(self, recommendation: Recommendation) -> None:
        means, _ = self._predict(self._tried())
        n = sum(not o.failed for o in self._observations)
        if n < 3 or recommendation.std > (means.max() - means.min()).item():
            warnings.warn(
                f"After {n} observation(s) the model cannot tell this design from the others: its "
                f"expected value is {recommendation.mean:.4g} ± {recommendation.std:.2g}.",
                TooLittleDataWarning,
                stacklevel=3,
            )

    # -- the model

    @property
    def _sign(self) -> int:
        return 1 if self.direction == "maximize" else -1

    def _fit(self, known: list[Observation]) -> Model:
        X = torch.cat([self._model_input(o) for o in known])
        Y = self._sign * torch.tensor([[o.value] for o in known], dtype=torch.float64)
        bounds = torch.tensor([[0.0], [1.0]], dtype=X.dtype).repeat(1, n_model_columns(self.space))
        each = [InModelCoordinates(self._made_under(o), self.space) for o in known]
        model = self._build(X, Y, uncertainty=each, bounds=bounds)
        if isinstance(model, UncertainInputGP):
            model.deployment = InModelCoordinates(self.deployment, self.space)
        _fit_hyperparameters(model)
        return model

    def _made_under(self, o: Observation) -> InputUncertainty:
        """Return where the experiment may have landed, given what was measured of it."""
        uncertainty = self.uncertainty if o.uncertainty is None else o.uncertainty
        measured = {self.space.names.index(name) for name in o.executed}
        try:
            return without(uncertainty, measured, self.space.d)
        except ValueError as error:
            raise ValueError(f"executed: of {list(o.executed)}, {error}.") from None

    def _model_input(self, o: Observation) -> Float[Tensor, "1 m"]:
        """Put the measured part of the executed input in place of the design."""
        X = self.space.encode(o.design, allow_outside=True)
        for name, value in o.executed.items():
            column = self.space.names.index(name)
            if column not in self.space.categorical_columns:
                X[0, column] = float(value)
        return to_model(self.space, X)

    def _unit(self, designs: Sequence[Design]) -> Float[Tensor, "n d"]:
        return self.space.to_model(self.space.encode(designs, allow_outside=True))

    def _model_designs(self, designs: Sequence[Design]) -> Float[Tensor, "n m"]:
        return to_model(self.space, self.space.encode(designs, allow_outside=True))

    # -- saving

    def to_json(self) -> str:
        """Return the whole state as text.

        What only code can say (a callable uncertainty, surrogate or acquisition) is not in it, and
        has to be given to ``from_json`` again.
        """
        state = {
            "airbo_optimizer": STATE_VERSION,
            "space": self.space.to_dict(),
            "uncertainty": _described(self.uncertainty),
            "deployment": _described(self.deployment),
            "direction": self.direction,
            "surrogate": self.surrogate if isinstance(self.surrogate, str) else IN_CODE,
            "acquisition": self.acquisition if isinstance(self.acquisition, str) else IN_CODE,
            "seed": self.seed,
            "n_initial": self.n_initial,
            "initial": self.initial,
            "n_asked": self._n_asked,
            "pending": self._pending,
            "observations": [o.to_dict() for o in self._observations],
        }
        return json.dumps(state, indent=1)

    @classmethod
    def from_json(cls, text: str, **given: Any) -> "Optimizer":
        """Restore an optimizer.

        Args:
            text: What ``to_json`` returned.
            **given: ``uncertainty``, ``deployment``, ``surrogate`` or ``acquisition``, where they
                could not be saved.
        """
        state = _read_state(text)
        space = Space.from_dict(state["space"])
        for name in ("uncertainty", "deployment", "surrogate", "acquisition"):
            if name in given:
                state[name] = given[name]
            elif state[name] == IN_CODE:
                raise ValueError(
                    f"The {name} of this optimizer is code and was not saved: "
                    f"give it as from_json(text, {name}=...)."
                )
            elif name in ("uncertainty", "deployment"):
                state[name] = from_dict(state[name])
        optimizer = cls(
            space,
            deployment=state["deployment"],
            **{
                name: state[name]
                for name in (
                    "uncertainty", "direction", "surrogate", "acquisition", "seed", "n_initial",
                    "initial",
                )
            },
        )  # fmt: skip
        optimizer._n_asked = state["n_asked"]
        optimizer._pending = [dict(design) for design in state["pending"]]
        optimizer._observations = [Observation.from_dict(o) for o in state["observations"]]
        return optimizer


def _find_surrogate(given: str | SurrogateFactory) -> SurrogateFactory:
    if callable(given):
        return given
    if given in SURROGATES:
        return SURROGATES[given]
    raise ValueError(
        f"surrogate must be one of {', '.join(map(repr, SURROGATES))} or a function that builds a "
        f"BoTorch model, got {given!r}."
    )


def _fit_hyperparameters(model: Model) -> None:
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # says that a line search ended early
        try:
            fit_gpytorch_mll(mll)
            return
        except ModelFittingError as error:
            reason = str(error)
    model.load_state_dict(start)
    model.eval()
    warnings.warn(
        f"The hyper-parameters could not be fitted ({reason}); the model uses its prior ones.",
        RuntimeWarning,
        stacklevel=2,
    )


def _contains(Z: Float[Tensor, "n d"], point: Float[Tensor, "1 d"]) -> bool:
    return bool((Z - point).abs().amax(dim=-1).lt(1e-9).any()) if len(Z) else False


class _reproducible:
    """Seed the random numbers of a block of code, and leave those outside as they were."""

    def __init__(self, seed: int, step: int) -> None:
        self._seed = (seed * 1_000_003 + step) % 2**63
        self._fork = torch.random.fork_rng(devices=[])

    def __enter__(self) -> None:
        self._fork.__enter__()
        torch.manual_seed(self._seed)

    def __exit__(self, *error: Any) -> None:
        self._fork.__exit__(*error)


def _described(uncertainty: InputUncertainty) -> Any:
    try:
        return uncertainty.to_dict()
    except TypeError:
        return IN_CODE


def _read_state(text: str) -> dict[str, Any]:
    try:
        state = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"This is not the state of an optimizer: {error}.") from None
    if not isinstance(state, dict) or "airbo_optimizer" not in state:
        raise ValueError("This is not the state of an optimizer.")
    if state["airbo_optimizer"] != STATE_VERSION:
        raise ValueError(
            f"This state has version {state['airbo_optimizer']}; this airbo reads version "
            f"{STATE_VERSION}."
        )
    return state


def _plain(value: Any) -> Any:
    """Turn NumPy scalars into Python ones, so that JSON can hold them."""
    return value.item() if hasattr(value, "item") else value


def _whole_number(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
    return value
