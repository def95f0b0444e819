"""Time per ask beside Optuna's own GP sampler: ``python -m benchmarks.optuna_ask``."""

import math
import random
import statistics
import time
from collections.abc import Callable

import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler

from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler
from benchmarks import record, table
from benchmarks.run import progress

SIZES = (20, 50, 100)
N_ASKS = 7
SPACE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(0.0, 1.0),
    "y": FloatDistribution(0.0, 1.0),
}
GAUSSIAN = {"x": unc.Normal(0.05), "y": unc.Normal(0.05)}
BETA = {name: unc.Beta(0.4, 0.2, scale=0.1) for name in SPACE}
SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "GPSampler": lambda: GPSampler(seed=record.SEED),
    "AIRBOSampler, nominal": lambda: AIRBOSampler(surrogate="nominal", seed=record.SEED),
    "AIRBOSampler, Gaussian P": lambda: AIRBOSampler(GAUSSIAN, seed=record.SEED),
    "AIRBOSampler, beta P": lambda: AIRBOSampler(BETA, seed=record.SEED),
}


def f(x: float, y: float) -> float:
    return math.sin(5 * x) + math.cos(3 * y)


def study_of(n: int, sampler: BaseSampler) -> optuna.Study:
    """Return a study with n random trials, the same for every sampler."""
    rng = random.Random(record.SEED)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(n):
        params = {name: rng.random() for name in SPACE}
        value = f(**params) + rng.gauss(0, 0.1)
        study.add_trial(optuna.create_trial(params=params, distributions=SPACE, value=value))
    return study


def seconds(n: int, advance: Callable[[], None]) -> dict[str, float]:
    """Return the median processor time of an ask, by sampler; the samplers take turns."""
    studies = {name: study_of(n, make()) for name, make in SAMPLERS.items()}
    times: dict[str, list[float]] = {name: [] for name in SAMPLERS}
    for _ in range(1 + N_ASKS):
        for name, study in studies.items():
            start = time.process_time()
            trial = study.ask(SPACE)
            times[name].append(time.process_time() - start)
            study.tell(trial, f(**trial.params))
            advance()
    return {name: statistics.median(spent[1:]) for name, spent in times.items()}  # 1st: warm-up


def main() -> None:
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    where = record.provenance()
    with progress() as bar:
        task = bar.add_task("asks", total=len(SIZES) * len(SAMPLERS) * (1 + N_ASKS))
        by_size = {n: seconds(n, lambda: bar.advance(task)) for n in SIZES}

    path = record.store("optuna_ask", where, {"seconds": {str(n): s for n, s in by_size.items()}})
    rows = [
        [name, *(f"{s[name]:.2f} s, × {s[name] / s['GPSampler']:.1f}" for s in by_size.values())]
        for name in SAMPLERS
    ]
    text = (
        "# Time per ask in Optuna\n\n"
        f"Median processor time of {N_ASKS} asks after n trials with two parameters, and as a "
        "multiple of Optuna's own GPSampler in the same run.\n\n"
        f"{table.markdown(['sampler', *(f'n = {n}' for n in SIZES)], rows)}\n\n"
        f"{record.describe(where)}\n"
    )
    record.publish(path, text)


if __name__ == "__main__":
    main()
