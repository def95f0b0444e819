"""How cumulative regret grows on functions of the RKHS: ``python -m benchmarks.regret_growth``.

``--quick`` runs fewer and shorter searches, and stores them under another name; ``--report`` makes
table and picture again from what is stored.
"""

import argparse
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import MarginalLogLikelihood
from rich.console import Console
from torch import Tensor

from airbo import Optimizer, Space, TooLittleDataWarning
from airbo.acquisition import UCB, TheoryUCB
from airbo.cube import Cube
from airbo.models import UGP
from airbo.problems import Optimum, Problem
from airbo.problems.optimum import highest_point
from airbo.theory import (
    cumulative_regret,
    max_information_gain,
    regret_bound,
    run_regret,
    ucb_beta,
)
from airbo.uncertainty import Normal
from benchmarks import record, table
from benchmarks.run import progress

LENGTHSCALE, STD, NOISE = 0.1, 0.05, 0.1
"""Of the base kernel; of the input uncertainty; of the observed values."""
N_CENTERS, NORM = 10, 3.0
DELTA = 0.1
N_INITIAL = 5
N_SEEDS = {True: 2, False: 6}
N_STEPS = {True: 12, False: 60}
OTHER_WINDOWS = (1 / 6, 1 / 3, 2 / 3)
IMAGES = Path(__file__).parent.parent / "docs" / "images"


@dataclass(frozen=True)
class Drawn(Problem):
    r"""A function :math:`f = \sum_i a_i k(c_i, \cdot)` under a Gaussian kernel, of norm 3."""

    name: ClassVar[str] = "drawn"
    direction: ClassVar[Literal["maximize", "minimize"]] = "maximize"

    centers: Tensor
    heights: Tensor
    uncertainty: Normal = field(default_factory=lambda: Normal(STD))

    @classmethod
    def draw(cls, seed: int) -> "Drawn":
        generator = torch.Generator().manual_seed(seed)
        c = torch.rand(N_CENTERS, generator=generator, dtype=torch.float64)
        a = torch.randn(N_CENTERS, generator=generator, dtype=torch.float64)
        K = torch.exp(-0.5 * (c.unsqueeze(-1) - c) ** 2 / LENGTHSCALE**2)
        return cls(c, a * NORM / (a @ K @ a).sqrt())  # ‖f‖² = aᵀ K a

    @property
    def bounds(self) -> Tensor:
        return torch.tensor([[0.0], [1.0]], dtype=torch.float64)

    def __call__(self, X: Tensor) -> Tensor:
        return self._smoothed(X, 0.0)

    def expected(self, X: Tensor) -> Tensor:
        return self._smoothed(X, STD**2)

    @cached_property
    def nominal_optimum(self) -> Optimum:
        return highest_point(self, self.bounds)

    @cached_property
    def robust_optimum(self) -> Optimum:
        return highest_point(self.expected, self.bounds)

    @property
    def total_noise(self) -> float:
        """σ_ν: under a Gaussian, a function of slope at most L is L·std-sub-Gaussian."""
        x = torch.linspace(-0.5, 1.5, 20001, dtype=torch.float64).unsqueeze(-1)
        bumps = self.heights * torch.exp(-0.5 * (x - self.centers) ** 2 / LENGTHSCALE**2)
        slope = (bumps * (self.centers - x) / LENGTHSCALE**2).sum(-1).abs().max().item()
        return math.hypot(slope * STD, NOISE)

    def _smoothed(self, X: Tensor, variance: float) -> Tensor:
        v = LENGTHSCALE**2 + variance
        bumps = torch.exp(-0.5 * (X - self.centers) ** 2 / v)
        return (self.heights * LENGTHSCALE / math.sqrt(v) * bumps).sum(-1)


class KnownKernelGP(UGP):
    """The model of the theorem: the kernel that f was drawn from, values as they are, no fit."""

    def __init__(
        self, noise: float, train_X: Tensor, train_Y: Tensor, uncertainty: Any, bounds: Tensor
    ) -> None:
        kernel, likelihood = RBFKernel().double(), GaussianLikelihood().double()
        kernel.lengthscale, likelihood.noise = LENGTHSCALE, noise**2
        super().__init__(
            train_X, train_Y, uncertainty, bounds, base_kernel=kernel, likelihood=likelihood
        )
        del self.outcome_transform
        self.set_train_data(targets=train_Y.squeeze(-1), strict=False)  # type: ignore[operator]

    def custom_fit(self, mll: MarginalLogLikelihood, **kwargs: Any) -> MarginalLogLikelihood:
        return mll.eval()  # BoTorch calls this instead of fitting


@dataclass(frozen=True)
class Method:
    """A way to choose designs."""

    name: str
    colour: str
    settings: Callable[[Drawn], dict[str, Any]] | None
    """Settings of the optimizer; None: uniform random designs."""


