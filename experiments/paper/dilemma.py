"""The inference dilemma: few samples make MMDs, posteriors and acquisitions noisy."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airbo.embeddings import Empirical, Nystrom, Quadrature, RationalQuadraticSum, mmd2
from airbo.uncertainty import InputUncertainty
from experiments.harness import table
from experiments.harness.draw import COLOURS, picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.palette import style
from experiments.paper import acquisitions as acq
from experiments.paper import posteriors as post
from experiments.subjects.methods import ESTIMATORS, Method
from experiments.subjects.uncertainties import BY_NAME

ESTIMATED = (
    Method("Empirical(20)", "mmd", Empirical(20)),
    Method("Empirical(100)", "mmd", Empirical(100)),
    Method("Nystrom(100/10)", "mmd", Nystrom(100, 10)),
)
EXACT = Method("exact (default)", "mmd")
DRAWS = ("held", "redrawn")
WORDS = {"held": "draws held", "redrawn": "redrawn at every call"}
LENGTHSCALES = (0.1, 1.0)
"""Of the base kernel: about what fits on the RKHS function find, and the published program's."""
SHOWN_SHIFTS = (0.0, 0.1, 0.3)


class Dilemma(Experiment):
    """Estimates of MMD², and their effect on a model and its acquisition."""

    name = "dilemma"
    paper = "figure 3"
    title = "Noise of MMD estimates, in posteriors and in acquisitions"
    repeats = 12

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List the estimates and the searches of all repeats."""
        tasks = []
        for seed in range(repeats):
            for lengthscale in LENGTHSCALES:
                for method in ESTIMATED:
                    config = _estimate_config(method, lengthscale, quick)
                    tasks.append(
                        Task(self.name, _estimate_label(method, lengthscale), seed, config)
                    )
            for draws in DRAWS:
                for method in _methods(draws):
                    config = _search_config(method, draws, quick)
                    label = _search_label(method, draws)
                    tasks.append(Task(self.name, label, seed, config))
        return tasks

    def run(self, task: Task) -> dict[str, Any]:
        """Estimate many times, or search from many starts."""
        if task.config["part"] == "estimates":
            return _estimate(task.config, task.seed)
        return _search(task.config, task.seed)

    # -- results

    def summary(self, results: Results) -> str:
        """Tabulate the noise of estimates and where searches end."""
        [config] = [t.config for t, _ in results if t.label == results.labels[0] and t.seed == 0]
        n = len(results.of(results.labels[0]))
        return (
            f"MMD² between P = beta(0.4, 0.2, 0.1) and P + c, from fresh draws: "
            f"{config['n_draws']} estimates in each of {n} repeats, length scale l of the base "
            "kernel; mean and 95% interval over repeats. The bias is the mean estimate less the "
            f"exact value.\n\n{self._estimates(results)}\n\n"
            "UCB (β = 2) on the RKHS function under that beta, 10 observations, hyper-parameters "
            "fitted under the default estimator and the same for all. *Held*: one set of draws "
            "for all designs and calls, as in this library. *Redrawn*: fresh draws for every "
            "candidate in every call, as in the program that the authors published. *Maxima*: "
            "local ones on the grid. *Error*: root mean square difference from the exact "
            "acquisition, in percent of its range. *Global*: share of L-BFGS-B searches from "
            "random starts that end at the global maximum of the exact acquisition (within 2% of "
            "the range); *from good starts*: the same from the best 5 of 64 random designs. "
            "*Local*: share of the random starts that end within 0.02 of any local maximum, ends "
            "of the line included; *at 0 or 1*: at one of those. *Best of all*: how far below the "
            "global maximum the end is that the searches from random starts take for the best, in "
            "percent of the range. One of the 25 starts is 0.9, whose path is drawn.\n\n"
            f"{self._searches(results)}"
        )

    def _estimates(self, results: Results) -> str:
        rows = []
        for lengthscale in LENGTHSCALES:
            for method in ESTIMATED:
                label = _estimate_label(method, lengthscale)
                found = results.of(label)
                shifts = np.array(found[0]["shifts"])
                at = [int(np.abs(shifts - c).argmin()) for c in SHOWN_SHIFTS]
                exact = np.array(found[0]["exact"])
                std = np.array([r["std"] for r in found])[:, at]
                bias = (np.array([r["mean"] for r in found]) - exact)[:, at[1]]
                negative = np.array([r["negative"] for r in found])
                rows.append(
                    [
                        f"{method.label}, l = {lengthscale}",
                        *(post.cell(column, 4) for column in std.T),
                        f"{exact[at[1]]:.4f}",
                        post.cell(bias, 4),
                        f"{negative.mean():.0%}",
                    ]
                )
        header = [
            "",
            *(f"spread at c = {c}" for c in SHOWN_SHIFTS),
            "exact at c = 0.1",
            "bias there",
            "negative at c = 0",
        ]
        return table.markdown(header, rows)

    def _searches(self, results: Results) -> str:
        names = ("maxima", "error", "global", "global_from_good", "local", "best", "evaluations")
        header = [
            "",
            "maxima",
            "error %",
            "global",
            "global, from good starts",
            "local",
            "at 0 or 1",
            "best of all %",
            "evaluations",
        ]
        rows = []
        for draws in DRAWS:
            for method in _methods(draws):
                label = _search_label(method, draws)
                maxima, error, at_global, from_good, at_local, best, n = (
                    post.column(results, label, name) for name in names
                )
                ends = np.array([result["ends"] for result in results.of(label)])
                at_bound = np.mean((ends < 0.001) | (ends > 0.999), axis=1)
                rows.append(
                    [
                        label,
                        post.cell(maxima, 0),
                        post.cell(100 * error, 1),
                        post.cell(at_global),
                        post.cell(from_good),
                        post.cell(at_local),
                        post.cell(at_bound),
                        post.cell(100 * best, 1),
                        f"{n.mean():.1f}",
                    ]
                )
        return table.markdown(header, rows)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the estimates against the distance, and the searches of the first repeat."""
        first = {task.label: (task, result) for task, result in results if task.seed == 0}
        paths = [folder / f"{self.name}-mmd.png", folder / f"{self.name}-search.png"]
        with picture(paths[0], 10, 3.8) as figure:
            _draw_estimates(figure, {label: result for label, (_, result) in first.items()})
        with picture(paths[1], 13, 9.5) as figure:
            _draw_searches(figure, first)
        return paths


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
    uncertainty = BY_NAME[config["case"]].uncertainty
    shifts = np.linspace(0, config["largest_shift"], config["n_shifts"])
    generator = torch.Generator().manual_seed(seed)
    found = np.array([estimates(uncertainty, c, config, generator) for c in shifts])
    return {
        "shifts": np.round(shifts, 6).tolist(),
        "mean": [post.rounded(v) for v in found.mean(axis=1)],
        "std": [post.rounded(v) for v in found.std(axis=1, ddof=1)],
        "exact": [post.rounded(v) for v in exact_mmd2(uncertainty, shifts, config["lengthscale"])],
        "negative": post.rounded(np.mean(found[0] < 0)),
    } | ({"one": [post.rounded(v) for v in found[:, 0]]} if seed == 0 else {})


