"""How much processor time posteriors take, relative to a plain Gaussian process."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from airbo.problems import RKHS
from benchmarks.cases import Case
from benchmarks.methods import METHODS, YARDSTICK, Method

N_DESIGNS = 512
SLOW_SECONDS = 2.0
"""What takes longer than this is measured in fewer rounds."""
ROUNDS_OF_THE_SLOW = 1


@dataclass(frozen=True)
class Setting:
    case: Case
    n: int
    joint: bool

    @property
    def label(self) -> str:
        return f"{self.case.name}, {'joint' if self.joint else 't-batch'}, n = {self.n}"

    def designs(self, seed: int) -> Tensor:
        """Return designs that no model has seen, so that nothing remembered helps."""
        X = self.case.designs(N_DESIGNS, seed)
        return X if self.joint else X.unsqueeze(-2)


def seconds(
    setting: Setting, methods: Sequence[Method], n_rounds: int, step: Callable[[str], None]
) -> dict[str, float]:
    """Return the median time of mean and variance per method; rounds are interleaved."""
    X = setting.case.designs(setting.n, seed=5)
    Y = _values(X)
    models = {m.name: m.model(setting.case, X, Y) for m in methods}
    times: dict[str, list[float]] = {name: [] for name in models}
    for name, model in models.items():  # warm up: factorize the observations
        step(name)
        _time(model, setting.designs(seed=100)[:8])
    for number in range(n_rounds):
        for name, model in models.items():
            if number >= ROUNDS_OF_THE_SLOW and median(times[name]) > SLOW_SECONDS:
                continue
            step(name)
            times[name].append(_time(model, setting.designs(seed=200 + number)))
    return {name: median(values) for name, values in times.items()}


def ratios(times: dict[str, float]) -> dict[str, float]:
    """Divide by the time of the plain Gaussian process."""
    return {name: value / times[YARDSTICK.name] for name, value in times.items()}


def _values(X: Tensor) -> Tensor:
    """Any values do: the time does not depend on them."""
    return RKHS()(X[:, :1]).unsqueeze(-1)


def _time(model: SingleTaskGP, X: Tensor) -> float:
    start = time.process_time()  # what other programs do on the machine does not count
    with torch.no_grad():
        posterior = model.posterior(X)
        _ = posterior.mean, posterior.variance
    return time.process_time() - start


def methods_for(setting: Setting, quick: bool) -> list[Method]:
    """Leave out what takes minutes."""
    too_long = quick or setting.joint or setting.n > 10
    return [m for m in METHODS if not (m.slow and too_long)]
