"""Functions drawn from an RKHS, whose kernel a model may know, and searches on them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import torch
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import MarginalLogLikelihood
from torch import Tensor

from airbo import Optimizer, Space
from airbo.acquisition import UCB, TheoryUCB
from airbo.models import UGP
from airbo.problems import Optimum, Problem
from airbo.seeds import stream
from airbo.uncertainty import Normal
from experiments.subjects.internals import Cube, best_point

LENGTHSCALE, STD, NOISE = 0.1, 0.05, 0.1
"""Length scale of the base kernel; standard deviations of inputs and noise."""
N_CENTERS, NORM = 10, 3.0
DELTA = 0.1
N_INITIAL = 5


@dataclass(frozen=True)
class Drawn(Problem):
    r"""A function :math:`f = \sum_i a_i k(c_i, \cdot)` under a Gaussian kernel, of norm 3."""

    name: ClassVar[str] = "drawn"
    direction: ClassVar[Literal["maximize", "minimize"]] = "maximize"

    centers: Tensor
    """One per row."""
    heights: Tensor
    uncertainty: Normal = field(default_factory=lambda: Normal(STD))

    @classmethod
    def draw(cls, seed: int) -> "Drawn":
        """Draw a function of one parameter."""
        generator = torch.Generator().manual_seed(seed)
        c = torch.rand(N_CENTERS, 1, generator=generator, dtype=torch.float64)
        a = torch.randn(N_CENTERS, generator=generator, dtype=torch.float64)
        K = torch.exp(-0.5 * ((c - c.mT) / LENGTHSCALE) ** 2)
        return cls(c, a * NORM / (a @ K @ a).sqrt())  # ‖f‖² = aᵀ K a

    @property
    def bounds(self) -> Tensor:
        return torch.tensor([[0.0], [1.0]], dtype=torch.float64)

    def __call__(self, X: Tensor) -> Tensor:
        return self._smoothed(X, 0.0)

    def expected(self, X: Tensor) -> Tensor:
        return self._smoothed(X, STD**2)

    @cached_property
    def nominal_optimum(self) -> Optimum:
        return best_point(self, self.bounds, "maximize")

    @cached_property
    def robust_optimum(self) -> Optimum:
        return best_point(self.expected, self.bounds, "maximize")

    @cached_property
    def total_noise(self) -> float:
        """σ_ν: under a Gaussian, a function of slope at most L is L·std-sub-Gaussian."""
        away = self.centers.T - torch.linspace(-0.5, 1.5, 20001, dtype=torch.float64)[:, None]
        bumps = self.heights * torch.exp(-0.5 * (away / LENGTHSCALE) ** 2)  # (points, centers)
        slopes = (bumps * away / LENGTHSCALE**2).sum(-1)  # f'
        return math.hypot(slopes.abs().max().item() * STD, NOISE)

    def _smoothed(self, X: Tensor, variance: float) -> Tensor:
        v = LENGTHSCALE**2 + variance
        bumps = torch.exp(-0.5 * ((X.unsqueeze(-2) - self.centers) ** 2).sum(-1) / v)
        return (self.heights * LENGTHSCALE / math.sqrt(v) * bumps).sum(-1)


class KnownKernelGP(UGP):
    """The model of the theorem: the kernel that f was drawn from, values as they are, no fit."""

    def __init__(
        self, problem: Drawn, train_X: Tensor, train_Y: Tensor, uncertainty: Any, bounds: Tensor
    ) -> None:
        kernel, likelihood = RBFKernel().double(), GaussianLikelihood().double()
        kernel.lengthscale, likelihood.noise = LENGTHSCALE, problem.total_noise**2
        super().__init__(
            train_X, train_Y, uncertainty, bounds, base_kernel=kernel, likelihood=likelihood
        )
        del self.outcome_transform
        self.set_train_data(targets=train_Y.squeeze(-1), strict=False)

    def custom_fit(self, mll: MarginalLogLikelihood, **kwargs: Any) -> MarginalLogLikelihood:
        return mll.eval()  # BoTorch calls this instead of fitting


@dataclass(frozen=True)
class Searcher:
    """A way to choose designs."""

    name: str
    colour: str
    settings: Callable[[Drawn], dict[str, Any]] | None
    """Settings of the optimizer; None: uniform random designs."""


THEOREM = Searcher(
    "ucb-theory, kernel known",
    "#0072B2",
    lambda p: {
        "surrogate": partial(KnownKernelGP, p),
        "acquisition": TheoryUCB(b=NORM, delta=DELTA),
    },
)
METHODS = (
    THEOREM,
    Searcher(
        "ucb, β = 2, kernel known",
        "#56B4E9",
        lambda p: {"surrogate": partial(KnownKernelGP, p), "acquisition": UCB(2.0)},
    ),
    Searcher(
        "ucb-theory, mmd", "#D55E00", lambda p: {"surrogate": "mmd", "acquisition": "ucb-theory"}
    ),
    Searcher("ucb, β = 2, mmd", "#E69F00", lambda p: {"surrogate": "mmd", "acquisition": "ucb"}),
    Searcher("uniform random", "0.5", None),
)


def search(problem: Drawn, method: Searcher, seed: int, n: int) -> Optimizer:
    """Run one search; what happens in experiment i depends only on seed and i."""
    settings = method.settings(problem) if method.settings else {}
    space = Space({"x": (0.0, 1.0)})
    optimizer = Optimizer(space, problem.uncertainty, seed=seed, n_initial=N_INITIAL, **settings)
    generator, random = torch.Generator().manual_seed(1000 + seed), stream(seed, "random designs")
    for _ in range(n):
        design = optimizer.ask() if method.settings else {"x": random.random()}
        X = torch.tensor([list(design.values())], dtype=torch.float64)
        value = problem.observe(X, generator).item()
        value += NOISE * torch.randn((), generator=generator, dtype=torch.float64).item()
        optimizer.tell(design, value)
    return optimizer


def designs_of(optimizer: Optimizer) -> Tensor:
    return Cube(optimizer.space).columns(optimizer.observations[list(optimizer.space.names)])
