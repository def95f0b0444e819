"""Every kind of input uncertainty, as pairs (uncertainty, number of columns of the designs)."""

import math

import numpy as np
import scipy.stats
import torch

from airbo import uncertainty as unc

COV = [[0.09, -0.01], [-0.01, 0.09]]
SINGULAR = [[0.04, 0.02], [0.02, 0.01]]
COPULA = [[1.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 1.0]]
LOG = np.random.default_rng(0).normal(size=(50, 2)) * [0.1, 0.3]


def proportional_normal(x):
    return unc.Normal(0.1 * (1 + x**2))


def wavy_beta(x):
    return unc.Beta(0.5, 0.5, scale=0.09 * (torch.sin(4 * math.pi * x) + 1))


def bending_beta(x):
    return unc.Beta(0.6 + x**2, 0.8 + x.abs(), loc=-0.1, scale=0.2)


def bending_chi_squared(x):
    return unc.ChiSquared(0.8 + x**2, scale=0.1)


def turning_normal(x):
    eye = torch.eye(x.shape[-1], dtype=x.dtype)
    return unc.Normal(cov=0.01 * eye + 0.02 * x.unsqueeze(-1) * x.unsqueeze(-2))


def moving_mixture(x):
    means = torch.stack([x, -x], dim=-2)
    return unc.GaussianMixture(means, [[0.01, 0.0], [0.0, 0.02]], [0.3, 0.7])


def growing_ring(x):
    return unc.Ring(0.1 + x[..., :1] ** 2)


def mixed_blocks(x):
    return unc.Product([unc.Normal(0.1 + x[..., :1] ** 2), unc.Uniform(-0.1, 0.1)])


def stretched(X, base):
    return X.unsqueeze(-2) * (1 + 0.1 * base)


def jitter(X, base):
    rng = np.random.default_rng(int(2**32 * base[0, 0]))
    drawn = rng.normal(size=(len(base), X.shape[-1]))
    return X.unsqueeze(-2) + 0.1 * torch.from_numpy(drawn).to(X)


def double(values):
    return torch.tensor(values, dtype=torch.float64)


SAVEABLE = [
    (unc.Exact(), 3),
    (unc.Normal(0.1), 3),
    (unc.Normal([0.1, 0.0, 2.0]), 3),
    (unc.Normal(cov=COV), 2),
    (unc.Normal(cov=SINGULAR), 2),
    (unc.Uniform(-0.1, 0.3), 2),
    (unc.Uniform([-0.1, 0.0], [0.3, 0.5]), 2),
    (unc.Beta(0.4, 0.2, scale=0.1), 1),
    (unc.Beta(2, [0.5, 1.5], loc=-0.5), 2),
    (unc.ChiSquared(0.5, scale=0.01), 1),
    (unc.ChiSquared([2.0, 7.0], loc=-0.1, scale=0.02), 2),
    (unc.GaussianMixture([[0.0, 0.0], [-1.0, 1.0]], COV), 2),
    (unc.GaussianMixture([[0.0], [1.0], [2.0]], [[[0.1]], [[0.0]], [[0.3]]], [0.2, 0.5, 0.3]), 1),
    (unc.Ring(0.5), 2),
    (unc.Relative(unc.GaussianMixture([[0.0, 0.0], [-0.1, 0.1]], [[0.01, 0.0], [0.0, 0.04]])), 2),
    (unc.Empirical(LOG), 2),
    (unc.Empirical(LOG[:, 0]), 1),
    (unc.Relative(unc.Normal(0.05)), 2),
    (unc.Relative(unc.Uniform([-0.1, 0.0], [0.1, 0.2])), 2),
    (unc.LogNormal(0.1), 2),
    (unc.LogNormal([0.1, 0.3]), 2),
    (unc.SciPy(scipy.stats.gamma(2, scale=0.1)), 2),
    (unc.SciPy(scipy.stats.norm([0.0, 0.1], scale=np.array([0.1, 0.3]))), 2),
    (unc.SciPy(scipy.stats.binom(5, 0.3)), 2),
    (unc.Product([unc.Ring(0.5), unc.Normal(0.1)]), 5),
    (unc.Product([unc.Normal(0.1), unc.Exact(), unc.Beta(0.4, 0.2, scale=0.1)]), 3),
    (unc.Product([unc.Ring(0.5), unc.Uniform(0, 1), unc.Exact()], [(3, 0), (1,), (2,)]), 4),
    (unc.Product([unc.Normal([0.1, 0.3]), unc.Uniform(0, 1)], [(2, 0), (1,)]), 3),
    (unc.Joint([unc.Beta(2, 5), unc.LogNormal(0.1)], [[1, 0.5], [0.5, 1]]), 2),
    (unc.Joint([unc.Normal(0.1), unc.Uniform(-0.2, 0.1), unc.Empirical(LOG[:, 0])], COPULA), 3),
    (unc.Joint([unc.Beta(2, 5), unc.Normal(0.1)], [[0.7, 0.3], [0.3, 0.6]], [0.9, -0.4]), 2),
    (unc.Piecewise([0.0], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7, scale=0.01)]), 1),
    (unc.Piecewise([-0.5, 0.5], [unc.Exact(), unc.Ring(0.2), unc.Normal(cov=COV)], column=1), 2),
    (unc.Normal(0.5).clipped(-0.3, 0.8), 2),
    (unc.Clipped(unc.Normal(0.5), low=[0.0, 0.1]), 2),
    (unc.Beta(0.4, 0.2).clipped(high=0.9), 1),
    (unc.Ring(0.5).clipped(-0.4, 0.6), 2),
    (unc.Scaled(unc.SciPy(scipy.stats.gamma(2, scale=0.1)), 0.5), 2),
    (unc.Rounded(unc.Normal(0.8), -1, 2), 1),
    (unc.Rounded(unc.Normal(cov=COV), -1, 2, columns=[1]), 2),
]
"""Those that can be written as JSON."""

