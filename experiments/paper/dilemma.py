"""The inference dilemma: few samples make MMDs, posteriors and acquisitions noisy (figure 3)."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import UpperConfidenceBound
from matplotlib.figure import Figure

from airbo.embeddings import Empirical, Nystrom, Quadrature, RationalQuadraticSum, mmd2
from airbo.models import UncertainInputGP
from airbo.uncertainty import InputUncertainty
from experiments.harness import table
from experiments.harness.draw import COLOURS, picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.palette import style
from experiments.harness.statistics import with_interval
from experiments.paper import posteriors as post
from experiments.subjects.internals import without_numerical_warnings
from experiments.subjects.methods import ESTIMATORS, Method, surrogate
from experiments.subjects.uncertainties import PAPERS

ESTIMATED = (
    Method("Empirical(20)", "mmd", Empirical(20)),
    Method("Empirical(100)", "mmd", Empirical(100)),
    Method("Nystrom(100/10)", "mmd", Nystrom(100, 10)),
)
EXACT = Method("exact (default)", "mmd")
SEARCHED = {
    **{f"{m.label}, draws held": (m, "held") for m in ESTIMATED},
    EXACT.label: (EXACT, "held"),
    **{f"{m.label}, redrawn at every call": (m, "redrawn") for m in ESTIMATED},
}
LENGTHSCALE, BETA = 0.1, 2.0
"""Of the base kernel, about what fits on the RKHS function find; and of the acquisition."""
SHOWN_SHIFTS = (0.0, 0.1, 0.3)
SAME_VALUE = 0.02
"""A search ends at the global maximum if it is within this share of the range."""


class Dilemma(Experiment):
    """Estimates of MMD², and their effect on a model and its acquisition."""

    name = "dilemma"
    paper = "figure 3"
    title = "Noise of MMD estimates, in posteriors and in acquisitions"
    repeats = 12

    def tasks(self, repeats: int) -> list[Task]:
        """List the estimates and the searches of all repeats."""
        estimates = {"case": "beta", "lengthscale": LENGTHSCALE, "largest_shift": 0.5,
                     "n_shifts": 21, "n_draws": 100}  # fmt: skip
        searches = {"case": "beta", "n": 10, "n_starts": 25, "n_good": 5, "n_grid": 501}
        return [
            Task(self.name, label, seed, config)
            for seed in range(repeats)
            for label, config in (
                *((f"MMD² by {m.label}", estimates | m.config()) for m in ESTIMATED),
                *((label, searches | m.config() | {"draws": draws})
                  for label, (m, draws) in SEARCHED.items()),
            )
        ]  # fmt: skip

    def run(self, task: Task) -> dict[str, Any]:
        """Estimate many times, or search from many starts."""
        return (_estimate if "n_shifts" in task.config else _search)(task.config, task.seed)

    def summary(self, results: Results) -> str:
        """Tabulate the noise of estimates and where searches end."""
        estimated, searched = [], []
        for method in ESTIMATED:
            found = results.of(f"MMD² by {method.label}")
            at = [int(np.abs(np.array(found[0]["shifts"]) - c).argmin()) for c in SHOWN_SHIFTS]
            std = np.array([r["std"] for r in found])[:, at]
            negative = np.mean([r["negative"] for r in found])
            spread = [with_interval(column, ".4f") for column in std.T]
            estimated.append([method.label, *spread, f"{negative:.0%}"])
        for label in SEARCHED:
            maxima, ends_well, from_good, at_end = (
                post.column(results, label, k) for k in ("maxima", "global", "from_good", "at_end")
            )
            cells = [*map(with_interval, (ends_well, from_good, at_end))]
            searched.append([label, with_interval(maxima, ".0f"), *cells])
        n = len(results.of(results.labels[0]))
        return (
            f"MMD² between P = beta(0.4, 0.2, 0.1) and P + c, from fresh draws, {n} repeats; mean "
            f"and 95% interval over repeats. Length scale {LENGTHSCALE} of the base kernel.\n\n"
            + table.markdown(
                ["", *(f"spread at c = {c}" for c in SHOWN_SHIFTS), "negative at c = 0"], estimated
            )
            + "\n\nUCB (β = 2) on the RKHS function under that beta, 10 observations, "
            "hyper-parameters fitted under the default estimator and the same for all. *Held*: one "
            "set of draws for all designs and calls, as in this library. *Redrawn*: fresh draws "
            "for every candidate in every call, as in the published program. *Maxima*: local ones "
            "on a grid. *Global*: share of L-BFGS-B searches from random starts that end at the "
            "global maximum of the exact acquisition; *from good starts*: from the best 5 of 64 "
            "random designs; *at 0 or 1*: share that ends there.\n\n"
            + table.markdown(["", "maxima", "global", "from good starts", "at 0 or 1"], searched)
        )

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw estimates against the distance, and the acquisitions of the first repeat."""
        first = {task.label: (task, result) for task, result in results if task.seed == 0}
        paths = [folder / f"{self.name}-mmd.png", folder / f"{self.name}-search.png"]
        with picture(paths[0], 8, 3.6) as figure:
            _draw_estimates(figure, {label: result for label, (_, result) in first.items()})
        with picture(paths[1], 12, 5) as figure:
            axes = figure.subplots(2, 4, sharex=True, sharey="row")
            for ax, label in zip(axes.flat, SEARCHED, strict=False):
                task, result = first[label]
                x = post.grid(task.config["n_grid"])
                ax.plot(x, result["seen"], color=COLOURS[5], lw=1.2)
                bottom = min(result["seen"]) - 0.25 * np.ptp(result["seen"])
                ends = result["ends"]
                ax.plot(ends, np.full(len(ends), bottom), "|", color=COLOURS[3], ms=9)
                ax.set_title(label.replace(", ", ",\n"), fontsize=9)
            axes[1, 3].set_axis_off()
            figure.supxlabel("design x; the marks are the ends of all searches")
            figure.supylabel("acquisition, in one call")
        return paths


