"""Which design to use, and what to expect of it."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from botorch.acquisition.analytic import PosteriorMean
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from torch import Tensor

from airbo.measures import InSpec, Measure
from airbo.measures.capability import Capability, around_mean
from airbo.measures.posterior import COARSE, FINE, FOR_SHARES, RECOMMEND, Effort
from airbo.optimizer.objective import Objective
from airbo.optimizer.record import History
from airbo.optimizer.search import best_design, without_numerical_warnings
from airbo.space import Design

N_FINALISTS = 8
"""Number of designs that are compared closely before one is recommended by a measure."""


CLEARLY = 0.25
"""How far a design that was not tried has to be ahead of the best tried one to be recommended, in
standard deviations of the difference."""
N_DIFFERENCES = 512
"""Draws from which that standard deviation is estimated."""
NORMAL_90 = 1.6449
"""Half-width, in standard deviations, of the central 90% of a normal distribution."""


class TooLittleDataWarning(UserWarning):
    """The model cannot tell yet which design is best."""


@dataclass(frozen=True)
class OutcomeEstimate:
    """What the model predicts for one outcome of a design."""

    mean: float
    """Expected value, or the measure that an objective has, in the user's units."""
    std: float
    """Its standard deviation (model uncertainty)."""
    within: float | None = None
    """Of a limit: the share of executed inputs that keep it."""
    within_std: float | None = None
    """The standard deviation of that share (model uncertainty)."""
    holds: float | None = None
    """Probability that the share is as large as it was asked to be."""
    capability: Capability | None = None
    """Share in spec, Cpk and ppm, of a limit and of an objective that counts by ``InSpec``."""


@dataclass(frozen=True)
class Recommendation:
    """The best design by the measure, according to the model; by default in expectation."""

    design: Design
    mean: float
    """The measure of the design, as the model expects it, in the user's units and direction; with
    several objectives, that of the first."""
    std: float
    """Its standard deviation (model uncertainty)."""
    capability: Capability | None = None
    """Share in spec, Cpk and ppm, where the measure is ``InSpec``; that of the first objective."""
    outcomes: Mapping[str, OutcomeEstimate] = field(default_factory=dict)
    """All outcomes by name, where there are several."""
    holds: float | None = None
    """Probability that all limits are kept as often as they were asked to be."""
    reason: str = ""
    """How the design was chosen, where there are limits or several objectives."""


@dataclass(frozen=True)
class Evaluation:
    """The posterior of a measure of one design."""

    design: Design
    measure: Measure
    mean: float
    """The measure of the design, as the model expects it, in the user's units and direction."""
    std: float
    """Its standard deviation (model uncertainty)."""
    interval: tuple[float, float]
    """The measure lies in this interval with a probability of 90% or more; the mean does."""
    capability: Capability | None = None
    """Share in spec, Cpk and ppm, where the measure is ``InSpec``."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON."""
        capability = self.capability and self.capability.to_dict()
        return {
            "design": dict(self.design),
            "measure": self.measure.to_dict(),
            "mean": self.mean,
            "std": self.std,
            "interval": list(self.interval),
            **({} if capability is None else {"capability": capability}),
        }


