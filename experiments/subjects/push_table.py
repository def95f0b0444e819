"""A table of how far a push moves the ball: fast, and without a simulator.

``python -m experiments.subjects.push_table`` remakes the table, in about two minutes.
"""

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from experiments.subjects.push_world import TIME_STEP, push_once

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


if __name__ == "__main__":
    make()