def _search(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model, exact_model = acq.models(config, seed)
    x = post.grid(config["n_grid"])
    landscape = acq.Landscape(x, acq.values(acq.ucb(exact_model, config["beta"]), x))
    belief = post.believed(model, x)
    seen = belief.mean + config["beta"] * belief.std

    starts = np.random.default_rng(seed).uniform(size=config["n_starts"])
    starts[0] = config["first_start"]
    function, searches = acq.ucb(model, config["beta"]), []
    for start in starts:
        searches.append(acq.maximize(function, float(start)))
    ends, values = np.array([search.end for search in searches]).T

    raw = np.random.default_rng(seed).uniform(size=config["n_raw"])
    good = raw[np.argsort(-acq.values(function, raw))[: config["n_good"]]]
    good_ends = np.array([acq.maximize(function, float(start)).end[0] for start in good])
    result = {
        "maxima": len(acq.local_maxima(seen)),
        "error": post.rounded(np.sqrt(np.mean((seen - landscape.values) ** 2)) / landscape.range),
        "global": post.rounded(landscape.at_global(ends).mean()),
        "global_from_good": post.rounded(landscape.at_global(good_ends).mean()),
        "local": post.rounded(landscape.at_local(ends).mean()),
        "best": post.rounded(landscape.loss(ends[[values.argmax()]])[0]),
        "evaluations": post.rounded(np.mean([search.n_evaluations for search in searches])),
        "ends": np.round(ends, 4).tolist(),
    }
    if seed == 0:
        result |= {"curves": belief.curves(), "path": np.round(searches[0].path, 4).tolist()}
    return result


def _draw_estimates(figure: Figure, results: dict[str, dict[str, Any]]) -> None:
    axes = figure.subplots(1, 3)
    for method in ESTIMATED:
        (shade, marker), found = (
            style(method.label),
            results[_estimate_label(method, LENGTHSCALES[0])],
        )
        c, mean, std, one = (np.array(found[name]) for name in ("shifts", "mean", "std", "one"))
        low, high = mean - 2 * std, mean + 2 * std
        shapes = (_same, _root, lambda v: np.exp(-v))
        for ax, shape in zip(axes, shapes, strict=True):
            ax.fill_between(c, shape(low), shape(high), color=shade, alpha=0.18, lw=0)
            ax.plot(c, shape(one), color=shade, lw=1, marker=marker, ms=3, label=method.label)
    exact = np.array(found["exact"])
    for ax, shape in zip(axes, shapes, strict=True):
        ax.plot(c, shape(exact), color="black", lw=1.2, ls="--", label="exact (default)")
        ax.set_xlabel("offset c of Q = P + c")
    axes[0].set(title="MMD²", ylabel="line: one estimate each; band: mean ± 2 std")
    axes[1].set(title="MMD (0 where MMD² < 0)")
    axes[2].set(title="covariance exp(-MMD²)")
    axes[0].legend(fontsize=8)


def _draw_searches(figure: Figure, first: dict[str, tuple[Task, dict[str, Any]]]) -> None:
    axes = figure.subplots(4, 4, sharex=True, sharey="row", height_ratios=[1, 0.8] * 2)
    for row, draws in enumerate(DRAWS):
        methods = _methods(draws)
        for (top, bottom), method in zip(axes[2 * row : 2 * row + 2].T, methods, strict=False):
            task, result = first[_search_label(method, draws)]
            post.draw_belief(top, task, result["curves"])
            top.set_title(task.label.replace(", ", ",\n"), fontsize=10)
            top.set_ylim(*_visible(result["curves"]))
            _draw_search(bottom, task, result)
        axes[2 * row, 0].set_ylabel("posterior")
        axes[2 * row + 1, 0].set_ylabel("acquisition")
    for ax in axes[2:, 3]:
        ax.set_axis_off()
    above = axes[0, 0].get_legend_handles_labels()
    below = axes[1, 0].get_legend_handles_labels()
    axes[2, 3].legend(*above, loc="upper left", fontsize=9)
    axes[3, 3].legend(*below, loc="upper left", fontsize=9)
    axes[0, 0].set_xlim(-0.04, 1.04)  # what ends at a bound is to be seen
    for ax in (*axes[3, :3], axes[1, 3]):
        ax.set_xlabel("design x")
        ax.tick_params(labelbottom=True)


def _draw_search(ax: Axes, task: Task, result: dict[str, Any]) -> None:
    x = post.grid(task.config["n_grid"])
    mean, std = (np.array(result["curves"][name]) for name in ("mean", "std"))
    seen = mean + task.config["beta"] * std
    path = np.array(result["path"])
    bottom = seen.min() - 0.25 * np.ptp(seen)
    ax.plot(x, seen, color=COLOURS[5], lw=1.2, label="acquisition, in one call")
    ax.plot(*path.T, color=COLOURS[1], lw=1, marker=".", ms=5, label="path of L-BFGS-B from 0.9")
    ax.plot(*path[-1], "*", color=COLOURS[1], ms=13, mec="white", label="its end")
    ends = result["ends"]
    ax.plot(
        ends, np.full(len(ends), bottom), "|", color=COLOURS[3], ms=9, label="ends of all starts"
    )


def _visible(curves: dict[str, list[float]]) -> tuple[float, float]:
    """Return limits that show the whole band; the function may reach further."""
    mean, std = np.array(curves["mean"]), np.array(curves["std"])
    return float((mean - 2.5 * std).min()), float((mean + 2.5 * std).max())


def _same(value: np.ndarray) -> np.ndarray:
    return value


def _root(value: np.ndarray) -> np.ndarray:
    return np.sqrt(value.clip(min=0))


def _methods(draws: str) -> tuple[Method, ...]:
    return (*ESTIMATED, EXACT) if draws == "held" else ESTIMATED


def _estimate_label(method: Method, lengthscale: float) -> str:
    return f"MMD² by {method.label}, l = {lengthscale}"


def _search_label(method: Method, draws: str) -> str:
    return method.label if method == EXACT else f"{method.label}, {WORDS[draws]}"


def _estimate_config(method: Method, lengthscale: float, quick: bool) -> dict[str, Any]:
    return {
        "part": "estimates",
        "case": "beta",
        "lengthscale": lengthscale,
        "largest_shift": 0.5,
        "n_shifts": 3 if quick else 21,
        "n_draws": 5 if quick else 100,
        **method.config(),
    }


def _search_config(method: Method, draws: str, quick: bool) -> dict[str, Any]:
    return {
        "part": "search",
        "case": "beta",
        "n": 10,
        "beta": 2.0,
        "draws": draws,
        "first_start": 0.9,
        "n_starts": 1 if quick else 25,
        "n_raw": 4 if quick else 64,
        "n_good": 1 if quick else 5,
        "n_grid": 21 if quick else 501,
        **method.config(),
    }


DILEMMA = Dilemma()
