"""What surrogates make of ten observations, over the distributions that hit designs."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from experiments.figures.uncertainties import draw_density
from experiments.harness.draw import save
from experiments.harness.palette import shown
from experiments.paper import posteriors as post
from experiments.subjects.methods import DEFAULT, EXPECTATION, GP, Method

SEED = 0
"""The first seed, not the best one: designs and where they land."""
N_OBSERVATIONS = 10
N_GRID = 601
CASES = {
    "normal": "N(0, 0.01²) everywhere",
    "varying beta": "beta, its width changes with x",
    "step chi²": "chi-squared, a step at 0.6",
}
SURROGATES = {m.label: m for m in (GP, DEFAULT, EXPECTATION)}


def draw_modelling(folder: Path) -> None:
    """Show every uncertainty to the surrogates, above the distribution that hits designs."""
    figure, axes = plt.subplots(
        6, 3, figsize=(12, 10.5), sharex=True, sharey="row", height_ratios=[4, 1] * 3,
        layout="constrained",
    )  # fmt: skip
    for number, (case, label) in enumerate(CASES.items()):
        panels, strips = axes[2 * number : 2 * number + 2]
        for ax, strip, (name, method) in zip(panels, strips, SURROGATES.items(), strict=True):
            draw_posterior(ax, case, method)
            draw_density(strip, post.problem(case).uncertainty)
            ax.set_title(f"{shown(name)}: {label}", fontsize=10)
            ax.tick_params(bottom=False)
        panels[0].set_ylabel("value")
        strips[0].set_ylabel("deviation")
    for ax in axes[-1]:
        ax.set_xlabel("design x")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    save(figure, folder / "modelling.png")


def draw_posterior(ax: Axes, case: str, method: Method) -> None:
    """Fit a surrogate and draw it over the function, its expectation and the observations."""
    problem = post.problem(case)
    model = post.fitted({"n": N_OBSERVATIONS, **method.config()}, problem, SEED)
    x = post.grid(N_GRID)
    observations = post.observe(problem, N_OBSERVATIONS, SEED)
    expected = post.expected_on_grid(case, N_GRID)
    post.draw_posterior(ax, problem, observations, x, post.believed(model, x), expected)
