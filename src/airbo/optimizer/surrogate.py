"""From observations to a fitted model.

Notation
    n observations, m columns of the unit cube
    X (n m)    designs, with measured executed inputs in the place of requested ones
    Y (n 1)    y = sign f / unit: larger is better
    P_i        where the executed input of observation i may have been: ``around``, one for each
"""

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models.gpytorch import GPyTorchModel
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from airbo.acquisition import most_promising
from airbo.models import (
    ERBFGP,
    MMDGP,
    SKLGP,
    UGP,
    ExpectationGP,
    NominalGP,
    RelevanceGP,
    UncertainInputGP,
)
from airbo.observed import Direction
from airbo.optimizer.record import Observation, Points
from airbo.space import Space
from airbo.uncertainty import InputUncertainty, conditional
from airbo.uncertainty.conditional import given_columns
from airbo.uncertainty.in_cube import check_logs, in_cube, without_law

SurrogateFactory = Callable[..., GPyTorchModel]

SURROGATES: dict[str, SurrogateFactory] = {
    "default": RelevanceGP,
    "expectation": ExpectationGP,
    "relevance": RelevanceGP,
    "mmd": MMDGP,
    "ugp": UGP,
    "skl": SKLGP,
    "erbf": ERBFGP,
    "nominal": NominalGP,
}
CONVERGED = 1e-6
"""A fit ends when a step raises the log likelihood, per observation, by a smaller share of it. The
default of SciPy, 2e-9, takes a quarter more steps for 0.02 in the log likelihood of 500 values."""
MOST_ROWS = 1000
"""Rows of a model: its time grows with their cube and its memory with their square."""


class PartOfDataWarning(RuntimeWarning):
    """The model looks at a part of what is known."""


