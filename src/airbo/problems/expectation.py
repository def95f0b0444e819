"""Truth by brute force: expectations and maxima of functions that cost nothing."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from scipy.special import roots_jacobi
from torch import Tensor

from airbo.problems.base import Optimum
from airbo.uncertainty import Beta, InputUncertainty, base_draws

N_NODES = 200
N_SAMPLES = 2**13
N_GRID = 1001

Function = Callable[[Tensor], Tensor]


def expectation(
    f: Function, uncertainty: InputUncertainty, X: Float[Tensor, "*batch n d"]
) -> Float[Tensor, "*batch n"]:
    """Return E f(x') for x' ~ P_x.

    A one-dimensional beta distribution is integrated by Gauss-Jacobi quadrature, because its
    density may be infinite at both ends; every other uncertainty by 2¹³ fixed Sobol samples.
    """
    if isinstance(uncertainty, Beta) and uncertainty.is_additive and X.shape[-1] == 1:
        deviations, weights = beta_quadrature(uncertainty)
        executed = X.unsqueeze(-2) + deviations.to(X).unsqueeze(-1)  # (..., n, s, 1)
        return f(executed) @ weights.to(X)

    d = X.shape[-1]
    base = base_draws(N_SAMPLES, uncertainty.n_base(d)).to(X)
    blocks = X.reshape(-1, d).split(64)  # so that the samples fit into memory
    means = [f(uncertainty.perturb(block, base)).mean(-1) for block in blocks]
    return torch.cat(means).reshape(X.shape[:-1])


def beta_quadrature(uncertainty: Beta) -> tuple[Float[Tensor, " s"], Float[Tensor, " s"]]:
    """Return nodes and weights of ∫ g(δ) p(δ) dδ for the deviation δ of a scalar beta."""
    a, b, loc, scale = (
        torch.as_tensor(p, dtype=torch.float64).item()
        for p in (uncertainty.a, uncertainty.b, uncertainty.loc, uncertainty.scale)
    )
    # p(u) ∝ u^(a-1) (1-u)^(b-1) on [0, 1], with t = 2u - 1 on [-1, 1]
    t, weights = (torch.from_numpy(v) for v in roots_jacobi(N_NODES, b - 1, a - 1))
    return loc + scale * (t + 1) / 2, weights / weights.sum()


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
