"""One outcome of an experiment: what is wanted of it, its model, and what that predicts.

Notation
    n, m      designs, and columns of the unit cube; S draws of f, s executed inputs of a design
    Z (n m)   designs, as points of the unit cube
    f         values of the outcome, as the user counts them
    y         what is modelled, y = sign f / unit: larger is better, and the spread is not tiny
    sign      1 where larger values of f are better, otherwise -1
    factor    what turns the measure of y over P_x into the measure of f

Behind this file, one outcome is a list of one: asking, recommending and predicting take a list of
``OutcomeModel``, whether there are limits, several objectives, or the mean of a single value.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, cast

import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import Model
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import ModuleList

from airbo.acquisition import TheoryUCB, find_acquisition
from airbo.acquisition.improvement import Draws, Sampled
from airbo.measures import CVaR, InSpec, Mean, MeanStd, Measure, Quantile, Worst, check_measure
from airbo.measures.capability import Capability, around_mean
from airbo.measures.posterior import FINE, FOR_SHARES, Effort, MeasureModel, Noise, check_noise
from airbo.models import ERBFGP, SKLGP, NominalGP, UncertainInputGP
from airbo.optimizer.recommendation import Evaluation, OutcomeEstimate
from airbo.optimizer.record import History, Points
from airbo.optimizer.surrogate import FittedModel, Surrogate, SurrogateFactory, value_unit
from airbo.outcomes import FEASIBLE, AtLeast, Between, Limit, Want
from airbo.seeds import reproducible
from airbo.space import Design

ONE_SIDED = (MeanStd, Quantile, CVaR, Worst)
"""Measures that look at one side of the values, the bad one."""
RARE = 0.95
"""Limits with a larger probability depend on tails that need twice as many executed inputs."""
IN_TAIL = 4
"""Executed inputs beyond a quantile that can be read off them; farther out, tails are normal ones.
With 512 executed inputs and the probability 0.99865, 0.7 may miss: recommended designs missed 1.8
times as often as allowed."""
MAX_VALUES = 2**22
"""Number of values of f that fit into memory."""
NORMAL = NormalDist()
NORMAL_90 = 1.6449
"""Half-width, in standard deviations, of the central 90% of a normal distribution."""
_WITHOUT_F = (SKLGP, ERBFGP, NominalGP)


@dataclass(frozen=True)
class Goal:
    """One outcome: what is wanted of it, and how its values are modelled."""

    name: str
    want: Want
    surrogate: Surrogate
    """Builds the model of its values, with the direction of the outcome."""
    noise: Noise = "measurement"
    """Whether observation noise counts as a property of the product."""
    seed: int = 0
    number: int = 0
    """Its place among the outcomes: each has draws of its own."""
    last: FittedModel = field(default_factory=FittedModel, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the model, which is refitted."""
        return {**self.__dict__, "last": FittedModel()}

    def model(
        self, history: History, measure: Measure | None = None, noise: Noise | None = None
    ) -> "OutcomeModel":
        """Return the model of the experiments in which the outcome was measured.

        Args:
            history: All experiments.
            measure: What is asked of the values; by default what is wanted of the outcome.
            noise: See above, and by default as there.
        """
        # a quantile to the bad side needs one bad side
        if isinstance(self.want, Between) and isinstance(measure, ONE_SIDED):
            raise ValueError(
                f"{self.name!r} has limits on both sides, so no side is the bad one that "
                f"{type(measure).__name__} looks at. Ask for InSpec, Target or Mean."
            )
        if measure is None:
            measure = self.want.measure
        else:
            check_knows_f(self.surrogate.build, check_measure(measure))
        noise = self.noise if noise is None else check_noise(noise)
        # y_i = sign f_i / unit, at the designs where the outcome was measured
        own = history.of(self.name)
        if not own.known:
            raise ValueError(f"There is no model of {self.name!r} yet: no experiment measured it.")
        with reproducible(self.seed, "fit"):
            model = self.last.of(own.known, self.surrogate)
        return OutcomeModel(self, model, value_unit(own.values), measure, noise)


