"""Functions drawn from an RKHS, whose kernel a model may know, and searches on them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
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
from airbo.uncertainty import Normal
from experiments.subjects.internals import Cube, best_point

LENGTHSCALE, STD, NOISE = 0.1, 0.05, 0.1
"""Length scale of the base kernel per dimension; standard deviations of inputs and noise."""
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
    def draw(cls, seed: int, d: int = 1) -> "Drawn":
        """Draw a function of ``d`` parameters; it has more bumps, and wider ones, in more."""
        generator = torch.Generator().manual_seed(seed)
        c = torch.rand(N_CENTERS * d, d, generator=generator, dtype=torch.float64)
        a = torch.randn(N_CENTERS * d, generator=generator, dtype=torch.float64)
        K = torch.exp(-0.5 * (torch.cdist(c, c) / (LENGTHSCALE * d)) ** 2)
        return cls(c, a * NORM / (a @ K @ a).sqrt())  # ‖f‖² = aᵀ K a

    @property
    def d(self) -> int:
        return self.centers.shape[-1]

    @property
    def lengthscale(self) -> float:
        return LENGTHSCALE * self.d

    @property
    def bounds(self) -> Tensor:
        return torch.tensor([[0.0] * self.d, [1.0] * self.d], dtype=torch.float64)

    def grid(self, n: int, margin: float = 0.0) -> Tensor:
        """Return ``n`` points per dimension, a little beyond the box if there is a margin."""
        line = torch.linspace(-margin, 1 + margin, n, dtype=torch.float64)
        return torch.cartesian_prod(*[line] * self.d).reshape(-1, self.d)

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
        x = self.grid(20001 if self.d == 1 else 401, margin=0.5).unsqueeze(-2)
        away = self.centers - x  # (points, centers, d)
        bumps = self.heights * torch.exp(-0.5 * (away**2).sum(-1) / self.lengthscale**2)
        slopes = (bumps.unsqueeze(-1) * away / self.lengthscale**2).sum(-2)  # ∇f
        return math.hypot(slopes.norm(dim=-1).max().item() * STD, NOISE)

    def _smoothed(self, X: Tensor, variance: float) -> Tensor:
        v = self.lengthscale**2 + variance
        bumps = torch.exp(-0.5 * ((X.unsqueeze(-2) - self.centers) ** 2).sum(-1) / v)
        return (self.heights * (self.lengthscale / math.sqrt(v)) ** self.d * bumps).sum(-1)


class KnownKernelGP(UGP):
    """The model of the theorem: the kernel that f was drawn from, values as they are, no fit."""

    def __init__(
        self, problem: Drawn, train_X: Tensor, train_Y: Tensor, uncertainty: Any, bounds: Tensor
    ) -> None:
        kernel, likelihood = RBFKernel().double(), GaussianLikelihood().double()
        kernel.lengthscale, likelihood.noise = problem.lengthscale, problem.total_noise**2
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


def known(problem: Drawn) -> Callable[..., KnownKernelGP]:
    def build(train_X: Tensor, train_Y: Tensor, uncertainty: Any, bounds: Tensor) -> KnownKernelGP:
        return KnownKernelGP(problem, train_X, train_Y, uncertainty, bounds)

    return build


THEOREM = Searcher(
    "ucb-theory, kernel known",
    "#0072B2",
    lambda p: {"surrogate": known(p), "acquisition": TheoryUCB(b=NORM, delta=DELTA)},
)
METHODS = (
    THEOREM,
    Searcher(
        "ucb, β = 2, kernel known",
        "#56B4E9",
        lambda p: {"surrogate": known(p), "acquisition": UCB(2.0)},
    ),
    Searcher(
        "ucb-theory, mmd", "#D55E00", lambda p: {"surrogate": "mmd", "acquisition": "ucb-theory"}
    ),
    Searcher("ucb, β = 2, mmd", "#E69F00", lambda p: {"surrogate": "mmd", "acquisition": "ucb"}),
    Searcher("uniform random", "0.5", None),
)


def search(problem: Drawn, method: Searcher, seed: int, n: int) -> Optimizer:
    """Run one search; what happens in experiment i depends only on seed and i."""
    settings = method.settings(problem) if method.settings else {"initial": "random"}
    n_initial = N_INITIAL if method.settings else n
    optimizer = Optimizer(
        Space({f"x{i}": (0.0, 1.0) for i in range(problem.d)}),
        problem.uncertainty,
        seed=seed,
        n_initial=n_initial,
        **settings,
    )
    generator = torch.Generator().manual_seed(1000 + seed)
    for _ in range(n):
        design = optimizer.ask()
        X = torch.tensor([list(design.values())], dtype=torch.float64)
        value = problem.observe(X, generator).item()
        value += NOISE * torch.randn((), generator=generator, dtype=torch.float64).item()
        optimizer.tell(design, value)
    return optimizer


def designs_of(optimizer: Optimizer) -> Tensor:
    return Cube(optimizer.space).columns(optimizer.observations[list(optimizer.space.names)])
