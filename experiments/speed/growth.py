"""The cost of more observations, for our models and a plain Gaussian process."""

from collections.abc import Callable, Mapping
from functools import partial

from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from rich.progress import Progress

from experiments.speed import timing
from experiments.speed.methods import DEFAULT, YARDSTICK
from experiments.speed.posterior import Setting, predict
from experiments.subjects.uncertainties import ADDITIVE, UncertainBox

N_OBSERVATIONS = {True: (100, 300, 1000), False: (100, 300, 1000, 2000)}
N_ROUNDS = {True: 5, False: 15}
NAMES = ("beta 1-D", "beta 10-D", "ring + normal")

Growth = dict[str, dict[int, dict[str, float]]]
"""Seconds by what is measured, number of observations and method."""


def measure(quick: bool, bar: Progress) -> Growth:
    """Time a posterior, and one step of a fit, at more and more observations."""
    cases = [c for c in ADDITIVE if c.name in (NAMES[:1] if quick else NAMES)]
    jobs = [(case, n) for case in cases for n in N_OBSERVATIONS[quick]]
    found: Growth = {}
    for case, n in bar.track(jobs, description="growth"):
        for joint in (True, False):
            label = f"{case.name}, posterior, {'joint' if joint else 't-batch'}"
            found.setdefault(label, {})[n] = _posterior(case, n, joint, N_ROUNDS[quick])
        steps = found.setdefault(f"{case.name}, likelihood and gradient", {})
        steps[n] = _likelihood(case, n, N_ROUNDS[quick])
    return found


def factor(by_n: Mapping[str | int, Mapping[str, float]], method: str) -> float:
    """Return how many times longer the most observations take than the fewest."""
    return by_n[max(by_n, key=int)][method] / by_n[min(by_n, key=int)][method]


def _posterior(case: UncertainBox, n: int, joint: bool, n_rounds: int) -> dict[str, float]:
    setting = Setting(case, n, joint)
    models = {m.name: setting.model(m) for m in (YARDSTICK, DEFAULT)}
    return timing.interleaved(
        {name: partial(predict, model) for name, model in models.items()},
        setting.fresh_designs,
        n_rounds,
    )


def _likelihood(case: UncertainBox, n: int, n_rounds: int) -> dict[str, float]:
    setting = Setting(case, n, joint=True)
    jobs = {m.name: _step(setting.model(m)) for m in (YARDSTICK, DEFAULT)}
    return timing.interleaved(jobs, lambda number: None, n_rounds)


def _step(model: SingleTaskGP) -> Callable[[None], None]:
    mll = ExactMarginalLogLikelihood(model.likelihood, model).train()

    def step(_: None) -> None:
        model.zero_grad()
        (-mll(model(*model.train_inputs), model.train_targets)).backward()

    return step