def goals_of(
    outcomes: Mapping[str, Want], surrogate: Surrogate, noise: Noise, seed: int
) -> tuple[Goal, ...]:
    """Return the goals of all outcomes; the last one is that a design can be used at all."""
    works = {FEASIBLE: AtLeast(0.5)}  # 1 if an executed input works, otherwise 0
    check_noise(noise)
    return tuple(
        Goal(name, want, replace(surrogate, direction=want.direction), noise, seed, number)
        for number, (name, want) in enumerate({**outcomes, **works}.items())
    )


@dataclass(frozen=True)
class OutcomeModel:
    """The fitted model of one outcome, and what it predicts of designs in use."""

    goal: Goal
    model: GPyTorchModel
    """The fitted surrogate, of y."""
    unit: float
    """The unit of y, see ``value_unit``."""
    measure: Measure
    """What is asked of f over P_x, in the user's units and direction."""
    noise: Noise

    @property
    def surrogate(self) -> Surrogate:
        """What built the model."""
        return self.goal.surrogate

    @property
    def is_limit(self) -> bool:
        """Whether the outcome must stay within limits; otherwise designs are chosen by it."""
        return isinstance(self.goal.want, Limit)

    @property
    def is_mean(self) -> bool:
        """Whether the posterior of the model is the answer already."""
        return isinstance(self.measure, Mean)

    @property
    def factor(self) -> float:
        """What turns the measure of y into that of f."""
        return self.measure.factor(self.surrogate.sign, self.unit)

    def given(self, points: Points) -> "OutcomeModel":
        """Return the same where designs and the environment have what points hold."""
        # the same posterior of f; only Q, where designs land in use, knows what is given
        surrogate, model = self.surrogate.given(points), self.model
        if surrogate is self.surrogate:
            return self
        if isinstance(model, UncertainInputGP):
            model = model.used_under(surrogate.deployment_in_cube)
        return replace(self, goal=replace(self.goal, surrogate=surrogate), model=model)

    def of_values(self) -> "OutcomeModel":
        """Return the same about the mean."""
        return replace(self, measure=Mean())

    # -- posteriors, in the units of the model: larger is better

    def of_measure(self, effort: Effort) -> Model:
        """Return a model of the measure of y: the surrogate itself where that is the mean."""
        return self.model if self.is_mean else self.draws(effort)

    def draws(self, effort: Effort, fresh: bool = False) -> MeasureModel:
        """Return draws of the measure of y, also of the mean.

        Args:
            effort: How many.
            fresh: Whether they come from torch's generator as it stands; otherwise they are the
                same every time, so that one question has one answer.
        """
        # m(f) of the user's values becomes m(y), with limits in units of y
        inside = self.measure.inside(self.surrogate.sign, self.unit)
        stream = reproducible(self.goal.seed, "draws of f", self.goal.number)
        with nullcontext() if fresh else stream:
            where = self.surrogate.deployment_in_cube
            return MeasureModel(self.model, inside, where, self.noise, effort)

    def _drawn(self, Z: Float[Tensor, "n m"], effort: Effort) -> Float[Tensor, "S n"]:
        """Return draws of the measure of y at designs, as many at a time as fit into memory."""
        # S · s values of f at each design
        draws = self.draws(effort)
        with torch.no_grad():
            portions = Z.split(max(1, MAX_VALUES // draws.n_values))
            parts = [draws.posterior(some).draws.squeeze(-1) for some in portions]
        return torch.cat(parts, dim=-1)

    # -- predictions, in the user's units

    def predict(
        self, Z: Float[Tensor, "n m"], effort: Effort = FINE
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Return mean and standard deviation of the measure of designs."""
        # the mean over P_x of a Gaussian process is Gaussian; other measures are drawn
        if self.is_mean:
            with torch.no_grad():
                posterior: Any = self.model.posterior(Z)
            mean, std = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1).sqrt()
        else:
            drawn = self._drawn(Z, effort)
            mean, std = drawn.mean(0), drawn.std(0)
        return self.factor * mean, abs(self.factor) * std

    def evaluate(self, design: Design) -> Evaluation:
        """Return the posterior of the measure of one design."""
        [c] = self.capabilities([design])
        if c is not None:  # a share has one number
            share, std, ends = c.share, c.share_std, c.share_interval
            return Evaluation(dict(design), self.measure, share, std, ends, c)
        Z = self.surrogate.points.of([design])
        [mean], [std] = (v.tolist() for v in self.predict(Z))
        # the mean is normal: μ ± 1.645 σ; of other measures, the middle 90 of 100 draws
        if self.is_mean:
            ends = mean - NORMAL_90 * std, mean + NORMAL_90 * std
        else:
            ends = around_mean(self.factor * self._drawn(Z, FINE).flatten())
        return Evaluation(dict(design), self.measure, mean, std, ends)

    def estimates(
        self, Z: Float[Tensor, "n m"], effort: Effort | None = None
    ) -> tuple[list[OutcomeEstimate], Bool[Tensor, "S n"] | None]:
        """Predict the outcome of designs.

        Args:
            Z: The designs.
            effort: How closely limits are looked at; by default as for all that people see.

        Returns:
            An estimate of each design and, of a limit, in which draws of f each design keeps it
            with the required probability.
        """
        # of an objective its measure; of a limit its mean, and whether it is kept
        want = self.goal.want
        if not isinstance(want, Limit):
            means, stds = self.predict(Z)
            pairs = zip(means.tolist(), stds.tolist(), strict=True)
            return [OutcomeEstimate(mean, std) for mean, std in pairs], None
        # in draw s, the share of executed inputs that keep the limit is as large as it should be
        means, stds = self.of_values().predict(Z)
        draws = self.draws(effort or FINE)
        with torch.no_grad():
            portions = Z.split(max(1, MAX_VALUES // draws.n_values))
            f = (self.surrogate.sign * draws.values(some) for some in portions)
            kept = torch.cat([margin(want, each, self.unit) >= 0 for each in f], dim=-1)  # (S, n)
        rows = zip(means.tolist(), stds.tolist(), kept.double().mean(0).tolist(), strict=True)
        return [OutcomeEstimate(mean, std, holds=holds) for mean, std, holds in rows], kept

    def capabilities(self, designs: Sequence[Design]) -> list[Capability | None]:
        """Return how well designs keep within limits, if the measure has any.

        Shares near 0 and 1 take many executed inputs, so this is for few designs.
        """
        if not isinstance(self.measure, InSpec):
            return [None] * len(designs)
        draws = self.draws(FOR_SHARES)
        assert isinstance(draws.measure, InSpec)
        with torch.no_grad():
            return [
                Capability.of(draws.measure, draws.values(Z)[:, 0])  # (S, s)
                for Z in self.surrogate.points.of(designs).split(1)
            ]

    def values(self, design: Design) -> Float[Tensor, "S s"]:
        """Return draws of the values of f over where a design lands.

        Capabilities are read off the same draws.
        """
        # f = sign · unit · y
        with torch.no_grad():
            y = self.draws(FOR_SHARES).values(self.surrogate.points.of([design]))[:, 0]
        return self.surrogate.sign * self.unit * y


# -- all outcomes together


class OutcomeDraws(Draws):
    """Joint draws of all outcomes: the measures of objectives, and the margins of limits.

    The models of outcomes are independent, so joint draws are draws of each, side by side.
    """

    def __init__(self, outcomes: Sequence[OutcomeModel], effort: Effort) -> None:
        """Draw all outcomes from torch's generator as it stands."""
        super().__init__()
        self.outcomes = outcomes
        # 1 - p of the executed inputs may miss a limit: few of them for a large p
        limits = [o.goal.want for o in outcomes if isinstance(o.goal.want, Limit)]
        is_rare = max((limit.probability for limit in limits), default=0.0) > RARE
        effort = replace(effort, n_executed=effort.n_executed * (2 if is_rare else 1))
        self.models = ModuleList(o.draws(effort, fresh=True) for o in outcomes)

    def forward(self, Z: Float[Tensor, "*batch n m"]) -> Sampled:
        """Return draws at designs."""
        objectives, margins = [], []
        for outcome, model in zip(self.outcomes, self.models, strict=True):
            draws, want = cast(MeasureModel, model), outcome.goal.want
            if isinstance(want, Limit):
                f = outcome.surrogate.sign * draws.values(Z)  # in units of y
                margins.append(margin(want, f, outcome.unit) / _scale(draws))
            else:
                objectives.append(draws.posterior(Z).draws.squeeze(-1))
        none = Z.new_zeros(*objectives[0].shape, 0)
        kept = torch.stack(margins, -1) if margins else none
        return Sampled(torch.stack(objectives, -1), kept)


def margin(limit: Limit, values: Float[Tensor, "*draws s"], unit: float) -> Float[Tensor, "*draws"]:
    r"""Return the margin by which a limit is kept with its probability, from draws over P_x.

    .. math:: P(f(x') \text{ is within}) \ge p \iff q_{1-p}(\min(f(x') - low, high - f(x'))) \ge 0

    The quantile on the right has a slope where the share on the left is 0 or 1. Where it lies
    beyond all executed inputs but a few, the tail is that of a normal distribution.
    """
    # min(f - low, high - f) in units of y, and its quantile over the executed inputs
    low, high = limit.bounds
    rooms = [] if low is None else [values - low / unit]
    rooms += [] if high is None else [high / unit - values]
    room, p, farthest = torch.stack(rooms).amin(0), limit.probability, farthest_level(values)
    if p <= farthest:
        return cast(Tensor, Quantile(p).of(room))
    # q_p = μ - (μ - q_r) z_p / z_r, with the farthest level r that can be read off
    mean, stretch = room.mean(-1), NORMAL.inv_cdf(p) / NORMAL.inv_cdf(farthest)
    return cast(Tensor, mean - stretch * (mean - Quantile(farthest).of(room)))


def farthest_level(values: Float[Tensor, "*draws s"]) -> float:
    """Return the largest level of a quantile that s executed inputs show."""
    # IN_TAIL of s executed inputs have to lie beyond the quantile
    s = values.shape[-1]
    return 1.0 if s == 1 else max(1 - IN_TAIL / s, 0.75)


def effort_for(limits: Sequence[Limit]) -> Effort | None:
    """Return the effort with which all limits can be read off; None: that of ``FINE`` does."""
    # (1 - p) n >= IN_TAIL, by a power of 2
    least = max((IN_TAIL / (1 - limit.probability) for limit in limits), default=0.0)
    if least <= FINE.n_executed:
        return None
    return replace(FINE, n_executed=2 ** math.ceil(math.log2(least)))


def _scale(draws: MeasureModel) -> float:
    """Return the standard deviation of the observed values of a model, in its units."""
    # margins of different outcomes are compared in standard deviations of their values
    transform: Any = draws.model.outcome_transform
    return float(transform.stdvs.squeeze())


# -- what goes together


def check_settings(outcomes: Mapping[str, Want], acquisition: Any, build: SurrogateFactory) -> None:
    """Refuse settings of an optimizer that do not go together.

    Args:
        outcomes: What is wanted of each outcome.
        acquisition: The acquisition, or its name.
        build: The surrogate.
    """
    # measures of draws of f need a model of f itself, not of its mean over P alone
    for want in outcomes.values():
        check_knows_f(build, want.measure, is_single=len(outcomes) == 1)
    if len(outcomes) > 1 and acquisition != "default":
        raise ValueError(
            "With limits or several objectives, designs are chosen by the expected improvement of "
            "the front: leave acquisition out."
        )
    [first, *_] = outcomes.values()
    if isinstance(find_acquisition(acquisition), TheoryUCB) and first.measure != Mean():
        raise ValueError(
            "acquisition='ucb-theory' takes its β from a theorem about the mean. With "
            f"measure={first.measure} use 'ucb-random', 'ucb' or 'ei'."
        )


def check_knows_f(build: SurrogateFactory, measure: Measure, is_single: bool = True) -> None:
    """Refuse a surrogate without a model of f itself where draws of f are needed.

    A user's own surrogate can be checked only when it has built its model.
    """
    if build in _WITHOUT_F and not (is_single and isinstance(measure, Mean)):
        raise ValueError(
            f"{build.__name__} has no model of f itself, which limits, several objectives and "
            "every measure but the mean need. Use surrogate='default', 'ugp' or 'mmd'."
        )
