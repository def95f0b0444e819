"""Regret in the measure: who finds the design that is best by what counts."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.harness import draw, table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.statistics import interval_of_mean
from experiments.measures.cases import CASES, GROUPS
from experiments.measures.loops import AIRBO, METHODS, start, truth
from experiments.paper.regrets import draw_final_regrets

PROTOCOL: dict[str, Any] = {"n_initial": 10, "initial": "sobol", "beta": 2.0}
SETTINGS = {"surrogate": "default", "acquisition": "default"}
"""Of airbo."""
LOOKS = 4
"""How often, evenly, the outcome is held against the truth."""


@dataclass(frozen=True)
class MeasureRegret(Experiment):
    """All methods on all cases, from the same initial designs and values."""

    name: str = "measure-regret"
    paper: str = "beyond the paper"
    title: str = "Regret in the measure"
    n_steps: int = 30
    repeats: int = 20

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all methods on all cases, the repeats one after another."""
        n_steps = 2 if quick else self.n_steps
        return [
            Task(
                self.name,
                f"{case}: {method}",
                seed,
                {
                    "case": case,
                    "method": method,
                    "n_steps": n_steps,
                    "protocol": PROTOCOL,
                    **(SETTINGS if method == AIRBO else {}),
                },
            )
            for seed in range(1 if quick else repeats)
            for case in (list(CASES)[:: len(CASES) // 2] if quick else CASES)
            for method in METHODS
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize once; hold outcomes on the way against the truth."""
        config, case = task.config, CASES[task.config["case"]]
        loop, n_steps = start(config["method"], case, task.seed), config["n_steps"]
        n_initial = config["protocol"]["n_initial"]
        first = case.case.first_designs(task.seed, n_initial)
        looks = {n_initial + round(n_steps * (i + 1) / LOOKS) for i in range(LOOKS)}
        outcomes, at, seconds = [], [], []
        for i in range(n_initial + n_steps):
            begun = time.process_time()
            design = first[i] if i < n_initial else loop.ask()
            seconds.append(time.process_time() - begun)
            executed = case.case.executed(design, task.seed, i)
            loop.tell(design, case.case.value(executed, task.seed, i))
            if i + 1 in looks:
                outcomes.append(loop.recommend())
                at.append(i + 1)
        values, errors, regrets = truth(case, outcomes)
        return {
            "at": at,
            "recommended": np.round(outcomes, 6).tolist(),
            "measure": np.round(values.tolist(), 6).tolist(),
            "error": float(f"{errors.max().item():.2g}"),
            "regret": np.round(regrets.tolist(), 6).tolist(),
            "seconds": round(float(np.median(seconds[n_initial:])), 4),
        }

    def summary(self, results: Results) -> str:
        """Tabulate final regrets, unseen and exact experiments apart."""
        parts = []
        for group in GROUPS:
            rows = [self._row(case, results) for case in CASES if case.endswith(group)]
            header = ["final regret", *METHODS, "the mean's optimum", "airbo / the best other"]
            parts += [
                f"## {group.capitalize()} experiments",
                table.markdown(header, [row for row in rows if row]),
            ]
        return "\n\n".join(parts)

    def _row(self, name: str, results: Results) -> list[str]:
        finals = {m: _finals(results, name, m) for m in METHODS}
        if not any(map(len, finals.values())):
            return []
        cells = []
        for values in finals.values():
            if len(values):
                low, high = interval_of_mean(values, 1000)
                cells.append(f"{values.mean():.3f} ({low:.3f} to {high:.3f})")
            else:
                cells.append("–")
        others = [values.mean() for m, values in finals.items() if m != AIRBO and len(values)]
        ratio = f"{finals[AIRBO].mean() / min(others):.2f}" if len(finals[AIRBO]) else "–"
        return [name, *cells, f"{_regret_of_mean(name, results):.3f}", ratio]

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw where every repeat of every method ended, case by case."""
        path = folder / f"{self.name}.png"
        shown = [case for case in CASES if any(len(_finals(results, case, m)) for m in METHODS)]
        rows = -(-len(shown) // 2)
        with draw.picture(path, 11, 0.9 + 1.8 * rows) as figure:
            axes = figure.subplots(rows, 2, squeeze=False)
            for ax, case in zip(axes.flat, shown, strict=False):
                finals = {m: _finals(results, case, m)[:, None] for m in METHODS}
                draw_final_regrets(ax, {m: f for m, f in finals.items() if len(f)})
                ax.set_title(case, fontsize=9)
                ax.set_xlabel("regret in the measure at the end")
            for ax in axes.flat[len(shown) :]:
                ax.remove()
        return [path]


def _regret_of_mean(name: str, results: Results) -> float:
    """Return the regret of the design with the best mean, from the optimum that runs stored."""
    case = CASES[name]
    stored = [r for m in METHODS for r in results.of(f"{name}: {m}")]
    best = stored[0]["measure"][0] + case.good * stored[0]["regret"][0]
    design = case.problem.robust_optimum.design.unsqueeze(0)
    value = case.problem.measure_value(design, case.measure).item()
    return max(case.good * (best - value), 0.0)


def _finals(results: Results, case: str, method: str) -> np.ndarray:
    return np.array([result["regret"][-1] for result in results.of(f"{case}: {method}")])


MEASURE_REGRET = MeasureRegret()
