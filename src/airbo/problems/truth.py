"""Truths of cheap functions: expectations and other measures over P_x, and optima.

Notation
    X (*batch n d)            designs
    x' (*batch n s d)         s executed inputs of each, from fixed Sobol samples
    f (*batch n s)            values there; E f is their mean, a measure another number of them
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import Bounds, OptimizeResult, minimize, minimize_scalar
from scipy.special import roots_jacobi
from torch import Tensor

from airbo.measures import Measure
from airbo.observed import Direction
from airbo.uncertainty import Beta, Exact, InputUncertainty, base_draws

N_JACOBI = 200
"""Nodes of a quadrature for the beta distribution."""
N_SAMPLES = 2**13
"""Samples of P_x behind an expectation without a closed form."""
N_PARTS, N_IN_PART = 16, 2**16
"""Samples behind a measure: 2²⁰, in parts that are independent of each other."""
BLOCK = 2**19
"""Number of samples in memory at a time."""
N_GRID = 1001
N_TRIED = 2**8
N_REFINED = 4
FAR_APART = 0.2
"""Smallest distance between two starting points, in the unit cube."""
DIFFERENCE = 5e-3
"""Half the step of finite differences; large, because a mean over samples is not smooth."""

Function = Callable[[Tensor], Tensor]


# -- expectations


class Expectation(NamedTuple):
    """An expectation and its standard error, which is 0 if the expectation is exact."""

    mean: Float[Tensor, "*batch n"]
    error: Float[Tensor, "*batch n"]


def estimate(
    f: Function,
    uncertainty: InputUncertainty,
    X: Float[Tensor, "*batch n d"],
    n_samples: int = N_SAMPLES,
) -> Expectation:
    """Return E f(x') for x' ~ P_x, with its standard error.

    A one-dimensional beta distribution is integrated by Gauss-Jacobi quadrature, because its
    density may be infinite at both ends. All other uncertainties use fixed Sobol samples. Their
    standard error is computed as if the draws were independent, which is conservative.
    """
    if isinstance(uncertainty, Exact):
        return Expectation(f(X), X.new_zeros(X.shape[:-1]))

    if isinstance(uncertainty, Beta) and uncertainty.is_additive and X.shape[-1] == 1:
        # Σ_k w_k f(x + δ_k)
        deviations, weights = beta_quadrature(uncertainty)
        executed = X.unsqueeze(-2) + deviations.to(X).unsqueeze(-1)  # (..., n, s, 1)
        return Expectation(f(executed) @ weights.to(X), X.new_zeros(X.shape[:-1]))

    # (1/s) Σ f(x'_s) ± sd / √s
    blocks = X.reshape(-1, X.shape[-1]).split(max(BLOCK // n_samples, 1))
    values = (f(_executed(uncertainty, block, n_samples)) for block in blocks)
    moments = [torch.stack([v.mean(-1), v.std(-1)]) for v in values]
    mean, std = torch.cat(moments, dim=-1).reshape(2, *X.shape[:-1])
    return Expectation(mean, std / n_samples**0.5)


def beta_quadrature(uncertainty: Beta) -> tuple[Float[Tensor, " s"], Float[Tensor, " s"]]:
    """Return nodes and weights of ∫ g(δ) p(δ) dδ for the deviation δ of a scalar beta."""
    a, b, loc, scale = (
        torch.as_tensor(p, dtype=torch.float64).item()
        for p in (uncertainty.a, uncertainty.b, uncertainty.loc, uncertainty.scale)
    )
    # p(u) ∝ u^(a-1) (1-u)^(b-1) on [0, 1], with t = 2u - 1 on [-1, 1]
    t, weights = (torch.from_numpy(v) for v in roots_jacobi(N_JACOBI, b - 1, a - 1))
    return loc + scale * (t + 1) / 2, weights / weights.sum()


def blurred_bumps(
    X: Float[Tensor, "*batch n d"],
    bumps: Sequence[tuple[float, tuple[float, ...], float]],
    variances: Float[Tensor, "*batch n d"],
) -> Float[Tensor, "*batch n"]:
    """Return E Σ h exp(-‖x' - c‖² / 2w²) over bumps (h, c, w), for independent normal errors."""
    h, c, w = (X.new_tensor(v) for v in zip(*bumps, strict=True))  # (k), (k, d), (k)
    # per column, E exp(-(x' - c)² / 2w²) = √(w² / (w² + v)) exp(-(x - c)² / 2(w² + v))
    own = w.square().unsqueeze(-1)
    total = own + variances.unsqueeze(-2)  # (..., n, k, d)
    squared = (X.unsqueeze(-2) - c).square() / total
    return (h * (own / total).sqrt().prod(-1) * torch.exp(-0.5 * squared.sum(-1))).sum(-1)


# -- other measures


def sign_of(direction: Direction) -> int:
    """Return the factor that makes larger values better."""
    return 1 if direction == "maximize" else -1


def direction_of(measure: Measure, direction: Direction) -> Direction:
    """Return whether larger or smaller measures are better; for a share in spec, larger."""
    return "maximize" if measure.factor(sign_of(direction), 1.0) > 0 else "minimize"


def estimate_measure(
    f: Function,
    uncertainty: InputUncertainty,
    X: Float[Tensor, "*batch n d"],
    measure: Measure,
    direction: Direction,
    n_samples: int = N_IN_PART,
    n_parts: int = N_PARTS,
) -> Expectation:
    """Return a measure of f(x') for x' ~ P_x, with its standard error.

    Every part of the samples is a scrambled Sobol sequence of its own; how much they disagree says
    how far their mean may be from the truth.
    """
    # m(sign f), larger being better, and back: factor m
    d, sign = X.shape[-1], sign_of(direction)
    meant = measure.over(bounded=uncertainty.is_bounded(d))
    inside, factor = meant.inside(sign, 1.0), meant.factor(sign, 1.0)
    points = X.reshape(-1, d).split(max(BLOCK // n_samples, 1))
    parts = []
    for seed in range(n_parts):
        values = [inside.of(sign * f(_executed(uncertainty, x, n_samples, seed))) for x in points]
        parts.append(factor * torch.cat(values).reshape(X.shape[:-1]))
    # mean of the parts ± sd / √parts
    each = torch.stack(parts)
    error = each.std(0) / n_parts**0.5 if n_parts > 1 else torch.zeros_like(each[0])
    return Expectation(each.mean(0), error)


# -- samples


def _executed(
    uncertainty: InputUncertainty, X: Float[Tensor, "n d"], n_samples: int, seed: int = 0
) -> Float[Tensor, "n s d"]:
    """Return executed inputs of designs, the same for the same seed."""
    d = X.shape[-1]
    if uncertainty.is_additive:  # x' = x + δ, with the same δ at every design
        return X.unsqueeze(-2) + _deviations(uncertainty, d, n_samples, seed).to(X)
    return uncertainty.perturb(X, base_draws(n_samples, uncertainty.n_base(d), seed=seed).to(X))


@lru_cache(maxsize=2 * N_PARTS)
def _deviations(
    uncertainty: InputUncertainty, d: int, n_samples: int, seed: int
) -> Float[Tensor, "s d"]:
    """Return draws of δ = x' - x."""
    base = base_draws(n_samples, uncertainty.n_base(d), seed=seed)
    return uncertainty.perturb(torch.zeros(1, d, dtype=base.dtype), base)[0]


# -- optima


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
