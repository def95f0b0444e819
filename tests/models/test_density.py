"""The log density of observations, and its derivatives, in closed form."""

import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator

from airbo import uncertainty as unc
from airbo.models import RelevanceGP
from airbo.models.density import Observed
from airbo.uncertainty import base_draws

N = 6


def leaves(batch):
    generator = torch.Generator().manual_seed(0)
    sizes = ((*batch, N, N), (N,), (*batch, N))
    drawn = [torch.randn(s, generator=generator, dtype=torch.float64) for s in sizes]
    return [v.requires_grad_() for v in drawn]


def log_density(kind, A, mean, values):
    K = A @ A.mT + 0.1 * torch.eye(N).to(A)
    return kind(mean.expand_as(values), to_linear_operator(K)).log_prob(values)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_value_and_gradients_are_those_of_automatic_differentiation(batch):
    found = []
    for kind in (Observed, MultivariateNormal):
        given = leaves(batch)
        value = log_density(kind, *given)
        found.append([value.detach(), *torch.autograd.grad(value.sum(), given)])
    for closed, automatic in zip(*found, strict=True):
        torch.testing.assert_close(closed, automatic)


def test_there_are_second_derivatives():
    assert torch.autograd.gradgradcheck(lambda *v: log_density(Observed, *v), leaves(()))


def test_many_values_may_meet_one_covariance():
    A, mean, values = leaves(())
    many = values.detach() + torch.arange(3.0).unsqueeze(-1).to(values)
    one_by_one = torch.stack([log_density(Observed, A, mean, v) for v in many])
    distribution = Observed(mean, to_linear_operator(A @ A.mT + 0.1 * torch.eye(N).to(A)))
    torch.testing.assert_close(distribution.log_prob(many), one_by_one)


@pytest.mark.parametrize("P", [unc.Uniform(-0.1, 0.1), unc.Relative(unc.Normal(0.1))])
@pytest.mark.parametrize("fold", [False, True])
def test_the_noise_of_a_fit_is_that_of_the_rows(P, fold):
    X = base_draws(8, 2, seed=1).repeat(2, 1)
    model = RelevanceGP(X, X.sum(-1, keepdim=True).sin(), P, fold_replicates=fold).train()
    prior, rows = model(*model.train_inputs), [*model.train_inputs]
    total = model.likelihood(prior, rows).covariance_matrix
    noise = model.likelihood.noise_covar(rows, shape=rows[0].shape[:-1]).to_dense()
    torch.testing.assert_close(total, prior.covariance_matrix + noise, rtol=0, atol=1e-12)
