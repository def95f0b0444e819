"""Several outcomes: one model for each, joint draws of their measures, and the next design."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model_list_gp_regression import ModelListGP
from jaxtyping import Float
from torch import Tensor
from torch.nn import ModuleList

from airbo.acquisition import InformationAbout, Situation, believing
from airbo.acquisition.improvement import Draws, LogImprovement, Sampled
from airbo.measures import CVaR, InSpec, Mean, MeanStd, Measure, Quantile, Worst
from airbo.measures.posterior import SEARCH, Effort, MeasureModel, Noise
from airbo.models import UncertainInputGP
from airbo.optimizer.objective import Objective
from airbo.optimizer.recommendation import Predictor
from airbo.optimizer.record import History
from airbo.optimizer.search import best_design, looked_at, without_numerical_warnings
from airbo.optimizer.surrogate import FittedModel, value_unit
from airbo.outcomes import FEASIBLE, AtLeast, Between, Limit, Want, limits, objectives

SEARCH_LIMITS = SEARCH
"""Effort of a search with limits."""
ONE_SIDED = (MeanStd, Quantile, CVaR, Worst)
"""Measures that look at one side of the values, the bad one."""
RARE = 0.95
"""Limits with a larger probability depend on tails that need twice as many executed inputs."""


@dataclass(frozen=True)
class OutcomeGoal:
    """One outcome: its goal, and the surrogate that models its values."""

    name: str
    outcome: Want
    objective: Objective
    """The measure of an objective, or the share of executed inputs that keep a limit."""
    last: FittedModel = field(default_factory=FittedModel, compare=False)

    @classmethod
    def of(cls, name: str, outcome: Want, like: Objective) -> "OutcomeGoal":
        """Give an outcome a surrogate of its own, which differs only in the direction."""
        measure: Measure = (
            InSpec(*outcome.bounds) if isinstance(outcome, Limit) else outcome.measure
        )
        surrogate = replace(like.surrogate, direction=outcome.direction)
        return cls(name, outcome, replace(like, surrogate=surrogate, measure=measure))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the model, which is refitted."""
        return {**self.__dict__, "last": FittedModel()}

    def history(self, whole: History) -> History:
        """Return the observations of this outcome."""
        return whole.feasibility if self.name == FEASIBLE else whole.of(self.name)

    def model(self, whole: History) -> GPyTorchModel:
        """Return the model of the experiments in which the outcome was measured."""
        known = self.history(whole).known
        if not known:
            raise ValueError(f"There is no model of {self.name!r} yet: no experiment measured it.")
        return self.last.of(known, self.objective.surrogate)

    def unit(self, whole: History) -> float:
        """Return the unit of the values of its model."""
        return value_unit(self.history(whole).values)

    def measured(self, whole: History, effort: Effort) -> MeasureModel:
        """Return draws of the measure, with torch's random numbers."""
        objective, surrogate = self.objective, self.objective.surrogate
        measure = objective.measure.inside(surrogate.sign, self.unit(whole))
        where, model = surrogate.deployment_in_cube, self.model(whole)
        return MeasureModel(model, measure, where, objective.noise, effort)

    def predictor(
        self, whole: History, measure: Measure | None = None, noise: Noise | None = None
    ) -> Predictor:
        """Return a predictor of the measure, or of another measure of the same outcome."""
        own = self.objective
        if isinstance(self.outcome, Between) and isinstance(measure, ONE_SIDED):
            raise ValueError(
                f"{self.name!r} has limits on both sides, so no side is the bad one that "
                f"{type(measure).__name__} looks at. Ask for InSpec, Target or Mean."
            )
        objective = replace(own, measure=measure or own.measure, noise=noise or own.noise)
        return Predictor(objective, self.model(whole), self.unit(whole))


