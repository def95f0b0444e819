"""Times of posteriors at new designs, compared with a plain Gaussian process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from botorch.models import SingleTaskGP
from rich.progress import Progress
from torch import Tensor

from airbo import uncertainty as unc
from airbo.models import ExpectationGP
from experiments.speed import timing
from experiments.speed.methods import (
    BY_NAME,
    DEFAULT,
    METHODS,
    PER_PARAMETER,
    YARDSTICK,
    Timed,
)
from experiments.subjects.data import fit, observe
from experiments.subjects.uncertainties import ADDITIVE, RELATIVE, VARYING, UncertainBox, logged
from experiments.subjects.uncertainties import BY_NAME as CASES

N_DESIGNS = 512
N_ROUNDS = {True: 15, False: 21}
N_OBSERVATIONS = (10, 50, 200)
N_LOGGED = (100, 1_000, 10_000)
PAIR = (YARDSTICK, DEFAULT)

Seconds = dict[str, dict[str, float]]
"""By setting and by method."""


@dataclass(frozen=True)
class Setting:
    case: UncertainBox
    n: int
    joint: bool
    fitted: bool = False
    """Whether hyper-parameters are fitted first, or keep their starting values."""
    n_designs: int = N_DESIGNS

    @property
    def label(self) -> str:
        how = "joint" if self.joint else "t-batch"
        return f"{self.case.name}, {how}, n = {self.n}{', fitted' if self.fitted else ''}"

    def designs(self, seed: int) -> Tensor:
        X = self.case.designs(self.n_designs, seed)
        return X if self.joint else X.unsqueeze(-2)

    def fresh_designs(self, number: int) -> Tensor:
        """Return new designs for every round of timing."""
        return self.designs(seed=200 + number)

    def model(self, method: Timed) -> SingleTaskGP:
        X, Y = observe(self.case, self.n, seed=5)
        model = method.model(self.case, X, Y)
        return fit(model) if self.fitted else model.eval()


def seconds(setting: Setting, methods: Iterable[Timed], n_rounds: int) -> dict[str, float]:
    """Return the median time of mean and variance per method."""
    models = {m.name: setting.model(m) for m in methods}
    jobs = {name: partial(predict, model) for name, model in models.items()}
    return timing.interleaved(
        jobs,
        setting.fresh_designs,
        n_rounds,
        warm_up=lambda: setting.designs(seed=100)[:8],
    )


def predict(model: SingleTaskGP, X: Tensor, **how: Any) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        posterior = model.posterior(X, **how)
        return posterior.mean, posterior.variance


def additive(quick: bool, bar: Progress) -> Seconds:
    """Time the default under additive uncertainties."""
    cases = [c for c in ADDITIVE if not quick or c.d != 3]
    settings = [
        Setting(case, n, joint)
        for case in cases
        for joint in (True, False)
        for n in ((10, 200) if quick else N_OBSERVATIONS)
    ]
    if not quick:
        settings += [Setting(c, 50, joint, fitted=True) for c in cases for joint in (True, False)]
    return _all(settings, PAIR, N_ROUNDS[quick], bar, "posteriors, additive P")


def per_parameter(quick: bool, bar: Progress) -> Seconds:
    """Time a length scale per parameter, under the same uncertainties."""
    settings = [
        Setting(case, n, joint)
        for case in (*ADDITIVE, logged(1_000, 3))
        for joint in (True, False)
        for n in ((10,) if quick else N_OBSERVATIONS)
        if case.d > 1
    ]
    methods = (YARDSTICK, PER_PARAMETER)
    return _all(settings, methods, N_ROUNDS[quick], bar, "posteriors, a scale per parameter")


def relative(quick: bool, bar: Progress) -> Seconds:
    """Time the default under errors in percent."""
    settings = [
        Setting(case, n, joint)
        for case in RELATIVE
        for joint in (True, False)
        for n in ((10,) if quick else N_OBSERVATIONS)
    ]
    return _all(settings, PAIR, N_ROUNDS[quick], bar, "posteriors, errors in percent")


def varying(quick: bool, bar: Progress) -> Seconds:
    """Time the default under uncertainties that change with the design."""
    settings = [
        Setting(case, n, joint)
        for case in VARYING
        for joint in (True, False)
        for n in ((10,) if quick else N_OBSERVATIONS)
    ]
    return _all(settings, PAIR, N_ROUNDS[quick], bar, "posteriors, varying P")


def itself(quick: bool, bar: Progress) -> Seconds:
    """Time the posterior of f itself, and that of E f before and afterwards."""
    cases = (*ADDITIVE, *RELATIVE) if not quick else ADDITIVE[:3]
    found: Seconds = {}
    for case in bar.track(cases, description="posteriors of f itself"):
        setting = Setting(case, 50, joint=False)
        X, Y = observe(case, setting.n, seed=5)
        before, both = (ExpectationGP(X, Y, case.uncertainty, case.bounds).eval() for _ in range(2))
        of_f = partial(predict, both, uncertainty=unc.Exact())
        of_f(setting.designs(seed=100)[:8])
        jobs = {
            "E f": partial(predict, before),
            "f": of_f,
            "E f afterwards": partial(predict, both),
        }
        found[setting.label] = timing.interleaved(jobs, setting.fresh_designs, N_ROUNDS[quick])
    return found


def samples(quick: bool, bar: Progress) -> Seconds:
    """Time the default with more and more logged deviations, in turns."""
    found: Seconds = {}
    settings = [
        (d, n, joint)
        for d in (1, 3)
        for joint in ((False,) if quick else (True, False))
        for n in ((10,) if quick else N_OBSERVATIONS)
    ]
    for d, n, joint in bar.track(settings, description="posteriors, logged deviations"):
        by_m = {m: Setting(logged(m, d), n, joint) for m in N_LOGGED}
        one = by_m[N_LOGGED[0]]
        models = {f"m = {m:,}": s.model(DEFAULT) for m, s in by_m.items()}
        models[YARDSTICK.name] = one.model(YARDSTICK)
        found[f"{d}-D, {'joint' if joint else 't-batch'}, n = {n}"] = timing.interleaved(
            {name: partial(predict, model) for name, model in models.items()},
            one.fresh_designs,
            N_ROUNDS[quick] if quick else 2 * N_ROUNDS[quick],
        )
    return found


def estimators(quick: bool, bar: Progress) -> Seconds:
    """Time all estimators; those with 100 samples or landmarks in t-batches of full runs only."""
    settings = [
        Setting(CASES[name], n, joint)
        for name in ("beta", "ring + normal")
        for joint in (False, True)
        for n in ((10,) if quick else (10, 50))
    ]
    found: Seconds = {}
    for setting in bar.track(settings, description="posteriors, all estimators"):
        too_long = quick or setting.joint or setting.n > 10
        methods = [m for m in METHODS if not (m.slow and too_long)]
        found[setting.label] = seconds(setting, methods, 3 if quick else 7)
    return found


def one(case: str, methods: Sequence[str], n_rounds: int) -> dict[str, float]:
    """Time one small setting."""
    setting = Setting(CASES[case], n=10, joint=False, n_designs=16)
    return seconds(setting, [BY_NAME[name] for name in methods], n_rounds)


def _all(
    settings: Sequence[Setting], methods: Sequence[Timed], n_rounds: int, bar: Progress, text: str
) -> Seconds:
    return {s.label: seconds(s, methods, n_rounds) for s in bar.track(settings, description=text)}
