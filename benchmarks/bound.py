"""The paper's error bound against measured errors: ``python -m benchmarks.bound``."""

import math

import torch
from torch import Tensor

from airbo.embeddings import Empirical, Estimator, Nystrom, RationalQuadraticSum, mmd2
from airbo.uncertainty import base_draws
from benchmarks import record, table
from benchmarks.accuracy import SHORT
from benchmarks.cases import CASES
from benchmarks.run import progress
from benchmarks.truth import true_mmd2

EPSILON = 0.05
PHI = math.sqrt(5)  # k(x, x) = 5: five rational quadratics
N_SAMPLES = (20, 100, 160, 500, 1000)
N_REPEATS = 100
DESIGNS = ((0.5,), (0.55,))


def n_landmarks(m: int) -> int:
    """Return h of the order √m log m, at most m."""
    return min(m, math.ceil(math.sqrt(m) * math.log(m)))


def bound(m: int) -> float:
    """Return what the error of the MMD exceeds with probability ε at most."""
    return 4 * PHI * math.sqrt(2 * math.log(6 / EPSILON) / m)


def main() -> None:
    torch.set_num_threads(1)
    where = record.provenance()
    case = next(c for c in CASES if c.name == "beta")
    kernel = RationalQuadraticSum(SHORT).double()
    X = torch.tensor(DESIGNS, dtype=torch.float64)
    with torch.no_grad():
        [between] = true_mmd2(case, X, [kernel], 2**19, seed=11)
        mmd = between[0, 1].sqrt().item()

    def error(m: int, estimator: Estimator, sobol: bool) -> float:
        """Return the 95% quantile of |estimated MMD - MMD| over repeats."""
        errors = []
        for seed in range(N_REPEATS):
            u, v = (
                case.uncertainty.perturb(x.unsqueeze(0), _draws(m, 2 * seed + i, sobol))[0]
                for i, x in enumerate(X)
            )
            with torch.no_grad():
                estimate = mmd2(u, v, kernel, estimator).clamp_min(0).sqrt().item()
            errors.append(abs(estimate - mmd))
        return torch.tensor(errors).quantile(1 - EPSILON).item()

    results = {}
    with progress() as bar:
        for m in bar.track(N_SAMPLES, description="errors"):
            h = n_landmarks(m)
            results[m] = {
                "h": h,
                "bound": bound(m),
                "empirical": error(m, Empirical(m), sobol=False),
                "nystrom": error(m, Nystrom(m, h), sobol=False),
                "nystrom10": error(m, Nystrom(m, 10), sobol=False),
                "empirical_sobol": error(m, Empirical(m), sobol=True),
            }

    path = record.store("bound", where, {"mmd": mmd, "epsilon": EPSILON, "results": results})
    header = [
        "m", "h = ⌈√m log m⌉", "bound", "Empirical(m)", "Nystrom(m, h)", "Nystrom(m, 10)",
        "Empirical(m), Sobol draws",
    ]  # fmt: skip
    rows = [
        [str(m), str(r["h"]), f"{r['bound']:.2f}"]
        + [f"{r[k]:.4f}" for k in ("empirical", "nystrom", "nystrom10", "empirical_sobol")]
        for m, r in results.items()
    ]
    text = (
        "# Error of the MMD: bound and measurement\n\n"
        f"95% quantile of |estimate - MMD| over {N_REPEATS} independent sets of samples, between "
        f"beta(0.4, 0.2, 0.1) at x = 0.5 and at x = 0.55, l = {SHORT}; the MMD is {mmd:.4f}.\n\n"
        f"{table.markdown(header, rows)}\n\n{record.describe(where)}\n"
    )
    record.publish(path, text)


def _draws(m: int, seed: int, sobol: bool) -> Tensor:
    if sobol:
        return base_draws(m, 1, seed)
    return torch.rand(m, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


if __name__ == "__main__":
    main()
