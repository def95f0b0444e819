"""The paper's error bound of the MMD, compared with measured errors."""

import math
from typing import Any

import torch
from torch import Tensor

from airbo.embeddings import Empirical, Estimator, Nystrom, RationalQuadraticSum, mmd2
from airbo.uncertainty import base_draws
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.subjects.uncertainties import BY_NAME

SHORT = 0.05
"""A length scale at which the shape of P_x matters."""
CHUNK = 2**13
"""Pairs at a time: few enough for the cache."""
EPSILON = 0.05
PHI = math.sqrt(5)  # k(x, x) = 5: five rational quadratics
N_SAMPLES = (20, 100, 160, 500, 1000)
DESIGNS = ((0.5,), (0.55,))
CASE = BY_NAME["beta"]


class Bound(Experiment):
    """How far estimated MMDs are from the true one, for more and more samples."""

    name = "bound"
    paper = "remark on the Nyström error"
    title = "Error of the MMD: bound and measurement"
    repeats = 1

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List the numbers of samples; every task has its own independent repeats."""
        size = {"n_pairs": 2**13 if quick else 2**19, "n_repeats": 5 if quick else 100}
        designs = [list(x) for x in DESIGNS]
        config = {"epsilon": EPSILON, "lengthscale": SHORT, "designs": designs, **size}
        numbers = N_SAMPLES[:2] if quick else N_SAMPLES
        return [Task(self.name, str(m), 0, {"m": m, **config}) for m in numbers]

    def run(self, task: Task) -> dict[str, Any]:
        """Estimate many times, by every estimator."""
        m, n_repeats = task.config["m"], task.config["n_repeats"]
        h, mmd = n_landmarks(m), true_mmd(task.config["n_pairs"])
        return {
            "mmd": mmd,
            "h": h,
            "bound": bound(m),
            "empirical": quantile(m, Empirical(m), mmd, n_repeats),
            "nystrom": quantile(m, Nystrom(m, h), mmd, n_repeats),
            "nystrom10": quantile(m, Nystrom(m, 10), mmd, n_repeats),
            "empirical_sobol": quantile(m, Empirical(m), mmd, n_repeats, sobol=True),
        }

    def summary(self, results: Results) -> str:
        """Tabulate bound and errors over the number of samples."""
        header = [
            "m", "h = ⌈√m log m⌉", "bound", "Empirical(m)", "Nystrom(m, h)", "Nystrom(m, 10)",
            "Empirical(m), Sobol draws",
        ]  # fmt: skip
        rows = [
            [task.label, str(r["h"]), f"{r['bound']:.2f}"]
            + [f"{r[k]:.4f}" for k in ("empirical", "nystrom", "nystrom10", "empirical_sobol")]
            for task, r in results
        ]
        task, result = results.each[0]
        return (
            f"95% quantile of |estimate - MMD| over {task.config['n_repeats']} independent sets of "
            f"samples, between beta(0.4, 0.2, 0.1) at x = 0.5 and at x = 0.55, l = {SHORT}; the "
            f"MMD is {result['mmd']:.4f}.\n\n{table.markdown(header, rows)}"
        )


def n_landmarks(m: int) -> int:
    """Return h of the order √m log m, at most m."""
    return min(m, math.ceil(math.sqrt(m) * math.log(m)))


def bound(m: int) -> float:
    """Return a bound that the error of the MMD exceeds with a probability of at most ε."""
    return 4 * PHI * math.sqrt(2 * math.log(6 / EPSILON) / m)  # 4 Φ √(2 log(6/ε) / m)


def true_mmd(n_pairs: int) -> float:
    """Compute the MMD between the two designs by brute force."""
    X, kernel = torch.tensor(DESIGNS, dtype=torch.float64), RationalQuadraticSum(SHORT).double()
    P, squared = CASE.uncertainty, 0.0
    for chunk in base_draws(n_pairs, 2 * P.n_base(1), seed=11).split(CHUNK):
        u, v = (P.perturb(X, base) for base in chunk.chunk(2, dim=-1))  # (2, s, 1), independent
        for i, j, sign in ((0, 0, 1), (1, 1, 1), (0, 1, -2)):
            with torch.no_grad():
                # E k(u, u') + E k(v, v') - 2 E k(u, v)
                squared += sign * kernel(u[i], v[j], diag=True).sum().item() / n_pairs
    return math.sqrt(squared)


def quantile(
    m: int, estimator: Estimator, mmd: float, n_repeats: int, sobol: bool = False
) -> float:
    """Return the 1 - ε quantile of |estimated MMD - MMD| over repeats."""
    X, kernel = torch.tensor(DESIGNS, dtype=torch.float64), RationalQuadraticSum(SHORT).double()
    errors = []
    for seed in range(n_repeats):
        u, v = (
            CASE.uncertainty.perturb(x.unsqueeze(0), _draws(m, 2 * seed + i, sobol))[0]
            for i, x in enumerate(X)
        )
        with torch.no_grad():
            estimate = mmd2(u, v, kernel, estimator).clamp_min(0).sqrt().item()
        errors.append(abs(estimate - mmd))
    return torch.tensor(errors).quantile(1 - EPSILON).item()


def _draws(m: int, seed: int, sobol: bool) -> Tensor:
    if sobol:
        return base_draws(m, 1, seed)
    return torch.rand(m, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


BOUND = Bound()
