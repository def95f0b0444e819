"""Acquisitions with fixed or fresh draws: how rough they are, and where searches end."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.optimize
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import UpperConfidenceBound

from airbo.models import UncertainInputGP
from experiments.paper import posteriors as post
from experiments.subjects.internals import without_numerical_warnings
from experiments.subjects.methods import surrogate

SAME_DESIGN = 0.02
SAME_VALUE = 0.02
"""As a share of the range of the acquisition."""


def models(config: Mapping[str, Any], seed: int) -> tuple[UncertainInputGP, UncertainInputGP]:
    """Return the model of a configuration and the exact one, with the same hyper-parameters.

    They are fitted once, with the default estimator, so that models differ only in the estimator.
    """
    problem, exact = post.problem(config["case"]), _exact(config["case"], config["n"], seed)
    X, Y = post.observe(problem, config["n"], seed)
    model = surrogate(dict(config), seed)(X, Y, problem.uncertainty, problem.bounds)
    parameters = dict(exact.named_parameters())
    assert parameters.keys() == dict(model.named_parameters()).keys()
    model.load_state_dict(parameters, strict=False)
    return model.eval(), exact


@lru_cache(maxsize=1)
def _exact(case: str, n: int, seed: int) -> UncertainInputGP:
    return post.fitted({"n": n, "model": "mmd"}, post.problem(case), seed).eval()


@dataclass(frozen=True)
class Landscape:
    """The exact acquisition on a fine grid, which tells good ends of a search from bad ones."""

    x: np.ndarray
    values: np.ndarray

    @property
    def range(self) -> float:
        return float(np.ptp(self.values))

    @property
    def maxima(self) -> np.ndarray:
        """Where the local maxima are; ends of the line count."""
        return self.x[local_maxima(self.values, ends=True)]

    def loss(self, x: np.ndarray) -> np.ndarray:
        """Return how far below the global maximum designs are, as a share of the range."""
        return (self.values.max() - np.interp(x, self.x, self.values)) / self.range

    def at_global(self, x: np.ndarray) -> np.ndarray:
        return self.loss(x) <= SAME_VALUE

    def at_local(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x[:, None] - self.maxima).min(axis=1) <= SAME_DESIGN


def local_maxima(values: np.ndarray, ends: bool = False) -> np.ndarray:
    """Return the indices of local maxima, inside only or with the ends of the line."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    found = np.flatnonzero((padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:]))
    return found if ends else found[(found > 0) & (found < len(values) - 1)]


def ucb(model: UncertainInputGP, beta: float) -> AcquisitionFunction:
    return UpperConfidenceBound(model, beta=beta**2)


def values(function: AcquisitionFunction, x: np.ndarray) -> np.ndarray:
    with torch.no_grad(), without_numerical_warnings():
        return function(post.designs(x).unsqueeze(-2)).numpy()


@dataclass(frozen=True)
class Search:
    """One run of L-BFGS-B."""

    path: list[tuple[float, float]]
    """Start, iterates and end, each with the value seen there."""
    n_evaluations: int

    @property
    def end(self) -> tuple[float, float]:
        return self.path[-1]


def maximize(function: AcquisitionFunction, start: float) -> Search:
    """Search from one design on the unit interval."""
    seen: dict[float, float] = {}

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        X = torch.tensor(x, dtype=torch.float64).reshape(1, 1, 1).requires_grad_()
        value = function(X).sum()
        (slope,) = torch.autograd.grad(value, X)
        seen[float(x[0])] = value.item()
        return -value.item(), -slope.numpy().reshape(-1)

    path = [start]
    with without_numerical_warnings():
        done = scipy.optimize.minimize(
            negative,
            [start],
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)],
            callback=lambda x: path.append(float(x[0])),
        )
    path.append(float(done.x[0]))
    return Search([(x, seen[x]) for x in path], int(done.nfev))
