"""Whether the default's base kernel, six Gaussians, predicts as well as the paper's long sum."""

from functools import cache
from typing import Any

import numpy as np
import torch
from gpytorch.priors import LogNormalPrior

from airbo.embeddings import RationalQuadraticSum, ScaleMixtureKernel
from airbo.models import RelevanceGP
from airbo.problems import Problem, problem
from airbo.seeds import stream_seed
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.subjects.internals import MODE, SPREAD, log_normal
from experiments.subjects.methods import fit

CASES = {
    "rkhs": (12, 25),
    "double-peak": (12, 25),
    "wave": (12, 25),
    "hills": (20, 60),
    "cliff": (20, 60),
    "branin": (20, 60),
    "bumped-bowl": (20, 60),
    "hartmann": (40, 120),
}
"""Observations by problem: few, and as many as an optimization ends with."""
N_TEST = 400


class OneGaussian(ScaleMixtureKernel):
    """A plain squared exponential."""

    WIDTHS, WEIGHTS, CONSTANT = (1.0,), (1.0,), 0.0


class FiftyGaussians(ScaleMixtureKernel):
    """The paper's sum of rational quadratics with one length scale for all, to 6e-5."""

    _sum = RationalQuadraticSum(1.0).double().requires_grad_(False).gaussian_sum()
    assert _sum is not None
    WIDTHS = tuple(_sum.precisions.rsqrt().tolist())
    WEIGHTS = tuple((_sum.weights / _sum.at_zero).tolist())
    CONSTANT = float(_sum.constant / _sum.at_zero)


KERNELS = {"six": ScaleMixtureKernel, "fifty": FiftyGaussians, "one": OneGaussian}


class BaseKernel(Experiment):
    """Log density and error of E f, with the same priors and another base kernel."""

    name = "base-kernel"
    paper = "the base kernel of MMDGP"
    title = "Base kernels of the default surrogate"
    repeats = 20

    def tasks(self, repeats: int) -> list[Task]:
        """List all kernels, problems and numbers of observations."""
        return [
            Task(self.name, f"{case}, n = {n}, {kernel}", seed, {"case": case, "n": n, "k": kernel})
            for seed in range(repeats)
            for case, numbers in CASES.items()
            for n in numbers
            for kernel in KERNELS
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Fit to random designs, compare predictions with the true expectation."""
        about, n = problem(task.config["case"]), task.config["n"]
        low, high = about.bounds
        random = torch.Generator().manual_seed(stream_seed(task.seed, "designs", n))
        X = low + (high - low) * torch.rand(n, len(low), generator=random, dtype=torch.float64)
        Y = about.observe(X, random).unsqueeze(-1)
        d = len(low)
        kernel = KERNELS[task.config["k"]](
            0.15 * d,
            log_normal(MODE * d, SPREAD),
            factor_prior=LogNormalPrior(0.0, 0.5),
            ard_num_dims=d if d > 1 else None,
        ).double()
        model = fit(RelevanceGP(X, Y, about.uncertainty, about.bounds, base_kernel=kernel))
        tested, truth = _truth(task.config["case"])
        with torch.no_grad():
            posterior = model.posterior(tested)
        mean, variance = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)
        spread = truth.std()
        normal = torch.distributions.Normal(mean, variance.sqrt())
        return {
            "density": round(float(normal.log_prob(truth).mean() + spread.log()), 4),
            "error": round(float((mean - truth).square().mean().sqrt() / spread), 5),
        }

    def summary(self, results: Results) -> str:
        """Tabulate medians, and how often six Gaussians are better than fifty."""
        rows, settings = [], dict.fromkeys(label.rsplit(", ", 1)[0] for label in results.labels)
        for setting in settings:
            density, error = (
                {k: np.array([r[key] for r in results.of(f"{setting}, {k}")]) for k in KERNELS}
                for key in ("density", "error")
            )
            apart = density["six"] - density["fifty"]
            doubt = apart.std(ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else 0.0
            densities = [f"{np.median(values):.2f}" for values in density.values()]
            errors = [f"{np.median(values):.3f}" for values in error.values()]
            ratio = np.median(error["six"] / error["fifty"]) - 1
            by = f"{apart.mean():+.3f} ± {2 * doubt:.3f}"
            rows.append([setting, *densities, by, *errors, f"{ratio:+.1%}"])
        header = ["", *(f"log density, {k}" for k in KERNELS), "six minus fifty",
                  *(f"error, {k}" for k in KERNELS), "six against fifty"]  # fmt: skip
        n = len(results.of(results.labels[0]))
        return (
            "`RelevanceGP` fitted to random designs, one experiment each, with three base kernels "
            "and the same priors: *six* Gaussians and a constant (the default), *fifty* (the "
            "paper's sum of rational quadratics, all with one length scale), and *one*. "
            f"Predictions of E f at {N_TEST} designs against the truth: mean log density, in nats "
            "per design and for a standard deviation of E f of 1, and root mean squared error "
            f"relative to it. Medians of {n} repeats; differences are means with twice their "
            f"standard error.\n\n{table.markdown(header, rows)}"
        )


@cache
def _truth(case: str) -> tuple[torch.Tensor, torch.Tensor]:
    about: Problem = problem(case)
    low, high = about.bounds
    random = torch.Generator().manual_seed(stream_seed(0, "tested", 0))
    X = low + (high - low) * torch.rand(N_TEST, len(low), generator=random, dtype=torch.float64)
    return X, about.expected(X)


BASE_KERNEL = BaseKernel()