# -- estimates


def estimates(
    uncertainty: InputUncertainty, shift: float, config: dict[str, Any], generator: torch.Generator
) -> np.ndarray:
    """Return estimates of MMD² between P and P + shift, each from draws of its own."""
    given = dict(config["estimator"])
    estimator = ESTIMATORS[given.pop("kind")](**given)
    n = config["n_draws"] * estimator.n_samples
    origin = torch.zeros(1, 1, dtype=torch.float64)

    def sample() -> torch.Tensor:
        numbers = torch.rand(n, 1, generator=generator, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
        return uncertainty.perturb(origin, numbers).reshape(config["n_draws"], -1, 1)

    with torch.no_grad():
        kernel = RationalQuadraticSum(config["lengthscale"])
        return mmd2(sample(), sample() + shift, kernel, estimator).numpy()


def exact_mmd2(uncertainty: InputUncertainty, shifts: np.ndarray, lengthscale: float) -> np.ndarray:
    """Return MMD² between P and P + shift under the default estimator."""
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    kernel = RationalQuadraticSum(lengthscale).double()
    embedding = Quadrature().embed([uncertainty], kernel, bounds).eval()
    with torch.no_grad():
        here, there = embedding(post.designs([0.0])), embedding(post.designs(shifts))
        return embedding.mmd2(here, there).numpy().reshape(-1)


def _estimate(config: dict[str, Any], seed: int) -> dict[str, Any]:
    uncertainty = PAPERS[config["case"]]
    shifts = np.linspace(0, config["largest_shift"], config["n_shifts"])
    generator = torch.Generator().manual_seed(seed)
    found = np.array([estimates(uncertainty, c, config, generator) for c in shifts])
    exact = exact_mmd2(uncertainty, shifts, config["lengthscale"])
    series = {"mean": found.mean(1), "std": found.std(1, ddof=1), "exact": exact}
    return {
        "shifts": np.round(shifts, 6).tolist(),
        **{name: [post.rounded(v) for v in values] for name, values in series.items()},
        "negative": post.rounded(np.mean(found[0] < 0)),
    }


def _draw_estimates(figure: Figure, results: dict[str, dict[str, Any]]) -> None:
    axes = figure.subplots(1, 2)
    shapes = (lambda v: v, lambda v: np.exp(-v))
    for method in ESTIMATED:
        shade, found = style(method.label)[0], results[f"MMD² by {method.label}"]
        c, mean, std, exact = (np.array(found[k]) for k in ("shifts", "mean", "std", "exact"))
        for ax, shape in zip(axes, shapes, strict=True):
            low, high = shape(mean - 2 * std), shape(mean + 2 * std)
            ax.fill_between(c, low, high, color=shade, alpha=0.25, lw=0, label=method.label)
    for ax, shape, title in zip(axes, shapes, ("MMD²", "covariance exp(-MMD²)"), strict=True):
        ax.plot(c, shape(exact), color="black", lw=1.2, ls="--", label="exact (default)")
        ax.set(xlabel="offset c of Q = P + c", title=f"{title}, mean ± 2 deviations")
    axes[0].legend(fontsize=8)


# -- searches


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


def values(function: AcquisitionFunction, x: np.ndarray) -> np.ndarray:
    with torch.no_grad(), without_numerical_warnings():
        return function(post.designs(x).unsqueeze(-2)).numpy()


def maximize(function: AcquisitionFunction, start: float) -> float:
    """Search from one design on the unit interval by L-BFGS-B; return where it ends."""

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        X = torch.tensor(x, dtype=torch.float64).reshape(1, 1, 1).requires_grad_()
        value = function(X).sum()
        (slope,) = torch.autograd.grad(value, X)
        return -value.item(), -slope.numpy().reshape(-1)

    with without_numerical_warnings():
        done = scipy.optimize.minimize(
            negative, [start], jac=True, method="L-BFGS-B", bounds=[(0, 1)]
        )
    return float(done.x[0])


def n_local_maxima(values: np.ndarray) -> int:
    """Count local maxima inside a line."""
    return int(np.sum((values[1:-1] > values[:-2]) & (values[1:-1] >= values[2:])))


def _search(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model, exact_model = models(config, seed)
    x = post.grid(config["n_grid"])
    exact = values(UpperConfidenceBound(exact_model, beta=BETA**2), x)
    belief = post.believed(model, x)
    seen = belief.mean + BETA * belief.std

    def at_global(ends: list[float]) -> float:
        """Return the share of ends at which the exact acquisition is as good as it gets."""
        loss = (exact.max() - np.interp(ends, x, exact)) / np.ptp(exact)
        return post.rounded(np.mean(loss <= SAME_VALUE))

    function = UpperConfidenceBound(model, beta=BETA**2)
    starts = np.random.default_rng(seed).uniform(size=config["n_starts"])
    ends = [maximize(function, float(start)) for start in starts]
    raw = np.random.default_rng(seed).uniform(size=64)
    good = raw[np.argsort(-values(function, raw))[: config["n_good"]]]
    return {
        "maxima": n_local_maxima(seen),
        "global": at_global(ends),
        "from_good": at_global([maximize(function, float(start)) for start in good]),
        "at_end": post.rounded(np.mean([not 0.001 < end < 0.999 for end in ends])),
    } | ({"seen": np.round(seen, 4).tolist(), "ends": np.round(ends, 4).tolist()}
         if seed == 0 else {})  # fmt: skip


DILEMMA = Dilemma()
