"""Draw the pictures of the README and the docs: ``python docs/figures.py``."""

import json
from pathlib import Path
from statistics import mean, stdev

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
import torch
from botorch import fit_gpytorch_mll
from gpytorch.mlls import ExactMarginalLogLikelihood
from matplotlib.axes import Axes
from torch import Tensor

from airbo import uncertainty as unc
from airbo.models import MMDGP, ExpectationGP, NominalGP
from airbo.problems import RKHS, DoublePeak

IMAGES = Path(__file__).parent / "images"
SCORES = Path(__file__).parent.parent / "benchmarks" / "results" / "modelling.json"
SEED = 0
"""The first seed, not the best one: designs and where they land."""
N_OBSERVATIONS = 10

TRUTH, FUNCTION, MODEL, DATA = "#000000", "#A8A8A8", "#0072B2", "#D55E00"  # colour-blind safe

STYLE = Path(__file__).parent / "airbo.mplstyle"


def wavy_beta(x: Tensor) -> unc.Beta:
    """Make the width of the deviation rise and fall with the design."""
    return unc.Beta(0.5, 0.5, scale=0.09 * (torch.sin(4 * torch.pi * x) + 1))


NORMAL = RKHS(unc.Normal(0.01))
WAVY = RKHS(unc.Varying(wavy_beta))
STEP = RKHS(
    unc.Piecewise([0.6], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7.0, scale=0.01)])
)


CASES = {
    "N(0, 0.01²) everywhere": NORMAL,
    "beta, its width changes with x": WAVY,
    "chi-squared, a step at 0.6": STEP,
}
SURROGATES = {"plain GP": NominalGP, "MMDGP": MMDGP, "ExpectationGP": ExpectationGP}


def main() -> None:
    """Draw everything."""
    torch.set_num_threads(1)
    IMAGES.mkdir(exist_ok=True)
    with plt.style.context(STYLE):
        draw_readme()
        draw_modelling()
        draw_scores()
        draw_kinds()


def draw_readme() -> None:
    """Show why the best point is not the best design, and what surrogates make of ten values."""
    figure = plt.figure(figsize=(9, 6.6), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.05, 1])
    draw_problem(top.subplots())
    axes = bottom.subplots(1, 2, sharey=True)
    shown = {
        "Ten observations, seen by a plain GP ...": NominalGP,
        "... and by the default, under N(0, 0.01²)": ExpectationGP,
    }
    for ax, (title, surrogate) in zip(axes, shown.items(), strict=True):
        draw_posterior(ax, NORMAL, surrogate)
        ax.set_title(title)
        ax.set_xlabel("design x")
    axes[0].set_ylabel("value")
    bottom.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    save(figure, "readme")


def draw_problem(ax: Axes) -> None:
    """Draw the double peak, what designs give on average, and where two of them land."""
    problem = DoublePeak()
    grid = torch.linspace(0.05, 0.6, 801, dtype=torch.float64).unsqueeze(-1)
    ax.plot(grid, problem(grid), color=FUNCTION, lw=1.5)
    ax.plot(grid, problem.expected(grid), color=TRUTH, lw=1.5, ls="--")
    ax.text(0.377, 6.4, "f at the point that is hit", color="#707070")
    ax.text(0.145, 4.3, "expected value\nof a design", ha="right")

    nominal, robust = problem.nominal_optimum.design, problem.robust_optimum.design
    landing = unc.base_draws(60, 1)
    for design, colour, y in ((nominal, DATA, -1.3), (robust, MODEL, -2.5)):
        x = design.item()
        average = problem.expected(design.unsqueeze(0)).item()
        ax.plot([x, x], [y, average], color=colour, lw=1, ls=":")
        ax.plot(x, average, "o", color=colour, ms=9, mec="white", zorder=3)
        samples = problem.uncertainty.perturb(design.unsqueeze(0), landing)[0, :, 0]
        ax.plot(samples, np.full(len(samples), y), "|", color=colour, ms=9, mew=0.8)
        ax.text(x + 0.107, y, f"here lands x = {x:.2f}", color=colour, va="center")
    ax.plot(nominal.item(), problem.nominal_optimum.value, "^", color=DATA, ms=9, mec="white")
    ax.annotate(
        f"the best point, f = {problem.nominal_optimum.value:.1f},\nis a bad design: "
        f"{problem.expected(nominal.unsqueeze(0)).item():.1f} on average",
        (nominal.item(), problem.nominal_optimum.value), (0.377, 8.0), color=DATA,
    )  # fmt: skip
    ax.annotate(
        f"the best design:\n{problem.robust_optimum.value:.1f} on average",
        (robust.item(), problem.robust_optimum.value), (0.235, 7.6), color=MODEL, ha="right",
    )  # fmt: skip
    ax.set(xlim=(0.05, 0.6), ylim=(-3.2, 10), xlabel="x", ylabel="value")
    ax.set_title("The best point of a function is not its best design", fontsize=12)


