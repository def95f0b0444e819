"""The bumped bowl: designs land on a ring around themselves, so the best one is on the bump."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Problem
from airbo.problems.truth import Function, Optimum, best_point
from airbo.uncertainty import InputUncertainty, Normal, Product, Ring

N_ANGLES = 256


@dataclass(frozen=True)
class BumpedBowl(Problem):
    r"""A bowl with a bump in the middle, in two dimensions, times a plain bowl in the others.

    .. math:: f(x) = g(x_{1:2})\, h(x_{3:}), \quad
              g(x) = 2 \log\left(0.8 \|x\|^2 + e^{-10 \|x\|^2}\right) + 2.54, \quad
              h(x) = 1 + \sum_i 5 x_i^2

    By default the first two inputs land on a ring around the design. The ring is as wide as the
    floor of the bowl, so the best design is the top of the bump.
    """

    name: ClassVar[str] = "bumped-bowl"
    direction: ClassVar[Direction] = "minimize"

    d: int = 10
    """Number of dimensions, at least 3."""
    uncertainty: InputUncertainty = field(default_factory=lambda: Product([Ring(0.5), Normal(0.1)]))

    def __post_init__(self) -> None:
        if self.d < 3:
            raise ValueError(f"The bumped bowl has d >= 3 dimensions, got {self.d}.")
        self.uncertainty.check_dim(self.d)

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        return torch.tensor([[-2.0], [2.0]], dtype=torch.float64).repeat(1, self.d)

    def __call__(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        self.check_columns(X)
        return bump(X[..., :2]) * (1 + 5 * X[..., 2:].square().sum(-1))

    def exact(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"] | None:
        """Return E f(x') for a ring in the first two columns and anything in the others."""
        self.check_columns(X)
        if self._ring is None:
            return None

        # E g: on a circle, the trapezoid rule converges faster than any power
        angles = torch.arange(N_ANGLES).to(X) * (2 * torch.pi / N_ANGLES)
        circle = self._ring * torch.stack([angles.cos(), angles.sin()], dim=-1)  # (s, 2)
        g = bump(X[..., None, :2] + circle).mean(-1)

        # E h = 1 + 5 Σ (m² + v); g and h are independent
        v = self.uncertainty.covariance(X).diagonal(dim1=-2, dim2=-1)
        second = self.uncertainty.mean(X).square() + v
        return g * (1 + 5 * second[..., 2:].sum(-1))

    @cached_property
    def nominal_optimum(self) -> Optimum:
        """A point of the floor, which is a circle."""
        return self._best_on_a_ray(self)

    @cached_property
    def robust_optimum(self) -> Optimum:
        """The best design in expectation: with the default uncertainty, the origin."""
        # E f depends on the radius alone if the other errors have mean 0
        if self._ring is not None and self.uncertainty.mean(self.bounds * 0).abs().max() < 1e-12:
            return self._best_on_a_ray(self.expected)
        return self.best_within(self.bounds)

    @cached_property
    def _ring(self) -> float | None:
        """Radius of the ring in the first two columns, if that is their uncertainty."""
        P = self.uncertainty
        if not isinstance(P, Product):
            return None
        first = dict(zip(P.layout(self.d), P.blocks, strict=True)).get((0, 1))
        return first.radius if isinstance(first, Ring) and first.is_additive else None

    def _best_on_a_ray(self, f: Function) -> Optimum:
        def on_a_ray(radius: Float[Tensor, "n 1"]) -> Float[Tensor, "n d"]:
            return torch.nn.functional.pad(radius, (0, self.d - 1))

        ray = self.bounds[:, :1].clamp(min=0)
        best = best_point(lambda radius: f(on_a_ray(radius)), ray, self.direction)
        return Optimum(on_a_ray(best.design.unsqueeze(0)).squeeze(0), best.value)


def bump(x: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """Return g."""
    # g = 2 log(0.8 ‖x‖² + exp(-10 ‖x‖²)) + 2.54
    square = x.square().sum(-1)
    return 2 * torch.log(0.8 * square + torch.exp(-10 * square)) + 2.54