@dataclass(frozen=True)
class Goals:
    """All outcomes of an experiment, if there are limits or several objectives."""

    named: tuple[OutcomeGoal, ...]

    @classmethod
    def of(cls, outcomes: Mapping[str, Want], like: Objective) -> "Goals":
        """Build one goal per outcome, all with the same surrogate settings."""
        works = {FEASIBLE: AtLeast(0.5)}  # 1 if an executed input works, otherwise 0
        return cls(
            tuple(OutcomeGoal.of(name, o, like) for name, o in {**outcomes, **works}.items())
        )

    @property
    def outcomes(self) -> dict[str, Want]:
        """All outcomes that the user named."""
        return {goal.name: goal.outcome for goal in self.named if goal.name != FEASIBLE}

    def named_goal(self, name: str | None) -> OutcomeGoal:
        """Return the goal of an outcome, or of the first objective."""
        wanted = next(iter(objectives(self.outcomes))) if name is None else name
        for goal in self.named:
            if goal.name == wanted:
                return goal
        raise ValueError(f"Unknown outcome {name!r}; there are {list(self.outcomes)}.")

    def used(self, history: History) -> list[OutcomeGoal]:
        """Return the goals; feasibility is one of them only if something was infeasible."""
        known = any(o.infeasible for o in history.observations)
        return [goal for goal in self.named if known or goal.name != FEASIBLE]

    def are_known(self, history: History) -> bool:
        """Return whether every outcome was measured at least once."""
        return all(goal.history(history).known for goal in self.used(history))

    def model(self, history: History) -> ModelListGP:
        """Return the models of all outcomes, in their order."""
        return ModelListGP(*(goal.model(history) for goal in self.used(history)))

    def draws(self, history: History, effort: Effort | None = None) -> "OutcomeDraws":
        """Draw all outcomes, each from its own model, with torch's random numbers."""
        effort = effort or SEARCH_LIMITS
        asked = [limit.probability for limit in limits(self.outcomes).values()]
        n = effort.n_executed * (2 if max(asked, default=0.0) > RARE else 1)
        return OutcomeDraws(self.used(history), history, replace(effort, n_executed=n))

    def limits(self, history: History, effort: Effort) -> list[MeasureModel]:
        """Return draws of all outcomes with a limit, each from its own model."""
        used = self.used(history)
        return [g.measured(history, effort) for g in used if isinstance(g.outcome, Limit)]

    def predicted(self, history: History, Z: Float[Tensor, "n m"]) -> dict[str, Any]:
        """Return mean and standard deviation of all outcomes at points of the unit cube."""
        columns: dict[str, Any] = {}
        for goal in self.used(history):
            measure = Mean() if isinstance(goal.outcome, Limit) else None
            means, stds = goal.predictor(history, measure).predict(Z)
            columns |= {f"{goal.name}_mean": means.numpy(), f"{goal.name}_std": stds.numpy()}
        return columns

    def next_design(self, history: History) -> Float[Tensor, "1 m"]:
        """Return the design that is expected to improve most on the known ones.

        Where designs are tried under another uncertainty than they will be used under, this is the
        design to learn about, and what is proposed is the experiment that teaches most about it.
        """
        points, surrogate = history.points, self.named[0].objective.surrogate
        known = points.of([*history.designs, *looked_at(history)])
        taken = {"exclude": points.of(history.pending), "avoid": points.of(history.recently_failed)}
        with without_numerical_warnings():
            function = LogImprovement(self.draws(history), known)
            Z = best_design(function, points.cube, **taken)
            if surrogate.experiments_in_cube == surrogate.deployment_in_cube:
                return Z
            teaching = _InformationAboutAll(self, history, Z)
            return best_design(teaching, points.cube, start=Z, **taken)


class OutcomeDraws(Draws):
    """Joint draws of objectives and margins of designs, under the uncertainty in use."""

    def __init__(self, goals: list[OutcomeGoal], history: History, effort: Effort) -> None:
        super().__init__()
        self.goals = goals
        self.units = [goal.unit(history) for goal in goals]
        self.models = ModuleList(goal.measured(history, effort) for goal in goals)

    def forward(self, Z: Float[Tensor, "*batch n m"]) -> Sampled:
        """Return draws at designs."""
        objectives, margins = [], []
        for goal, unit, model in zip(self.goals, self.units, self.models, strict=True):
            measured = cast(MeasureModel, model)
            if isinstance(goal.outcome, Limit):
                values = goal.objective.surrogate.sign * measured.values(Z)
                margins.append(margin(goal.outcome, values, unit) / _scale(measured))
            else:
                objectives.append(measured.posterior(Z).draws.squeeze(-1))
        none = Z.new_zeros(*objectives[0].shape, 0)
        kept = torch.stack(margins, -1) if margins else none
        return Sampled(torch.stack(objectives, -1), kept)


def margin(limit: Limit, values: Float[Tensor, "*draws s"], unit: float) -> Float[Tensor, "*draws"]:
    r"""Return the margin by which a limit is kept with its probability, from draws over P_x.

    .. math:: P(f(x') \text{ is within}) \ge p \iff q_{1-p}(\min(f(x') - low, high - f(x'))) \ge 0

    The quantile on the right has a slope where the share on the left is 0 or 1.
    """
    low, high = limit.bounds
    rooms = [] if low is None else [values - low / unit]
    rooms += [] if high is None else [high / unit - values]
    return cast(Tensor, Quantile(limit.probability).of(torch.stack(rooms).amin(0)))


def _scale(measured: MeasureModel) -> float:
    """Return the standard deviation of the observed values of a model, in its units."""
    transform: Any = measured.model.outcome_transform
    return float(transform.stdvs.squeeze())


class _InformationAboutAll(AcquisitionFunction):
    """How much one experiment would reduce the variances of all outcomes of one design in use."""

    n_steps = 20
    """Steps that a search takes from each start; every step needs the models of all outcomes."""

    def __init__(self, goals: Goals, history: History, design: Float[Tensor, "1 m"]) -> None:
        super().__init__(model=goals.model(history))
        surrogate, waiting = goals.named[0].objective.surrogate, looked_at(history)
        points = history.points
        under = surrogate.experiments_in_cube
        pending = points.of(waiting) if waiting else None
        situation = Situation(points.of(history.designs), pending, under)
        self.parts = torch.nn.ModuleList()
        self.variances = []
        for goal in goals.used(history):
            model = cast(UncertainInputGP, believing(goal.model(history), situation))
            about = InformationAbout(model, design, surrogate.deployment_in_cube, under)
            self.parts.append(about)
            with torch.no_grad():
                self.variances.append(model.posterior(design).variance.item())

    def forward(self, X: Tensor) -> Tensor:
        """Return the relative drops in variance, summed over all outcomes."""
        parts = zip(self.parts, self.variances, strict=True)
        return torch.stack([part(X) / variance for part, variance in parts]).sum(0)
