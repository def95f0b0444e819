"""Whole asks in ordinary use: mixed parameters, many observations, replicates, first use."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from botorch.models import SingleTaskGP
from numpy.typing import NDArray
from rich.progress import Progress
from torch import Tensor

import airbo
from airbo import uncertainty as unc
from experiments.speed import asking, timing
from experiments.speed.asking import OPTIMIZER
from experiments.speed.methods import DEFAULT, YARDSTICK
from experiments.speed.posterior import predict
from experiments.subjects.data import observe
from experiments.subjects.uncertainties import BY_NAME, in_unit_cube, logged

N_DATA_SETS = {True: 1, False: 3}
MANY = {True: 200, False: 1000}
"""Observations of a long campaign."""
MOST_ALIKE = {True: 1000, False: 10_000}
LONG = (BY_NAME["beta"], in_unit_cube("normal", unc.Normal(0.05), 2))

MIXED = airbo.Space(
    {
        "speed": (50.0, 200.0),
        "depth": airbo.Float(0.1, 2.0, log=True),
        "tool": airbo.Categorical(["A", "B", "C"]),
    }
)
MIXED_UNCERTAINTY = {"speed": unc.Relative(unc.Normal(0.05)), "depth": unc.Normal(0.02)}


def measure(quick: bool, bar: Progress) -> dict[str, Any]:
    """Return the times that no other section has."""
    parts: dict[str, Callable[[bool], Any]] = {
        "mixed": mixed,
        "long": long,
        "replicates": replicates,
        "first use": first_use,
        "sampler": sampler,
        "alike": alike,
    }
    return {
        name: part(quick) for name, part in bar.track(parts.items(), description="everyday work")
    }


def mixed(quick: bool) -> list[dict[str, float]]:
    """Ask with a percentage, a log scale and a category; the plain model in the same search."""
    surrogates = {YARDSTICK.name: _plain, OPTIMIZER: "default"}
    found = []
    for seed in range(N_DATA_SETS[quick]):
        times = {}
        for name, surrogate in surrogates.items():
            if seed == 0:
                _mixed_optimizer(surrogate, 8, seed).ask()  # warm up
            optimizer = _mixed_optimizer(surrogate, asking.N_OBSERVATIONS, seed)
            times[name] = timing.seconds(optimizer.ask)
        found.append(times)
    return found


def _plain(X: Tensor, Y: Tensor) -> SingleTaskGP:
    return SingleTaskGP(X, Y)


def _mixed_optimizer(surrogate: Any, n: int, seed: int) -> airbo.Optimizer:
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "speed": generator.uniform(50, 200, n),
            "depth": np.exp(generator.uniform(np.log(0.1), np.log(2), n)),
            "tool": generator.choice(["A", "B", "C"], n),
        }
    )
    bonus = table["tool"].map({"A": 0.0, "B": 0.3, "C": -0.2})
    value = np.sin(table["speed"] / 40) - np.log(table["depth"]) ** 2 + bonus
    P = None if surrogate is _plain else MIXED_UNCERTAINTY
    optimizer = airbo.Optimizer(MIXED, P, surrogate=surrogate, n_initial=5)
    optimizer.tell(table.assign(value=value + 0.05 * generator.standard_normal(n)))
    return optimizer


def long(quick: bool) -> dict[str, dict[str, float]]:
    """Ask after many observations."""
    found = {}
    for case in LONG:
        task = asking.Ask(case.name, case)
        X, Y = observe(case, MANY[quick], seed=1)
        Y = Y + 0.05 * torch.randn(Y.shape, generator=torch.Generator().manual_seed(1))
        torch.manual_seed(0)
        plain = YARDSTICK.model(case, X, Y)
        found[case.name] = {
            YARDSTICK.name: timing.seconds(partial(asking.loop, plain, case)),
            OPTIMIZER: timing.seconds(task.optimizer(X, Y).ask),
        }
    return found


def replicates(quick: bool) -> dict[str, float]:
    """Ask after 1,000 observations of 50 designs, and after 50."""
    case = in_unit_cube("normal", unc.Normal(0.05), 3)
    task = asking.Ask(case.name, case)
    X, Y = observe(case, 50, seed=0)
    task.optimizer(X[:8], Y[:8]).ask()  # warm up
    n = 4 if quick else 20
    noise = 0.05 * torch.randn(n * 50, 1, generator=torch.Generator().manual_seed(0))
    many = task.optimizer(X.repeat(n, 1), Y.repeat(n, 1) + noise)
    few = task.optimizer(X, Y + noise.reshape(n, 50, 1).mean(0))
    return {"all": timing.seconds(many.ask), "distinct": timing.seconds(few.ask)}


def first_use(quick: bool) -> float:
    """Build a model under a log of three dependent columns and predict for the first time."""
    seconds = []
    for m in (700, 1000):  # the first warms up
        case = logged(m, 3)
        X, Y = observe(case, 30, seed=0)
        designs = case.designs(8, seed=1)
        start = time.process_time()
        predict(DEFAULT.model(case, X, Y).eval(), designs)
        seconds.append(time.process_time() - start)
    return seconds[-1]


def sampler(quick: bool) -> dict[str, list[float]]:
    """Ask with an uncertainty that is a black box in NumPy, over one parameter and over two."""
    found: dict[str, list[float]] = {}
    for d in (1, 2):
        case = in_unit_cube("NumPy black box", unc.Sampler.from_numpy(_stretched), d)
        task = asking.Ask(case.name, case)
        task.optimizer(*observe(case, 8, seed=0)).ask()  # warm up
        found[str(d)] = []
        for seed in range(N_DATA_SETS[quick]):
            X, Y = observe(case, asking.N_OBSERVATIONS, seed)
            found[str(d)].append(timing.seconds(task.optimizer(X, Y).ask))
    return found


def _stretched(x: NDArray[np.float64], size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return x + (0.02 + 0.05 * x) * np.sin(7 * rng.random((size, len(x))))


def alike(quick: bool) -> dict[str, float]:
    """Tell one design many times, ask and recommend."""
    n = MOST_ALIKE[quick]
    optimizer = airbo.Optimizer(airbo.Space({"x": (0.0, 1.0)}), unc.Normal(0.05), n_initial=5)
    values = np.random.default_rng(0).normal(size=n)
    told = pd.DataFrame({"x": np.full(n, 0.5), "value": values})
    return {
        "tell": timing.seconds(lambda: optimizer.tell(told)),
        "ask": timing.seconds(optimizer.ask),
        "recommend": timing.seconds(optimizer.recommend),
    }
