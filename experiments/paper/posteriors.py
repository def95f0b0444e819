"""Surrogates of the RKHS function, compared with its true expectation."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from airbo.models import UncertainInputGP
from airbo.problems import RKHS
from experiments.harness.draw import DATA, FUNCTION, MODEL, TRUTH
from experiments.harness.experiment import Results, Task
from experiments.subjects.internals import without_numerical_warnings
from experiments.subjects.methods import fit, surrogate
from experiments.subjects.uncertainties import PAPERS

TITLES = {
    "normal": "N(0, 0.01²)",
    "varying beta": "beta of varying width",
    "wide varying beta": "beta of varying width, 0.9 as in the text",
    "step chi²": "χ² with a step at 0.6",
    "beta": "beta(0.4, 0.2, 0.1)",
}


@dataclass(frozen=True)
class Belief:
    """The posterior of expected values at designs in one dimension."""

    mean: np.ndarray
    std: np.ndarray

    def scores(self, expected: np.ndarray) -> dict[str, float]:
        """Compare it with the true expectation at the same designs."""
        error = expected - self.mean
        z = error / self.std
        log_density = -0.5 * z**2 - np.log(self.std) - 0.5 * np.log(2 * np.pi)
        return {
            "rmse": rounded(np.sqrt(np.mean(error**2))),
            "log_density": rounded(log_density.mean()),
            "coverage": rounded(np.mean(np.abs(z) <= 1.96)),
        }

    def curves(self) -> dict[str, list[float]]:
        """Return what a picture needs."""
        return {"mean": np.round(self.mean, 4).tolist(), "std": np.round(self.std, 4).tolist()}


def problem(case: str) -> RKHS:
    """Return the RKHS function under the uncertainty of that name."""
    return RKHS(PAPERS[case])


def grid(n: int) -> np.ndarray:
    return np.linspace(0, 1, n)


@lru_cache(maxsize=8)
def expected_on_grid(case: str, n: int) -> np.ndarray:
    """Return true expectations on [0, 1]; remembered, since those without closed form take long."""
    return problem(case).expected(designs(grid(n))).numpy()


def designs(x: Sequence[float] | np.ndarray) -> Tensor:
    return torch.tensor(x, dtype=torch.float64).unsqueeze(-1)


def observe(problem: RKHS, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw designs uniformly at random and run one experiment at each."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 1, generator=generator, dtype=torch.float64)
    return X, problem.observe(X, generator).unsqueeze(-1)


def fitted(config: Mapping[str, Any], problem: RKHS, seed: int) -> UncertainInputGP:
    """Fit the surrogate of a configuration to ``n`` observations, the same for all of them."""
    X, Y = observe(problem, config["n"], seed)
    return fit(surrogate(dict(config), seed)(X, Y, problem.uncertainty, problem.bounds))


def believed(model: UncertainInputGP, x: Sequence[float] | np.ndarray) -> Belief:
    with torch.no_grad(), without_numerical_warnings():
        posterior = model.posterior(designs(x))
        mean, std = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1).sqrt()
    return Belief(mean.numpy(), std.numpy())


def jump(model: UncertainInputGP, at: float) -> float:
    """Return the ratio of the deviations on both sides of a step, the larger to the smaller.

    Which side has the smaller deviation depends on where the nearest observation happens to lie. A
    model that does not see the step has ratio 1, whatever the observations.
    """
    left, right = believed(model, [at - STEP_EPSILON, at]).std
    return rounded(max(left, right) / min(left, right))


def correlation(model: UncertainInputGP, at: float) -> float:
    """Return the prior correlation of the expected values just left and just right of a step."""
    with torch.no_grad():
        K = model.covar_module(model.features(designs([at - STEP_EPSILON, at]))).to_dense()
    return rounded(K[0, 1] / (K[0, 0] * K[1, 1]).sqrt())


def lone(model: UncertainInputGP, at: float, distance: float) -> float:
    """Return how much more a single observation tells about its right side than about its left.

    This is the ratio of the deviations at ``at - distance`` and ``at + distance`` if there were
    only one observation, at ``at``, under the fitted hyper-parameters. With more observations every
    posterior is lopsided, because the neighbours on the two sides are not equally far away.
    """
    alone = deepcopy(model)
    alone.set_train_data(designs([at]), alone.train_targets.new_zeros(1), strict=False)
    alone.eval()
    left, right = believed(alone, [at - distance, at + distance]).std
    return rounded(left / right)


STEP_EPSILON = 1e-9


def column(results: Results, label: str, name: str) -> np.ndarray:
    """Return one number of all repeats."""
    return np.array([result[name] for result in results.of(label)], dtype=float)


def draw_belief(ax: Axes, task: Task, curves: Mapping[str, list[float]]) -> None:
    """Draw a stored posterior over the function, its expectation and the observations."""
    case, x = task.config["case"], grid(task.config["n_grid"])
    true, mean, half = problem(case), np.array(curves["mean"]), 1.96 * np.array(curves["std"])
    ax.fill_between(x, mean - half, mean + half, color=MODEL, alpha=0.2, lw=0, label="95% band")
    ax.plot(x, true(designs(x)), color=FUNCTION, lw=1, label="function f")
    expected = expected_on_grid(case, len(x))
    ax.plot(x, expected, color=TRUTH, lw=1.2, ls="--", label="expected value (sought)")
    ax.plot(x, mean, color=MODEL, lw=1.8, label="posterior mean")
    observations = observe(true, task.config["n"], task.seed)
    ax.plot(*observations, "o", color=DATA, ms=5, mec="white", label="observations")
    ax.set_xlim(0, 1)


def rounded(value: Any) -> float:
    return float(f"{float(value):.5g}")
