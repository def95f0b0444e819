"""What single kinds of uncertainty promise beyond the contract."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from airbo import uncertainty as unc

N = 2**14


def samples_at_zero(uncertainty, d, n=N):
    X = torch.zeros(1, d, dtype=torch.float64)
    return uncertainty.perturb(X, unc.base_draws(n, uncertainty.n_base(d)))[0]


def test_beta_of_the_paper_has_the_mean_and_spread_of_the_notes():
    uncertainty, X = unc.Beta(0.4, 0.2, scale=0.1), torch.zeros(1, 1, dtype=torch.float64)
    assert uncertainty.mean(X).item() == pytest.approx(0.0667, abs=5e-5)
    assert uncertainty.covariance(X).sqrt().item() == pytest.approx(0.0373, abs=5e-5)
    deviations = samples_at_zero(uncertainty, 1)
    assert deviations.mean().item() == pytest.approx(0.0667, abs=1e-4)
    assert deviations.std().item() == pytest.approx(0.0373, abs=1e-4)
    assert 0 <= deviations.min() < deviations.max() <= 0.1


@pytest.mark.parametrize(
    ("uncertainty", "reference"),
    [
        (unc.Normal(0.3), scipy.stats.norm(scale=0.3)),
        (unc.Uniform(-0.1, 0.4), scipy.stats.uniform(-0.1, 0.5)),
        (unc.Beta(0.4, 0.2, -1, 3), scipy.stats.beta(0.4, 0.2, -1, 3)),
        (unc.ChiSquared(0.5, 0.1, 2), scipy.stats.chi2(0.5, 0.1, 2)),
    ],
    ids=["normal", "uniform", "beta", "chi-squared"],
)
def test_samples_are_the_quantiles_that_scipy_gives(uncertainty, reference):
    u = unc.base_draws(256, 2)
    samples = uncertainty.perturb(torch.zeros(1, 2, dtype=torch.float64), u)[0]
    np.testing.assert_allclose(samples.numpy(), reference.ppf(u.numpy()), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    "nothing",
    [
        unc.Normal(0.0),
        unc.Normal(cov=np.zeros((2, 2))),
        unc.Uniform(0, 0),
        unc.Beta(0.4, 0.2, scale=0),
        unc.ChiSquared(2, scale=0),
        unc.GaussianMixture([[0, 0]], np.zeros((2, 2))),
        unc.Ring(0),
        unc.Empirical(np.zeros((3, 2))),
        unc.Varying(lambda x: unc.Normal(0 * x)),
        unc.Product([unc.Normal(0), unc.Uniform(0, 0)]),
        unc.Piecewise([0.5], [unc.Normal(0), unc.Exact()]),
    ],
    ids=repr,
)
def test_zero_width_is_exact(nothing):
    X = torch.rand(3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    base = unc.base_draws(8, nothing.n_base(2))
    exact = unc.Exact()
    assert torch.equal(nothing.perturb(X, base), exact.perturb(X, base))
    torch.testing.assert_close(nothing.mean(X), exact.mean(X))
    torch.testing.assert_close(nothing.covariance(X), exact.covariance(X))


def test_a_diagonal_covariance_gives_the_samples_of_standard_deviations():
    std = torch.tensor([0.1, 0.0, 2.0], dtype=torch.float64)
    by_cov = samples_at_zero(unc.Normal(cov=torch.diag(std**2)), 3, 64)
    torch.testing.assert_close(by_cov, samples_at_zero(unc.Normal(std), 3, 64))


@pytest.mark.parametrize("seed", range(5))
def test_singular_covariances_with_rounding_errors_are_accepted(seed):
    direction = np.random.default_rng(seed).normal(size=6)
    deviations = samples_at_zero(unc.Normal(cov=np.outer(direction, direction)), 6, 64)
    along = deviations @ torch.tensor(direction / np.linalg.norm(direction) ** 2)
    rank_one = along[:, None] * torch.tensor(direction)
    torch.testing.assert_close(deviations, rank_one, atol=1e-6, rtol=0)


def test_varying_covariances_may_be_singular():
    root = torch.tensor([[0.2, 0.0], [0.1, 0.0]], dtype=torch.float64)
    X = torch.ones(3, 2, dtype=torch.float64).requires_grad_()
    varying = unc.Varying(lambda x: unc.Normal(cov=x[..., :1, None] ** 2 * root @ root.mT))
    samples = varying.perturb(X, unc.base_draws(32, 2))
    deviation = samples - X.unsqueeze(-2)
    torch.testing.assert_close(deviation[..., 0], 2 * deviation[..., 1], atol=1e-6, rtol=0)
    (gradient,) = torch.autograd.grad(samples.sum(), X)
    assert torch.isfinite(gradient).all()


def test_one_component_is_a_normal():
    cov = [[0.09, -0.01], [-0.01, 0.09]]
    X, u = torch.zeros(1, 2, dtype=torch.float64), unc.base_draws(64, 3)
    mixture = unc.GaussianMixture([[1.0, 2.0]], cov).perturb(X, u)
    normal = unc.Normal(cov=cov).perturb(X, u[:, 1:])
    torch.testing.assert_close(mixture, normal + torch.tensor([1.0, 2.0]))


def test_components_are_drawn_as_often_as_their_weights_say():
    mixture = unc.GaussianMixture([[0.0], [10.0], [20.0]], [[0.01]], [0.25, 0.0, 0.75])
    nearest = (samples_at_zero(mixture, 1) / 10).round().long()
    assert torch.bincount(nearest[:, 0]).tolist() == [N // 4, 0, 3 * N // 4]


def test_one_covariance_for_all_components_equals_a_copy_for_each():
    cov = [[0.09, 0.01], [0.01, 0.04]]
    means = [[0, 0], [1, 1]]
    assert unc.GaussianMixture(means, cov) == unc.GaussianMixture(means, [cov, cov], [0.5, 0.5])


def test_a_ring_has_its_radius_and_all_angles():
    deviations = samples_at_zero(unc.Ring(0.5), 2)
    torch.testing.assert_close(deviations.norm(dim=-1), torch.full((N,), 0.5).double())
    angles = torch.atan2(deviations[:, 1], deviations[:, 0])
    counts = torch.histc(angles, 8, -math.pi, math.pi)
    assert (counts - N / 8).abs().max() <= 2


def test_each_logged_deviation_is_drawn_equally_often():
    drawn = samples_at_zero(unc.Empirical([0.1, 0.2, 0.3, 0.4]), 1)
    _, counts = drawn.unique(return_counts=True)
    assert counts.tolist() == [N // 4] * 4


def test_moments_that_do_not_exist_are_refused():
    X, cauchy = torch.zeros(1, 1, dtype=torch.float64), unc.SciPy(scipy.stats.cauchy())
    with pytest.raises(ValueError, match="has no finite mean"):
        cauchy.mean(X)
    with pytest.raises(ValueError, match="has no finite var"):
        cauchy.covariance(X)


def test_clipping_keeps_executed_inputs_inside_and_leaves_the_rest_alone():
    X = torch.tensor([[0.0, 0.5]], dtype=torch.float64)
    base = unc.base_draws(256, 2)
    free = unc.Normal(0.3).perturb(X, base)
    torch.testing.assert_close(unc.Normal(0.3).clipped(0, 1).perturb(X, base), free.clamp(0, 1))
    one_sided = unc.Normal(0.3).clipped(high=[0.0, 0.6]).perturb(X, base)
    assert (one_sided[..., 0] <= 0).all()
    assert (one_sided[..., 1] <= 0.6).all()
    assert torch.equal(one_sided.min(), free.min())


def test_clipped_normal_has_the_mean_of_the_rectified_normal():
    X = torch.zeros(1, 1, dtype=torch.float64)
    mean = unc.Normal(1.0).clipped(low=0).mean(X).item()
    assert mean == pytest.approx(1 / math.sqrt(2 * math.pi), abs=1e-3)


@pytest.mark.parametrize("extreme", [1e-3, 0.05, 1e3])
@pytest.mark.parametrize("kind", [lambda x: unc.Beta(x, 0.3), unc.ChiSquared])
def test_gradients_of_shape_parameters_are_finite_at_extremes(kind, extreme):
    X = torch.full((2, 1), extreme, dtype=torch.float64, requires_grad=True)
    u = torch.tensor([[1e-12], [0.5], [1 - 1e-12]], dtype=torch.float64)
    samples = unc.Varying(kind).perturb(X, u)
    (gradient,) = torch.autograd.grad(samples.sum(), X)
    assert torch.isfinite(samples).all()
    assert torch.isfinite(gradient).all()


def test_values_are_equal_by_value_and_show_what_was_given():
    assert unc.Normal(1) == unc.Normal(1.0) == unc.Normal(torch.tensor(1.0))
    assert unc.Normal(np.array([1, 2])) == unc.Normal([1.0, 2.0])
    assert unc.Normal(1) != unc.Normal(2)
    assert unc.Normal(1) != unc.Exact()
    varying = torch.ones(2, 3)
    assert unc.Normal(varying) == unc.Normal(varying.clone())
    assert unc.Normal(varying) != unc.Normal(2 * varying)
    assert len({unc.Normal(varying), unc.Normal(varying.clone())}) == 1
    assert repr(unc.Beta(0.4, 0.2, scale=0.1)) == "Beta(a=0.4, b=0.2, scale=0.1)"
    assert repr(unc.Normal(varying)) == "Normal(std=<tensor of shape (2, 3)>)"
    assert repr(unc.Empirical(np.zeros((99, 2)))) == "Empirical(deviations=<99 values>)"


def test_uncertainties_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot assign"):
        unc.Normal(0.1).std = 0.2


def test_constant_parameters_that_require_grad_get_one():
    std = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    cov = torch.eye(2, dtype=torch.float64).requires_grad_()
    X = torch.zeros(1, 2, dtype=torch.float64)
    for uncertainty, p in ((unc.Normal(std), std), (unc.Normal(cov=cov), cov)):
        assert uncertainty.is_additive
        for _ in range(2):  # a second backward pass through the same uncertainty
            loss = uncertainty.perturb(X, unc.base_draws(8, 2)).square().sum()
            (gradient,) = torch.autograd.grad(loss, p)
            assert gradient.abs().sum() > 0
