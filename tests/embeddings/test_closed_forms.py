"""Kernels against formulas that can be written down by hand."""

import math

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom, Quadrature, RationalQuadraticSum
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP
from airbo.uncertainty import base_draws
from tests.surrogates import box, designs, gram, moments, values
from tests.uncertainties import WAYS


def rbf(d, lengthscale):
    kernel = RBFKernel(ard_num_dims=d).double()
    kernel.lengthscale = torch.as_tensor(lengthscale)
    return kernel


def unit(X):
    """Designs of the box [-2, 2] in model coordinates."""
    return (X + 2) / 4


BASE_KERNELS = {
    "rational quadratics": lambda d: RationalQuadraticSum(0.4).double(),
    "rbf": lambda d: rbf(d, [0.3 + 0.1 * i for i in range(d)]),
    "matern": lambda d: MaternKernel(2.5, ard_num_dims=d).double(),
}


@pytest.mark.parametrize("base", BASE_KERNELS.values(), ids=BASE_KERNELS)
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("estimator", [None, Empirical(16)], ids=repr)
def test_ugp_under_exact_inputs_is_the_ordinary_gp(base, d, estimator):
    X, Q = designs(9, d), designs(5, d, seed=1)
    kernel = base(d)
    model = UGP(X, values(X), unc.Exact(), box(d), estimator=estimator, base_kernel=kernel)
    ordinary = SingleTaskGP(
        unit(X), values(X), covar_module=ScaleKernel(kernel), likelihood=model.likelihood
    )
    ordinary.covar_module.outputscale = model.covar_module.outputscale.detach()
    with torch.no_grad():
        ordinary.mean_module.load_state_dict(model.mean_module.state_dict())
    for ours, theirs in zip(moments(model, Q), moments(ordinary, unit(Q)), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-8, rtol=0)


@pytest.mark.parametrize("base", BASE_KERNELS.values(), ids=BASE_KERNELS)
@pytest.mark.parametrize("d", [1, 3])
def test_mmdgp_under_exact_inputs_has_the_kernel_of_kernel_distances(base, d):
    X = designs(6, d)
    kernel = base(d)
    model = MMDGP(X, values(X), unc.Exact(), box(d), base_kernel=kernel)
    mmd = model.covar_module.base_kernel
    mmd.alpha = 0.7
    K = kernel(unit(X)).to_dense()
    expected = torch.exp(-2 * 0.7 * (K[0, 0] - K))
    torch.testing.assert_close(mmd(model.features(X)).to_dense(), expected, atol=1e-8, rtol=0)


COV = [[0.3, 0.1, 0.0], [0.1, 0.2, -0.05], [0.0, -0.05, 0.1]]
GAUSSIANS = [
    unc.Normal(0.3),
    unc.Normal([0.1, 0.0, 0.6]),
    unc.Normal(cov=COV),
    unc.Varying(lambda x: unc.Normal(0.1 + 0.1 * x**2)),
    unc.Varying(lambda x: unc.Normal(cov=torch.tensor(COV).to(x) * (1 + x[..., :1, None] ** 2))),
    unc.Product([unc.Normal(0.3), unc.Normal(cov=[[0.2, 0.1], [0.1, 0.3]])]),
]


def closed_form_error(uncertainty):
    """Where P_x changes with the design, sums of waves stand for the closed form."""
    return 1e-9 if uncertainty.is_additive else 1e-5


@pytest.mark.parametrize("uncertainty", GAUSSIANS, ids=repr)
@pytest.mark.parametrize("lengthscale", [[0.3, 0.3, 0.3], [0.1, 0.4, 2.0]], ids=["iso", "ard"])
def test_erbf_and_ugp_agree_on_gaussians_under_an_rbf_kernel(uncertainty, lengthscale):
    X, Q = designs(6, 3), designs(4, 3, seed=1)
    ugp = UGP(X, values(X), uncertainty, box(3), base_kernel=rbf(3, lengthscale))
    erbf = ERBFGP(X, values(X), uncertainty, box(3))
    erbf.covar_module.base_kernel.lengthscale = torch.tensor(lengthscale)
    erbf.covar_module.outputscale = ugp.covar_module.outputscale.detach()
    atol = closed_form_error(uncertainty)
    torch.testing.assert_close(gram(ugp, X), gram(erbf, X), atol=atol, rtol=0)
    torch.testing.assert_close(gram(ugp, X, Q), gram(erbf, X, Q), atol=atol, rtol=0)
    Q = Q.requires_grad_()  # another way through the same formula
    torch.testing.assert_close(gram(ugp, X, Q), gram(erbf, X, Q), atol=atol, rtol=0)


