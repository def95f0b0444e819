"""The double peak under wrong beliefs: where the optimum seems to be if P is taken for another."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from airbo import uncertainty as unc
from airbo.problems import DoublePeak
from experiments.harness import pages, table
from experiments.harness.draw import COLOURS, FUNCTION, TRUTH, picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.subjects.redrawn import fresh
from experiments.subjects.uncertainties import PAPERS

BETA = PAPERS["beta"]
TRUE = "beta(0.4, 0.2, 0.1), the true one"
N_MESH, N_SAMPLES = 1000, 500
"""How the published program finds an optimum: designs of a mesh, samples at each."""
N_POOL = 100_000
"""Deviations that the samples are picked from."""


@cache
def beliefs() -> dict[str, unc.InputUncertainty]:
    """Return what P can be taken for."""
    origin = torch.zeros(1, 1, dtype=torch.float64)
    mean, variance = BETA.mean(origin).item(), BETA.covariance(origin).item()
    return {
        TRUE: BETA,
        "Gaussian, same mean and variance": unc.GaussianMixture([[mean]], [[variance]]),
        "Gaussian, mean 0, same variance": unc.Normal(variance**0.5),
        "Gaussian, mean 0, standard deviation 0.01": unc.Normal(0.01),
        "no uncertainty": unc.Exact(),
    }


class Beliefs(Experiment):
    """The optimum under every belief, exactly and as sampling finds it."""

    name = "beliefs"
    paper = "figure 4 (c)"
    title = "The double peak under wrong beliefs"
    repeats = 1

    def tasks(self, repeats: int) -> list[Task]:
        """List the beliefs."""
        size = {"n_mesh": N_MESH, "n_samples": N_SAMPLES, "n_searches": 200}
        return [Task(self.name, belief, 0, size) for belief in beliefs()]

    def run(self, task: Task) -> dict[str, Any]:
        """Find the optimum, what it really gives, and where it is found from samples."""
        problem = believed(task.label)
        best = problem.robust_optimum
        random = torch.Generator().manual_seed(task.seed)
        pool = fresh(torch.zeros(1, 1, dtype=torch.float64), problem.uncertainty, N_POOL, random)[0]
        found = [
            sampled_optimum(problem, pool, task.config, random)
            for _ in range(task.config["n_searches"])
        ]
        return {
            "design": round(best.design.item(), 5),
            "believed": round(best.value, 4),
            "regret": round(DoublePeak().regret(best.design.unsqueeze(0)).item(), 4),
            "sampled": np.round(found, 5).tolist(),
        }

    def summary(self, results: Results) -> str:
        """Tabulate the optima, and how likely sampling puts them at 0.352."""
        rows = []
        for task, result in results:
            found = np.array(result["sampled"])
            low, high = np.quantile(found, [0.05, 0.95])
            rows.append(
                [task.label, f"{result['design']:.4f}", f"{result['regret']:.2f}",
                 f"{found.mean():.4f}", f"{low:.4f} to {high:.4f}"]
            )  # fmt: skip
        header = ["P is taken for", "optimum", "true regret there", "found from samples, mean",
                  "nine in ten searches"]  # fmt: skip
        config = results.each[0][0].config
        return (
            f"From samples: the best of {config['n_mesh']} designs on a mesh, "
            f"{config['n_samples']} independent samples at each, as the published program does it; "
            f"{config['n_searches']} searches.\n\n{table.markdown(header, rows)}"
        )

    def excerpts(self, results: Results) -> dict[str, tuple[Path, str]]:
        """Return the table."""
        return {self.name: (pages.PAPER, table.only_tables(self.summary(results)))}

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw f and its expected values under every belief."""
        path = folder / f"{self.name}.png"
        x = torch.linspace(0.1, 0.5, 801, dtype=torch.float64).unsqueeze(-1)
        with picture(path, 9, 4.2) as figure:
            ax = figure.subplots()
            ax.plot(x, DoublePeak()(x), color=FUNCTION, lw=1.5, label="function f")
            shades = dict(zip(results.labels, (TRUTH, *COLOURS[:3]), strict=False))
            for task, result in results:
                if task.label not in shades:
                    continue
                at, color = result["design"], shades[task.label]
                line = "--" if task.label == TRUE else "-"
                label = f"{task.label}: {at:.3f}"
                ax.plot(x, believed(task.label).expected(x), line, color=color, label=label)
                ax.plot(at, result["believed"], "o", color=color, ms=8, mec="white", zorder=3)
            ax.axvline(0.352, color="0.6", lw=1, ls=":", label="0.352, in the paper")
            ax.set(xlabel="design x", ylabel="expected value", xlim=(0.1, 0.5))
            ax.set_title("The double peak: expected values under what P is taken for")
            figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return [path]


def believed(belief: str) -> DoublePeak:
    """Return the problem as somebody sees it who takes P for another distribution."""
    return replace(DoublePeak(), uncertainty=beliefs()[belief])


def sampled_optimum(
    problem: DoublePeak, pool: Tensor, config: dict[str, Any], random: torch.Generator
) -> float:
    """Return the best design of a mesh, by the mean of independent deviations at each."""
    X = torch.linspace(0, 1, config["n_mesh"], dtype=torch.float64).unsqueeze(-1)
    picked = torch.randint(len(pool), (len(X), config["n_samples"]), generator=random)
    means = problem(X.unsqueeze(-2) + pool[picked]).mean(-1)
    return float(X[means.argmax()])


BELIEFS = Beliefs()