@dataclass(frozen=True)
class Predictor:
    """Predicts the measure of designs in use, in the user's direction."""

    objective: Objective
    model: GPyTorchModel
    """The fitted surrogate."""
    unit: float
    """The unit of its values, see ``value_unit``."""

    def predict(
        self, Z: Float[Tensor, "n m"], effort: Effort = FINE
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Return mean and standard deviation of the measure at points of the unit cube."""
        judged = self.objective.judged(self.model, self.unit, effort)
        with torch.no_grad():
            parts = [judged.posterior(some) for some in Z.split(self._at_a_time(judged))]
        mean, variance = (torch.cat([getattr(p, k) for p in parts]) for k in ("mean", "variance"))
        factor = self.objective.factor(self.unit)
        return factor * mean.squeeze(-1), abs(factor) * variance.squeeze(-1).sqrt()

    def _at_a_time(self, judged: Any) -> int:
        """Return how many designs to predict at a time, so that their draws fit in memory."""
        return 2**31 if self.objective.is_mean else max(1, 2**22 // judged.n_values)

    def best_of(self, designs: Sequence[Design]) -> Recommendation:
        """Recommend the best of some designs."""
        if len(designs) > N_FINALISTS and not self.objective.is_mean:
            means, _ = self.predict(self.objective.surrogate.points.of(designs), COARSE)
            ranked = self._better(means).argsort(descending=True)
            designs = [designs[int(i)] for i in ranked[:N_FINALISTS]]
        means, stds = self.predict(self.objective.surrogate.points.of(designs))
        best = int(self._better(means).argmax())
        design, mean, std = dict(designs[best]), means[best].item(), stds[best].item()
        return Recommendation(design, mean, std, self.capability(design))

    def evaluate(self, design: Design) -> Evaluation:
        """Return the posterior of the measure of one design."""
        Z = self.objective.surrogate.points.of([design])
        [mean], [std] = (v.tolist() for v in self.predict(Z))
        if self.objective.is_mean:
            half = NORMAL_90 * std
            ends = [mean - half, mean + half]
        else:
            judged: Any = self.objective.judged(self.model, self.unit, FINE)
            with torch.no_grad():
                draws = judged.posterior(Z).draws.flatten()
            ends = sorted(self.objective.factor(self.unit) * end for end in around_mean(draws))
        within = (ends[0], ends[1])
        return Evaluation(
            dict(design), self.objective.measure, mean, std, within, self.capability(design)
        )

    def capability(self, design: Design) -> Capability | None:
        """Return how well a design keeps within limits, if the measure has limits."""
        return self.capabilities([design])[0]

    def capabilities(self, designs: Sequence[Design]) -> list[Capability | None]:
        """Return how well each of some designs keeps within limits, with the same draws of f."""
        if not isinstance(self.objective.measure, InSpec):
            return [None] * len(designs)
        judged: Any = self.objective.judged(self.model, self.unit, FOR_SHARES)
        with torch.no_grad():
            return [
                Capability.of(judged.measure, judged.values(Z)[:, 0])  # (S, s)
                for Z in self.objective.surrogate.points.of(designs).split(1)
            ]

    def values(self, design: Design) -> Float[Tensor, "S s"]:
        """Return draws of the values at the executed inputs of a design, in the user's units."""
        drawn = self.objective.drawn(self.model, self.unit, FOR_SHARES)
        with torch.no_grad():
            inside = drawn.values(self.objective.surrogate.points.of([design]))[:, 0]
        return self.objective.surrogate.sign * self.unit * inside

    def _better(self, means: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Flip the sign of means if smaller ones are better."""
        return means if self.objective.factor(self.unit) > 0 else -means

    def best(self, history: History) -> Recommendation:
        """Recommend the best of the tried designs, unless another one is clearly better."""
        tried, other = self.best_of(history.tried), self.best_anywhere(history)
        factor = self.objective.factor(self.unit)
        ahead = (other.mean - tried.mean) / factor
        Z = self.objective.surrogate.points.of([other.design, tried.design])
        judged = self.objective.judged(self.model, self.unit, FINE)
        with torch.no_grad(), without_numerical_warnings():
            draws = judged.posterior(Z).rsample(torch.Size([N_DIFFERENCES])).squeeze(-1)  # (S, 2)
        scatter = (draws[:, 0] - draws[:, 1]).std().item()
        return other if ahead > CLEARLY * scatter else tried

    def best_anywhere(self, history: History) -> Recommendation:
        """Recommend the best design of the whole space."""
        cube, start = history.points.cube, history.points.of(history.tried)
        judged = self.objective.judged(self.model, self.unit, RECOMMEND)
        with without_numerical_warnings():
            Z = best_design(PosteriorMean(judged), cube, start=start)
        return self.best_of(cube.to_designs(Z))

    def warn_if_blind(self, recommendation: Recommendation, history: History) -> None:
        """Warn if the model knows too little to prefer one design to another."""
        means, _ = self.predict(history.points.of(history.tried), COARSE)
        n = len(history.known)
        if n < 3 or recommendation.std > (means.max() - means.min()).item():
            warnings.warn(
                f"After {n} observation(s) the model cannot tell this design from the others: its "
                f"expected value is {recommendation.mean:.4g} ± {recommendation.std:.2g}.",
                TooLittleDataWarning,
                stacklevel=3,
            )
