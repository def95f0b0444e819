"""Pictures of uncertainties: samples of every kind, and the density of deviations."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
import torch
from matplotlib.axes import Axes
from torch import Tensor

from airbo import uncertainty as unc
from experiments.harness.draw import DATA, MODEL, save


def draw_kinds(folder: Path) -> None:
    """Show samples of every kind of uncertainty in two columns."""
    figure, axes = plt.subplots(3, 6, figsize=(12, 6.6), layout="constrained")
    for ax, (name, (uncertainty, designs)) in zip(axes.flat, kinds().items(), strict=True):
        X = torch.tensor(designs, dtype=torch.float64)
        samples = uncertainty.perturb(X, unc.base_draws(512, uncertainty.n_base(2), seed=3))
        ax.plot(*samples.flatten(0, 1).T, ".", color=MODEL, ms=3, alpha=0.6, mew=0)
        ax.plot(*X.T, "+", color=DATA, ms=9, mew=2)
        ax.set_title(name, fontsize=10)
        ax.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(True)
        ax.spines[:].set_color("0.8")
    save(figure, folder / "kinds.png")


def kinds() -> dict[str, tuple[unc.InputUncertainty, list[list[float]]]]:
    """Return one uncertainty of each kind with the designs that show it best."""
    center, row = [[0.0, 0.0]], [[-0.65, 0.0], [0.0, 0.0], [0.65, 0.0]]
    corner = [[0.1, 0.1], [0.6, 0.6]]
    logged = np.random.default_rng(0).normal(size=(40, 2)) * 0.12
    logged += np.linspace(-0.5, 0.5, 40)[:, None] ** [1, 2]
    return {
        "Exact": (unc.Exact(), center),
        "Normal (std)": (unc.Normal([0.15, 0.3]), center),
        "Joint (correlated)": (
            unc.Joint([unc.Normal(0.3), unc.Uniform(-0.6, 0.6)], [[1.0, 0.8], [0.8, 1.0]]),
            center,
        ),
        "Uniform": (unc.Uniform([-0.6, -0.3], [0.6, 0.3]), center),
        "Beta": (unc.Beta(0.4, 0.2, scale=0.7), center),
        "ChiSquared": (unc.ChiSquared(2.0, scale=0.1), center),
        "GaussianMixture": (
            unc.GaussianMixture([[-0.4, -0.3], [0.4, 0.4]], [[0.02, 0.0], [0.0, 0.02]], [0.7, 0.3]),
            center,
        ),
        "Ring": (unc.Ring(0.6), center),
        "Relative": (unc.Relative(unc.Normal(0.2)), corner),
        "LogNormal": (unc.LogNormal([0.1, 0.3]), corner),
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
