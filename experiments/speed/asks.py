"""Whole asks (fit, acquisition, search) beside a plain loop on the same data.

The plain loop fits BoTorch's SingleTaskGP in the unit cube and maximizes an upper confidence bound
with as many restarts and raw samples as airbo. It knows nothing of integers or uncertainty.
"""

import resource
import sys
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import pandas as pd
import torch
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from torch import Tensor

import airbo
from airbo import uncertainty as unc
from experiments.speed import timing
from experiments.subjects.internals import N_RAW, N_RESTARTS, without_numerical_warnings
from experiments.subjects.methods import fit

N_DATA_SETS = {30: 5, 200: 3, 500: 2, 1000: 1}
"""Data sets by their number of observations; a row shows the median."""
WARM_UP = 8
"""Observations of a first ask that is not timed."""


@dataclass(frozen=True)
class Ask:
    """One row of the table: a space, P_x over its columns, and how many observations there are."""

    name: str
    uncertainty: unc.InputUncertainty
    d: int
    n: int
    aim: float
    """Largest ratio to the plain loop."""
    use: unc.InputUncertainty | None = None
    """The uncertainty in use, if it differs."""
    kinds: str = ""
    """By column: f a float from 0.5 to 1.5, l the same on a log scale, i an integer; default f."""

    @property
    def label(self) -> str:
        return f"{self.name}, {self.d} parameters, n = {self.n}"

    @property
    def space(self) -> airbo.Space:
        made: dict[str, Any] = {
            "f": airbo.Float(0.5, 1.5),
            "l": airbo.Float(0.5, 1.5, log=True),
            "i": airbo.Integer(1, 9),
        }
        kinds = self.kinds or "f" * self.d
        return airbo.Space({f"x{c}": made[kind] for c, kind in enumerate(kinds)})

    def observe(self, n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return designs in user units and in the unit cube, and values where they landed."""
        is_log = torch.tensor([kind == "l" for kind in self.kinds or "f" * self.d])
        is_whole = torch.tensor([kind == "i" for kind in self.kinds or "f" * self.d])
        low, high = torch.tensor(self.space.bounds, dtype=torch.float64)
        Z = unc.base_draws(n, self.d, seed)
        X = torch.where(is_log, low * (high / low) ** Z, low + (high - low) * Z)
        X = torch.where(is_whole, X.round(), X)

        generator = torch.Generator().manual_seed(seed)
        base = torch.rand(
            n, max(1, self.uncertainty.n_base(self.d)), generator=generator, dtype=torch.float64
        )
        landed = torch.cat([self.uncertainty.perturb(X[[i]], base[[i]])[0] for i in range(n)])
        landed = torch.where(is_whole, landed.round().clamp(low, high), landed)

        def scaled(x: Tensor) -> Tensor:
            linear = (x - low) / (high - low)
            return torch.where(is_log, (x / low).log() / (high / low).log(), linear)

        u = scaled(landed)
        waves = torch.sin(6 * u / torch.arange(1, self.d + 1).sqrt()).sum(-1) + u.square().sum(-1)
        noise = 0.02 * torch.randn(n, generator=generator, dtype=torch.float64)
        return X, scaled(X), (waves + noise).unsqueeze(-1)

    def optimizer(self, X: Tensor, Y: Tensor, seed: int = 0) -> airbo.Optimizer:
        """Return an optimizer that was told everything and has fitted nothing."""
        optimizer = airbo.Optimizer(
            self.space, self.uncertainty, deployment=self.use, n_initial=5, seed=seed
        )
        table = pd.DataFrame(X.numpy(), columns=list(self.space.names))
        optimizer.tell(table.assign(value=Y.numpy()))
        return optimizer


def plain(Z: Tensor, Y: Tensor) -> Tensor:
    """Fit a plain Gaussian process and maximize its upper confidence bound."""
    acquisition = UpperConfidenceBound(fit(SingleTaskGP(Z, Y)), beta=4.0)
    box = torch.stack([torch.zeros_like(Z[0]), torch.ones_like(Z[0])])
    with without_numerical_warnings():
        candidate, _ = optimize_acqf(
            acquisition, box, q=1, num_restarts=N_RESTARTS, raw_samples=N_RAW
        )
    return candidate


def time_of(row: Ask, seed: int) -> tuple[float, float]:
    """Return the seconds of the plain loop and of ``Optimizer.ask``."""
    X, Z, Y = row.observe(row.n, seed)
    torch.manual_seed(seed)
    spent = timing.seconds(partial(plain, Z, Y))
    return spent, timing.seconds(row.optimizer(X, Y, seed).ask)


def measure(row: Ask, n_data_sets: int) -> dict[str, float]:
    """Time a row on some data sets; medians."""
    X, Z, Y = row.observe(WARM_UP, seed=99)
    plain(Z, Y)
    row.optimizer(X, Y).ask()
    times = [time_of(row, seed) for seed in range(n_data_sets)]
    return {
        "plain": median(a for a, _ in times),
        "ask": median(b for _, b in times),
        "ratio": median(b / a for a, b in times),
    }


def _widening(x: Tensor) -> unc.Normal:
    return unc.Normal(0.02 + 0.1 * x)


def logged(d: int, m: int = 1000) -> unc.Empirical:
    """Return P as logged deviations, skewed and dependent."""
    draws = torch.randn(m, d, generator=torch.Generator().manual_seed(m), dtype=torch.float64)
    return unc.Empirical(0.03 * (draws.cumsum(-1) + draws**2))


BETA = unc.Beta(0.4, 0.2, scale=0.1)
UNIFORM = unc.Uniform(-0.1, 0.1)
PERCENT = unc.Relative(unc.Uniform(-0.1, 0.1))
MIXTURE = unc.GaussianMixture([[0.0, 0.0, 0.0], [-0.1, 0.1, 0.0]], [0.03**2 * torch.eye(3)] * 2)
RING = unc.Ring(0.1)
VARYING = unc.Varying(_widening)
CLIPPED = unc.Normal(0.05).clipped(0.5, 1.5)
COUNT = unc.Normal(0.7)

ROWS = (
    *(Ask("normal", unc.Normal(0.05), d, 30, 1.5) for d in (1, 2, 3, 10)),
    *(Ask("exact", unc.Exact(), d, 30, 1.5) for d in (1, 3, 10)),
    *(Ask("beta", BETA, d, 30, 2.5) for d in (1, 3)),
    Ask("uniform", UNIFORM, 5, 30, 2.5),
    Ask("percent, uniform", PERCENT, 3, 30, 2.5),
    Ask("percent, uniform", PERCENT, 6, 30, 2.5),
    Ask("1,000 logged", logged(3), 3, 30, 2.5),
    Ask("mixture", MIXTURE, 3, 30, 2.5),
    Ask("ring + normal", unc.Product([RING, unc.Normal(0.05)], [(0, 1), (2, 3, 4)]), 5, 30, 2.5),
    Ask("varying normal", VARYING, 2, 30, 2.5),
    Ask("log scales, percent", unc.LogNormal(0.05), 2, 30, 2.5, kinds="ll"),
    Ask("log scales, clipped normal", CLIPPED, 2, 30, 2.5, kinds="ll"),
    Ask("clipped normal", CLIPPED, 2, 30, 2.5),
    Ask("exact now, beta in use", unc.Exact(), 1, 30, 3, use=BETA),
    Ask("exact now, beta in use", unc.Exact(), 3, 30, 3, use=BETA),
    Ask("beta now, exact in use", BETA, 3, 30, 3, use=unc.Exact()),
    Ask("clipped now, exact in use", CLIPPED, 2, 30, 3, use=unc.Exact()),
    Ask(
        "an uncertain integer, a float",
        unc.Product([COUNT, UNIFORM], [(0,), (1,)]),
        2,
        30,
        3,
        kinds="if",
    ),
    Ask(
        "two uncertain integers, a float",
        unc.Product([COUNT, UNIFORM], [(0, 1), (2,)]),
        3,
        30,
        3,
        kinds="iif",
    ),
    Ask("1,000 logged", logged(3), 3, 200, 3),
    Ask("percent, uniform", PERCENT, 3, 200, 3),
    Ask("beta", BETA, 6, 200, 3),
    Ask("mixture", MIXTURE, 3, 200, 3),
    Ask("varying normal", VARYING, 3, 200, 3),
    Ask("normal", unc.Normal(0.05), 6, 200, 3),
    Ask("normal", unc.Normal(0.05), 10, 200, 3),
    Ask("percent, uniform", PERCENT, 3, 500, 3),
    Ask("beta", BETA, 3, 500, 3),
    Ask("normal", unc.Normal(0.05), 3, 500, 3),
    Ask("normal", unc.Normal(0.05), 2, 1000, 2),
    Ask("beta", BETA, 1, 1000, 2),
    Ask("percent, uniform", PERCENT, 3, 1000, 2),
    Ask("1,000 logged", logged(3), 3, 1000, 2),
)


def peak_megabytes(label: str) -> float:
    """Ask once, and return the peak memory of this process."""
    [row] = [r for r in ROWS if r.label == label]
    X, _, Y = row.observe(row.n, seed=0)
    row.optimizer(X, Y).ask()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(peak_megabytes(sys.argv[1]))