def known(problem: Drawn) -> Callable[..., KnownKernelGP]:
    def build(train_X: Tensor, train_Y: Tensor, uncertainty: Any, bounds: Tensor) -> KnownKernelGP:
        return KnownKernelGP(problem.total_noise, train_X, train_Y, uncertainty, bounds)

    return build


THEOREM = Method(
    "ucb-theory, kernel known",
    "#0072B2",
    lambda p: {"surrogate": known(p), "acquisition": TheoryUCB(b=NORM, delta=DELTA)},
)
METHODS = (
    THEOREM,
    Method(
        "ucb, β = 2, kernel known",
        "#56B4E9",
        lambda p: {"surrogate": known(p), "acquisition": UCB(2.0)},
    ),
    Method(
        "ucb-theory, mmd", "#D55E00", lambda p: {"surrogate": "mmd", "acquisition": "ucb-theory"}
    ),
    Method("ucb, β = 2, mmd", "#E69F00", lambda p: {"surrogate": "mmd", "acquisition": "ucb"}),
    Method("uniform random", "0.5", None),
)


def search(problem: Drawn, method: Method, seed: int, n: int) -> Optimizer:
    """Run one search; what happens in experiment i depends only on seed and i."""
    settings = method.settings(problem) if method.settings else {"initial": "random"}
    n_initial = N_INITIAL if method.settings else n
    optimizer = Optimizer(
        Space({"x": (0.0, 1.0)}), problem.uncertainty, seed=seed, n_initial=n_initial, **settings
    )
    generator = torch.Generator().manual_seed(1000 + seed)
    for _ in range(n):
        design = optimizer.ask()
        X = torch.tensor([[design["x"]]], dtype=torch.float64)
        value = problem.observe(X, generator).item()
        value += NOISE * torch.randn((), generator=generator, dtype=torch.float64).item()
        optimizer.tell(design, value)
    return optimizer


def designs_of(optimizer: Optimizer) -> Tensor:
    return Cube(optimizer.space).columns(optimizer.observations[["x"]])


