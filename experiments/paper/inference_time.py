"""How long a posterior takes under each estimator, and how much memory."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from airbo.embeddings import Empirical, Nystrom
from experiments.harness import table
from experiments.harness.draw import COLOURS, picture
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.harness.statistics import interval_of_mean
from experiments.paper import posteriors as post
from experiments.speed import memory, timing
from experiments.speed.methods import BY_NAME, YARDSTICK
from experiments.speed.posterior import Setting, predict
from experiments.subjects.internals import PORTION, STEPS
from experiments.subjects.uncertainties import BY_NAME as CASES

PAPER = {
    "Empirical(20)": 1.143,
    "Empirical(100)": 8.117,
    "Empirical(1000)": 840.715,
    "Nystrom(100, 10)": 0.780,
    "Nystrom(1000, 100)": 21.473,
}
"""Seconds in the paper's table, on a GPU."""
BATCHES = {
    "Empirical(20)": 512,
    "Empirical(100)": 128,
    "Empirical(1000)": 1,
    "Nystrom(100, 10)": 512,
    "Nystrom(1000, 100)": 128,
}
"""Designs that the paper's GPU takes at a time."""
METHODS = (YARDSTICK.name, "Quadrature (default)", *PAPER)
PARTS = {"Empirical(1000)": 64}
"""Methods that predict only one in so many of the designs; their time is multiplied."""
REFERENCE = "Empirical(100)"


