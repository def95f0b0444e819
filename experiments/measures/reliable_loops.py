"""Design of parts that keep limits: ours, and BoTorch with chance constraints.

BoTorch's joint posterior over all perturbed inputs of a design, of the designs it is compared with
and of up to 12 outputs is what costs: with 64 samples, 32 perturbations and all designs that could
be best, one ask took 7 to 55 s. It is the same method here, only with fewer of each: 32 samples, 20
perturbations (the fewest of which 95 of 100 can be counted), the 4 designs that are best in most
draws, and at most 50 iterations. The design that it recommends is judged with 128 perturbations. As
BoTorch advises, the search is for the probability that all limits are kept until a known design is
likely to keep them.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import (
    qLogNoisyExpectedImprovement,
    qLogProbabilityOfFeasibility,
)
from botorch.acquisition.objective import MCAcquisitionObjective
from botorch.acquisition.risk_measures import Expectation, VaR
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.safe_math import fatmoid
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

import airbo
from airbo.uncertainty import base_draws
from experiments.subjects.internals import N_RAW, initial_point, reproducible
from experiments.subjects.reliability import LEVEL, ReliableDesign

CONFIDENCE = 0.8
"""How sure a method has to be that a design is reliable before it recommends it."""
N_W = 20
"""Perturbations in a search."""
N_W_FINE = 128
"""Perturbations with which the design to recommend is judged."""
N_SAMPLES, N_RESTARTS, N_ITERATIONS = 32, 4, 50
N_BASELINE = 4
"""Known designs that the improvement is about: those that are most often best."""
SOFT = 1e-2
"""Width over which a limit changes from missed to kept while searching."""
N_ANYWHERE = 256
"""Designs among which BoTorch looks for the one to recommend, in each round."""
ROUNDS = (None, 0.1, 0.03, 0.01)
"""How far from the best one these are, in the unit cube: anywhere first, then closer."""
COST = "cost"

Design = list[float]


class ReliableLoop(Protocol):
    """Says what to try next, hears what came of it, and says which design it would use."""

    def ask(self) -> Design:
        """Propose a design."""

    def tell(self, design: Design, outcomes: Sequence[float]) -> None:
        """Report the cost and every margin."""

    def outcome(self) -> Design:
        """Return the cheapest design that is held reliable."""


class AirboLoop:
    """``airbo.Optimizer`` with an objective and limits."""

    def __init__(
        self, problem: ReliableDesign, exact: bool, n_initial: int, seed: int, log: bool = False
    ) -> None:
        """Start with nothing known; dimensions may have a log scale."""
        bounds = enumerate(problem.bounds.mT.tolist())
        space = {f"x{i}": airbo.Float(low, high, log=log) for i, (low, high) in bounds}
        self.names = [COST, *(f"margin{k}" for k in range(problem.n_limits))]
        limits = {name: airbo.AtLeast(0.0, probability=LEVEL) for name in self.names[1:]}
        self.optimizer = airbo.Optimizer(
            space,
            None if exact else problem.uncertainty,
            outcomes={COST: airbo.Minimize(), **limits},
            deployment=problem.uncertainty if exact else None,
            n_initial=n_initial,
            seed=seed,
        )

    def ask(self) -> Design:
        """Ask."""
        return list(self.optimizer.ask().values())

    def tell(self, design: Design, outcomes: Sequence[float]) -> None:
        """Tell all outcomes."""
        named = dict(zip(self.optimizer.space.names, design, strict=True))
        self.optimizer.tell(named, dict(zip(self.names, outcomes, strict=True)))

    def outcome(self) -> Design:
        """Recommend."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(self.optimizer.recommend(confidence=CONFIDENCE).design.values())


