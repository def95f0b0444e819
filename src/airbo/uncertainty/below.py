"""Distribution functions: how likely one column lands below a limit."""

from functools import singledispatch

import numpy as np
import torch
from jaxtyping import Float
from scipy import special
from torch import Tensor

from airbo.uncertainty.additive import Beta, ChiSquared, Exact, Uniform
from airbo.uncertainty.base import InputUncertainty, base_draws
from airbo.uncertainty.clipped import Clipped
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.gaussian import Normal
from airbo.uncertainty.mixture import GaussianMixture
from airbo.uncertainty.parameters import Numbers, as_tensor, per_design
from airbo.uncertainty.relative import LogNormal, Relative
from airbo.uncertainty.varying import Piecewise, Varying

_N_DRAWS = 4096
"""Draws that stand for an uncertainty without a distribution function."""


def below(
    uncertainty: InputUncertainty, X: Float[Tensor, "*batch n 1"], t: Float[Tensor, "*limits k"]
) -> Float[Tensor, "*batch n k"]:
    """Return P(x' < t) for every design and limit.

    It is exact where the kind has a distribution function, and counted from draws where not.
    """
    return _below(uncertainty, X, t.expand(*X.shape[:-1], t.shape[-1]))


@singledispatch
def _below(u: InputUncertainty, X: Tensor, t: Tensor) -> Tensor:
    samples = u.perturb(X, base_draws(_N_DRAWS, u.n_base(1)).to(X)).squeeze(-1)  # (..., n, s)
    ordered = samples.detach().sort(dim=-1).values
    return torch.searchsorted(ordered, t.detach().contiguous()).to(X) / _N_DRAWS


@_below.register
def _(u: Exact, X: Tensor, t: Tensor) -> Tensor:
    return (t > X).to(X)


@_below.register
def _(u: Normal, X: Tensor, t: Tensor) -> Tensor:
    std = u.covariance(X).squeeze(-1).sqrt()  # (..., n, 1)
    return _normal(t - X, std)


def _normal(deviation: Tensor, std: Tensor) -> Tensor:
    exact = std <= 0
    z = deviation / torch.where(exact, 1.0, std)
    return torch.where(exact, (deviation > 0).to(deviation), torch.special.ndtr(z))


@_below.register
def _(u: Uniform, X: Tensor, t: Tensor) -> Tensor:
    low, high = (_of(p, X, name) for name, p in (("low", u.low), ("high", u.high)))
    width = high - low
    inside = (t - X - low) / torch.where(width > 0, width, 1.0)
    return torch.where(width > 0, inside.clamp(0, 1), (t - X > low).to(X))


@_below.register
def _(u: Beta, X: Tensor, t: Tensor) -> Tensor:
    a, b, loc, scale = (_of(getattr(u, n), X, n) for n in ("a", "b", "loc", "scale"))
    z = (t - X - loc) / torch.where(scale > 0, scale, 1.0)
    F = _from_scipy(lambda a, b, z: special.betainc(a, b, np.clip(z, 0, 1)), a, b, z)
    return torch.where(scale > 0, F, (t - X > loc).to(X))


@_below.register
def _(u: ChiSquared, X: Tensor, t: Tensor) -> Tensor:
    df, loc, scale = (_of(getattr(u, n), X, n) for n in ("df", "loc", "scale"))
    z = (t - X - loc) / torch.where(scale > 0, scale, 1.0)
    F = _from_scipy(lambda df, z: special.chdtr(df, np.maximum(z, 0)), df, z)
    return torch.where(scale > 0, F, (t - X > loc).to(X))


@_below.register
def _(u: GaussianMixture, X: Tensor, t: Tensor) -> Tensor:
    if not u.is_additive:
        return _below.dispatch(InputUncertainty)(u, X, t)
    means, covs, weights = (as_tensor(p).to(X) for p in (u.means, u.covs, u.weights))
    away = (t - X).unsqueeze(-1) - means.squeeze(-1)  # (..., n, k, components)
    return (_normal(away, covs[:, 0, 0].sqrt()) * weights).sum(dim=-1)


@_below.register
def _(u: Empirical, X: Tensor, t: Tensor) -> Tensor:
    deviations = as_tensor(u.deviations).to(X).flatten().sort().values
    counts = torch.searchsorted(deviations, (t - X).detach().contiguous())
    return counts.to(X) / len(deviations)


@_below.register
def _(u: Relative, X: Tensor, t: Tensor) -> Tensor:
    # x (1 + δ) < t: δ < t/x - 1 for x > 0, δ > t/x - 1 for x < 0
    zero, x = torch.zeros_like(X), torch.where(X == 0, 1.0, X)
    F = _below(u.share, zero, t / x - 1)
    landed = torch.where(X > 0, F, 1 - F)
    return torch.where(X == 0, (t > 0).to(X), landed)


@_below.register
def _(u: LogNormal, X: Tensor, t: Tensor) -> Tensor:
    ratio = t / torch.where(X == 0, 1.0, X)
    F = _normal(ratio.clamp_min(1e-300).log(), u.log_std(X).expand_as(X))
    F = torch.where(ratio > 0, F, 0.0)
    return torch.where(X == 0, (t > 0).to(X), torch.where(X > 0, F, 1 - F))


@_below.register
def _(u: Clipped, X: Tensor, t: Tensor) -> Tensor:
    F = _below(u.uncertainty, X, t)
    if u.low is not None:
        F = torch.where(t > _of(u.low, X, "low"), F, 0.0)
    return F if u.high is None else torch.where(t > _of(u.high, X, "high"), 1.0, F)


@_below.register
def _(u: Piecewise, X: Tensor, t: Tensor) -> Tensor:
    options = torch.stack([_below(piece, X, t) for piece in u.pieces])
    chosen = u.select(X).unsqueeze(-1).expand_as(t)
    return options.gather(0, chosen.unsqueeze(0)).squeeze(0)


@_below.register
def _(u: Varying, X: Tensor, t: Tensor) -> Tensor:
    return _below(u.at(X), X, t)


def _of(p: Numbers, X: Tensor, name: str) -> Tensor:
    """Return a parameter as (..., n, 1) or as a number for all designs."""
    return per_design(p, X, name, 1)


def _from_scipy(function: object, *arguments: Tensor) -> Tensor:
    arrays = [t.detach().double().cpu().numpy() for t in arguments]
    return torch.from_numpy(np.asarray(function(*arrays))).to(arguments[-1])  # type: ignore[operator]