@pytest.mark.parametrize("uncertainty", GAUSSIANS, ids=repr)
def test_an_expectation_gp_on_gaussians_under_an_rbf_kernel_is_erbf(uncertainty):
    X, Q = designs(6, 3), designs(4, 3, seed=1)
    lengthscale = [0.1, 0.4, 2.0]
    model = ExpectationGP(X, values(X), uncertainty, box(3), base_kernel=rbf(3, lengthscale))
    erbf = ERBFGP(X, values(X), uncertainty, box(3))
    erbf.covar_module.base_kernel.lengthscale = torch.tensor(lengthscale)
    erbf.likelihood.noise_covar.observation_noise.noise = model.likelihood.noise.detach()
    for ours, theirs in zip(moments(model, Q), moments(erbf, Q), strict=True):
        atol = 10 * closed_form_error(uncertainty)
        torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


@pytest.mark.parametrize(("uncertainty", "d"), WAYS, ids=repr)
def test_one_observation_varies_like_f_at_one_point_wherever_it_landed(uncertainty, d):
    X = designs(5, d)
    model = ExpectationGP(X, values(X), uncertainty, box(d))
    prior = model.forward(X)
    observed = model.likelihood(prior, [X]).covariance_matrix
    at_a_point = model.covar_module.outputscale  # the base kernel is 1 at distance 0
    expected = (at_a_point + model.likelihood.noise).expand(5)
    torch.testing.assert_close(observed.diagonal(), expected, atol=1e-4, rtol=0)
    apart = observed - observed.diagonal().diag()
    K = prior.covariance_matrix
    torch.testing.assert_close(apart, K - K.diagonal().diag())


def test_what_the_unseen_input_adds_is_the_variance_of_f_over_p():
    """Draw f from the prior: on average over f, Var_P f(x') is what the likelihood adds."""
    uncertainty = unc.Beta(0.4, 0.2, scale=0.4)
    X = torch.zeros(1, 1, dtype=torch.float64)
    model = ExpectationGP(X, X, uncertainty, box(1))
    samples = uncertainty.perturb(X, base_draws(256, 1))[0]
    K = model.covar_module.outputscale * model.features.base_kernel(unit(samples)).to_dense()
    root = torch.linalg.cholesky(K + 1e-8 * torch.eye(256))
    generator = torch.Generator().manual_seed(0)
    f = root @ torch.randn(256, 4000, generator=generator, dtype=torch.float64)
    variances = f.var(dim=0, correction=0)
    added = model.noise_variance(X) / model.outcome_transform.stdvs.square().squeeze()
    added = added - model.likelihood.noise
    error = variances.std() / 4000**0.5
    assert (variances.mean() - added).abs() < 4 * error + 0.01 * added


def test_erbf_is_the_formula_of_dallaire_and_one_observation_has_variance_one():
    uncertainty = unc.Varying(lambda x: unc.Normal(0.2 + 0.1 * x**2))
    X = designs(4, 2)
    model = ERBFGP(X, values(X), uncertainty, box(2))
    kernel = model.covar_module.base_kernel
    kernel.lengthscale = torch.tensor([0.3, 0.8])
    W = torch.diag(torch.tensor([0.09, 0.64], dtype=torch.float64))
    S = uncertainty.covariance(X) / 16
    K = gram(model, X) / model.covar_module.outputscale
    for i in range(4):
        for j in range(4):
            total, delta = S[i] + S[j], unit(X[i]) - unit(X[j])
            size = torch.linalg.det(torch.eye(2) + torch.linalg.inv(W) @ total) ** -0.5
            distance = delta @ torch.linalg.inv(W + total) @ delta
            assert K[i, j].item() == pytest.approx((size * torch.exp(-0.5 * distance)).item())

    noisy = model.likelihood(model.forward(X), [X]).covariance_matrix
    observed = noisy.diagonal() - model.likelihood.noise
    torch.testing.assert_close(observed, model.covar_module.outputscale.expand(4))


