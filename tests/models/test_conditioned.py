"""One factorization gives what the posterior of the model gives."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.models import SKLGP, ExpectationGP
from airbo.models.conditioned import Conditioned
from tests.surrogates import designs, every_surrogate, surrogate

VARYING = unc.Varying(lambda x: unc.Normal(0.05 + 0.1 * x**2))


@every_surrogate
@pytest.mark.parametrize("uncertainty", [unc.Normal(0.1), VARYING], ids=["normal", "varying"])
def test_means_and_variances_are_those_of_the_posterior(kind, uncertainty):
    model = surrogate(kind, uncertainty, 2, n=9, outcome_transform=None).eval()
    X = designs(5, 2, seed=3)
    with torch.no_grad():
        conditioned = Conditioned(model)
        f = conditioned.features(X)
        k = conditioned.to_observed(f)
        posterior = model.posterior(X.unsqueeze(-2))
        torch.testing.assert_close(conditioned.mean(X, k), posterior.mean.flatten())
        expected = posterior.variance.flatten()
        torch.testing.assert_close(conditioned.variance(f, k), expected, atol=1e-7, rtol=1e-5)


def test_covariances_hold_under_two_uncertainties():
    model = surrogate(ExpectationGP, unc.Normal(0.2), 2, n=9, outcome_transform=None).eval()
    X, use = designs(2, 2, seed=3), unc.Exact()
    with torch.no_grad():
        conditioned = Conditioned(model, use)
        f1, f2 = conditioned.features(X[:1]), conditioned.features(X[1:], use)
        k1, k2 = conditioned.to_observed(f1), conditioned.to_observed(f2)
        both = conditioned.covariance(conditioned.prior(f1, f2), k1, k2)
        joint = model.posterior(X, uncertainty=[unc.Normal(0.2), use])
    torch.testing.assert_close(both[0, 0], joint.distribution.covariance_matrix[0, 1])


def test_a_surrogate_that_repairs_its_kernel_is_factorized_with_the_repair():
    # between Gaussians of different sizes the kernel is indefinite: its own Cholesky factor fails
    model = surrogate(SKLGP, VARYING, 2, n=30, outcome_transform=None).eval()
    model.likelihood.noise = 1e-6
    with torch.no_grad():
        K = model.covar_module(model.features(model.train_inputs[0])).to_dense()
        assert torch.linalg.eigvalsh(K)[0] < -1e-4
        conditioned = Conditioned(model)
        assert torch.isfinite(conditioned.weights).all()
        k = conditioned.to_observed(conditioned.f)
        assert (conditioned.variance(conditioned.f, k) >= 0).all()


def test_a_batch_of_designs_is_whitened_as_each_of_them_is():
    model = surrogate(ExpectationGP, unc.Normal(0.2), 2, n=9, outcome_transform=None).eval()
    with torch.no_grad():
        conditioned = Conditioned(model)
        k = conditioned.to_observed(conditioned.features(designs(12, 2, seed=3).view(2, 3, 2, 2)))
        looped = torch.stack([torch.stack([conditioned.whiten(each) for each in row]) for row in k])
    assert looped.shape == (2, 3, 9, 2)
    torch.testing.assert_close(conditioned.whiten(k), looped)


@every_surrogate
def test_a_question_under_another_uncertainty_leaves_the_model_as_it_was(kind):
    model = surrogate(kind, unc.Normal(0.2), 2, n=9).eval()
    X, known = designs(5, 2, seed=3), list(model.features.uncertainties)
    before = model.posterior(X).mean.detach()
    model.posterior(X, uncertainty=unc.Uniform(-0.3, 0.3))
    assert model.features.uncertainties == known
    assert torch.equal(model.posterior(X).mean.detach(), before)
