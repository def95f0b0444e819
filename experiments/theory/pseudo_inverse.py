"""The pseudo-inverse in the paper's Nyström estimator, compared with our jittered factorization."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from airbo.embeddings import RationalQuadraticSum
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.subjects.internals import nystrom_weights
from experiments.subjects.redrawn import fresh
from experiments.subjects.uncertainties import BY_NAME

SIZES = ((16, 9), (100, 10), (160, 10), (160, 65))
"""Samples and landmarks: those of the paper, and one with many landmarks."""
LENGTHSCALES = (0.05, 0.2, 1.0)
DESIGNS = (0.5, 0.55)

Weights = Callable[[RationalQuadraticSum, Tensor, Tensor], Tensor]


def pseudo_inverse_weights(
    kernel: RationalQuadraticSum, landmarks: Tensor, samples: Tensor
) -> Tensor:
    """Return the weights as the paper writes them."""
    # α = K_h⁺ K_hm 1 / m
    K_h = kernel(landmarks).to_dense()
    mean = kernel(landmarks, samples).to_dense().mean(-1, keepdim=True)
    return (torch.linalg.pinv(K_h) @ mean).squeeze(-1)


WAYS: dict[str, tuple[Weights, torch.dtype]] = {
    "jitter": (nystrom_weights, torch.float64),
    "pseudo-inverse": (pseudo_inverse_weights, torch.float64),
    "pseudo-inverse, single": (pseudo_inverse_weights, torch.float32),
}
"""Ways to the weights; the published program works in single precision unless told otherwise."""


class PseudoInverse(Experiment):
    """Estimated MMDs of the same samples and landmarks, with weights found in three ways."""

    name = "pseudo-inverse"
    paper = "equation of the Nyström estimator"
    title = "Pseudo-inverse and jittered factorization in the Nyström estimator"
    repeats = 1

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all sizes and length scales; a task has its own independent sets of samples."""
        return [
            Task(
                self.name,
                f"Nystrom({m}, {h}), l = {length}",
                0,
                {"m": m, "h": h, "lengthscale": length, "n_sets": 5 if quick else 200},
            )
            for m, h in (SIZES[:2] if quick else SIZES)
            for length in LENGTHSCALES
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Estimate the MMD of every set in all ways, and from all samples."""
        random = torch.Generator().manual_seed(task.seed)
        designs = torch.tensor(DESIGNS, dtype=torch.float64).unsqueeze(-1)
        m, h, n_sets = (task.config[name] for name in ("m", "h", "n_sets"))
        kernel = RationalQuadraticSum(task.config["lengthscale"]).double()
        distances: dict[str, list[float]] = {name: [] for name in ("all samples", *WAYS)}
        sizes, seconds = ({name: 0.0 for name in WAYS} for _ in range(2))
        for _ in range(n_sets):
            samples = fresh(designs, BY_NAME["beta"].uncertainty, m, random)  # (2, m, 1)
            equal = samples.new_full((2, m), 1 / m)
            distances["all samples"].append(mmd(kernel, samples, equal))
            for name, (weights, dtype) in WAYS.items():
                landmarks = samples[:, :h]
                begun = time.process_time()
                with torch.no_grad():
                    given = kernel.to(dtype), landmarks.to(dtype), samples.to(dtype)
                    found = weights(*given).double()
                seconds[name] += time.process_time() - begun
                distances[name].append(mmd(kernel.double(), landmarks, found))
                sizes[name] = max(sizes[name], found.abs().sum(-1).max().item())
        return {
            "distances": {name: np.round(d, 7).tolist() for name, d in distances.items()},
            "weights": {name: float(f"{size:.4g}") for name, size in sizes.items()},
            "seconds": {name: float(f"{s:.4g}") for name, s in seconds.items()},
        }

    def summary(self, results: Results) -> str:
        """Tabulate how far each way is from all samples, and how large its weights are."""
        header = [
            "",
            *(f"error, {name}" for name in WAYS),
            "largest difference, pseudo-inverse and jitter",
            *(f"weights, {name}" for name in WAYS),
            "time of the pseudo-inverse / time of the jitter",
        ]
        rows = []
        for task, result in results:
            found = {name: np.array(d) for name, d in result["distances"].items()}
            whole = found["all samples"]
            apart = np.abs(found["pseudo-inverse"] - found["jitter"]).max()
            times = result["seconds"]
            rows.append(
                [
                    task.label,
                    *(f"{np.quantile(np.abs(found[name] - whole), 0.95):.1e}" for name in WAYS),
                    f"{apart:.1e}",
                    *(f"{result['weights'][name]:.2g}" for name in WAYS),
                    f"{times['pseudo-inverse'] / times['jitter']:.1f}",
                ]
            )
        n_sets = results.each[0][0].config["n_sets"]
        return (
            "MMD between beta(0.4, 0.2, 0.1) at x = 0.5 and at x = 0.55, from independent samples "
            f"and landmarks among them, {n_sets} sets. *Error*: 95% quantile of the distance from "
            "the MMD of all samples (V-statistic). *Weights*: the largest sum of their absolute "
            "values; 1 would be an average. Times: processor times within one run.\n\n"
            f"{table.markdown(header, rows)}"
        )


def mmd(kernel: RationalQuadraticSum, points: Tensor, weights: Tensor) -> float:
    """Return the distance of two weighted sets of points."""
    # ‖Σ α k(u, ·) − Σ β k(v, ·)‖
    signed = torch.cat([weights[0], -weights[1]])
    with torch.no_grad():
        K = kernel(points.flatten(0, 1)).to_dense()
    return float((signed @ K @ signed).clamp_min(0).sqrt())


PSEUDO_INVERSE = PseudoInverse()
