"""Hartmann's functions, under errors with heavy tails."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from botorch.test_functions.synthetic import Hartmann as BoTorchHartmann
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Problem
from airbo.uncertainty import InputUncertainty, SciPy


@dataclass(frozen=True)
class Hartmann(Problem):
    r"""Hartmann's function: smooth, with a few wells and inputs of unequal importance.

    .. math:: f(x) = -\sum_i \alpha_i \exp\Bigl(-\sum_j A_{ij} (x_j - P_{ij})^2\Bigr)

    By default the error of every input has a Student's t distribution with three degrees of
    freedom: usually small, occasionally very large.
    """

    name: ClassVar[str] = "hartmann"
    direction: ClassVar[Direction] = "minimize"

    d: int = 6
    """Number of dimensions: 3 or 6."""
    uncertainty: InputUncertainty = field(default_factory=lambda: SciPy(stats.t(3, scale=0.08)))

    def __post_init__(self) -> None:
        if self.d not in (3, 6):
            raise ValueError(f"Hartmann's function has 3 or 6 dimensions, got {self.d}.")
        self.uncertainty.check_dim(self.d)

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        return torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, self.d)

    def __call__(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        self.check_columns(X)
        # f = -Σ_i α_i exp(-Σ_j A_ij (x_j - P_ij)²); BoTorch's refuses points outside the cube
        tables = BoTorchHartmann(self.d).to(X).state_dict()
        squared = (X.unsqueeze(-2) - 1e-4 * tables["P"]).square()  # (..., wells, d)
        return -torch.exp(-(tables["A"] * squared).sum(-1)) @ tables["ALPHA"]
