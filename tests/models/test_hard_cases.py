"""What real data look like on bad days: every surrogate is fitted and asked, and answers."""

import warnings

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.warnings import NumericalWarning

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom
from airbo.models import MMDGP, SKLGP, UGP, ExpectationGP, RelevanceGP
from airbo.problems import DoublePeak
from tests.surrogates import ALL_SURROGATES, box, case, designs, every_surrogate, values


def check(kind, X, Y, uncertainty, Q=None, **kwargs):
    """Fit, predict jointly with gradients, and return the posterior."""
    model = kind(X, Y, uncertainty, box(X.shape[-1]), **kwargs)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    Q = (designs(5, X.shape[-1], seed=99) if Q is None else Q).clone().requires_grad_()
    posterior = model.posterior(Q)
    assert torch.isfinite(posterior.mean).all()
    assert torch.isfinite(posterior.variance).all()
    assert (posterior.variance >= 0).all()
    with warnings.catch_warnings():  # a posterior of fewer dimensions than designs gets jitter
        warnings.filterwarnings("ignore", "A not p.d.", NumericalWarning)
        assert torch.isfinite(posterior.rsample(torch.Size([2]))).all()
    (gradient,) = torch.autograd.grad(posterior.mean.sum() + posterior.variance.sum(), Q)
    assert torch.isfinite(gradient).all()
    return posterior


@every_surrogate
def test_one_observation(kind):
    X = designs(1, 2)
    posterior = check(kind, X, values(X), unc.Normal(0.2))
    assert (posterior.mean - values(X)).abs().max() < 5


@pytest.mark.parametrize(
    ("kind", "uncertainty"),
    [case(kind, unc.Uniform(-0.1, 0.3)) for kind in ALL_SURROGATES] + [(MMDGP, unc.Normal(0.2))],
)
def test_identical_designs(kind, uncertainty):
    X = designs(1, 2).expand(8, 2).clone()
    Y = torch.linspace(-1, 1, 8, dtype=torch.float64).unsqueeze(-1)
    posterior = check(kind, X, Y, uncertainty, X[:1])
    assert posterior.mean.abs().max() < 0.1


@every_surrogate
def test_all_values_equal(kind):
    X = designs(8, 2)
    posterior = check(kind, X, torch.full((8, 1), 3.0, dtype=torch.float64), unc.Normal(0.2))
    torch.testing.assert_close(posterior.mean, torch.full_like(posterior.mean, 3.0))


def test_a_fit_does_not_take_exactly_tried_peaks_for_noise():
    tried = [
        *(0.04, 0.06, 0.16, 0.188, 0.2, 0.205, 0.211, 0.226, 0.233, 0.246, 0.284, 0.291, 0.293),
        *(0.296, 0.298, 0.305, 0.308, 0.314, 0.319, 0.344, 0.383, 0.385, 0.387, 0.393, 0.402),
        *(0.475, 0.56, 0.69, 0.8, 0.99, 1.0),
    ]
    X, problem = torch.tensor(tried, dtype=torch.float64).unsqueeze(-1), DoublePeak()
    best = problem.robust_optimum
    model = RelevanceGP(X, problem(X).unsqueeze(-1), unc.Exact(), problem.bounds)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    found = model.posterior(best.design.unsqueeze(0), uncertainty=problem.uncertainty).mean
    assert found.item() == pytest.approx(best.value, abs=0.3)


WIDTHS = {
    "exact": unc.Exact(),
    "normal 0": unc.Normal(0.0),
    "uniform 0": unc.Uniform(0.0, 0.0),
    "beta 0": unc.Beta(0.4, 0.2, scale=0.0),
    "normal 40": unc.Normal(40.0),
    "uniform 40": unc.Uniform(-20.0, 20.0),
    "beta 40": unc.Beta(0.4, 0.2, scale=40.0),
    "varying from 0": unc.Varying(lambda x: unc.Normal((x + 2).clamp_min(0))),
}


@pytest.mark.parametrize(
    ("kind", "width"),
    [(ExpectationGP, width) for width in WIDTHS]
    + [
        case(kind, width)
        for kind in ALL_SURROGATES
        for width in ("normal 0", "beta 40", "varying from 0")
        if kind is not ExpectationGP
    ],
)
def test_uncertainty_of_no_width_and_of_ten_times_the_domain(kind, width):
    X = designs(8, 1)
    check(kind, X, values(X), WIDTHS[width])


@pytest.mark.slow
@every_surrogate
@pytest.mark.parametrize("uncertainty", WIDTHS.values(), ids=WIDTHS)
def test_uncertainty_of_no_width_and_of_ten_times_the_domain_in_the_plane(kind, uncertainty):
    X = designs(8, 2)
    check(kind, X, values(X), uncertainty)


@pytest.mark.parametrize("kind", [MMDGP, UGP])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("make", [unc.Normal, lambda w: unc.Uniform(-w, w)])
def test_uncertainty_of_no_width_is_exact(kind, d, make):
    X, Q = designs(7, d), designs(3, d, seed=1)
    exact = kind(X, values(X), unc.Exact(), box(d)).posterior(Q)
    for width, atol in ((0.0, 1e-4), (1e-4, 1e-3)):
        narrow = kind(X, values(X), make(width), box(d)).posterior(Q)
        torch.testing.assert_close(narrow.mean, exact.mean, atol=atol, rtol=0)
        torch.testing.assert_close(narrow.variance, exact.variance, atol=atol, rtol=0)


