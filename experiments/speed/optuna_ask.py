"""Time per ask, compared with Optuna's own GP sampler."""

import math
import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler

from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Step, Task

SEED = 0
SIZES = (20, 50, 100)
SPACE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(0.0, 1.0),
    "y": FloatDistribution(0.0, 1.0),
}
GAUSSIAN = {"x": unc.Normal(0.05), "y": unc.Normal(0.05)}
BETA = {name: unc.Beta(0.4, 0.2, scale=0.1) for name in SPACE}
YARDSTICK = "GPSampler"
SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    YARDSTICK: lambda: GPSampler(seed=SEED),
    "AIRBOSampler, nominal": lambda: AIRBOSampler(surrogate="nominal", seed=SEED),
    "AIRBOSampler, Gaussian P": lambda: AIRBOSampler(GAUSSIAN, seed=SEED),
    "AIRBOSampler, beta P": lambda: AIRBOSampler(BETA, seed=SEED),
}


class OptunaAsk(Experiment):
    """Asks of Optuna's sampler and of ours, in turns, after more and more trials."""

    name = "optuna-ask"
    paper = "beyond the paper"
    title = "Time per ask in Optuna"
    repeats = 1

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List the numbers of trials."""
        n_asks, sizes = (1, SIZES[:1]) if quick else (7, SIZES)
        return [Task(self.name, f"n = {n}", 0, {"n": n, "n_asks": n_asks}) for n in sizes]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Return the median processor time of an ask, by sampler; the samplers take turns."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        studies = {name: study_of(task.config["n"], make()) for name, make in SAMPLERS.items()}
        times: dict[str, list[float]] = {name: [] for name in SAMPLERS}
        for _ in range(1 + task.config["n_asks"]):  # the first one warms up
            for name, study in studies.items():
                start = time.process_time()
                trial = study.ask(SPACE)
                times[name].append(time.process_time() - start)
                study.tell(trial, f(**trial.params))
        return {name: median(spent[1:]) for name, spent in times.items()}

    def summary(self, results: Results) -> str:
        """Tabulate times, and as multiples of Optuna's own."""
        rows = [
            [name, *(f"{s[name]:.2f} s, × {s[name] / s[YARDSTICK]:.1f}" for _, s in results)]
            for name in SAMPLERS
        ]
        n_asks = results.each[0][0].config["n_asks"]
        return (
            f"Median processor time of {n_asks} asks after n trials with two parameters, and as a "
            "multiple of Optuna's own GPSampler in the same run.\n\n"
            f"{table.markdown(['sampler', *results.labels], rows)}"
        )


def f(x: float, y: float) -> float:
    return math.sin(5 * x) + math.cos(3 * y)


def study_of(n: int, sampler: BaseSampler) -> optuna.Study:
    """Return a study with n random trials, the same for every sampler."""
    rng = random.Random(SEED)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(n):
        params = {name: rng.random() for name in SPACE}
        value = f(**params) + rng.gauss(0, 0.1)
        study.add_trial(optuna.create_trial(params=params, distributions=SPACE, value=value))
    return study


OPTUNA_ASK = OptunaAsk()
