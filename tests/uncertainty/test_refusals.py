"""What is refused at birth, and in which words."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from airbo import uncertainty as unc

PRINTED = [[0.1**2, -(0.3**2)], [-(0.3**2), 0.1**2]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: unc.Normal(-0.1), "std must be >= 0, got -0.1"),
        (lambda: unc.Normal([0.1, -2.0]), "std must be >= 0, got -2"),
        (lambda: unc.Normal(math.nan), "std must be finite, got nan"),
        (lambda: unc.Normal(math.inf), "std must be finite, got inf"),
        (lambda: unc.Normal([]), "std must not be empty"),
        (lambda: unc.Normal(np.ones((2, 2))), r"std must have at most 1 dimensions.*\(2, 2\)"),
        (lambda: unc.Normal(torch.full((2, 2), math.nan)), "std must be finite"),
        (lambda: unc.Normal(torch.full((2, 2), -1.0)), "std must be >= 0, got -1"),
        (lambda: unc.Normal(), "exactly one of std and cov, got neither"),
        (lambda: unc.Normal(1, cov=[[1]]), "exactly one of std and cov, got both"),
        (lambda: unc.Normal(cov=1), r"cov must be a square matrix, got shape \(\)"),
        (lambda: unc.Normal(cov=[[1, 0]]), r"cov must be a square matrix, got shape \(1, 2\)"),
        (lambda: unc.Normal(cov=[[1, 0.5], [0.2, 1]]), "cov must be symmetric"),
        (lambda: unc.Normal(cov=PRINTED), "positive semi-definite.* the eigenvalue -8"),
        (lambda: unc.Normal(cov=-torch.ones(3, 1, 1)), "the eigenvalue -1"),
        (
            lambda: unc.Normal(cov=[[1e4, 0.3], [0.3, 1e-6]]),
            "variances scaled to 1 it has the eigenvalue -2",
        ),
        (lambda: unc.Normal(cov=[[1.0, 0.1], [0.1, 0.0]]), "positive semi-definite"),
        (lambda: unc.GaussianMixture([[0, 0]], [[1e4, 0.3], [0.3, 1e-6]]), "covs.* eigenvalue -2"),
        (lambda: unc.Uniform(1, 0), "low must be <= high, got low=1.0 and high=0.0"),
        (lambda: unc.Uniform([0, 0], [1, 1, 1]), "columns: low has 2, high has 3"),
        (lambda: unc.Uniform(-math.inf, 0), "low must be finite"),
        (lambda: unc.Beta(0, 1), "a must be > 0, got 0"),
        (lambda: unc.Beta(1, -1), "b must be > 0, got -1"),
        (lambda: unc.Beta(1, 1, scale=-0.1), "scale must be >= 0, got -0.1"),
        (lambda: unc.Beta([1, 1], 1, loc=[0, 0, 0]), "columns: a has 2, loc has 3"),
        (lambda: unc.ChiSquared(0), "df must be > 0, got 0"),
        (lambda: unc.ChiSquared(1, scale=-1), "scale must be >= 0"),
        (lambda: unc.Ring(-1), "radius must be >= 0, got -1"),
        (lambda: unc.Ring([1, 2]), "radius must have at most 0 dimensions"),
        (lambda: unc.Ring(torch.ones(4, 2)), r"shape \(\*batch, n, 1\), got shape \(4, 2\)"),
        (lambda: unc.GaussianMixture([0, 1], [[1]]), r"one row per component: shape \(k, d\)"),
        (lambda: unc.GaussianMixture([[0, 0]], PRINTED), "covs.* eigenvalue -8"),
        (lambda: unc.GaussianMixture([[0, 0]], [[1]]), r"covs must be \(1, 2, 2\) or \(2, 2\)"),
        (lambda: unc.GaussianMixture([[0], [1]], [[1]], [0.5, 0.4]), "they sum to 0.9"),
        (lambda: unc.GaussianMixture([[0], [1]], [[1]], [1.5, -0.5]), "weights must be >= 0"),
        (lambda: unc.GaussianMixture([[0], [1]], [[1]], [1]), r"weights \(2,\), got"),
        (lambda: unc.Empirical([]), "deviations must not be empty"),
        (lambda: unc.Empirical([0.1, math.nan]), "deviations must be finite"),
        (lambda: unc.Empirical(1.0), r"deviations must have shape \(N,\) or \(N, d\)"),
        (lambda: unc.Empirical(np.zeros((2, 2, 2))), "deviations must have at most 2 dimensions"),
        (lambda: unc.SciPy(scipy.stats.norm(scale=-1)), "out of range"),
        (lambda: unc.SciPy(scipy.stats.norm(np.zeros((2, 2)))), "numbers or vectors"),
        (
            lambda: unc.Torch(
                torch.distributions.MultivariateNormal(torch.zeros(3, 2), torch.eye(2))
            ),
            "must draw numbers or vectors",
        ),
        (
            lambda: unc.Torch(torch.distributions.Gamma(torch.ones(3, 2), torch.ones(3, 2))),
            "must draw numbers or vectors",
        ),
        (lambda: unc.Product([]), "at least one block"),
        (lambda: unc.Product([unc.Exact()], [(-1,)]), "columns must be a whole number"),
        (lambda: unc.Product([unc.Exact()], [(0,), (1,)]), "1 blocks need as many columns, got 2"),
        (lambda: unc.Product([unc.Exact(), unc.Exact()], [(0,), (0,)]), "exactly once"),
        (lambda: unc.Product([unc.Exact(), unc.Exact()], [(0,), (2,)]), "exactly once"),
        (lambda: unc.Product([unc.Exact(), unc.Exact()], [(0, 1), ()]), "exactly once"),
        (lambda: unc.Product([unc.Ring(1)], [(0, 1, 2)]), "Ring acts on .* 2 columns, got 3"),
        (lambda: unc.Piecewise([0.5], [unc.Exact()]), "1 edges need 2 pieces, got 1"),
        (lambda: unc.Piecewise([1, 1], [unc.Exact()] * 3), "edges must be strictly increasing"),
        (lambda: unc.Piecewise([math.nan], [unc.Exact()] * 2), "edges must be finite"),
        (lambda: unc.Piecewise([0], [unc.Exact()] * 2, column=-1), "column must be"),
        (lambda: unc.Piecewise([0], [unc.Ring(1), unc.Normal([1, 1, 1])]), "3 columns, got 2"),
        (lambda: unc.Piecewise([0], [unc.Ring(1)] * 2, column=2), "looks at column 2"),
        (lambda: unc.Exact().clipped(1, 0), "low must be <= high"),
        (lambda: unc.Exact().clipped(-math.inf, 0), "low must be finite"),
        (lambda: unc.Exact().clipped([0, 0], [1, 1, 1]), "columns: low has 2, high has 3"),
        (lambda: unc.Ring(1).clipped([0, 0, 0]), "Ring acts on .* 2 columns, got 3"),
        (lambda: unc.Sampler(lambda X, base: X, n_base=-1), "n_base must be >= 0, got -1"),
        (lambda: unc.Sampler(lambda X, base: X, dim=0), "dim must be >= 1, got 0"),
    ],
)
def test_impossible_values_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: unc.Normal("wide"), "std must be a number or an array of numbers, got 'wide'"),
        (lambda: unc.Normal([[1], [1, 2]]), "std must be a number or an array of numbers"),
        (lambda: unc.Beta(None, 1), "a must be a number"),
        (lambda: unc.SciPy(scipy.stats.norm), "needs a univariate .* got norm_gen"),
        (lambda: unc.SciPy(3), "needs a univariate scipy.stats distribution .* got int"),
        (lambda: unc.SciPy(scipy.stats.multivariate_normal([0.0, 0.0])), "univariate"),
        (lambda: unc.Torch(3), "needs a torch distribution, got 3"),
        (lambda: unc.Product([0.1]), "blocks: expected an uncertainty, got 0.1"),
        (lambda: unc.Piecewise([], [0.1]), "pieces: expected an uncertainty, got 0.1"),
        (lambda: unc.Clipped(0.1), "uncertainty: expected an uncertainty, got 0.1"),
        (lambda: unc.Varying(unc.Exact()), "Varying needs a function"),
        (lambda: unc.Varying(3), "Varying needs a function"),
        (lambda: unc.Sampler(3), r"Sampler needs a function fn\(X, base\), got 3"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_wrong_types_are_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make()
