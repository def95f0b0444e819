"""What all benchmark problems have in common.

Notation: X (*batch n d) designs; x' ~ P_x an executed input; f the function; E f(x') its expected
value at a design; x* the design that is best in expectation, and its value.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.measures import Measure
from airbo.observed import Direction
from airbo.problems.truth import (
    N_SAMPLES,
    Expectation,
    Optimum,
    best_point,
    direction_of,
    estimate,
    estimate_measure,
)
from airbo.uncertainty import InputUncertainty, Normal, Varying

Box = tuple[tuple[float, ...], tuple[float, ...]]
N_ROUGH = 2**10
"""Number of samples that is enough to locate the best designs roughly."""
N_CLIMBED = 2**13
"""Samples that are enough to find the best design by a measure."""


class Problem(ABC):
    """A function of the executed input, its uncertainty, and the true optima.

    A new problem is one short file: a frozen dataclass with a name, a direction, an uncertainty,
    bounds and the function. This class computes everything else. Override ``exact`` if E f has a
    closed form.
    """

    name: ClassVar[str]
    direction: ClassVar[Direction]
    box: ClassVar[Box]
    """Smallest and largest designs."""
    uncertainty: InputUncertainty
    n_samples: ClassVar[int] = N_SAMPLES
    """Size of the fixed sample behind expectations that have no closed form."""

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        """Bounds of the designs, low and high; executed inputs may lie outside."""
        return torch.tensor(self.box, dtype=torch.float64)

    @abstractmethod
    def __call__(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Evaluate f at executed inputs, without noise."""

    def exact(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"] | None:
        """Return E f(x') in closed form; None if this uncertainty has none."""
        return None

    def normal_covariance(
        self, X: Float[Tensor, "*batch n d"]
    ) -> Float[Tensor, "*batch n d d"] | None:
        """Return the covariance of a normal P_x, which may change with x; None: it is not normal.

        Where P_x is normal, E f(x') of many functions has a closed form.
        """
        self.check_columns(X)
        P = self.uncertainty.at(X) if isinstance(self.uncertainty, Varying) else self.uncertainty
        return P.covariance(X) if isinstance(P, Normal) else None

    def quick(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Return f at many points, for expectations; a slow f has a faster substitute here."""
        return self(X)

    def expected(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Return E f(x') for x' ~ P_x at every design."""
        return self._estimate(X).mean

    def expected_error(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Return the standard error of ``expected``; 0 where ``expected`` is exact."""
        return self._estimate(X).error

    def _estimate(self, X: Tensor, n_samples: int | None = None) -> Expectation:
        exact = self.exact(X)
        if exact is not None:
            return Expectation(exact, torch.zeros_like(exact))
        return estimate(self.quick, self.uncertainty, X, n_samples or self.n_samples)

    def check_columns(self, X: Tensor) -> None:
        """Refuse points that do not have one column per dimension of the problem."""
        d = self.bounds.shape[-1]
        if X.shape[-1] != d:
            raise ValueError(f"{self.name} has points with {d} columns, got {X.shape[-1]}.")

    @cached_property
    def nominal_optimum(self) -> Optimum:
        """The best design if designs were set exactly."""
        return best_point(self.quick, self.bounds, self.direction)

    @cached_property
    def robust_optimum(self) -> Optimum:
        """The best design in expectation."""
        return self.best_within(self.bounds)

    def best_within(self, bounds: Float[Tensor, "2 d"]) -> Optimum:
        """Return the best design in expectation among those of a smaller box."""

        def rough(X: Tensor) -> Tensor:
            return self._estimate(X, N_ROUGH).mean

        return best_point(self.expected, bounds, self.direction, rough)

    # -- by another measure than the mean

    def measure_value(
        self, X: Float[Tensor, "*batch n d"], measure: Measure
    ) -> Float[Tensor, "*batch n"]:
        """Return a measure of f(x') over P_x at every design, in the direction of the problem.

        Args:
            X: Designs.
            measure: One of ``airbo.measures``. ``Worst`` is the worst of all samples; where P_x has
                no bounded support, what 999 of 1,000 reach.
        """
        return self._measured(X, measure).mean

    def measure_error(
        self, X: Float[Tensor, "*batch n d"], measure: Measure
    ) -> Float[Tensor, "*batch n"]:
        """Return the standard error of ``measure_value``."""
        return self._measured(X, measure).error

    def measure_optimum(self, measure: Measure) -> Optimum:
        """Return the best design by a measure."""
        if measure not in self._optima:

            def rough(X: Tensor) -> Tensor:
                return self._measured(X, measure, N_ROUGH).mean

            def fine(X: Tensor) -> Tensor:
                return self._measured(X, measure, N_CLIMBED).mean

            good = direction_of(measure, self.direction)
            design = best_point(fine, self.bounds, good, rough).design
            value = self.measure_value(design.unsqueeze(0), measure).item()
            self._optima[measure] = Optimum(design, value)
        return self._optima[measure]

    @cached_property
    def _optima(self) -> dict[Measure, Optimum]:
        return {}

    def _measured(self, X: Tensor, measure: Measure, n_samples: int | None = None) -> Expectation:
        """Estimate a measure from all samples, or from a few."""
        what = (self.quick, self.uncertainty, X, measure, self.direction)
        if n_samples is None:
            return estimate_measure(*what)
        return estimate_measure(*what, n_samples, n_parts=1)

    # -- experiments

    def observe(
        self, X: Float[Tensor, "n d"], generator: torch.Generator | None = None
    ) -> Float[Tensor, " n"]:
        """Run one experiment per design: draw where it lands, return the value there."""
        # y_i = f(x'_i), x'_i ~ P of design i
        n, d = X.shape
        base = torch.rand(n, self.uncertainty.n_base(d), generator=generator, dtype=X.dtype)
        samples = self.uncertainty.perturb(X, base)  # (n, n, d): every design with every draw
        return self(samples.diagonal(dim1=0, dim2=1).mT)  # design i with draw i

    def regret(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Return how much worse than the robust optimum each design is in expectation."""
        # E f(x*') - E f(x'), and the other way round where smaller is better
        gap = self.robust_optimum.value - self.expected(X)
        return gap if self.direction == "maximize" else -gap
