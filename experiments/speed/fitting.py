"""Fits of the hyper-parameters, against those of a plain Gaussian process."""

from functools import partial
from typing import Any

from botorch.models import SingleTaskGP
from rich.progress import Progress
from torch import Tensor

from experiments.speed import timing
from experiments.speed.methods import DEFAULT, PER_PARAMETER, YARDSTICK, Timed
from experiments.subjects.data import fit, observe
from experiments.subjects.uncertainties import ADDITIVE, BY_NAME, RELATIVE, UncertainBox

N_OBSERVATIONS = 50
N_DATA_SETS = {True: 2, False: 7}


def measure(quick: bool, bar: Progress) -> dict[str, list[dict[str, Any]]]:
    """Return seconds and likelihood evaluations per case, data set and method."""
    cases = [*ADDITIVE, BY_NAME["varying beta"]]
    if quick:
        cases = [c for c in cases if c.name in ("beta 1-D", "beta 10-D")]
    return {
        case.name: [data_set(case, N_OBSERVATIONS, s) for s in range(N_DATA_SETS[quick])]
        for case in bar.track(cases, description="fits")
    }


def per_parameter(quick: bool, bar: Progress) -> dict[str, list[dict[str, Any]]]:
    """Return the same for a length scale per parameter, in ten parameters."""
    cases = [c for c in (*ADDITIVE, *RELATIVE) if c.d == 10][: 1 if quick else None]
    return {
        case.name: [
            data_set(case, N_OBSERVATIONS, s, PER_PARAMETER) for s in range(1 if quick else 3)
        ]
        for case in bar.track(cases, description="fits, a scale per parameter")
    }


def data_set(case: UncertainBox, n: int, seed: int, ours: Timed = DEFAULT) -> dict[str, Any]:
    """Fit both models to the same observations, in changing order."""
    X, Y = observe(case, n, seed)
    order = (YARDSTICK, ours) if seed % 2 else (ours, YARDSTICK)
    found = {}
    for method in order:
        if seed == 0:
            fit(method.model(case, X[:5], Y[:5]))  # warm up
        model = method.model(case, X, Y)
        calls = _Calls(model)
        spent = timing.seconds(partial(fit, model))
        found[method.name] = {"seconds": spent, "evaluations": calls.n}
    return found


class _Calls:
    """Counts how often a model works out its prior at the observations."""

    def __init__(self, model: SingleTaskGP) -> None:
        self.n = 0
        self._forward = model.forward
        model.forward = self._count  # type: ignore[method-assign]

    def _count(self, x: Tensor) -> Any:
        self.n += 1
        return self._forward(x)
