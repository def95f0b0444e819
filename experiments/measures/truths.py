"""Find the cheapest reliable designs: ``python -m experiments.measures.truths`` prints them."""

import sys

import numpy as np
import torch
from scipy.optimize import differential_evolution, minimize
from torch import Tensor

from airbo.uncertainty import base_draws
from experiments.subjects.reliability import LEVEL, RELIABLE, ReliableDesign

N_SAMPLES, N_ROUGH = 2**13, 2**8
SAFE = 0.0005
"""What the samples of the search demand beyond the level, so that all samples agree."""


def _judge(problem: ReliableDesign, X: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return the expected cost, and what remains of each margin in 95 of 100 parts."""
    samples = problem.uncertainty.perturb(X, base_draws(n, problem.uncertainty.n_base(problem.d)))
    margins = problem.margins(samples).sort(-2).values  # (m, s, k)
    at = int((1 - LEVEL - SAFE) * n)
    return problem.cost(samples).mean(-1), margins[..., at, :]


def cheapest(problem: ReliableDesign, seed: int = 0) -> Tensor:
    """Search the whole box by evolution, then climb with many samples."""
    low, high = problem.bounds.numpy()

    def user(Z: np.ndarray) -> Tensor:
        return torch.tensor(low + Z * (high - low), dtype=torch.float64)

    def penalized(Z: np.ndarray, n: int = N_ROUGH) -> np.ndarray:
        cost, margins = _judge(problem, user(Z.T if Z.ndim > 1 else Z[None]), n)
        missed = (-margins).clamp_min(0).sum(-1)
        worth: np.ndarray = (cost + 10 * missed + (missed > 0) * 1e-3).numpy()
        return worth if Z.ndim > 1 else worth[0]

    box = [(0.0, 1.0)] * problem.d
    found = differential_evolution(
        penalized, box, maxiter=400, popsize=12, tol=1e-8, seed=seed, vectorized=True,
        updating="deferred", polish=False,
    )  # fmt: skip
    best = minimize(
        lambda z: penalized(z, N_SAMPLES), found.x, method="Nelder-Mead", bounds=box,
        options={"adaptive": True, "maxiter": 3000, "xatol": 1e-7, "fatol": 1e-9},
    )  # fmt: skip
    return user(best.x)


def main() -> None:
    """Print the cheapest design of several searches for every problem, or for those named."""
    for name in sys.argv[1:] or RELIABLE:
        problem = RELIABLE[name]
        designs = torch.stack([cheapest(problem, seed) for seed in range(3)])
        costs, reliable = problem.expected_cost(designs), problem.is_reliable(designs)
        print(name, costs.tolist(), problem.reliability(designs).amin(-1).tolist())
        best = designs[(costs + 1e6 * (1 - reliable)).argmin()]
        print(f"    {tuple(round(x, 6) for x in best.tolist())}")


if __name__ == "__main__":
    main()
