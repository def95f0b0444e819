"""What a BoTorch user does today, written with BoTorch only."""

from typing import Any

import numpy as np
import torch
from botorch.acquisition.analytic import PosteriorMean, UpperConfidenceBound
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from airbo.uncertainty import base_draws
from experiments.subjects.cases import Case
from experiments.subjects.internals import N_RAW, N_RESTARTS, initial_point, reproducible
from experiments.subjects.loops import Design, Policy

N_PERTURBATIONS = 32


class PlainLoop:
    """``SingleTaskGP`` on the designs, UCB."""

    def __init__(self, case: Case, protocol: dict[str, Any], seed: int) -> None:
        """Start from the same designs as our optimizer."""
        self.case, self.protocol, self.seed = case, protocol, seed
        self.low, high = case.problem.bounds
        self.width = high - self.low
        self.sign = 1 if case.problem.direction == "maximize" else -1
        self.cube = torch.stack([torch.zeros_like(self.low), torch.ones_like(self.low)])
        self.designs: list[Design] = []
        self.values: list[float] = []
        self.model: SingleTaskGP | None = None

    def ask(self) -> Design:
        n = len(self.values)
        if n < self.protocol["n_initial"]:
            Z = initial_point(self.protocol["initial"], n, len(self.low), self.seed)
        else:
            with reproducible(self.seed, "ask", n):
                bound = UpperConfidenceBound(
                    self._fitted(), self.protocol["beta"] ** 2, self._in_use()
                )
                Z = self._best(bound)
        return self._to_user(Z)

    def tell(self, design: Design, value: float) -> None:
        self.designs.append(design)
        self.values.append(self.sign * value)
        self.model = None

    def outcome(self, policy: Policy) -> Design:
        with reproducible(self.seed, "recommend"):
            mean = PosteriorMean(self._fitted(), self._in_use())
            if policy == "anywhere":
                return self._to_user(self._best(mean))
            with torch.no_grad():
                best = int(mean(self._to_cube(self.designs).unsqueeze(-2)).argmax())
        return self.designs[best]

    def predict(self, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
        Z = self._to_cube(X).unsqueeze(-2)
        model = self._fitted()
        with torch.no_grad():
            posterior = model.posterior(Z, posterior_transform=self._in_use())
        mean, std = posterior.mean.flatten(), posterior.variance.flatten().sqrt()
        return self.sign * mean.numpy(), std.numpy()

    def _fitted(self) -> SingleTaskGP:
        if self.model is None:
            Y = torch.tensor(self.values, dtype=torch.float64).unsqueeze(-1)
            self.model = self._build(self._to_cube(self.designs), Y)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(self.model.likelihood, self.model))
        return self.model

    def _build(self, Z: Tensor, Y: Tensor) -> SingleTaskGP:
        return SingleTaskGP(Z, Y)

    def _in_use(self) -> ExpectationPosteriorTransform | None:
        """Turn a prediction at designs into a prediction of their expected value in use."""
        return None

    def _best(self, function: Any) -> Tensor:
        Z, _ = optimize_acqf(function, self.cube, q=1, num_restarts=N_RESTARTS, raw_samples=N_RAW)
        return Z.detach()

    def _to_cube(self, designs: Any) -> Tensor:
        return (torch.as_tensor(designs, dtype=torch.float64) - self.low) / self.width

    def _to_user(self, Z: Tensor) -> Design:
        design: Design = (self.low + self.width * Z)[0].tolist()
        return design


class PerturbedLoop(PlainLoop):
    """``SingleTaskGP`` with ``InputPerturbation``, UCB of the mean over perturbations.

    The model treats the designs as if they had been executed.
    """

    n_perturbations = N_PERTURBATIONS

    def _build(self, Z: Tensor, Y: Tensor) -> SingleTaskGP:
        return SingleTaskGP(Z, Y, input_transform=InputPerturbation(self._perturbations))

    def _in_use(self) -> ExpectationPosteriorTransform:
        return ExpectationPosteriorTransform(self.n_perturbations)

    def _perturbations(self, Z: Tensor) -> Tensor:
        """Return deviations of executed inputs from their designs, in the unit cube."""
        uncertainty = self.case.problem.uncertainty
        base = base_draws(self.n_perturbations, uncertainty.n_base(len(self.low)))
        X = self.low + self.width * Z
        return (uncertainty.perturb(X, base) - X.unsqueeze(-2)) / self.width


PEERS = {"botorch": PlainLoop, "botorch-perturbed": PerturbedLoop}