@every_surrogate
def test_tiny_and_huge_values(kind):
    X = designs(8, 2)
    Y = values(X)
    plain = check(kind, X, Y, unc.Normal(0.2))
    for scale in (1e-8, 1e8):
        with warnings.catch_warnings():
            # GPyTorch cuts variances at 1e-10 and says so; the mean stays right
            warnings.filterwarnings("ignore" if scale < 1 else "error", "Negative variance values")
            scaled = check(kind, X, scale * Y, unc.Normal(0.2))
        torch.testing.assert_close(scaled.mean / scale, plain.mean, atol=1e-2, rtol=1e-2)


@every_surrogate
def test_designs_at_the_bounds(kind):
    X = torch.cartesian_prod(*[torch.tensor([-2.0, 2.0], dtype=torch.float64)] * 2)
    check(kind, X, values(X), unc.Normal(0.2), X)


@pytest.mark.parametrize(
    ("kind", "uncertainty"),
    [case(kind, unc.Beta(0.4, 0.2)) for kind in ALL_SURROGATES] + [(MMDGP, unc.Normal(0.2))],
)
def test_twenty_dimensions(kind, uncertainty):
    X = designs(12, 20)
    check(kind, X, values(X), uncertainty)


@pytest.mark.parametrize("estimator", [Empirical(32), Nystrom(32, 6)], ids=repr)
@pytest.mark.parametrize("d", [1, 20])
def test_the_papers_estimators_in_one_and_twenty_dimensions(estimator, d):
    X = designs(8, d)
    check(MMDGP, X, values(X), unc.Beta(0.4, 0.2), estimator=estimator)


@every_surrogate
def test_two_hundred_observations(kind):
    X = designs(200, 2)
    noise = 0.01 * torch.randn(200, 1, generator=torch.Generator().manual_seed(0)).double()
    posterior = check(kind, X, values(X) + noise, unc.Normal(0.1))
    assert (posterior.mean - values(designs(5, 2, seed=99))).abs().max() < 0.5


@every_surrogate
def test_a_fit_that_fails_can_go_back_to_where_it_began(kind):
    X = designs(5, 2)
    model = kind(X, values(X), unc.Normal(0.1))
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    before = model.posterior(X).mean.detach()
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    for name, tensor in model.state_dict().items():  # as BoTorch does it
        tensor[...] = start[name]
    torch.testing.assert_close(model.posterior(X).mean.detach(), before)


@pytest.mark.slow
@every_surrogate
@pytest.mark.parametrize("n", [5, 20, 50, 200])
@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize(
    "uncertainty",
    [
        unc.Normal(0.1),
        unc.Beta(0.4, 0.2, scale=0.4),
        unc.Varying(lambda x: unc.Normal(0.1 + 0.1 * x.abs())),
    ],
    ids=repr,
)
def test_five_to_two_hundred_observations_in_one_to_ten_dimensions(kind, n, d, uncertainty):
    X = designs(n, d)
    noise = 0.1 * torch.randn(n, 1, generator=torch.Generator().manual_seed(0)).double()
    check(kind, X, values(X) + noise, uncertainty)


def test_indefinite_divergences_still_give_a_posterior():
    X = designs(20, 2)
    widths = unc.Varying(lambda x: unc.Normal(0.01 + x.abs()))
    posterior = check(SKLGP, X, values(X), widths)
    assert (torch.linalg.eigvalsh(posterior.distribution.covariance_matrix) > -1e-8).all()


@every_surrogate
def test_bounds_default_to_the_range_of_the_data(kind):
    X = designs(6, 2)
    X[:, 1] = 3.0  # a column that does not vary
    model = kind(X, values(X), unc.Normal(0.1))
    assert torch.isfinite(model.posterior(X[:2] + 0.1).mean).all()


@every_surrogate
def test_a_query_far_outside_the_bounds_leaves_the_model_as_it_was(kind):
    X, Q = designs(7, 1), designs(4, 1, seed=3)
    model = kind(X, values(X), unc.Beta(0.4, 0.2, scale=0.1), box(1))
    before = model.posterior(Q).mean.detach()
    far = model.posterior(torch.full((1, 1), 1e6, dtype=torch.float64))
    assert torch.isfinite(far.mean).all()
    assert torch.equal(model.posterior(Q).mean.detach(), before)


@pytest.mark.parametrize("kind", [MMDGP, UGP])
def test_uncertainty_is_looked_at_only_within_the_bounds(kind):
    X = designs(7, 1, low=100.0, high=200.0)
    P = unc.Varying(lambda x: unc.Beta(2, 3, scale=0.1 * (x - 90)), probe=150.0)
    model = kind(X, (X / 30).sin(), P, box(1, 100.0, 200.0))
    assert torch.isfinite(model.posterior(X[:3] + 0.5).variance).all()


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
@pytest.mark.parametrize("kind", [MMDGP, UGP])
def test_single_precision_on_a_line(kind):
    X = designs(7, 1).float()
    model = kind(X, values(X), unc.Beta(0.4, 0.2, scale=0.1), box(1).float())
    posterior = model.posterior(X[:3] + 0.1)
    assert posterior.mean.dtype == torch.float32
    assert torch.isfinite(posterior.variance).all()


@every_surrogate
@pytest.mark.parametrize("stray", [-1e4, 1e4])
def test_priors_have_a_density_however_far_a_step_of_a_fit_goes_astray(kind, stray):
    X = designs(5, 2)
    model = kind(X, values(X), unc.Normal(0.2), box(2))
    for _, parameter, constraint in model.named_parameters_and_constraints():
        bounded = constraint is not None and not constraint.enforced  # then the fit keeps to it
        parameter.data.fill_(max(stray, constraint.lower_bound.item()) if bounded else stray)
    for _, module, prior, closure, _ in model.named_priors():
        assert prior.log_prob(closure(module)).isfinite().all()
