"""Logs of asked and actual values whose truth is known: one per thing that `learn` should see."""

from collections.abc import Callable

import numpy as np

N_ROWS = 600


def _asked(rng: np.random.Generator, n: int, low: float = 20.0, high: float = 80.0) -> np.ndarray:
    return np.round(rng.uniform(low, high, n), 1)


def _single(deviation: Callable, n: int = N_ROWS, step: float = 0.0) -> Callable:
    """Return a log of one parameter; ``deviation(rng, x)`` draws actual - asked."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = _asked(rng, n)
        actual = x + deviation(rng, x)
        return x, np.round(actual / step) * step if step else actual

    return make


def _several(deviation: Callable, d: int, n: int = N_ROWS) -> Callable:
    """Return a log of ``d`` parameters that deviate together."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = np.column_stack([_asked(rng, n) for _ in range(d)])
        return x, x + deviation(rng, x)

    return make


def _two_modes(rng, x, share=0.5, apart=2.0):
    return np.where(rng.uniform(size=len(x)) < share, -apart, apart) / 2 + rng.normal(
        0, 0.25, len(x)
    )


def _circle(rng, x):
    angle = rng.uniform(0, 2 * np.pi, len(x))
    return np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.05, (len(x), 2))


def _with_outliers(rng, x):
    d = rng.normal(0, 0.5, len(x))
    d[[50, 300]] = [60.0, -45.0]
    return d


def _late(rng):
    x = np.repeat(_asked(rng, 60), 10)
    return x, np.roll(x, 3) + rng.normal(0, 0.3, len(x))


_CORRELATED = np.linalg.cholesky([[1.0, 0.7, 0.3], [0.7, 1.0, 0.5], [0.3, 0.5, 1.0]])

LOGS: dict[str, Callable] = {
    "normal": _single(lambda rng, x: rng.normal(0, 0.5, len(x))),
    "normal with a bias": _single(lambda rng, x: rng.normal(0.4, 0.5, len(x))),
    "uniform": _single(lambda rng, x: rng.uniform(-1, 2, len(x))),
    "percent, normal": _single(lambda rng, x: x * rng.normal(0, 0.05, len(x))),
    "percent, normal with a bias": _single(lambda rng, x: x * rng.normal(0.03, 0.05, len(x))),
    "percent, uniform": _single(lambda rng, x: x * rng.uniform(-0.1, 0.1, len(x))),
    "percent, two modes": _single(lambda rng, x: x * _two_modes(rng, x) / 30),
    "log-normal": _single(lambda rng, x: x * np.expm1(rng.normal(0, 0.25, len(x)))),
    "tail to the right": _single(lambda rng, x: rng.gamma(1.5, 0.5, len(x)) - 0.3),
    "tail to the left": _single(lambda rng, x: 0.5 - rng.gamma(2.0, 0.5, len(x))),
    "heavy tails": _single(lambda rng, x: 0.4 * rng.standard_t(3, len(x))),
    "narrow and wide": _single(
        lambda rng, x: rng.normal(0, np.where(rng.uniform(size=len(x)) < 0.15, 2.0, 0.2))
    ),
    "two modes": _single(_two_modes),
    "two modes, one rare": _single(lambda rng, x: _two_modes(rng, x, 0.85, 3.0)),
    "U-shaped": _single(lambda rng, x: rng.beta(0.4, 0.2, len(x))),
    "in steps of 0.5": _single(lambda rng, x: rng.normal(0, 0.6, len(x)), step=0.5),
    "std in two steps": _single(lambda rng, x: rng.normal(0, np.where(x < 45, 0.2, 1.0))),
    "std in three steps": _single(
        lambda rng, x: rng.normal(0, np.select([x < 35, x < 60], [1.2, 0.2], 0.6))
    ),
    "bias in two steps": _single(lambda rng, x: rng.normal(np.where(x < 50, -0.6, 0.6), 0.3)),
    "two modes above, one below": _single(
        lambda rng, x: np.where(x < 50, rng.normal(0, 0.2, len(x)), _two_modes(rng, x))
    ),
    "fifteen rows": _single(lambda rng, x: rng.normal(0, 0.5, len(x)), n=15),
    "outliers": _single(_with_outliers),
    "late": _late,
    "correlated": _several(lambda rng, x: 0.5 * rng.normal(size=x.shape) @ _CORRELATED.T, 3),
    "percent, correlated": _several(
        lambda rng, x: x * 0.04 * (rng.normal(size=x.shape) @ _CORRELATED[:2, :2].T), 2
    ),
    "on a circle": _several(_circle, 2),
}
"""By what is in them; each makes asked and actual values from a generator."""


def log(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the asked and actual values of one log; the rows stand in the order of time."""
    rng = np.random.default_rng([seed, list(LOGS).index(name)])
    made: tuple[np.ndarray, np.ndarray] = LOGS[name](rng)
    return made
