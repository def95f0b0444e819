"""How long a posterior takes under each estimator."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from airbo.embeddings import Empirical, Nystrom
from airbo.models import MMDGP
from experiments.harness import pages, table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.statistics import interval_of_mean
from experiments.paper import posteriors as post
from experiments.speed import timing

PAPER = {
    "Empirical(20)": 1.143,
    "Empirical(100)": 8.117,
    "Empirical(1000)": 840.715,
    "Nystrom(100, 10)": 0.780,
    "Nystrom(1000, 100)": 21.473,
}
"""Seconds in the paper's table, on a GPU."""
ESTIMATORS: dict[str, Any] = {
    "default": None,
    "Empirical(20)": Empirical(20),
    "Empirical(100)": Empirical(100),
    "Empirical(1000)": Empirical(1000),
    "Nystrom(100, 10)": Nystrom(100, 10),
    "Nystrom(1000, 100)": Nystrom(1000, 100),
}
PLAIN = "SingleTaskGP"
METHODS = (PLAIN, *ESTIMATORS)
PARTS = {"Empirical(1000)": 64}
"""Methods that predict only one in so many of the designs; their time is multiplied."""
REFERENCE = "Empirical(100)"


class InferenceTime(Experiment):
    """Posteriors at 512 designs, all methods in turns."""

    name = "inference-time"
    paper = "table 1"
    title = "Time of a posterior at 512 designs"
    repeats = 5

    def tasks(self, repeats: int) -> list[Task]:
        """List the repeats of all methods."""
        config = {
            "case": "beta", "n": 10, "n_designs": 512, "methods": list(METHODS), "parts": PARTS,
            "n_rounds": 5,
        }  # fmt: skip
        return [Task(self.name, "time", repeat, config) for repeat in range(repeats)]

    def run(self, task: Task) -> dict[str, Any]:
        """Time all methods in turns."""
        return {"seconds": _seconds(task.config, task.seed)}

    def summary(self, results: Results) -> str:
        """Tabulate times as ratios within one run, next to those of the paper."""
        config, seconds = results.each[0][0].config, self.seconds(results)
        rows = []
        for method, each in seconds.items():
            paper = PAPER.get(method)
            rows.append(
                [
                    method + (" (*)" if method in config["parts"] else ""),
                    _milliseconds(np.median(each)),
                    _ratios(each / seconds[PLAIN]),
                    _ratios(each / seconds[REFERENCE]),
                    "–" if paper is None else f"{paper:.3f}",
                    "–" if paper is None else _short(paper / PAPER[REFERENCE]),
                ]
            )
        header = ["", "milliseconds", "times SingleTaskGP", "times Empirical(100)",
                  "paper, seconds", "paper, times Empirical(100)"]  # fmt: skip
        return (
            f"Mean and variance at {config['n_designs']} designs in t-batches of one, "
            f"{config['n']} observations, beta(0.4, 0.2, 0.1). One thread of a CPU, processor "
            f"time, methods in turns: median of {config['n_rounds']} rounds (fewer once a method "
            f"has taken {timing.MAX_SECONDS:.0f} s), {len(results.each)} repeats; ratios are taken "
            "within a repeat: their mean and 95% interval. What depends on the observations alone "
            f"is worked out before.\n\n{table.markdown(header, rows)}\n\n"
            "(*) Predicted at one in 64 of the designs; the time is multiplied by 64."
        )

    def excerpts(self, results: Results) -> dict[str, tuple[Path, str]]:
        """Return the table."""
        return {self.name: (pages.PAPER, table.only_tables(self.summary(results)))}

    def seconds(self, results: Results) -> dict[str, np.ndarray]:
        """Return the time of every method, one number per repeat."""
        found = [result["seconds"] for result in results.of("time")]
        return {method: np.array([f[method] for f in found]) for method in found[0]}


def _seconds(config: dict[str, Any], seed: int) -> dict[str, float]:
    problem = post.problem(config["case"])
    X, Y = post.observe(problem, config["n"], seed)
    models = {
        name: MMDGP(X, Y, problem.uncertainty, problem.bounds, estimator=ESTIMATORS[name])
        for name in config["methods"]
        if name != PLAIN
    }
    models = {PLAIN: SingleTaskGP(X, Y), **models}

    def job(name: str) -> Any:
        every, model = config["parts"].get(name, 1), models[name].eval()
        return lambda designs: predict(model, designs[::every])

    def given(number: int) -> Tensor:
        random = torch.Generator().manual_seed(1000 * (seed + 1) + number)
        return torch.rand(config["n_designs"], 1, 1, generator=random, dtype=torch.float64)

    found = timing.interleaved(
        {name: job(name) for name in config["methods"]}, given, config["n_rounds"],
        warm_up=lambda: given(-1)[:8],
    )  # fmt: skip
    return {name: post.rounded(s * config["parts"].get(name, 1)) for name, s in found.items()}


def predict(model: SingleTaskGP, X: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        posterior = model.posterior(X)
        return posterior.mean, posterior.variance


def _ratios(values: np.ndarray) -> str:
    if np.ptp(values) == 0:
        return _short(values[0])
    low, high = (float(f"{v:.3g}") for v in interval_of_mean(values))
    return f"{_short(values.mean())} ({_short(low)} to {_short(high)})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _milliseconds(seconds: float) -> str:
    return _short(1000 * seconds) if seconds < 0.1 else f"{1000 * seconds:,.0f}"


INFERENCE_TIME = InferenceTime()
