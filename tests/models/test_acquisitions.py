"""BoTorch's acquisition functions, on our models and on plain ones of the same covariance."""

import pytest
import torch
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.max_value_entropy_search import (
    qLowerBoundMaxValueEntropy,
    qMaxValueEntropy,
)
from botorch.acquisition.multi_objective import logei
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.acquisition.utils import get_optimal_samples
from botorch.models import ModelListGP, SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import Kernel

from airbo import uncertainty as unc
from airbo.models import MMDGP, UGP, ExpectationGP
from tests.surrogates import box, designs, set_hyperparameters, surrogate

every_surrogate = pytest.mark.parametrize(
    "kind",
    [ExpectationGP, *(pytest.param(k, marks=pytest.mark.slow) for k in (UGP, MMDGP))],
    ids=lambda k: k.__name__,
)


class Composed(Kernel):
    """The covariance of a model as a kernel on designs."""

    def __init__(self, model):
        super().__init__()
        self.of = [model]  # not a part

    def forward(self, x1, x2, diag=False, **params):
        (model,) = self.of
        f1, f2 = model.features(x1), model.features(x2)
        return model.covar_module(f1, f2, diag=diag) if diag else model.covar_module(f1, f2)


def ours_and_plain(kind):
    """A surrogate, and a SingleTaskGP with the same mean, covariance and noise."""
    model = set_hyperparameters(surrogate(kind, unc.Normal(0.3), 2, outcome_transform=None))
    X, y = model.train_inputs[0], model.train_targets
    plain = SingleTaskGP(X, y.unsqueeze(-1), outcome_transform=None, covar_module=Composed(model))
    plain.mean_module.load_state_dict(model.mean_module.state_dict())
    plain.likelihood.noise = model.noise_variance(X[:1])  # the same for all: P shifts with x
    return model.eval(), plain.eval()


def sampler():
    return SobolQMCNormalSampler(torch.Size([8]), seed=0)


def optima():
    return designs(3, 2, seed=5), torch.tensor([[2.0], [2.5], [3.0]], dtype=torch.float64)


CANDIDATES = designs(64, 2, seed=7)
ACQUISITIONS = {
    "qJES-LB": lambda m: qJointEntropySearch(m, *optima(), estimation_type="LB"),
    "qJES-MC": lambda m: qJointEntropySearch(m, *optima(), estimation_type="MC", num_samples=8),
    "qPES": lambda m: qPredictiveEntropySearch(m, optima()[0]),
    "qMES": lambda m: qMaxValueEntropy(m, CANDIDATES),
    "qGIBBON": lambda m: qLowerBoundMaxValueEntropy(m, CANDIDATES),
    "qKG": lambda m: qKnowledgeGradient(m, num_fantasies=None, sampler=sampler()),
    "qLogNEI": lambda m: qLogNoisyExpectedImprovement(m, m.train_inputs[0], sampler=sampler()),
    "qLogNEHVI": lambda m: logei.qLogNoisyExpectedHypervolumeImprovement(
        ModelListGP(m, m), [-1.0, -2.0], m.train_inputs[0], sampler=sampler()
    ),
}


def most_promising(model, n):
    with torch.no_grad():
        return CANDIDATES[model.posterior(CANDIDATES).mean.squeeze(-1).argsort()[-n:]]


def value_and_gradient(acquisition, X):
    X = X.clone().requires_grad_()
    values = acquisition(X)
    (gradient,) = torch.autograd.grad(values.sum(), X)
    return values.detach(), gradient


@every_surrogate
@pytest.mark.parametrize("make", ACQUISITIONS.values(), ids=ACQUISITIONS)
def test_an_acquisition_function_sees_the_gaussian_process_that_it_would_see_without_us(
    kind, make, monkeypatch
):
    monkeypatch.setattr(logei, "_load_attempted", True, raising=False)  # it would compile C++
    found = []
    for model in ours_and_plain(kind):
        torch.manual_seed(0)
        acquisition = make(model)
        q = acquisition.get_augmented_q_batch_size(1) if make is ACQUISITIONS["qKG"] else 1
        torch.manual_seed(1)
        found.append(value_and_gradient(acquisition, most_promising(model, 3 * q).reshape(3, q, 2)))
    (values, gradients), (expected, expected_gradients) = found
    torch.testing.assert_close(values, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradients, expected_gradients, atol=1e-4, rtol=1e-3)
    assert gradients.abs().max() > 1e-6


@every_surrogate
def test_an_entropy_search_and_thompson_sampling_draw_their_own_functions(kind):
    model, bounds = surrogate(kind, unc.Normal(0.3), 2), box(2)
    torch.manual_seed(0)
    inputs, outputs = get_optimal_samples(
        model, bounds, num_optima=4, raw_samples=64, num_restarts=2
    )
    # each is the largest value of a drawn function, so on average above the largest mean
    with torch.no_grad():
        assert outputs.mean() > model.posterior(CANDIDATES).mean.max() - outputs.std()
    search = qJointEntropySearch(model, inputs, outputs, estimation_type="LB")
    for acquisition in (search, PathwiseThompsonSampling(model)):
        candidate, value = optimize_acqf(acquisition, bounds, 1, 2, 16, options={"maxiter": 5})
        assert (bounds[0] <= candidate).all()
        assert (candidate <= bounds[1]).all()
        assert torch.isfinite(value).all()
