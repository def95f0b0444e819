"""What every benchmark problem can be asked."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty import InputUncertainty


class Optimum(NamedTuple):
    """The best design and what it gives."""

    design: Float[Tensor, " d"]
    value: float


class Problem(ABC):
    """A function of the executed input, the uncertainty that leads there, and the true answers.

    A new problem is one file: a frozen dataclass with the abstract members below.
    """

    name: ClassVar[str]
    direction: ClassVar[Literal["maximize", "minimize"]]
    uncertainty: InputUncertainty

    @property
    @abstractmethod
    def bounds(self) -> Float[Tensor, "2 d"]:
        """Smallest and largest designs; executed inputs may leave them."""

    @abstractmethod
    def __call__(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Evaluate f at executed inputs, without noise."""

    @abstractmethod
    def expected(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Return E f(x') for x' ~ P_x at every design."""

    @property
    @abstractmethod
    def nominal_optimum(self) -> Optimum:
        """The best design if it were hit exactly."""

    @property
    @abstractmethod
    def robust_optimum(self) -> Optimum:
        """The best design in expectation."""

    def observe(
        self, X: Float[Tensor, "n d"], generator: torch.Generator | None = None
    ) -> Float[Tensor, " n"]:
        """Run one experiment per design: draw where it lands, return the value there."""
        n, d = X.shape
        base = torch.rand(n, self.uncertainty.n_base(d), generator=generator, dtype=X.dtype)
        samples = self.uncertainty.perturb(X, base)  # (n, n, d): every design with every draw
        return self(samples.diagonal(dim1=0, dim2=1).mT)  # design i with draw i

    def regret(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Return how much worse than the robust optimum each design is in expectation."""
        gap = self.robust_optimum.value - self.expected(X)
        return gap if self.direction == "maximize" else -gap
