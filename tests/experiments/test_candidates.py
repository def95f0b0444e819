"""Candidates of the second round: a length scale per parameter, an average over length scales."""

import math

import pytest
import torch

from airbo import uncertainty as unc
from airbo.embeddings import RationalQuadraticSum
from airbo.models import ExpectationGP, RelevanceGP
from airbo.optimizer.surrogate import fit_hyperparameters
from experiments.subjects.hedged import HedgedGP, members
from tests.surrogates import box, designs, gram, surrogate


def base_kernel(model):
    return next(m for m in model.modules() if isinstance(m, RationalQuadraticSum))


def test_with_equal_factors_it_is_the_expectation_gp():
    X = designs(5, 3, seed=1)
    model = surrogate(RelevanceGP, unc.Normal(0.1), 3)
    plain = surrogate(ExpectationGP, unc.Normal(0.1), 3)
    base_kernel(plain).lengthscales = base_kernel(model).lengthscales[0].item()
    K, L = gram(model, X).detach(), gram(plain, X).detach()
    # the sums of Gaussians behind the two are exact to 1e-4
    torch.testing.assert_close(K / K[0, 0], L / L[0, 0], atol=1e-3, rtol=0)


def test_a_parameter_that_does_not_matter_gets_the_longest_length_scale():
    X = designs(30, 3, seed=2)
    Y = torch.sin(3 * X[:, :1]) + 0.5 * torch.sin(3 * X[:, 1:2])
    model = RelevanceGP(X, Y, unc.Normal(0.05), box(3))
    fit_hyperparameters(model)
    first, second, third = base_kernel(model).factors.tolist()
    assert third > 1.3 * max(first, second)


def test_few_observations_leave_the_factors_near_one():
    model = surrogate(RelevanceGP, unc.Normal(0.1), 3, n=4)
    fit_hyperparameters(model)
    assert base_kernel(model).factors.log().abs().max() < 0.5


@pytest.mark.parametrize(
    ("uncertainty", "d"),
    [
        (unc.Normal(0.1), 1),
        (unc.Normal(cov=[[0.02, 0.01], [0.01, 0.02]]), 2),
        (unc.Ring(0.3), 2),
        ([unc.Normal(0.1)] + [unc.Ring(0.3)] * 6, 2),
        ([unc.Normal(0.1)] * 6 + [unc.Ring(0.3)], 2),
    ],
    ids=["one parameter", "correlated", "ring", "most under a ring", "one under a ring"],
)
def test_there_is_one_length_scale_where_parameters_deviate_together(uncertainty, d):
    kernel = base_kernel(surrogate(RelevanceGP, uncertainty, d))
    assert kernel.ard_num_dims is None
    assert kernel.raw_lengthscales.numel() == 1


@pytest.mark.parametrize(
    "uncertainty",
    [None, unc.Normal(0.1), unc.Product([unc.Relative(unc.Normal(0.1)), unc.Uniform(-0.1, 0.1)])],
    ids=["exact", "normal", "percent and uniform"],
)
def test_there_is_a_factor_per_parameter_where_they_deviate_independently(uncertainty):
    factors = base_kernel(surrogate(RelevanceGP, uncertainty, 2)).factors
    torch.testing.assert_close(factors, torch.ones(2, dtype=torch.float64))


def test_a_given_base_kernel_is_used_as_it_is():
    kernel = RationalQuadraticSum(0.4, shared=True)
    model = surrogate(RelevanceGP, unc.Normal(0.1), 2, base_kernel=kernel)
    assert base_kernel(model) is kernel


def test_the_prior_of_the_common_scale_has_its_mode_at_a_ninth_of_the_number_of_parameters():
    prior = base_kernel(surrogate(RelevanceGP, unc.Normal(0.1), 4)).lengthscales_prior
    mode = math.exp(prior.loc.item() - prior.scale.item() ** 2)
    assert mode == pytest.approx(0.3 * 4 / math.e)


def test_averaging_over_length_scales_gives_the_moments_of_the_mixture():
    model = surrogate(HedgedGP, unc.Normal(0.1), 2)
    fit_hyperparameters(model)
    Q = designs(3, 2, seed=1)
    models, weights = members(model)
    each = [ExpectationGP.posterior(m, Q) for m in models]
    mean = sum(w * p.mean for w, p in zip(weights, each, strict=True))
    square = sum(w * (p.variance + p.mean**2) for w, p in zip(weights, each, strict=True))
    mixture = model.posterior(Q)
    torch.testing.assert_close(mixture.mean, mean)
    torch.testing.assert_close(mixture.variance, square - mean**2, atol=1e-6, rtol=1e-4)
    assert weights.sum().item() == pytest.approx(1)


def test_with_one_parameter_it_is_the_model_with_one_length_scale():
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    Y = torch.sin(6 * X)
    models = [kind(X, Y, unc.Normal(0.05), box(1)).eval() for kind in (RelevanceGP, ExpectationGP)]
    ours, theirs = (model.posterior(X + 0.03) for model in models)
    torch.testing.assert_close(ours.mean, theirs.mean)
    torch.testing.assert_close(ours.variance, theirs.variance)
