r"""Is it worth going on? The expected gain of further experiments, by simulation.

The posterior of the expected values g of many designs is one Gaussian vector. Each of many
simulated futures draws a truth g from it and runs experiments on that truth. The next experiment
maximizes an upper confidence bound. It gives :math:`y = g(x) + \varepsilon`, and the posterior is
conditioned on this value:

.. math:: \mu \leftarrow \mu + \frac{k\,(y - \mu_x)}{k_x + s^2}, \qquad
          C \leftarrow C - \frac{k k^\top}{k_x + s^2}, \qquad k = C_{\cdot x}.

The gain of n experiments is the best posterior mean after them, averaged over the futures, minus
the best posterior mean of today.

Notation: μ (j) and C (j j) posterior mean and covariance of g, first at n designs as experiments
see them, then as they are in use where that differs; s² (n) the variance of single experiments.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from airbo.acquisition import RandomizedUCB, most_promising
from airbo.measures import Mean
from airbo.observed import Direction
from airbo.optimizer import Optimizer, Recommendation
from airbo.optimizer.choice import Choice, Policy
from airbo.optimizer.search import (
    free_designs,
    knows_where_inputs_land,
    without_numerical_warnings,
)
from airbo.outcomes import Maximize, Minimize
from airbo.seeds import reproducible
from airbo.space import Design

HORIZONS = (5, 10, 20)
"""Numbers of further experiments to simulate."""
N_FUTURES = 128
MAX_NUMBERS = 2**23
"""Numbers in the covariances of the futures that are simulated at a time: 64 MB."""
N_TRUTHS = 2048
"""Number of drawn truths from which the probability is estimated."""
N_PROMISING, N_AROUND, N_ELSEWHERE = 64, 32, 32
"""Numbers of simulated designs: most_promising, close to the recommended one, and elsewhere."""
MOST_TRIED = 256
"""Tried designs that are simulated: the most promising ones."""
AROUND = 0.05
"""Standard deviation of designs close to the recommended one, relative to the ranges."""
TOLERANCE = 0.05
"""Default of a negligible difference, relative to the range of the observed values."""
MOST_CONFIRMATIONS = 5
MEAN_SQUARE = RandomizedUCB().mean_square
"""Mean of β² in the upper confidence bounds."""


@dataclass(frozen=True)
class LuckiestRun:
    """The experiment with the best observed value, if another design is recommended."""

    design: Design
    value: float
    mean: float
    """Expected value of its design."""
    std: float
    """Standard deviation of the expected value."""
    spread: float
    """Standard deviation of single runs about the expected value."""


@dataclass(frozen=True)
class Outlook:
    """What further experiments can bring, and what the recommendation is based on."""

    recommendation: Recommendation
    direction: Direction
    gains: dict[int, float]
    """Expected improvement of the recommendation, by number of further experiments."""
    tolerance: float
    """The largest negligible difference, in the units of the values."""
    probability: float
    """Probability that no design is better than the recommended one by more than the tolerance."""
    n_values: int
    """Number of values that were observed at the recommended design."""
    spread: float
    """Standard deviation of single runs of the recommended design about its expected value."""
    n_confirmations: int
    """Number of runs of the recommended design to do before you use it, so that its expected value
    is known to the tolerance. At least one if it has been run only once."""
    luckiest: LuckiestRun | None
    """None if the recommended design has the best observed value."""


def look_ahead(
    optimizer: Optimizer,
    steps: Sequence[int] = HORIZONS,
    tolerance: float | None = None,
    policy: Policy | None = None,
    given: Mapping[str, Any] | None = None,
    outcome: str | None = None,
) -> Outlook:
    """Estimate what further experiments can bring to the mean of one outcome.

    Args:
        optimizer: An optimizer with at least one value. It is not changed.
        steps: Numbers of further experiments.
        tolerance: A negligible difference of expected values; by default a twentieth of the range
            of the observed values.
        policy: Which designs may be recommended; as for ``Optimizer.recommend``.
        given: What you know of its use, by name; as for ``Optimizer.recommend``.
        outcome: As if the mean of this one alone decided, towards its goal or away from its limit;
            by default the first objective, which has to be a mean.
    """
    if outcome is None and optimizer.measure != Mean():
        raise ValueError(
            "What further experiments can bring is known for the mean only; this optimizer decides "
            f"by {optimizer.measure!r}."
        )
    # the draws are seeded: the same record has the same outlook
    with optimizer.exclusive(), without_numerical_warnings():
        today = _Today(optimizer, policy, given, outcome)
        with reproducible(optimizer.seed, "outlook"), torch.no_grad():
            return today.outlook(sorted(set(steps)), tolerance)


class _Today:
    """An optimizer and its recommendation, seen in the unit cube."""

    def __init__(
        self,
        optimizer: Optimizer,
        policy: Policy | None,
        given: Mapping[str, Any] | None,
        outcome: str | None,
    ) -> None:
        # one outcome, as if its mean alone decided: larger, or smaller, is better without end
        found = optimizer.outcome_model(outcome, Mean(), given=given)
        self.surrogate, self.model = found.surrogate, found.model
        aim = Maximize() if self.surrogate.direction == "maximize" else Minimize()
        self.outcome = replace(found, goal=replace(found.goal, want=aim))
        name, self.unit = self.outcome.goal.name, self.outcome.unit
        self.history = replace(optimizer.record.of(name), points=self.surrogate.points)
        allowed = optimizer.policy_for(policy, given, name)
        self.anywhere = allowed != "observed"
        with reproducible(optimizer.seed, "recommend"):
            self.best = Choice([self.outcome], self.history, allowed).recommend()

    def outlook(self, steps: Sequence[int], tolerance: float | None) -> Outlook:
        # what does not matter, by default: a twentieth of the range of the values
        values = self.history.values
        tolerance = TOLERANCE * (max(values) - min(values)) if tolerance is None else tolerance
        n_values = sum(o.design == self.best.design for o in self.history.known)
        Z, tried = self._candidates()
        now = _joint(self, Z, tried)
        gains = now.gains(steps)
        spread = self.unit * now.noise[0].sqrt().item()
        return Outlook(
            recommendation=self.best,
            direction=self.surrogate.direction,
            gains={n: self.unit * gain for n, gain in gains.items()},
            tolerance=tolerance,
            probability=now.probability(tolerance / self.unit),
            n_values=n_values,
            spread=spread,
            n_confirmations=max(confirmations(self.best.std, spread, tolerance), int(n_values < 2)),
            luckiest=self._luckiest(),
        )

    def _candidates(self) -> tuple[Float[Tensor, "n m"], Bool[Tensor, " n"]]:
        """Return the recommended, tried and other designs, and which may be recommended today."""
        cube, points = self.history.points.cube, self.history.points
        best = points.of([self.best.design])
        tried = points.of([d for d in self.history.tried if d != self.best.design])
        tried = tried[most_promising(self.model, tried, MOST_TRIED)]
        # the best of many random designs by μ + 2σ, and some of the others
        pool = free_designs(cube, best[:0])
        parts: list[Any] = [self.model.posterior(some.unsqueeze(-2)) for some in pool.split(256)]
        bounds = [p.mean.flatten() + 2 * p.variance.clamp_min(0).sqrt().flatten() for p in parts]
        ranked = torch.cat(bounds).argsort(descending=True)
        others = ranked[N_PROMISING:]
        few = torch.cat([ranked[:N_PROMISING], others[:: len(others) // N_ELSEWHERE + 1]])
        Z = torch.cat([best, tried, pool[few], self._around(best)])
        known = torch.full((len(Z),), self.anywhere)
        known[: 1 + len(tried)] = True
        return Z, known

    def _around(self, best: Float[Tensor, "1 m"]) -> Float[Tensor, "n m"]:
        """Return designs near the recommended one that are allowed."""
        cube, points = self.history.points.cube, self.history.points
        # x* + AROUND · N(0, 1), in the folded cube
        F = cube.fold(best) + AROUND * torch.randn(N_AROUND, cube.space.d, dtype=torch.float64)
        designs = cube.to_designs(cube.unfold(cube.round(F.clamp(0, 1))))
        return points.of([design for design in designs if cube.space.meets(design)])

    def _luckiest(self) -> LuckiestRun | None:
        # argmax over experiments of sign · value
        runs = [(o.value, o.design) for o in self.history.known if o.value is not None]
        value, design = max(runs, key=lambda run: self.surrogate.sign * run[0])
        if design == self.best.design:
            return None
        Z = self.history.points.of([design])
        mean, std = (v.item() for v in self.outcome.predict(Z))
        return LuckiestRun(design, value, mean, std, self.unit * _noise(self, Z).sqrt().item())


def confirmations(std: float, spread: float, tolerance: float) -> int:
    """Return how many runs of a design it takes to know its expected value to a tolerance.

    After k runs the variance is 1 / (1/std² + k/spread²), which must fall to tolerance².
    """
    if std <= tolerance or tolerance <= 0:
        return 0
    # 1/std² + k/spread² >= 1/tolerance²  ⇔  k >= spread² (1/tolerance² - 1/std²)
    wanted = spread**2 * (1 / tolerance**2 - 1 / std**2)
    return min(max(1, math.ceil(wanted)), MOST_CONFIRMATIONS)


# -- many futures


@dataclass(frozen=True)
class _Joint:
    """Joint posterior of the expected values in the experiments and in use."""

    mean: Float[Tensor, " j"]
    covariance: Float[Tensor, "j j"]
    noise: Float[Tensor, " n"]
    """Variance of single experiments around their expected value."""
    use: slice
    """Positions of the expected values in use; those of the experiments come first."""
    tried: Bool[Tensor, " n"]
    """Which designs may be recommended today; the first is recommended."""

    def draw(self, n: int) -> Float[Tensor, "s j"]:
        """Draw truths."""
        # g = μ + L z, L Lᵀ = C
        jitter = 1e-10 + 1e-8 * self.covariance.diagonal().mean()
        eye = torch.eye(len(self.mean), dtype=self.mean.dtype)
        L = torch.linalg.cholesky(self.covariance + jitter * eye)
        return self.mean + torch.randn(n, len(self.mean), dtype=self.mean.dtype) @ L.mT

    def probability(self, tolerance: float) -> float:
        """Return the share of truths in which the first design is best within the tolerance."""
        # P(max_i g_i - g_0 <= tolerance)
        truths = self.draw(N_TRUTHS)[:, self.use]
        regret = truths.amax(-1) - truths[:, 0]
        return regret.le(tolerance).double().mean().item()

    def gains(self, steps: Sequence[int]) -> dict[int, float]:
        """Return how much the best posterior mean rises, by number of experiments."""
        at_a_time = max(1, MAX_NUMBERS // len(self.mean) ** 2)
        portions = [self._best_means(t, steps) for t in self.draw(N_FUTURES).split(at_a_time)]
        best = torch.cat(portions).mean(0)  # (steps,)
        # more experiments never bring less: a drop is an artefact of the simulation
        gains = (best - self.mean[self.use][0]).clamp_min(0).cummax(0).values
        return dict(zip(steps, gains.tolist(), strict=True))

    def _best_means(
        self, truths: Float[Tensor, "s j"], steps: Sequence[int]
    ) -> Float[Tensor, "s steps"]:
        """Return the best posterior mean of each future after some numbers of experiments."""
        s, n, own = len(truths), len(self.noise), torch.arange(len(truths))
        mu = self.mean.expand(s, -1).clone()
        C = self.covariance.expand(s, -1, -1).clone()
        tried = self.tried.expand(s, -1).clone()
        found = []
        for step in range(1, max(steps, default=0) + 1):
            # x maximizes μ + β σ, with β² ~ Exp
            square = torch.empty(s, 1, dtype=mu.dtype).exponential_().mul(MEAN_SQUARE)
            std = C.diagonal(dim1=-2, dim2=-1)[:, :n].clamp_min(0).sqrt()
            x = (mu[:, :n] + square.sqrt() * std).argmax(-1)
            noise = self.noise[x]
            y = truths[own, x] + noise.sqrt() * torch.randn(s, dtype=mu.dtype)
            # μ ← μ + k (y - μ_x) / (k_x + s²),  C ← C - k kᵀ / (k_x + s²)
            k = C[own, :, x]
            weight = k / (k[own, x] + noise).clamp_min(1e-300).unsqueeze(-1)
            mu += weight * (y - mu[own, x]).unsqueeze(-1)
            C.baddbmm_(weight.unsqueeze(-1), k.unsqueeze(-2), alpha=-1)
            tried[own, x] = True
            if step in steps:
                found.append(mu[:, self.use].masked_fill(~tried, -math.inf).amax(-1))
        return torch.stack(found, -1) if found else truths[:, :0]


def _joint(today: _Today, Z: Float[Tensor, "n m"], tried: Bool[Tensor, " n"]) -> _Joint:
    # one Gaussian vector of the expected values in experiments and in use
    model, surrogate = today.model, today.surrogate
    noise = _noise(today, Z)
    same = surrogate.experiments_in_cube == surrogate.deployment_in_cube
    if same or not knows_where_inputs_land(model):
        return _Joint(*_moments(model.posterior(Z)), noise, slice(0, len(Z)), tried)
    # F_P and F_Q of the same designs, jointly: experiments teach the first, use is the second
    under = [surrogate.experiments_in_cube] * len(Z) + [surrogate.deployment_in_cube] * len(Z)
    posterior = model.posterior(torch.cat([Z, Z]), uncertainty=under)
    return _Joint(*_moments(posterior), noise, slice(len(Z), 2 * len(Z)), tried)


def _moments(posterior: Any) -> tuple[Float[Tensor, " j"], Float[Tensor, "j j"]]:
    return posterior.mean.squeeze(-1), posterior.distribution.covariance_matrix


def _noise(today: _Today, Z: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Return the variance of single experiments around their expected value."""
    # Var y(x) - Var F(x): what one experiment scatters beyond what the model does not know
    single, expected = (
        today.model.posterior(Z.unsqueeze(-2), observation_noise=noisy).variance.flatten()
        for noisy in (True, False)
    )
    return (single - expected).clamp_min(0)