def bounds_of(problem: Drawn, optimizer: Optimizer) -> dict[str, list[float]]:
    """Return what the theorem says about a run whose kernel was known."""
    run = run_regret(
        optimizer.model, designs_of(optimizer), problem, b=NORM, delta=DELTA, n_initial=N_INITIAL
    )
    grid = torch.linspace(0, 1, 201, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        K = optimizer.model.forward(grid).covariance_matrix
    noise_variance, n = problem.total_noise**2, len(run.regret)
    largest = max_information_gain(K, n, noise_variance) / (1 - 1 / math.e)
    before = [0.0, *largest[:-1].tolist()]
    betas = K.new_tensor([ucb_beta(gain, NORM, 1.0, DELTA) for gain in before])
    variance = K.diagonal().max().item()
    bound = regret_bound(largest, betas, noise_variance=noise_variance, largest_variance=variance)
    initial = 2 * NORM * math.sqrt(variance) * torch.arange(1, n + 1).clamp_max(N_INITIAL)
    return {
        "widths": run.widths.tolist(),
        "bound": (bound + initial).tolist(),
        "gains": run.gains.tolist(),
        "largest gains": largest.tolist(),
    }


def exponent(regret: Sequence[float], after: float = 1 / 2) -> float:
    """Fit R_n ~ n^p to a run without its first part; by default to its second half."""
    n = np.arange(1, len(regret) + 1)
    late = n > after * len(regret)
    return float(np.polyfit(np.log(n[late]), np.log(np.asarray(regret)[late]), 1)[0])


def measure(n_seeds: int, n_steps: int) -> dict[str, Any]:
    regrets: dict[str, list[list[float]]] = {method.name: [] for method in METHODS}
    theorem = []
    with progress() as bar:
        task = bar.add_task("", total=n_seeds * len(METHODS))
        for seed in range(n_seeds):
            problem = Drawn.draw(seed)
            for method in METHODS:
                bar.update(task, description=f"function {seed + 1}: {method.name}")
                optimizer = search(problem, method, seed, n_steps)
                regret = cumulative_regret(designs_of(optimizer), problem)
                regrets[method.name].append(regret.tolist())
                if method is THEOREM:
                    theorem.append(bounds_of(problem, optimizer))
                bar.advance(task)
    settings = {
        "lengthscale": LENGTHSCALE, "input std": STD, "noise": NOISE, "norm": NORM, "delta": DELTA,
        "n_initial": N_INITIAL, "n_seeds": n_seeds, "n_steps": n_steps,
        "total noise": [Drawn.draw(seed).total_noise for seed in range(n_seeds)],
    }  # fmt: skip
    exponents = {name: [exponent(r) for r in runs] for name, runs in regrets.items()}
    return {"settings": settings, "exponents": exponents, "regret": regrets, "theorem": theorem}


def report(results: Mapping[str, Any]) -> str:
    """Put growth and size of the regret in one table, regret and bounds in another."""
    rows = []
    for name, runs in results["regret"].items():
        R, p = np.array(runs), np.array(results["exponents"][name])
        late = (R[:, -1] - R[:, -11]) / 10
        rows.append(
            [
                name,
                f"{p.mean():.2f} ± {p.std(ddof=1):.2f}",
                f"{p.min():.2f} to {p.max():.2f}",
                f"{max(exponent(r, after) for r in runs for after in OTHER_WINDOWS):.2f}",
                f"{R[:, -1].mean():.1f}",
                f"{late.mean():.2f} (at most {late.max():.2f})",
            ]
        )
    n = results["settings"]["n_steps"]
    header = [
        "", "p, mean ± std", "p, range", "p, largest, other windows", f"R_{n}",
        "regret per step, last 10",
    ]  # fmt: skip
    growth = table.markdown(header, rows)

    R = np.array(results["regret"][THEOREM.name])
    widths, bound = (np.array([r[key] for r in results["theorem"]]) for key in ("widths", "bound"))
    rows = [
        [
            str(i),
            f"{R[:, i - 1].mean():.1f}",
            f"{widths[:, i - 1].mean():.0f}",
            f"{bound[:, i - 1].mean():.0f}",
            f"{(bound / R)[:, i - 1].min():.0f} to {(bound / R)[:, i - 1].max():.0f}",
        ]
        for i in (n // 6, n // 2, n)
    ]
    header = ["n", "R_n", "2 Σ βσ", "bound of the theorem", "bound / R_n"]
    bounds = table.markdown(header, rows)
    holds = int((widths >= R).all(axis=1).sum())
    gains = np.array([r["gains"] for r in results["theorem"]])
    betas = [ucb_beta(gain, NORM, 1.0, DELTA) for gain in gains[:, N_INITIAL - 1 :].flat]
    where = record.describe(results["provenance"])
    return (
        "# Growth of the cumulative regret\n\n"
        f"{len(R)} functions drawn from the RKHS, {n} experiments each; R_n ~ n^p fitted to the "
        f"second half; other windows: without the first 1/6, 1/3, 2/3.\n\n{growth}\n\n"
        f"{THEOREM.name}, mean over the functions:\n\n{bounds}\n\n"
        f"R_n stayed below 2 Σ βσ at every step of {holds} of {len(R)} runs. "
        f"Gain of {n} observations: {gains[:, -1].min():.1f} to {gains[:, -1].max():.1f}; "
        f"β: {min(betas):.1f} to {max(betas):.1f}.\n\n{where}\n"
    )


def draw(results: Mapping[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    n = np.arange(1, results["settings"]["n_steps"] + 1)
    for method in METHODS:
        R = np.array(results["regret"][method.name])
        p = np.mean(results["exponents"][method.name])
        left.plot(n, R.mean(0), color=method.colour, label=f"{method.name}: p = {p:.2f}")
        left.fill_between(n, R.min(0), R.max(0), color=method.colour, alpha=0.12, lw=0)
    left.set(xlabel="experiments n", ylabel="cumulative regret $R_n$", xlim=(1, n[-1]), ylim=0)
    left.set_title("Mean and range over the functions", fontsize=10, loc="left")
    left.legend(frameon=False, fontsize=8, loc="upper left")

    R = np.array(results["regret"][THEOREM.name])
    right.plot(n, R.mean(0), color=THEOREM.colour, label="regret $R_n$")
    for key, style, label in (
        ("widths", "--", r"$2\,\Sigma\,\beta\sigma$ of the run"),
        ("bound", "-", "bound of the theorem"),
    ):
        mean = np.mean([r[key] for r in results["theorem"]], axis=0)
        right.plot(n, mean, style, color="0.2", label=label)
    right.plot(n, R.mean(0)[-1] * n / n[-1], ":", color="0.6", label="linear growth")
    right.set(xscale="log", yscale="log", xlabel="experiments n", xlim=(1, n[-1]))
    right.set_ylabel("cumulative regret, and its bounds")
    right.set_title(THEOREM.name, fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=8, loc="lower right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter searches")
    parser.add_argument("--report", action="store_true", help="only table and picture")
    given = parser.parse_args()
    quick, name = given.quick, "regret_growth_quick" if given.quick else "regret_growth"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", TooLittleDataWarning)

    path = record.RESULTS / f"{name}.json"
    if not given.report:
        where = record.provenance()
        record.store(name, where, measure(N_SEEDS[quick], N_STEPS[quick]))
    results = json.loads(path.read_text(encoding="utf-8"))
    picture = path.with_suffix(".png") if quick else IMAGES / "regret_growth.png"
    draw(results, picture)
    record.publish(path, report(results))
    Console().print(f"Stored in {path.name}, {path.stem}.md and {picture.name}", markup=False)


if __name__ == "__main__":
    main()
