"""The robot push: where to start, and how long to push, to bring a ball to a goal."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from airbo.observed import Direction
from airbo.problems import Optimum, Problem
from airbo.uncertainty import GaussianMixture, InputUncertainty
from experiments.subjects.internals import best_point
from experiments.subjects.push_table import ball_distance
from experiments.subjects.push_world import STEPS_PER_UNIT, push


class Goal(NamedTuple):
    """A goal for the ball."""

    x: float
    y: float
    squared: bool = False
    """Whether the loss is the square of the distance."""


GOALS = {
    "paper": (Goal(-3, -3, squared=True), Goal(-3, 3), Goal(4.3, 4.3), Goal(5.1, 3.0)),
    "published": (Goal(-3, 3, squared=True), Goal(3, -3), Goal(4.3, 4.3), Goal(5.1, 3.0)),
}
"""The goals in the text of the paper, and those in the authors' published program."""

COVARIANCE = ((0.3**2, -(0.1**2), 0.0), (-(0.1**2), 0.3**2, 0.0), (0.0, 0.0, 1.0))

NOMINAL_DURATION = 25.05
"""In the middle of a step, so that rounding cannot change the number of steps."""

QUADRANTS = {"I": (1, 1), "II": (-1, 1), "III": (-1, -1), "IV": (1, -1)}
"""Signs of x and y."""


def two_modes() -> GaussianMixture:
    """Return the uncertainty of the paper: half of the time, the hand stands to the upper left."""
    return GaussianMixture([[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]], COVARIANCE)


@dataclass(frozen=True)
class RobotPush(Problem):
    r"""A hand starts at (r_x, r_y) and pushes the ball at the origin, for a duration r_t.

    .. math:: f = \min\left(d(g_1)^2, d(g_2), d(g_3), d(g_3')\right)

    with the distances d between the ball's final position and the goals. Lengths are in metres,
    durations in tenths of a second. Box2D simulates the push: ``pip install "airbo[push]"``.

    The world is the same in all directions. Expectations therefore look up in a table how far the
    ball is pushed, and need no simulator. Of 3,000 pushes from all over the box, nine of ten agree
    with the simulation within 2e-5 m. The worst is 0.006 m off: there the hand meets the ball at
    the very end of a step, and could equally meet it in the next one. The table changes
    expectations by less than 1e-5 (four designs with 3,072 simulated pushes each). The sampling
    error of expectations is about 1e-4, much less than ``expected_error`` says.
    """

    name: ClassVar[str] = "push"
    direction: ClassVar[Direction] = "minimize"
    n_samples: ClassVar[int] = 2**14

    goals: str = "paper"
    """Key of ``GOALS``."""
    uncertainty: InputUncertainty = field(default_factory=two_modes)

    def __post_init__(self) -> None:
        """Refuse unknown goals, and uncertainties that do not have three dimensions."""
        if self.goals not in GOALS:
            raise ValueError(f"goals must be one of {', '.join(GOALS)}, got {self.goals!r}.")
        self.uncertainty.check_dim(3)

    @property
    def bounds(self) -> Float[Tensor, "2 3"]:
        """A square around the ball, and the duration."""
        return torch.tensor([[-5.0, -5.0, 0.0], [5.0, 5.0, 30.0]], dtype=torch.float64)

    def __call__(self, X: Float[Tensor, "*batch n 3"]) -> Float[Tensor, "*batch n"]:
        """Simulate a push from every executed input and return its loss."""
        return self.loss(self.simulate(X))

    def quick(self, X: Float[Tensor, "*batch n 3"]) -> Float[Tensor, "*batch n"]:
        """Return the loss according to the table."""
        return self.loss(self.ball(X))

    def simulate(self, X: Float[Tensor, "*batch n 3"]) -> Float[Tensor, "*batch n 2"]:
        """Return where the ball ends, by simulation."""
        self.check_columns(X)
        flat = X.detach().reshape(-1, 3)
        return push(flat[:, :2], n_steps(flat)).reshape(*X.shape[:-1], 2)

    def ball(self, X: Float[Tensor, "*batch n 3"]) -> Float[Tensor, "*batch n 2"]:
        """Return where the ball ends, according to the table."""
        self.check_columns(X)
        hand = X[..., :2]
        distance = hand.norm(dim=-1)
        right = hand.new_tensor([1.0, 0.0])  # a hand on the centre counts as standing here
        away = torch.where(distance.unsqueeze(-1) > 0, hand / distance.unsqueeze(-1), right)
        return -away * ball_distance(distance, n_steps(X)).unsqueeze(-1)

    def loss(self, ball: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"]:
        """Return the distance to the closest goal; the distance to some goals counts squared."""
        losses = []
        for goal in GOALS[self.goals]:
            squared = (ball[..., 0] - goal.x) ** 2 + (ball[..., 1] - goal.y) ** 2
            losses.append(squared if goal.squared else squared.sqrt())
        return torch.stack(losses).amin(dim=0)

    @cached_property
    def nominal_optimum(self) -> Optimum:
        """A push that ends in the first goal, one of many pushes with zero loss."""
        goal = self.bounds.new_tensor(GOALS[self.goals][0][:2])
        towards = goal / goal.norm()
        farthest = 5.0 / towards.abs().max()

        def design(distance: Float[Tensor, "n 1"]) -> Float[Tensor, "n 3"]:
            hand = -towards * distance
            return torch.cat([hand, torch.full_like(distance, NOMINAL_DURATION)], dim=-1)

        line = torch.stack([torch.zeros_like(farthest), farthest]).unsqueeze(-1)
        best = best_point(lambda r: self.quick(design(r)), line, self.direction)
        return Optimum(design(best.design.unsqueeze(0)).squeeze(0), best.value)

    @cached_property
    def robust_optimum(self) -> Optimum:
        """The best design in expectation."""
        return min(self.robust_optima.values(), key=lambda optimum: optimum.value)

    @cached_property
    def robust_optima(self) -> dict[str, Optimum]:
        """The best designs that push the ball into each quadrant."""
        return {name: self._best_into(*signs) for name, signs in QUADRANTS.items()}

    def _best_into(self, x_sign: int, y_sign: int) -> Optimum:
        low, high = self.bounds.clone()
        for column, sign in enumerate((x_sign, y_sign)):  # the hand starts on the other side
            (high if sign > 0 else low)[column] = 0.0
        return self.best_within(torch.stack([low, high]))


def n_steps(X: Float[Tensor, "*batch 3"]) -> Int[Tensor, "*batch"]:
    """Return how many simulation steps a push lasts; 0 if its duration is negative."""
    return (STEPS_PER_UNIT * X[..., 2]).clamp(min=0).long()
