"""How the largest information gain grows, compared with the rate of theorem 2."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel

from airbo.embeddings import Quadrature
from airbo.theory import information_gain_bound, max_information_gain
from airbo.uncertainty import Beta, Exact, InputUncertainty, Normal, Product, base_draws
from experiments.harness import table
from experiments.harness.draw import picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.subjects.internals import IntegralKernel, MMDKernel

LENGTHSCALE, NOISE = 0.5, 0.1
"""Length scale of the base kernel, and standard deviation of the noise, if k(x, x) = 1."""
DIMENSIONS = (1, 2, 3)
SMOOTHNESS: dict[str, float] = {"Matérn 3/2": 2, "Matérn 5/2": 4, "Gaussian": math.inf}
"""How many bounded derivatives a base kernel has: r in the theorem."""
UNCERTAINTIES: dict[str, InputUncertainty] = {
    "exact": Exact(),
    "normal": Normal(0.05),
    "beta": Beta(0.4, 0.2, scale=0.1),
}
KERNELS = {"MMD": MMDKernel, "integral": IntegralKernel}
COLOURS = {"exact": "0.3", "normal": "#0072B2", "beta": "#D55E00"}


class GainGrowth(Experiment):
    """Designs chosen greedily for the most information; one task is one kernel and one P."""

    name = "gain-growth"
    paper = "theorem 2"
    title = "Growth of the information gain"
    repeats = 1

    def tasks(self, repeats: int) -> list[Task]:
        """List dimensions, base kernels and uncertainties."""
        config = {"lengthscale": LENGTHSCALE, "noise": NOISE, "n": 256, "n_candidates": 1024}
        return [
            Task(self.name, f"{d}/{base}/{P}", 0, {"d": d, "base": base, "P": P, **config})
            for d in DIMENSIONS
            for base in SMOOTHNESS
            for P in UNCERTAINTIES
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Choose designs among candidates, for the kernel of the paper and the integral kernel."""
        config, d = task.config, task.config["d"]
        X = base_draws(config["n_candidates"], d)
        bounds = torch.stack([X.new_zeros(d), X.new_ones(d)])
        P = Product([UNCERTAINTIES[config["P"]]] * d)
        embedding = Quadrature().embed([P], base_kernel(config["base"]), bounds)
        gains = {}
        with torch.no_grad():
            features = embedding(X)
            for name, kernel in KERNELS.items():
                K = kernel(embedding).double()(features).to_dense()
                gains[name] = max_information_gain(K, config["n"], NOISE**2).tolist()
        return gains

    def summary(self, results: Results) -> str:
        """Put the exponents of the theorem and of the measured gains in one table."""
        n, each = results.each[0][0].config["n"], _by_setting(results)
        columns = [(kernel, P) for kernel in KERNELS for P in UNCERTAINTIES]
        header = ["d", "base kernel", "r", "rate", "theorem", *(f"{k}, {P}" for k, P in columns)]
        rows = [
            [str(d), base, f"{r:g}", _rate(d, r), f"{exponent(_theorem(n, d, r)):.2f}"]
            + [f"{exponent(each[d, base, P][kernel]):.2f}" for kernel, P in columns]
            for d in DIMENSIONS
            for base, r in SMOOTHNESS.items()
        ]
        return (
            f"p of γ ~ n^p, fitted between n = {n // 2} and {n}: of the rate of theorem 2 "
            "(its power times log n) and of measured gains, for the kernel of the paper (MMD, "
            f"α = 1) and the integral kernel. Length scale {LENGTHSCALE}, noise {NOISE}.\n\n"
            f"{table.markdown(header, rows)}"
        )

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the gains of the paper's kernel with one rough base kernel, and the rate."""
        path, each = folder / f"{self.name}.png", _by_setting(results)
        base = "Matérn 5/2"
        with picture(path, 10, 3.4) as figure:
            for ax, d in zip(figure.subplots(1, 3, sharey=True), DIMENSIONS, strict=True):
                for P, colour in COLOURS.items():
                    gains = np.array(each[d, base, P]["MMD"])
                    n = np.arange(1, len(gains) + 1)
                    ax.plot(n, gains, color=colour, label=f"measured, {P}")
                rate = _theorem(len(n), d, SMOOTHNESS[base])
                ax.plot(
                    n, rate * gains[-1] / rate[-1], "--", color="0.5", label="rate of theorem 2"
                )
                ax.set(xscale="log", yscale="log", xlabel="observations n", ylim=(1, 600))
                ax.set_title(f"d = {d}", fontsize=10)
                ax.label_outer()
            figure.axes[0].set_ylabel(r"largest information gain $\gamma_n$")
            figure.axes[0].legend(fontsize=8)
        return [path]


def base_kernel(name: str) -> Kernel:
    """Return the base kernel of this name."""
    kernel = (
        RBFKernel() if name == "Gaussian" else MaternKernel(nu={"3/2": 1.5, "5/2": 2.5}[name[-3:]])
    )
    kernel.lengthscale = LENGTHSCALE
    return kernel.double()


def exponent(gains: Any) -> float:
    """Fit γ ~ n^p to the second half."""
    n = np.arange(1, len(gains) + 1)
    late = n > len(n) // 2
    return float(np.polyfit(np.log(n[late]), np.log(np.asarray(gains)[late]), 1)[0])


def _theorem(n: int, d: int, r: float) -> np.ndarray:
    return np.array([information_gain_bound(i, d, r) for i in range(1, n + 1)])


def _rate(d: int, r: float) -> str:
    power = d * (d + 1) / (r + d * (d + 1))
    return f"n^{power:.2f} log n" if power else "log n"


def _by_setting(results: Results) -> dict[tuple[int, str, str], dict[str, Any]]:
    return {(t.config["d"], t.config["base"], t.config["P"]): gains for t, gains in results}


GAIN_GROWTH = GainGrowth()
