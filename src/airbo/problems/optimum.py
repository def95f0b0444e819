"""The best point of a function that costs nothing, by brute force."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from scipy.optimize import Bounds, minimize, minimize_scalar
from torch import Tensor

from airbo.uncertainty import base_draws

N_GRID = 1001
N_TRIED = 2**9
N_REFINED = 4
APART = 0.2
"""Smallest distance of the starting points, in the unit cube."""

Direction = Literal["maximize", "minimize"]
Function = Callable[[Tensor], Tensor]


class Optimum(NamedTuple):
    """The best design and what it gives."""

    design: Float[Tensor, " d"]
    value: float


def best_point(f: Function, bounds: Float[Tensor, "2 d"], direction: Direction) -> Optimum:
    """Search the whole box: a fine grid on a line, otherwise Powell's method from many starts."""
    sign = 1.0 if direction == "maximize" else -1.0
    search = highest_point if bounds.shape[-1] == 1 else _highest_in_a_box
    best = search(lambda X: sign * f(X), bounds)
    return Optimum(best.design, sign * best.value)


def highest_point(f: Function, bounds: Float[Tensor, "2 1"]) -> Optimum:
    """Maximize a function of one variable: every local maximum of a fine grid, refined."""
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


def _highest_in_a_box(f: Function, bounds: Float[Tensor, "2 d"]) -> Optimum:
    low, width = bounds[0], bounds[1] - bounds[0]
    d = bounds.shape[-1]

    def negative(z: Float[Tensor, " d"]) -> float:
        return -f((low + width * torch.as_tensor(z).to(low)).unsqueeze(0)).item()

    tried = base_draws(N_TRIED, d).to(bounds)
    order = f(low + width * tried).argsort(descending=True)
    starts = _far_apart(tried[order])
    found = [minimize(negative, z, method="Powell", bounds=Bounds([0.0] * d, 1.0)) for z in starts]
    best = min(found, key=lambda result: result.fun)
    return Optimum(low + width * torch.as_tensor(best.x).to(low), -float(best.fun))


def _far_apart(points: Float[Tensor, "n d"]) -> list[Tensor]:
    """Return the first few points, without those that are close to an earlier one."""
    chosen: list[Tensor] = []
    for point in points:
        if all((point - other).norm() > APART for other in chosen):
            chosen.append(point)
        if len(chosen) == N_REFINED:
            break
    return chosen
