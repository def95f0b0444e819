"""The world of the robot push: a hand pushes a ball on a plane with friction, in Box2D."""

import math
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

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