@dataclass(frozen=True)
class Surrogate:
    """Builds and fits models, in the unit cube, from observations."""

    points: Points
    """Where designs lie in the unit cube."""
    build: SurrogateFactory
    """Maps (train_X, train_Y) and, if it has arguments for them, uncertainty, deployment, bounds,
    fold_replicates and train_Yvar to a BoTorch model."""
    uncertainty: InputUncertainty
    """The uncertainty of the experiments, over columns."""
    deployment: InputUncertainty
    """The uncertainty in use, over columns."""
    direction: Direction
    """Whether larger or smaller values are better."""

    space: Space = field(init=False)
    """The columns that models compare: those of designs, and of the environment."""
    experiments_in_cube: InputUncertainty = field(init=False)
    """The uncertainty of the experiments, in the unit cube."""
    deployment_in_cube: InputUncertainty = field(init=False)
    """The uncertainty in use, in the unit cube."""

    def __post_init__(self) -> None:
        space = self.points.cube.whole.space
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "experiments_in_cube", in_cube(space, self.uncertainty))
        object.__setattr__(self, "deployment_in_cube", in_cube(space, self.deployment))

    @property
    def sign(self) -> int:
        """Factor of the values that makes larger ones better."""
        return 1 if self.direction == "maximize" else -1

    def given(self, points: Points) -> "Surrogate":
        """Return the same where designs and the environment have what points hold."""
        if points.cube.given == self.points.cube.given:
            return self
        # P and Q given what is known: known columns are exact; what varies with them follows
        cube, names = points.cube, self.space.names
        known = {names.index(name): value for name, value in cube.known.items()}
        typical = [0.0] * cube.designs.d + cube.designs.typical
        P, Q = (given_columns(u, typical, known) for u in (self.uncertainty, self.deployment))
        return replace(self, points=points, uncertainty=P, deployment=Q)

    def check_laws(self, points: Points) -> None:
        """Refuse an environment of which nobody can say what it will be."""
        # without a law nobody can average over it
        for name in without_law(points.cube.designs, self.deployment):
            if name not in points.cube.known:
                raise ValueError(
                    f"{name!r} has no law, so airbo cannot know what to expect. Say what it is, "
                    f"as in given={{{name!r}: ...}}, or give the environment a law."
                )

    def fit(self, known: Sequence[Observation]) -> GPyTorchModel:
        """Fit a model to observations that have a value, or to a part if they are too many.

        Half of this part is drawn at random. A first model is fitted to it, and says which of the
        others may be best: they are chosen by their designs, not by their own values, so that
        luck plays no part.
        """
        # replicates are one row of a model, so they do not count twice against the limit
        unit = value_unit([o.value for o in known if o.value is not None])
        rows = replicates(known) if self._folds else [[i] for i in range(len(known))]
        if len(rows) <= MOST_ROWS:
            return self._fit(known, unit)

        def some(chosen: Sequence[int]) -> list[Observation]:
            return [known[i] for i in sorted(i for row in chosen for i in rows[row])]

        # a first model of half of the rows, at random
        drawn, others = torch.randperm(len(rows)).split(
            [MOST_ROWS // 2, len(rows) - MOST_ROWS // 2]
        )
        first = self._fit(some(drawn.tolist()), unit)
        # the other half: designs with the largest μ + σ by that model
        Z = self.points.of([known[rows[row][0]].design for row in others.tolist()])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            best = others[most_promising(first, Z, MOST_ROWS - len(drawn))]
        part = some([*drawn.tolist(), *best.tolist()])
        warnings.warn(
            f"The model looks at {len(part):,} of {len(known):,} observations: half at random, "
            "half where values may be best. All of them would need too much time and memory.",
            PartOfDataWarning,
            stacklevel=2,
        )
        return self._fit(part, unit)

    @property
    def _folds(self) -> bool:
        """Whether replicates become one row of the model."""
        # a factory that folds replicates exactly says so, or at least has the argument
        takes = _accepted(self.build, {"fold_replicates": True})
        return bool(takes) and getattr(self.build, "folds_exactly", True)

    def _fit(self, known: Sequence[Observation], unit: float) -> GPyTorchModel:
        X, around = self._landed_in_cube(known)
        values = [o.value for o in known if o.value is not None]
        # y = sign f / unit
        Y = self.sign * torch.tensor(values, dtype=torch.float64).unsqueeze(-1) / unit
        offered = {
            "uncertainty": around,
            "deployment": self.deployment_in_cube,
            "bounds": self.points.cube.whole.bounds,
            "fold_replicates": True,
            **self._known_noise(known, unit),
        }
        model = self.build(X, Y, **_accepted(self.build, offered))
        if not isinstance(model, GPyTorchModel):
            raise TypeError(f"The surrogate factory must return a BoTorch GP, got {model!r}.")
        fit_hyperparameters(model)
        if isinstance(model, UncertainInputGP):
            model = model.including(self.experiments_in_cube)
        return model

    def _known_noise(self, known: Sequence[Observation], unit: float) -> dict[str, Tensor]:
        """Return the variances of observed values, as far as they are known; NaN: learned."""
        # what is not known is NaN, and learned as one number for all
        stds = [math.nan if o.value_noise is None else o.value_noise for o in known]
        if all(map(math.isnan, stds)):
            return {}
        # Var y_i = (σ_i / unit)²
        return {"train_Yvar": (torch.tensor(stds, dtype=torch.float64).unsqueeze(-1) / unit) ** 2}

    def check(self, o: Observation) -> None:
        """Raise ``ValueError`` for an observation that no model could use."""
        if o.noise and not _accepted(self.build, {"train_Yvar": None}):
            raise ValueError("noise: this surrogate has no argument train_Yvar, so it learns it.")
        # x' must have a logarithm where a scale is one, and be known where nothing has a law
        columns, around = self._landed(o)
        if o.executed:
            self.points.cube.whole.from_columns(columns)
        check_logs(self.space, around, columns)
        uncertainty = self.uncertainty if o.uncertainty is None else o.uncertainty
        says_something = o.outcomes or o.infeasible
        for name in without_law(self.points.cube.designs, uncertainty) if says_something else ():
            if name not in o.executed:
                raise ValueError(
                    f"{name!r} was not measured and has no law. Tell executed={{{name!r}: ...}}, "
                    "or give the environment a law."
                )

    def _landed(self, o: Observation) -> tuple[Tensor, InputUncertainty]:
        """Return the executed input as far as it was measured, and the remaining uncertainty."""
        # x'_j is known where it was measured; of the others, P given these
        uncertainty = self.uncertainty if o.uncertainty is None else o.uncertainty
        columns = self.points.columns(o)
        if not o.executed:
            return columns, uncertainty
        [design] = self.points.cube.columns([o.design], allow_outside=True).tolist()
        named = [self.space.names.index(name) for name in o.executed]
        point, around = conditional(uncertainty, design, {c: columns[0, c].item() for c in named})
        return columns.new_tensor([point]), around

    def _landed_in_cube(
        self, known: Sequence[Observation]
    ) -> tuple[Tensor, list[InputUncertainty]]:
        X = self.points.of([o.design for o in known])
        # P_i is that of the experiments, unless x'_i was measured or the report names another
        around = [self.experiments_in_cube] * len(known)
        for i, o in enumerate(known):
            if o.executed or o.uncertainty is not None:
                columns, own = self._landed(o)
                around[i] = in_cube(self.space, own)
                if o.executed:
                    X[i] = self.points.cube.whole.from_columns(columns)[0]
        return X, around


@dataclass
class FittedModel:
    """The last fitted model, kept while the observations stay the same."""

    told: Sequence[tuple[Any, ...]] = ()
    model: GPyTorchModel | None = None

    def of(self, known: Sequence[Observation], surrogate: Surrogate) -> GPyTorchModel:
        """Return the model of these observations; fit it unless it is the last one."""
        # everything that a fit depends on
        told = [(o.design, o.value, o.executed, o.uncertainty, o.value_noise) for o in known]
        if self.model is None or self.told != told:
            self.model, self.told = surrogate.fit(known), told
        return self.model


def value_unit(values: Sequence[float]) -> float:
    """Return the unit of values inside a model: 1, or less if they differ very little.

    GPyTorch treats every variance below 1e-10 as a rounding error.
    """
    # 10^k with 10^k <= max f - min f < 10^(k + 1)
    spread = max(values) - min(values)
    if spread >= 1e-3 or spread <= 1e-12 * max(map(abs, values)):
        return 1.0
    return float(10.0 ** math.floor(math.log10(spread)))


def find_surrogate(given: str | SurrogateFactory) -> SurrogateFactory:
    """Return the surrogate of this name; a factory is returned unchanged."""
    if callable(given):
        return given
    if isinstance(given, str) and given in SURROGATES:
        return SURROGATES[given]
    names = ", ".join(map(repr, SURROGATES))
    raise ValueError(
        f"surrogate must be one of {names} or a function that builds a BoTorch model, "
        f"got {given!r}."
    )


def fit_hyperparameters(model: GPyTorchModel) -> None:
    """Maximize the marginal likelihood; if that fails, warn and keep the starting values.

    A model without free hyper-parameters is not changed.
    """
    # a model whose parameters are all fixed is ready
    if not any(p.requires_grad for p in model.parameters()):
        model.eval()
        return
    # max over θ of log p(Y | X, θ) + log p(θ)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # says that a line search ended early
        try:
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"ftol": CONVERGED}})
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


def _accepted(build: SurrogateFactory, offered: dict[str, object]) -> dict[str, object]:
    """Leave out what a factory has no argument for; BoTorch's own models lack most."""
    arguments = inspect.signature(build).parameters
    if any(p.kind is p.VAR_KEYWORD for p in arguments.values()):
        return offered
    return {name: value for name, value in offered.items() if name in arguments}


# -- parts of many observations


def replicates(known: Sequence[Observation]) -> list[list[int]]:
    """Return the positions of observations, those together that one row of a model can hold."""
    # replicates share design, measured input, P and known noise
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, o in enumerate(known):
        key = (*o.design.values(), *o.executed.items(), o.uncertainty, o.value_noise)
        groups.setdefault(key, []).append(i)
    return list(groups.values())