class InferenceTime(Experiment):
    """Posteriors at 512 designs, all methods in turns."""

    name = "inference-time"
    paper = "table 1"
    title = "Time and memory of a posterior at 512 designs"
    repeats = 5

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List the rounds of all methods, and one task that measures their memory."""
        methods = [m for m in METHODS if not (quick and m == "Empirical(1000)")]
        config = {
            "case": "beta",
            "n": 10,
            "n_designs": 8 if quick else 512,
            "methods": methods,
            "parts": {m: PARTS[m] for m in methods if m in PARTS},
        }
        rounds = {"n_rounds": 2 if quick else 5}
        times = [Task(self.name, "time", s, {**config, **rounds}, 1) for s in range(repeats)]
        looked_at = {"methods": methods[:2]} if quick else {}
        return [*times, Task(self.name, "memory", 0, {**config, **looked_at}, len(methods))]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Time all methods in turns, or let each predict in a process of its own."""
        if task.label == "time":
            return {"seconds": _seconds(task.config, task.seed)}
        found = {}
        for i, method in enumerate(task.config["methods"]):
            found[method] = _megabytes(task.config, method)
            step(i + 1, len(task.config["methods"]))
        return {"megabytes": found}

    # -- results

    def summary(self, results: Results) -> str:
        """Tabulate times as ratios within one run, next to those of the paper."""
        [config, *_] = [task.config for task, _ in results if task.label == "time"]
        megabytes: dict[str, float] = next((r["megabytes"] for r in results.of("memory")), {})
        rows = []
        for method, seconds in self.seconds(results).items():
            paper = PAPER.get(method)
            note = " (*)" if method in config["parts"] else ""
            rows.append(
                [
                    method + note,
                    _milliseconds(np.median(seconds)),
                    _ratios(seconds / self.seconds(results)[YARDSTICK.name]),
                    _ratios(seconds / self.seconds(results)[REFERENCE]),
                    "–" if paper is None else f"{paper:.3f}",
                    "–" if paper is None else _short(paper / PAPER[REFERENCE]),
                    table.whole(megabytes.get(method)),
                    table.whole(at_a_time(method, config["n"], config["n_designs"])),
                    table.whole(BATCHES.get(method)),
                ]
            )
        header = [
            "",
            "milliseconds",
            "times SingleTaskGP",
            "times Empirical(100)",
            "paper, seconds",
            "paper, times Empirical(100)",
            "megabytes",
            "designs at a time",
            "paper, batch size",
        ]
        return (
            f"Mean and variance at {config['n_designs']} designs in t-batches of one, "
            f"{config['n']} observations, beta(0.4, 0.2, 0.1). One thread of a CPU, processor "
            f"time, methods in turns: median of {config['n_rounds']} rounds (fewer once a method "
            f"has taken {timing.MAX_SECONDS:.0f} s), {len(results.of('time'))} repeats; ratios "
            "are taken within a repeat: their mean and 95% interval. What depends on the "
            "observations alone is worked out before. The memory is the peak of a process of its "
            "own beyond that of its imports. *Designs at a time*: how many airbo compares with the "
            "observations at once; it chooses portions that fit in the cache of a processor, where "
            "the paper fills the memory of a GPU.\n\n"
            f"{table.markdown(header, rows)}\n\n"
            "(*) Predicted at one in 64 of the designs; the time is multiplied by 64, the memory "
            "is that of the part (work is done in portions, whose size does not depend on the "
            "number of designs)."
        )

    def seconds(self, results: Results) -> dict[str, np.ndarray]:
        """Return the time of every method, one number per repeat."""
        found = [result["seconds"] for result in results.of("time")]
        return {method: np.array([f[method] for f in found]) for method in found[0]}

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the times next to those of the paper, both relative to Empirical(100)."""
        path = folder / f"{self.name}.png"
        seconds = self.seconds(results)
        names = list(seconds)[::-1]
        with picture(path, 8, 3.6) as figure:
            ax = figure.subplots()
            for i, name in enumerate(names):
                here = (seconds[name] / seconds[REFERENCE]).mean()
                ax.plot(here, i, "o", color=COLOURS[0], ms=7, label="here, one CPU thread")
                if name in PAPER:
                    there = PAPER[name] / PAPER[REFERENCE]
                    ax.plot([here, there], [i, i], color="0.8", zorder=0)
                    ax.plot(there, i, "s", color=COLOURS[1], ms=6, label="paper, GPU")
            ax.set_xscale("log")
            ax.set_yticks(range(len(names)), names)
            ax.set(
                xlabel="time of a posterior, in units of Empirical(100)",
                title="Time of a posterior at 512 designs",
            )
            handles, labels = ax.get_legend_handles_labels()
            different = dict(zip(labels, handles, strict=True))
            ax.legend(different.values(), different, loc="lower right")
        return [path]


def at_a_time(method: str, n_observations: int, n_designs: int) -> int | None:
    """Return how many designs a posterior handles at once; None: it does not compare samples."""
    estimator = BY_NAME[method].estimator
    if not isinstance(estimator, Empirical | Nystrom):
        return None
    n_points = estimator.n_landmarks if isinstance(estimator, Nystrom) else estimator.n_samples
    per_design = STEPS * n_points**2 * n_observations
    return min(n_designs, max(1, PORTION // per_design))


def _seconds(config: dict[str, Any], seed: int) -> dict[str, float]:
    case = CASES[config["case"]]
    setting = Setting(case, config["n"], joint=False, n_designs=config["n_designs"])
    models = {name: setting.model(BY_NAME[name]) for name in config["methods"]}

    def job(name: str) -> Any:
        every, model = config["parts"].get(name, 1), models[name]
        return lambda X: predict(model, X[::every])

    def given(number: int) -> Tensor:
        return setting.designs(seed=1000 * (seed + 1) + number)

    found = timing.interleaved(
        {name: job(name) for name in config["methods"]},
        given,
        config["n_rounds"],
        warm_up=lambda: setting.designs(seed=100)[:8],
    )
    return {name: post.rounded(s * config["parts"].get(name, 1)) for name, s in found.items()}


def _megabytes(config: dict[str, Any], method: str) -> float:
    n_designs = config["n_designs"] // config["parts"].get(method, 1)
    setting = memory.MemorySetting(config["case"], method, config["n"], n_designs, joint=False)
    return round(memory.in_own_process(setting)["megabytes"], 1)


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
