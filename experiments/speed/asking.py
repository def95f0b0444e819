"""A whole step of an optimization: fit, acquisition, search; against the plain loop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import torch
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from rich.progress import Progress
from torch import Tensor

import airbo
from airbo import uncertainty as unc
from airbo.models import MMDGP
from experiments.speed import timing
from experiments.speed.methods import DEFAULT, YARDSTICK
from experiments.subjects.data import fit, observe
from experiments.subjects.internals import N_RAW, N_RESTARTS, without_numerical_warnings
from experiments.subjects.uncertainties import ADDITIVE, BY_NAME, RELATIVE, UncertainBox

N_OBSERVATIONS = 30
N_DATA_SETS = {True: 1, False: 5}
OPTIMIZER = "Optimizer.ask"


@dataclass(frozen=True)
class Ask:
    """What is asked for a design: a box, under one uncertainty or two."""

    name: str
    case: UncertainBox
    experiments: unc.InputUncertainty | None = None
    """What experiments are made under, if not what the answer is used under."""

    @property
    def observed(self) -> UncertainBox:
        """The case as it is during the experiments."""
        under = self.experiments or self.case.uncertainty
        return UncertainBox(self.case.name, under, self.case.low, self.case.high)

    def model(self, X: Tensor, Y: Tensor) -> SingleTaskGP:
        if self.experiments is None:
            return DEFAULT.model(self.case, X, Y)
        case = self.case
        return MMDGP(X, Y, self.experiments, case.bounds, deployment=case.uncertainty)

    def optimizer(self, X: Tensor, Y: Tensor) -> airbo.Optimizer:
        """Return an optimizer that has been told everything and has to fit."""
        names = [f"x{c}" for c in range(self.case.d)]
        ranges = zip(self.case.low, self.case.high, strict=True)
        optimizer = airbo.Optimizer(
            airbo.Space(dict(zip(names, ranges, strict=True))),
            self.observed.uncertainty,
            deployment=self.case.uncertainty if self.experiments else None,
            n_initial=5,
        )
        optimizer.tell(pd.DataFrame(X.numpy(), columns=names).assign(value=Y.numpy()))
        return optimizer


TASKS = (
    *(Ask(case.name, case) for case in ADDITIVE),
    *(Ask(case.name, case) for case in RELATIVE),
    Ask("varying beta", BY_NAME["varying beta"]),
    Ask("exact now, beta in use", BY_NAME["beta"], unc.Exact()),
)


def measure(quick: bool, bar: Progress) -> dict[str, list[dict[str, float]]]:
    """Return seconds per task, data set and method."""
    tasks = [t for t in TASKS if not quick or t.case.d == 1]
    return {
        task.name: [data_set(task, N_OBSERVATIONS, s) for s in range(N_DATA_SETS[quick])]
        for task in bar.track(tasks, description="asks")
    }


def data_set(task: Ask, n: int, seed: int) -> dict[str, float]:
    """Ask the plain loop, the default model in the same loop, and the optimizer."""
    X, Y = observe(task.observed, n, seed)
    prepare: dict[str, Callable[[Tensor, Tensor], Callable[[], Any]]] = {
        YARDSTICK.name: lambda X, Y: partial(loop, YARDSTICK.model(task.case, X, Y), task.case),
        DEFAULT.name: lambda X, Y: partial(loop, task.model(X, Y), task.case),
        OPTIMIZER: lambda X, Y: task.optimizer(X, Y).ask,
    }
    found = {}
    for name, ready in prepare.items():
        if seed == 0:
            ready(X[:8], Y[:8])()  # warm up
        torch.manual_seed(seed)
        found[name] = timing.seconds(ready(X, Y))
    return found


def loop(model: SingleTaskGP, case: UncertainBox) -> Tensor:
    """Fit, and maximize an upper confidence bound."""
    acquisition = UpperConfidenceBound(fit(model), beta=4.0)
    with without_numerical_warnings():
        candidate, _ = optimize_acqf(
            acquisition, case.bounds, q=1, num_restarts=N_RESTARTS, raw_samples=N_RAW
        )
    return candidate
