"""True expectations of cheap functions."""

from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from scipy.special import roots_jacobi
from torch import Tensor

from airbo.problems.optimum import Function
from airbo.uncertainty import Beta, Exact, InputUncertainty, base_draws

N_JACOBI = 200
N_SAMPLES = 2**13
BLOCK = 2**19
"""Number of samples in memory at a time."""


class Expectation(NamedTuple):
    """An expectation and its standard error, which is 0 if the expectation is exact."""

    mean: Float[Tensor, "*batch n"]
    error: Float[Tensor, "*batch n"]


def expectation(
    f: Function, uncertainty: InputUncertainty, X: Float[Tensor, "*batch n d"]
) -> Float[Tensor, "*batch n"]:
    """Return E f(x') for x' ~ P_x; see ``estimate``."""
    return estimate(f, uncertainty, X).mean


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
        deviations, weights = beta_quadrature(uncertainty)
        executed = X.unsqueeze(-2) + deviations.to(X).unsqueeze(-1)  # (..., n, s, 1)
        return Expectation(f(executed) @ weights.to(X), X.new_zeros(X.shape[:-1]))

    blocks = X.reshape(-1, X.shape[-1]).split(max(BLOCK // n_samples, 1))
    values = (f(_executed(uncertainty, block, n_samples)) for block in blocks)
    moments = [torch.stack([v.mean(-1), v.std(-1)]) for v in values]
    mean, std = torch.cat(moments, dim=-1).reshape(2, *X.shape[:-1])
    return Expectation(mean, std / n_samples**0.5)


def _executed(
    uncertainty: InputUncertainty, X: Float[Tensor, "n d"], n_samples: int
) -> Float[Tensor, "n s d"]:
    if uncertainty.is_additive:
        return X.unsqueeze(-2) + _deviations(uncertainty, n_samples, X.shape[-1]).to(X)
    return uncertainty.perturb(X, base_draws(n_samples, uncertainty.n_base(X.shape[-1])).to(X))


@lru_cache(maxsize=8)
def _deviations(uncertainty: InputUncertainty, n_samples: int, d: int) -> Float[Tensor, "s d"]:
    origin = torch.zeros(1, d, dtype=torch.float64)
    return uncertainty.perturb(origin, base_draws(n_samples, uncertainty.n_base(d)))[0]


def beta_quadrature(uncertainty: Beta) -> tuple[Float[Tensor, " s"], Float[Tensor, " s"]]:
    """Return nodes and weights of ∫ g(δ) p(δ) dδ for the deviation δ of a scalar beta."""
    a, b, loc, scale = (
        torch.as_tensor(p, dtype=torch.float64).item()
        for p in (uncertainty.a, uncertainty.b, uncertainty.loc, uncertainty.scale)
    )
    # p(u) ∝ u^(a-1) (1-u)^(b-1) on [0, 1], with t = 2u - 1 on [-1, 1]
    t, weights = (torch.from_numpy(v) for v in roots_jacobi(N_JACOBI, b - 1, a - 1))
    return loc + scale * (t + 1) / 2, weights / weights.sum()