def draw_modelling() -> None:
    """Show every uncertainty to the surrogates, above the distribution that hits designs."""
    figure, axes = plt.subplots(
        6, 3, figsize=(12, 10.5), sharex=True, sharey="row", height_ratios=[4, 1] * 3,
        layout="constrained",
    )  # fmt: skip
    for number, (label, problem) in enumerate(CASES.items()):
        panels, strips = axes[2 * number : 2 * number + 2]
        for ax, strip, (name, surrogate) in zip(panels, strips, SURROGATES.items(), strict=True):
            draw_posterior(ax, problem, surrogate)
            draw_density(strip, problem.uncertainty)
            ax.set_title(f"{name}: {label}", fontsize=10)
            ax.tick_params(bottom=False)
        panels[0].set_ylabel("value")
        strips[0].set_ylabel("deviation")
    for ax in axes[-1]:
        ax.set_xlabel("design x")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    save(figure, "modelling")


def draw_scores() -> None:
    """Show how well the surrogates predict the true expectation over many seeds."""
    scores = json.loads(SCORES.read_text(encoding="utf-8"))["scores"]
    surrogates = list(next(iter(scores.values())))
    palette = ["#D55E00", "#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#000000"]
    colours = dict(zip(surrogates, palette, strict=True))
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
    for row, by_surrogate in enumerate(scores.values()):
        for place, (name, results) in enumerate(by_surrogate.items()):
            y = row + 0.12 * (place - 2.5)
            for ax, values in zip(axes, zip(*results, strict=True), strict=True):
                error = 1.96 * stdev(values) / len(values) ** 0.5
                ax.errorbar(
                    mean(values), y, xerr=error, fmt="o", ms=5, color=colours[name],
                    label=name if row == 0 else None,
                )  # fmt: skip
    axes[0].set(xlabel="RMSE of the posterior mean (less is better)", xlim=(0, None))
    axes[0].set_yticks(range(len(scores)), list(scores))
    axes[0].invert_yaxis()
    axes[1].set(xlabel="share of designs inside the 95% band")
    axes[1].axvline(0.95, color=FUNCTION, ls="--", lw=1)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    save(figure, "modelling-scores")


def draw_kinds() -> None:
    """Show samples of every kind of uncertainty in two columns."""
    figure, axes = plt.subplots(4, 4, figsize=(9, 9.4), layout="constrained")
    for ax, (name, (uncertainty, designs)) in zip(axes.flat, kinds().items(), strict=True):
        X = torch.tensor(designs, dtype=torch.float64)
        samples = uncertainty.perturb(X, unc.base_draws(512, uncertainty.n_base(2), seed=3))
        ax.plot(*samples.flatten(0, 1).T, ".", color=MODEL, ms=3, alpha=0.6, mew=0)
        ax.plot(*X.T, "+", color=DATA, ms=9, mew=2)
        ax.set_title(name, fontsize=10)
        ax.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(True)
        ax.spines[:].set_color("0.8")
    save(figure, "kinds")