UNSAVEABLE = [
    (unc.SciPy(scipy.stats.rv_discrete(values=([0, 1], [0.5, 0.5]))()), 2),
    (unc.Torch(torch.distributions.Laplace(0.0, 0.2)), 2),
    (unc.Torch(torch.distributions.Normal(double([0.0, 0.1]), double([0.1, 0.3]))), 2),
    (unc.Torch(torch.distributions.StudentT(double(9.0), double(0.0), double(0.1))), 2),
    (unc.Torch(torch.distributions.MultivariateNormal(double([0.0, 0.1]), double(COV))), 2),
    (unc.Torch(torch.distributions.Gamma(torch.tensor(2.0), torch.tensor(30.0))), 2),
    (unc.Torch(torch.distributions.Gumbel(0.0, 0.2)), 1),
    (unc.Varying(proportional_normal), 3),
    (unc.Varying(wavy_beta), 1),
    (unc.Varying(bending_beta), 2),
    (unc.Varying(bending_chi_squared), 2),
    (unc.Varying(turning_normal), 2),
    (unc.Varying(moving_mixture), 2),
    (unc.Varying(growing_ring), 2),
    (unc.Varying(mixed_blocks), 2),
    (unc.Varying(proportional_normal).clipped(-0.5, 0.5), 2),
    (unc.Product([unc.Varying(proportional_normal), unc.Ring(0.1)]), 4),
    (unc.Piecewise([0.0], [unc.Varying(proportional_normal), unc.Exact()]), 2),
    (unc.Sampler(stretched), 2),
    (unc.Sampler(jitter, n_base=1, additive=True), 2),
    (unc.Scaled(unc.Sampler(stretched), 2.0), 2),
]
"""Those that hold something that cannot."""

ALL_UNCERTAINTIES = SAVEABLE + UNSAVEABLE

WAYS = [
    # the kernel is a function of the difference of designs
    (unc.Normal([0.1, 0.0, 2.0]), 3),
    (unc.Normal(cov=SINGULAR), 2),
    (unc.Beta(0.4, 0.2, scale=0.1), 1),
    (unc.GaussianMixture([[0.0, 0.0], [-1.0, 1.0]], COV), 2),
    (unc.Empirical(LOG), 2),
    (unc.Joint([unc.Beta(2, 5), unc.Normal(0.1)], [[1, 0.5], [0.5, 1]]), 2),
    (unc.Product([unc.Ring(0.5), unc.Uniform(0, 1), unc.Exact()], [(3, 0), (1,), (2,)]), 4),
    (unc.Sampler(jitter, n_base=1, additive=True), 2),
    # P varies along a line
    (unc.Piecewise([0.0], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7, scale=0.01)]), 1),
    (unc.Varying(wavy_beta), 1),
    (unc.Rounded(unc.Normal(0.8), -1, 2), 1),
    # P varies in the plane
    (unc.Varying(turning_normal), 2),
    (unc.Varying(moving_mixture), 2),
    (unc.Varying(mixed_blocks), 2),
    (unc.Piecewise([0.0], [unc.Normal(cov=SINGULAR), unc.Normal(cov=COV)], column=1), 2),
    (unc.Normal(0.5).clipped(-0.3, 0.8), 2),
    (unc.Sampler(stretched), 2),
]
"""One or more for every way in which the kernel of two uncertain inputs is computed."""


def one_of_each_type(pairs):
    """Keep the first pair of every class of uncertainty."""
    return list({type(u): (u, d) for u, d in reversed(pairs)}.values())[::-1]
