"""Functions drawn from the posterior have its mean and covariance."""

import pytest
import torch
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.sampling.pathwise import draw_kernel_feature_paths, draw_matheron_paths
from gpytorch.kernels import PeriodicKernel

from airbo import uncertainty as unc
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP, NominalGP
from airbo.models import paths as paths_module
from tests.surrogates import box, designs, gram, set_hyperparameters, surrogate

N = 1000
KINDS = [ExpectationGP, UGP, MMDGP, ERBFGP, NominalGP]
UNCERTAINTIES = {
    "normal": unc.Normal(0.5),
    "dependent": unc.Normal(cov=[[0.2, 0.1], [0.1, 0.2]]),
    "additive": unc.Product([unc.Beta(2, 5, scale=0.9), unc.Exact()], [[0], [1]]),
    "varying": unc.Varying(lambda x: unc.Normal(0.3 + 0.2 * x**2)),
}
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)


@pytest.fixture(autouse=True)
def few_waves(monkeypatch):
    """Draw as few waves per path as there may be: moments over paths are right with any number."""
    monkeypatch.setattr(paths_module, "MAX_WAVES", 0)


def assert_moments(samples, mean, covariance):
    """Compare with Monte-Carlo errors: 5 standard errors of a mean, and of a correlation."""
    std = covariance.diagonal().sqrt()
    assert ((samples.mean(0) - mean).abs() < 5 * std / N**0.5).all()
    assert ((samples.mT.cov() - covariance).abs() < 7 / N**0.5 * std.outer(std)).all()


@pytest.mark.parametrize(
    "kind",
    [ExpectationGP, NominalGP, *(pytest.param(k, marks=pytest.mark.slow) for k in KINDS[1:4])],
    ids=lambda k: k.__name__,
)
@pytest.mark.parametrize("uncertainty", UNCERTAINTIES.values(), ids=UNCERTAINTIES)
def test_paths_of_f_and_of_expected_values_have_the_joint_posterior(kind, uncertainty):
    model = set_hyperparameters(surrogate(kind, uncertainty, 2))
    X = designs(3, 2, seed=3)
    torch.manual_seed(0)
    with torch.no_grad():
        paths = model.draw_paths(N)
        samples = torch.cat([paths(X), paths(X, uncertainty=unc.Exact())], dim=-1)
        own = [uncertainty] * 3 + [unc.Exact()] * 3
        posterior = model.posterior(torch.cat([X, X]), uncertainty=own)
    covariance = posterior.distribution.covariance_matrix
    if kind is NominalGP:  # the two are the same
        samples, covariance = samples[:, :3], covariance[:3, :3]
    assert_moments(samples, posterior.mean.squeeze(-1)[: len(covariance)], covariance)


@every_kind
def test_prior_paths_have_the_covariance_of_the_kernel(kind):
    model = set_hyperparameters(surrogate(kind, unc.Normal(0.5), 2))
    X = designs(4, 2, seed=3)
    torch.manual_seed(1)
    with torch.no_grad():
        samples = draw_kernel_feature_paths(model, sample_shape=torch.Size([N]))(X)
        assert_moments(samples, model.mean_module(X), gram(model, X))


def test_paths_of_a_mixed_and_folded_model_have_its_posterior():
    X = designs(4, 2)[[0, 0, 1, 2, 3, 3, 3]]
    own = [unc.Normal(0.4), unc.Normal(0.4), unc.Exact(), *[unc.Normal(0.4)] * 4]
    Y = torch.linspace(-1, 1, 7, dtype=torch.float64).unsqueeze(-1)
    model = ExpectationGP(X, Y, own, box(2), fold_replicates=True, deployment=unc.Normal(0.2))
    Q = designs(3, 2, seed=3)
    torch.manual_seed(2)
    with torch.no_grad():
        posterior = model.posterior(Q)
        assert_moments(
            model.draw_paths(N)(Q),
            posterior.mean.squeeze(-1),
            posterior.distribution.covariance_matrix,
        )


@every_kind
def test_botorch_draws_functions(kind):
    model = surrogate(kind, unc.Normal(0.3), 2)
    X = designs(6, 2, seed=1).reshape(3, 1, 2, 2).requires_grad_()
    paths = draw_matheron_paths(model, torch.Size([4]))
    values = paths(X)
    assert values.shape == (3, 4, 2)
    values.sum().backward()
    assert torch.isfinite(X.grad).all()
    torch.testing.assert_close(paths(X), values)  # a function
    thompson = PathwiseThompsonSampling(model)
    assert thompson(designs(6, 2, seed=2).reshape(3, 2, 2)).shape == (3,)


def test_a_kernel_without_a_spectrum_is_refused():
    with pytest.raises(NotImplementedError, match="a sum of Gaussians"):
        surrogate(SKLGP, unc.Normal(0.3), 2).draw_paths(2)
    with pytest.raises(NotImplementedError, match="a sum of Gaussians"):
        surrogate(NominalGP, None, 2, base_kernel=PeriodicKernel()).draw_paths(2)