def kinds() -> dict[str, tuple[unc.InputUncertainty, list[list[float]]]]:
    """Return one uncertainty of each kind with the designs that show it best."""
    center, row = [[0.0, 0.0]], [[-0.65, 0.0], [0.0, 0.0], [0.65, 0.0]]
    logged = np.random.default_rng(0).normal(size=(40, 2)) * 0.12
    logged += np.linspace(-0.5, 0.5, 40)[:, None] ** [1, 2]
    return {
        "Exact": (unc.Exact(), center),
        "Normal (std)": (unc.Normal([0.15, 0.3]), center),
        "Normal (cov)": (unc.Normal(cov=[[0.09, 0.07], [0.07, 0.09]]), center),
        "Uniform": (unc.Uniform([-0.6, -0.3], [0.6, 0.3]), center),
        "Beta": (unc.Beta(0.4, 0.2, scale=0.7), center),
        "ChiSquared": (unc.ChiSquared(2.0, scale=0.1), center),
        "GaussianMixture": (
            unc.GaussianMixture([[-0.4, -0.3], [0.4, 0.4]], [[0.02, 0.0], [0.0, 0.02]], [0.7, 0.3]),
            center,
        ),
        "Ring": (unc.Ring(0.6), center),
        "Empirical (logged)": (unc.Empirical(logged), center),
        "SciPy (skew normal)": (unc.SciPy(scipy.stats.skewnorm(6, scale=0.4)), center),
        "Torch (Laplace)": (unc.Torch(torch.distributions.Laplace(0.0, 0.15)), center),
        "Product": (unc.Product([unc.Normal(0.1), unc.Uniform(-0.7, 0.7)]), center),
        "Varying": (unc.Varying(lambda x: unc.Normal(0.1 + 0.08 * x[..., :1].expand_as(x))), row),
        "Piecewise": (unc.Piecewise([0.3], [unc.Normal(0.05), unc.Ring(0.25)]), row),
        "Sampler": (unc.Sampler(spiral, n_base=1), center),
        "clipped": (unc.Normal(0.4).clipped([-0.5, -0.2], 0.5), center),
    }


def spiral(X: Tensor, base: Tensor) -> Tensor:
    """Land on a spiral around the design."""
    turns = 4 * torch.pi * base[:, 0]
    arm = 0.06 * turns.unsqueeze(-1) * torch.stack([turns.cos(), turns.sin()], dim=-1)
    return X.unsqueeze(-2) + arm


def draw_posterior(ax: Axes, problem: RKHS, surrogate: type) -> None:
    """Fit a surrogate and draw it over the function, its expectation and the observations."""
    X, Y = observations(problem)
    model = surrogate(X, Y, problem.uncertainty, problem.bounds)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))

    grid = torch.linspace(0, 1, 601, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        posterior = model.posterior(grid)
        middle = posterior.mean.squeeze(-1)
        band = 1.96 * posterior.variance.squeeze(-1).sqrt()
        expected, function = problem.expected(grid), problem(grid)
    x = grid.squeeze(-1)
    ax.fill_between(x, middle - band, middle + band, color=MODEL, alpha=0.2, lw=0, label="95% band")
    ax.plot(x, function, color=FUNCTION, lw=1, label="function f")
    ax.plot(x, expected, color=TRUTH, lw=1.5, ls="--", label="expected value (sought)")
    ax.plot(x, middle, color=MODEL, lw=2, label="posterior mean")
    ax.plot(X, Y, "o", color=DATA, ms=6, mec="white", label="observations")
    ax.set_xlim(0, 1)


def observations(problem: RKHS) -> tuple[Tensor, Tensor]:
    """Run ten experiments at random designs, the same ones for every uncertainty."""
    generator = torch.Generator().manual_seed(SEED)
    X = torch.rand(N_OBSERVATIONS, 1, generator=generator, dtype=torch.float64)
    return X, problem.observe(X, generator).unsqueeze(-1)


def draw_density(ax: Axes, uncertainty: unc.InputUncertainty) -> None:
    """Show the density of the deviation, design by design: dark where it is likely."""
    X = torch.linspace(0, 1, 300, dtype=torch.float64).unsqueeze(-1)
    draws = unc.base_draws(8192, uncertainty.n_base(1))
    deviations = (uncertainty.perturb(X, draws) - X.unsqueeze(-2)).squeeze(-1).numpy()
    low, high = np.quantile(deviations, [0.005, 0.995])
    edges = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 61)
    shares = np.stack([np.histogram(column, edges)[0] for column in deviations], axis=-1)
    shades = np.sqrt(shares / shares.max(axis=0))  # each design on its own scale
    shades = np.ma.masked_equal(shades, 0)
    middles = (edges[:-1] + edges[1:]) / 2
    ax.pcolormesh(X.squeeze(-1).numpy(), middles, shades, cmap="Oranges", vmax=1.4)


def save(figure: plt.Figure, name: str) -> None:
    """Write a picture."""
    figure.savefig(IMAGES / f"{name}.png")
    plt.close(figure)


if __name__ == "__main__":
    main()
