"""The robot push: where to start, and how long to push, to bring a ball to a goal.

A hand pushes a ball on a plane with friction, in Box2D. A table of how far a push moves the ball is
fast and needs no simulator: ``python -m experiments.subjects.push`` remakes it, in two minutes.
"""

import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from airbo.observed import Direction
from airbo.problems import Optimum, Problem
from airbo.uncertainty import GaussianMixture, InputUncertainty
from experiments.subjects.internals import best_point

# -- the world

TIME_STEP = 0.01
"""Seconds per step of the simulation."""
STEPS_PER_UNIT = 10
"""Number of steps in one unit of the push duration r_t."""
COASTING_STEPS = 100
"""Steps after the push until hand and ball are at rest."""
SOLVER_ITERATIONS = 10
SPEED = 5.0
"""Speed that the hand tries to reach."""
GAIN = 30.0
"""Force of the drive per mass and per missing speed."""


def push(starts: Float[Tensor, "n 2"], n_steps: Int[Tensor, " n"]) -> Float[Tensor, "n 2"]:
    """Return where the ball ends, for each start of the hand and number of steps.

    The ball starts at the origin, and the hand moves straight towards it. The result depends on the
    arguments only.
    """
    if not starts.isfinite().all():
        raise ValueError("The start of the hand must be finite, got nan or inf.")
    pushes = zip(starts.tolist(), n_steps.clamp(min=0).tolist(), strict=True)
    ends = [push_once(x, y, n) for (x, y), n in pushes]
    return starts.new_tensor(ends).reshape(-1, 2)


def push_once(x: float, y: float, n_steps: int) -> tuple[float, float]:
    """Push from (x, y) for ``n_steps`` and return where the ball comes to rest.

    The hand's flat side faces the ball. A hand exactly on the centre of the ball counts as standing
    slightly to its right, because otherwise the direction of the push would be undefined.
    """
    if x == y == 0:
        x = 1e-6
    b2 = _box2d()
    world = b2.b2World(gravity=(0, 0), doSleep=True)
    ground = world.CreateStaticBody(position=(0, 0))

    ball = world.CreateDynamicBody(position=(0, 0))
    ball.CreateCircleFixture(radius=1.0, density=0.05, friction=0.01)
    world.CreateFrictionJoint(bodyA=ground, bodyB=ball, maxForce=5.0, maxTorque=2.0)

    hand = world.CreateDynamicBody(position=(x, y), angle=math.atan2(y, x))
    hand.CreatePolygonFixture(box=(0.3, 1.0), density=0.1, friction=0.1)
    world.CreateFrictionJoint(bodyA=ground, bodyB=hand, maxForce=2.0, maxTorque=2.0)

    distance = math.hypot(x, y)
    desired = b2.b2Vec2(-SPEED * x / distance, -SPEED * y / distance)
    for _ in range(n_steps):
        force = hand.mass * (desired - hand.linearVelocity) * GAIN
        hand.ApplyForce(force, hand.position, wake=True)
        hand.ApplyTorque(-hand.mass * hand.angularVelocity * GAIN, wake=True)
        _step(world)
    for _ in range(COASTING_STEPS):
        _step(world)
    return ball.position.x, ball.position.y


def _step(world: Any) -> None:
    world.Step(TIME_STEP, SOLVER_ITERATIONS, SOLVER_ITERATIONS)
    world.ClearForces()


def _box2d() -> Any:
    try:
        import Box2D
    except ImportError as error:
        raise ImportError(
            'The robot push needs the simulator Box2D: pip install "airbo[push]"'
        ) from error
    return Box2D


# -- the table

FILE = Path(__file__).with_name("push_table.npz")

FREE_STRIDE = 4.0 / 0.9 * TIME_STEP
"""How far the hand moves in a step at its steady speed, where drive and friction balance."""
JOINT_STRIDE = 2.75 / 0.9 * TIME_STEP
"""How far hand and ball move in a step at their steady speed."""

FARTHEST_START = 2.85
"""From farther away, the hand has reached its steady speed when it meets the ball."""
LONGEST = 150
"""By this step, hand and ball have reached their steady speed."""

GRID = 0.02
NARROWEST = 1e-5
BEND = 2e-5
"""Allowed error of linear interpolation between two entries."""


def ball_distance(
    distance: Float[Tensor, "*batch"], n_steps: Int[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """Return how far a hand that starts at some distance from the ball pushes it.

    Two laws extend the small table to all pushes. A hand that starts one stride farther away and
    pushes one step longer moves the ball equally far. Hand and ball at their steady speed move by
    one stride in every step.
    """
    nodes, table = _table()

    # move the hand closer by whole strides until its distance is in the table
    strides = ((distance - FARTHEST_START) / FREE_STRIDE).ceil().clamp(min=0)
    r = distance - FREE_STRIDE * strides
    k = n_steps - strides.long()
    beyond = (k - LONGEST).clamp(min=0)
    rows = k.clamp(0, LONGEST)

    # linear between nodes
    right = torch.searchsorted(nodes, r.contiguous()).clamp(1, len(nodes) - 1)
    share = (r - nodes[right - 1]) / (nodes[right] - nodes[right - 1])
    near = torch.lerp(table[right - 1, rows], table[right, rows], share)
    return torch.where(k < 0, 0.0, near + JOINT_STRIDE * beyond)


@cache
def _table() -> tuple[Float[Tensor, " m"], Float[Tensor, "m k"]]:
    with np.load(FILE, allow_pickle=False) as stored:
        return torch.from_numpy(stored["nodes"]), torch.from_numpy(stored["table"]).double()


def make() -> None:
    """Simulate every push of the table and store it."""
    nodes = make_nodes()
    table = [[simulated_distance(r, k) for k in range(LONGEST + 1)] for r in nodes]
    np.savez_compressed(FILE, nodes=np.array(nodes), table=np.array(table, dtype=np.float32))


def simulated_distance(r: float, n_steps: int) -> float:
    """Return how far Box2D moves the ball."""
    return -push_once(r, 0.0, n_steps)[0]


def make_nodes() -> list[float]:
    """Choose distances between which the longest push is linear.

    The step in which the hand meets the ball jumps by one as the start moves away. So the result
    is a sawtooth of straight lines with some thirty teeth. Cells that contain a jump are halved
    until they are narrow enough.
    """
    grid = np.linspace(0, FARTHEST_START, round(FARTHEST_START / GRID) + 1).tolist()
    known = {r: simulated_distance(r, LONGEST) for r in grid}
    cells = list(pairwise(grid))
    while cells:
        low, high = cells.pop()
        middle = (low + high) / 2
        value = simulated_distance(middle, LONGEST)
        bent = abs(value - (known[low] + known[high]) / 2) > BEND
        if bent and high - low > NARROWEST:
            known[middle] = value
            cells += [(low, middle), (middle, high)]
    return _needed(known, set(grid))


def _needed(known: dict[float, float], keep: set[float]) -> list[float]:
    """Drop the nodes that lie on the line between their neighbours."""
    nodes = sorted(known)
    needed = nodes[:1]
    for here, following in pairwise(nodes[1:]):
        last = needed[-1]
        line = np.interp(here, [last, following], [known[last], known[following]])
        if here in keep or abs(line - known[here]) > BEND / 4:
            needed.append(here)
    return [*needed, nodes[-1]]


# -- the problem


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


if __name__ == "__main__":
    make()