class ChanceLoop:
    """``SingleTaskGP`` with ``InputPerturbation``: noisy EI under chance constraints."""

    def __init__(
        self,
        problem: ReliableDesign,
        exact: bool,
        n_initial: int,
        seed: int,
        log: bool = False,
        tolerant: bool = True,
    ) -> None:
        """Start from the same designs; without tolerances, limits hold for the design itself."""
        self.problem, self.n_initial, self.seed, self.tolerant = problem, n_initial, seed, tolerant
        self.n_w = N_W if tolerant else 1
        self.log = log
        self.low, high = self._scaled(problem.bounds)
        self.width = high - self.low
        self.exact = exact
        self.designs: list[Design] = []
        self.rows: list[Sequence[float]] = []
        self.model: SingleTaskGP | None = None

    def ask(self) -> Design:
        """Maximize noisy expected improvement of the expected cost, where limits are kept."""
        n = len(self.designs)
        if n < self.n_initial:
            return self._to_user(initial_point("sobol", n, self.problem.d, self.seed))
        with reproducible(self.seed, "ask", n), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            better = self._acquisition()
            cube = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, self.problem.d)
            options: dict[str, Any] = {"maxiter": N_ITERATIONS}
            starts: dict[str, Any] = {"num_restarts": N_RESTARTS, "raw_samples": N_RAW // 4}
            Z, _ = optimize_acqf(better, cube, q=1, **starts, options=options)
        return self._to_user(Z.detach())

    def _acquisition(self) -> AcquisitionFunction:
        model, objective = self._perturbed(self.n_w), self._objective(self.n_w)
        Z = self._to_cube(self.designs)
        with torch.no_grad():
            samples = _sampler(16 * N_SAMPLES)(model.posterior(Z))  # (S, n n_w, m)
            kept, worth = (objective.margins(samples) >= 0).all(0), objective(samples)
        sampler = _sampler(N_SAMPLES)
        if kept.any(-1).double().mean() < 0.5:
            constraints: list[Any] = [partial(_exceeds, limit) for limit in objective.limits]
            return qLogProbabilityOfFeasibility(model, constraints, sampler=sampler, eta=SOFT)
        which, counts = worth.argmax(-1).unique(return_counts=True)
        often_best = which[counts.argsort(descending=True, stable=True)[:N_BASELINE]]
        return qLogNoisyExpectedImprovement(
            model,
            X_baseline=Z[often_best],
            sampler=sampler,
            objective=objective,
            prune_baseline=False,
        )

    def tell(self, design: Design, outcomes: Sequence[float]) -> None:
        """Remember."""
        self.designs.append(design)
        self.rows.append(outcomes)
        self.model = None

    def outcome(self) -> Design:
        """Return the cheapest design of those that are reliable with enough confidence.

        Where experiments are not what is used, all over the box, then closer and closer to the
        best one; otherwise among those tried.
        """
        Z = self._to_cube(self.designs)
        best, worth = self._best(Z)
        for i, width in enumerate(ROUNDS if self.exact else ()):
            base = base_draws(N_ANYWHERE, self.problem.d, seed=self.seed + i)
            steps = torch.special.ndtri(base.clamp(1e-6, 1 - 1e-6))
            other, value = self._best(base if width is None else (best + width * steps).clamp(0, 1))
            if value > worth:
                best, worth = other, value
        return self._to_user(best)

    def _best(self, Z: Tensor) -> tuple[Tensor, tuple[float, float]]:
        """Return the best design and how good it is: sure enough first, then cheap."""
        cost, keeps = self._judged(Z)
        sure = keeps >= CONFIDENCE
        i = int(torch.where(sure, cost, torch.inf).argmin() if sure.any() else keeps.argmax())
        return Z[[i]], (min(keeps[i].item(), CONFIDENCE), -cost[i].item())

    def _judged(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the expected cost, and the share of draws in which all limits are kept."""
        costs, shares = [], []
        n_w = N_W_FINE if self.tolerant else 1
        model, sampler, objective = self._perturbed(n_w), _sampler(128), self._objective(n_w)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for z in Z.split(16):
                samples = sampler(model.posterior(z.unsqueeze(-2)))  # (S, n, n_w, m)
                costs.append(objective.expected_cost(samples).squeeze(-1).mean(0))
                kept = (objective.margins(samples) >= 0).all(0).squeeze(-1)
                shares.append(kept.double().mean(0))
        return torch.cat(costs), torch.cat(shares)

    def _perturbed(self, n_w: int) -> SingleTaskGP:
        """Return the model, which looks at so many perturbations of each design."""
        if self.model is None:
            Y = torch.tensor(self.rows, dtype=torch.float64)
            self.model = SingleTaskGP(self._to_cube(self.designs), Y)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(self.model.likelihood, self.model))
        if self.tolerant:
            perturb = InputPerturbation(partial(self._perturbations, n_w))
            self.model.input_transform = perturb.eval()
        return self.model

    def _perturbations(self, n_w: int, Z: Tensor) -> Tensor:
        """Return where designs of the unit cube land, relative to them."""
        base = base_draws(n_w, self.problem.uncertainty.n_base(self.problem.d))
        landed = self.problem.uncertainty.perturb(self._designs(Z), base)
        return self._to_cube(landed) - Z.unsqueeze(-2)

    def _objective(self, n_w: int) -> "ChanceObjective":
        worst = max(row[0] for row in self.rows)
        return ChanceObjective(n_w, self.problem.n_limits, worst)

    def _scaled(self, X: Tensor) -> Tensor:
        return X.log() if self.log else X

    def _to_cube(self, designs: Any) -> Tensor:
        X = torch.as_tensor(designs, dtype=torch.float64)
        return (self._scaled(X) - self.low) / self.width

    def _designs(self, Z: Tensor) -> Tensor:
        X = self.low + self.width * Z
        return X.exp() if self.log else X

    def _to_user(self, Z: Tensor) -> Design:
        design: Design = self._designs(Z)[0].tolist()
        return design


class ChanceObjective(MCAcquisitionObjective):
    """Minus the expected cost, weighted with whether every limit is kept in 95 of 100 parts.

    BoTorch's own constraints are about single inputs; those about a whole set of perturbed inputs
    have to go into the objective, as its objectives with feasibility weights do. The weights have
    the fat tails of its own constraints, so that a search finds its way from where none is kept.
    """

    _verify_output_shape = False

    def __init__(self, n_w: int, n_limits: int, worst: float) -> None:
        """Count a design that keeps no limit as worse than the most expensive one."""
        super().__init__()
        self.cost = Expectation(n_w=n_w, preprocessing_function=partial(_output, 0))
        self.limits = [
            VaR(alpha=LEVEL, n_w=n_w, preprocessing_function=partial(_output, k + 1))
            for k in range(n_limits)
        ]
        self.worst = worst

    def forward(self, samples: Tensor, X: Tensor | None = None) -> Tensor:
        """Return one number per design."""
        kept = fatmoid(self.margins(samples), tau=SOFT).prod(0)
        return kept * (self.worst + 1 - self.expected_cost(samples)) - self.worst - 1

    def expected_cost(self, samples: Tensor) -> Tensor:
        """Return the mean over perturbations."""
        return self.cost(samples)

    def margins(self, samples: Tensor) -> Tensor:
        """Return what 95 of 100 parts reach of every margin, the limits first."""
        return torch.stack([limit(samples) for limit in self.limits])


def _sampler(n: int) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([n]), seed=0)


def _exceeds(limit: VaR, samples: Tensor) -> Tensor:
    """Return by how much a limit is missed, as BoTorch counts constraints."""
    return -limit(samples)


def _output(k: int, Y: Tensor) -> Tensor:
    return Y[..., k]


AIRBO = "airbo, limits with a probability"
CHANCE = "BoTorch InputPerturbation, chance constraints"
NOMINAL = "BoTorch, limits of the design itself"
METHODS: dict[str, Any] = {
    AIRBO: AirboLoop,
    CHANCE: ChanceLoop,
    NOMINAL: partial(ChanceLoop, tolerant=False),
}
