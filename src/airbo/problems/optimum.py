"""The best point of a cheap function, by brute force."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import Bounds, OptimizeResult, minimize, minimize_scalar
from torch import Tensor

from airbo.observed import Direction
from airbo.uncertainty import base_draws

N_GRID = 1001
N_TRIED = 2**8
N_REFINED = 4
FAR_APART = 0.2
"""Smallest distance between two starting points, in the unit cube."""
DIFFERENCE = 5e-3
"""Half the step of finite differences; large, because a mean over samples is not smooth."""

Function = Callable[[Tensor], Tensor]


class Optimum(NamedTuple):
    """The best design and its value."""

    design: Float[Tensor, " d"]
    value: float


def best_point(
    f: Function,
    bounds: Float[Tensor, "2 d"],
    direction: Direction,
    rough: Function | None = None,
) -> Optimum:
    """Search the whole box: on a fine grid in one dimension, otherwise from several starts.

    ``rough`` is a cheaper approximation of f for the first part of the search. The last part uses f
    itself.
    """
    sign = 1.0 if direction == "maximize" else -1.0

    def signed(function: Function) -> Function:
        return lambda X: sign * function(X)

    if bounds.shape[-1] == 1:
        best = highest_point(signed(f), bounds)
    else:
        best = _highest_in_a_box(signed(f), signed(rough or f), bounds)
    return Optimum(best.design, sign * best.value)


def highest_point(f: Function, bounds: Float[Tensor, "2 1"]) -> Optimum:
    """Maximize a function of one variable by refining every local maximum of a fine grid."""
    low, high = bounds[:, 0].tolist()
    grid = torch.linspace(low, high, N_GRID, dtype=bounds.dtype)
    values = f(grid.unsqueeze(-1))
    padded = torch.nn.functional.pad(values, (1, 1), value=-torch.inf)
    peaks = (values >= padded[:-2]) & (values >= padded[2:])

    def negative(x: float) -> float:
        return -f(bounds.new_tensor([[x]])).item()

    step = (high - low) / (N_GRID - 1)
    candidates = []
    for peak in grid[peaks].tolist():
        around = (max(peak - step, low), min(peak + step, high))
        refined = minimize_scalar(negative, bounds=around, options={"xatol": 1e-10}).x
        candidates += [peak, float(refined)]
    best = min(candidates, key=negative)
    return Optimum(bounds.new_tensor([best]), -negative(best))


def _highest_in_a_box(f: Function, rough: Function, bounds: Float[Tensor, "2 d"]) -> Optimum:
    d = bounds.shape[-1]
    box = Bounds([0.0] * d, [1.0] * d)

    def from_cube(z: np.ndarray) -> Tensor:
        return bounds[0] + torch.as_tensor(z).to(bounds) * (bounds[1] - bounds[0])

    def climb(function: Function, z: np.ndarray) -> OptimizeResult:
        def depth(z: np.ndarray) -> np.ndarray:  # (..., n, d) -> (..., n)
            return -function(from_cube(z)).numpy(force=True)

        def slope(z: np.ndarray) -> np.ndarray:
            ends = np.stack([z + DIFFERENCE * np.eye(d), z - DIFFERENCE * np.eye(d)]).clip(0, 1)
            return np.subtract(*depth(ends)) / np.subtract(*ends).diagonal()

        return minimize(lambda z: depth(z[None])[0], z, method="L-BFGS-B", jac=slope, bounds=box)

    def polish(z: np.ndarray) -> OptimizeResult:
        def depth(z: np.ndarray) -> float:
            return -f(from_cube(z[None])).item()

        return minimize(depth, z, method="Nelder-Mead", bounds=box, options={"adaptive": True})

    tried = base_draws(N_TRIED, d).numpy()
    starts = _far_apart(tried[rough(from_cube(tried)).numpy(force=True).argsort()[::-1]])
    top = min((climb(rough, z) for z in starts), key=lambda result: result.fun)
    best = polish(climb(f, top.x).x)
    return Optimum(from_cube(best.x), -float(best.fun))


def _far_apart(points: np.ndarray) -> list[np.ndarray]:
    """Return the first few points that are not close to an earlier one."""
    chosen: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > FAR_APART for other in chosen):
            chosen.append(point)
        if len(chosen) == N_REFINED:
            break
    return chosen
