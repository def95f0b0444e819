"""What is remembered while a model is fitted is what would be worked out anew."""

import pytest
import torch
from gpytorch.kernels import RBFKernel

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom
from airbo.models import MMDGP, UGP

UNCERTAINTIES = {
    "additive, 1 column": (unc.Beta(0.4, 0.2, scale=0.1), 1),
    "additive, 3 columns": (unc.Normal(0.05), 3),
    "varying": (unc.Varying(lambda x: unc.Normal(0.02 + 0.1 * x)), 1),
}
ESTIMATORS = {"empirical": Empirical(30), "nystrom": Nystrom(30, 6)}


@pytest.fixture(params=UNCERTAINTIES)
def case(request):
    uncertainty, d = UNCERTAINTIES[request.param]
    X = torch.rand(12, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    return X, uncertainty, torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.float64)


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return ESTIMATORS[request.param]


@pytest.mark.parametrize("surrogate", [MMDGP, UGP])
@pytest.mark.parametrize("lengthscale", [0.05, 0.3, 2.0])
def test_the_prior_of_a_fit_is_that_of_a_prediction(case, estimator, surrogate, lengthscale):
    X, uncertainty, bounds = case
    model = surrogate(X, X.sum(-1, keepdim=True), uncertainty, bounds, estimator=estimator)
    model.features.base_kernel.lengthscales = lengthscale
    fitting = model.train()(X).covariance_matrix
    model.eval()
    predicting = model.covar_module(model.features(X)).to_dense()
    # the base kernel, 5 at distance 0, is a sum of Gaussians to 6e-5 per rational quadratic
    assert (fitting - predicting).abs().max() < 1e-4 * predicting.max()
    assert torch.linalg.eigvalsh(fitting)[0] > -1e-10


def test_hyperparameters_get_the_gradients_of_the_sums_over_samples(case, estimator):
    X, uncertainty, bounds = case
    gradients = []
    for training in (True, False):
        model = MMDGP(X, X.sum(-1, keepdim=True), uncertainty, bounds, estimator=estimator)
        model.train(training)
        model.covar_module(model.features(X)).to_dense().sum().backward()
        gradients.append([p.grad for p in model.covar_module.parameters()])
    # the sum of Gaussians follows the derivatives less closely than the values
    for fitting, predicting in zip(*gradients, strict=True):
        torch.testing.assert_close(fitting, predicting, rtol=1e-2, atol=1e-2)


def test_designs_get_gradients_while_a_model_is_fitted(case, estimator):
    X, uncertainty, bounds = case
    model = MMDGP(X, X.sum(-1, keepdim=True), uncertainty, bounds, estimator=estimator).train()
    moving = X.clone().requires_grad_()
    model.covar_module(model.features(moving)).to_dense().sum().backward()
    assert moving.grad is not None
    assert bool(moving.grad.abs().sum() > 0)


def test_what_a_fit_remembers_is_dropped_with_its_end(case, estimator):
    X, uncertainty, bounds = case
    model = MMDGP(X, X.sum(-1, keepdim=True), uncertainty, bounds, estimator=estimator).train()
    model(X).covariance_matrix.sum().backward()
    largest = max(v.numel() for _, v in model.features._memory.values() if torch.is_tensor(v))
    assert largest > 50 * len(X)
    model.eval()
    assert model.features._memory == {}


def test_what_is_remembered_under_given_hyperparameters_is_what_would_be_worked_out(
    case, estimator
):
    X, uncertainty, bounds = case
    learning, given = (
        MMDGP(X, X.sum(-1, keepdim=True), uncertainty, bounds, estimator=estimator).eval()
        for _ in range(2)
    )
    given.requires_grad_(False)
    for lengthscale in (0.3, 0.3, 0.05):
        for model in (learning, given):
            model.features.base_kernel.lengthscales = lengthscale
        expected = learning.features(X)
        assert torch.equal(given.features(X), expected.detach())
        moving = X.clone().requires_grad_()
        given.features(moving).sum().backward()
        assert moving.grad is not None


@pytest.mark.parametrize("ard", [None, 3])
def test_a_kernel_whose_hyperparameters_are_given_is_not_taken_for_what_it_was(ard):
    X = torch.rand(12, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    bounds = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.float64)
    kernel = RBFKernel(ard_num_dims=ard).double().requires_grad_(False)
    Y = X.sum(-1, keepdim=True)
    fitted, used = (
        MMDGP(X, Y, unc.Normal(0.05), bounds, base_kernel=kernel, estimator=Nystrom(30, 3))
        for _ in range(2)
    )
    fitted.train()
    used.eval()
    for lengthscale in (0.2, 0.6):
        kernel.lengthscale = lengthscale * torch.linspace(1, 2, ard or 1, dtype=torch.float64)
        predicted = used.covar_module(used.features(X)).to_dense()
        torch.testing.assert_close(fitted(X).covariance_matrix, predicted, rtol=1e-6, atol=1e-6)


def test_a_base_kernel_without_hyperparameters_serves():
    class Fixed(RBFKernel):
        def __init__(self) -> None:
            super().__init__()
            del self.raw_lengthscale
            self.register_buffer("raw_lengthscale", torch.zeros(1, 1, dtype=torch.float64))

    X = torch.rand(5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    bounds = torch.tensor([[0.0] * 2, [1.0] * 2], dtype=torch.float64)
    embedding = Nystrom(30, 6).embed([unc.Normal(0.05)], Fixed(), bounds).eval()
    assert embedding(X).isfinite().all()