def test_skl_is_the_symmetric_kullback_leibler_divergence_of_torch():
    uncertainty = unc.Varying(lambda x: unc.Normal(0.2 + 0.1 * x**2))
    X = designs(4, 2)
    model = SKLGP(X, values(X), uncertainty, box(2))
    kernel = model.covar_module.base_kernel
    S = uncertainty.covariance(X) / 16 + 1e-6 * torch.eye(2)
    P = [torch.distributions.MultivariateNormal(unit(x), s) for x, s in zip(X, S, strict=True)]
    K = kernel(model.features(X)).to_dense()
    kl = torch.distributions.kl_divergence
    for i in range(4):
        for j in range(4):
            divergence = kl(P[i], P[j]) + kl(P[j], P[i])
            scale = kernel.typical_variance / (2 * kernel.lengthscale.squeeze() ** 2)
            assert K[i, j].item() == pytest.approx(torch.exp(-scale * divergence).item(), abs=1e-9)


def test_skl_under_equal_covariances_is_the_squared_exponential():
    X = designs(5, 2)
    model = SKLGP(X, values(X), unc.Normal(0.4), box(2))
    kernel = model.covar_module.base_kernel
    expected = torch.exp(
        -0.5 * torch.cdist(unit(X), unit(X)).square() / kernel.lengthscale.square()
    )
    torch.testing.assert_close(kernel(model.features(X)).to_dense(), expected)


@pytest.mark.parametrize("estimator", [Empirical(24), Nystrom(24, 5)], ids=repr)
@pytest.mark.parametrize(
    "uncertainty",
    [unc.Beta(0.4, 0.2, scale=0.5), unc.Varying(lambda x: unc.Normal(0.1 + x**2))],
    ids=repr,
)
def test_the_papers_estimators_compare_the_samples_that_they_say(estimator, uncertainty):
    bounds = box(2)
    kernel = RationalQuadraticSum(0.3).double()
    embedding = estimator.embed([uncertainty], kernel, bounds, seed=3)
    X = designs(3, 2)
    samples = uncertainty.perturb(X, unc.base_draws(24, uncertainty.n_base(2), seed=3))
    points = unit(samples)
    if isinstance(estimator, Nystrom):
        landmarks = points[:, estimator.landmarks(24, seed=3)]
        inverse = torch.linalg.pinv(kernel(landmarks).to_dense(), hermitian=True)
        weights = (inverse @ kernel(landmarks, points).to_dense().mean(-1, keepdim=True))[..., 0]
    else:
        landmarks, weights = points, torch.full((3, 24), 1 / 24, dtype=torch.float64)
    inner = embedding.inner(embedding(X), embedding(X))
    for i in range(3):
        for j in range(3):
            K = kernel(landmarks[i], landmarks[j]).to_dense()
            expected = weights[i] @ K @ weights[j]
            assert inner[i, j].item() == pytest.approx(expected.item(), abs=1e-4)


def test_a_base_kernel_without_closed_form_is_sampled_by_the_default_estimator():
    kernel = MaternKernel(2.5).double()
    kernel.lengthscale = 0.3
    embedding = Quadrature().embed([unc.Normal(0.2)], kernel, box(1))
    X = designs(4, 1)
    points = unit(unc.Normal(0.2).perturb(X, unc.base_draws(256, 1)))
    truth = kernel(points.unsqueeze(1), points.unsqueeze(0)).to_dense().mean(dim=(-2, -1))
    torch.testing.assert_close(
        embedding.inner(embedding(X), embedding(X)), truth, atol=2e-3, rtol=0
    )


@pytest.mark.parametrize("lengthscale", [0.05, 0.3, 1.0, 3.0])
def test_the_sum_of_rational_quadratics_is_the_sum_of_gaussians_that_it_is_written_as(lengthscale):
    kernel = RationalQuadraticSum(lengthscale).double()
    r = torch.linspace(0, 3, 200, dtype=torch.float64).unsqueeze(-1)
    scales = kernel.gaussian_sum()
    gaussians = scales.constant + torch.exp(-0.5 * r**2 * scales.precisions) @ scales.weights
    formula = sum(
        (1 + r.squeeze() ** 2 / (2 * a * lengthscale**2)) ** -a for a in (0.2, 0.5, 1, 2, 5)
    )
    torch.testing.assert_close(kernel(r, r[:1]).to_dense().squeeze(), formula)
    torch.testing.assert_close(gaussians, formula, atol=5e-4, rtol=0)
    assert kernel(r, diag=True).tolist() == pytest.approx([5.0] * 200)
    assert math.isclose(kernel.lengthscales[0].item(), lengthscale, rel_tol=1e-6)
