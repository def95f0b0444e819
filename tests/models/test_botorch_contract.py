"""The surrogates are BoTorch models in every sense."""

import pickle

import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qUpperConfidenceBound,
)
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
from botorch.exceptions.warnings import InputDataWarning
from botorch.fit import fit_gpytorch_mll
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP, NominalGP
from tests.surrogates import (
    ALL_SURROGATES,
    SAMPLE_KINDS,
    SURROGATES_AND_WAYS,
    box,
    case,
    designs,
    every_surrogate,
    moments,
    set_hyperparameters,
    surrogate,
    values,
)

every_surrogate_in_every_way = pytest.mark.parametrize(
    ("kind", "uncertainty", "d"), SURROGATES_AND_WAYS
)


def fit(model):
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def assert_same_posterior(a, b, X, atol=1e-6):
    for ours, theirs in zip(moments(a, X), moments(b, X), strict=True):
        torch.testing.assert_close(ours, theirs, atol=atol, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "estimator"),
    [(kind, None) for kind in ALL_SURROGATES] + [(MMDGP, Empirical(8)), (MMDGP, Nystrom(8, 4))],
)
@pytest.mark.parametrize("deployment", [None, unc.Exact()], ids=repr)
def test_every_prior_counts_once(kind, estimator, deployment):
    X, Y = designs(7, 2), values(designs(7, 2))
    model = kind(X, Y, unc.Normal(0.2), box(2), estimator=estimator, deployment=deployment)
    model.train()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    given = mll(model(*model.train_inputs), model.train_targets, model.train_inputs)
    owners = {id(m): m for m in model.modules() if getattr(m, "_priors", None)}
    expected = [
        prior.log_prob(closure(module)).sum()
        for module in owners.values()
        for prior, closure, _ in module._priors.values()
    ]
    for owner in owners.values():
        owner._priors.clear()
    without = mll(model(*model.train_inputs), model.train_targets, model.train_inputs)
    torch.testing.assert_close((given - without) * len(Y), torch.stack(expected).sum())


@every_surrogate
def test_scaling_designs_bounds_and_uncertainty_together_changes_nothing(kind):
    X, Q = designs(7, 2), designs(3, 2, seed=1)
    shift, scale = torch.tensor([100.0, -3.0]).double(), torch.tensor([10.0, 0.01]).double()
    plain = kind(X, values(X), unc.Normal([0.3, 0.5]), box(2))
    scaled = kind(X * scale + shift, values(X), unc.Normal([3.0, 0.005]), box(2) * scale + shift)
    for a, b in zip(moments(plain, Q), moments(scaled, Q * scale + shift), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


@every_surrogate
def test_an_affine_change_of_values_changes_the_posterior_alike(kind):
    X, Q = designs(7, 2), designs(3, 2, seed=1)
    plain = kind(X, values(X), unc.Normal(0.3), box(2))
    changed = kind(X, 50 * values(X) - 7, unc.Normal(0.3), box(2))
    (mean, cov), (other_mean, other_cov) = moments(plain, Q), moments(changed, Q)
    torch.testing.assert_close(other_mean, 50 * mean - 7)
    torch.testing.assert_close(other_cov, 2500 * cov)


@every_surrogate
def test_fitting_raises_the_likelihood_and_predicts_the_data(kind):
    X = designs(15, 1)
    model = kind(X, values(X), unc.Normal(0.05), box(1))
    mll = ExactMarginalLogLikelihood(model.likelihood, model)

    def likelihood():
        model.train()
        with torch.no_grad():
            return mll(model(*model.train_inputs), model.train_targets, *model.train_inputs)

    before = likelihood()
    fit_gpytorch_mll(mll)
    assert likelihood() > before
    assert (model.posterior(X + 1e-6).mean - values(X)).abs().mean() < 0.2 * values(X).std()


@every_surrogate_in_every_way
def test_conditioning_equals_a_new_model_with_the_joined_data(kind, uncertainty, d):
    model = set_hyperparameters(surrogate(kind, uncertainty, d))
    new_X, Q = designs(3, d, seed=1), designs(4, d, seed=2)
    conditioned = model.condition_on_observations(new_X, values(new_X))
    joined = torch.cat([designs(7, d), new_X])
    fresh = kind(joined, values(joined), uncertainty, box(d))
    fresh.load_state_dict(model.state_dict())  # the standardization too
    Y, _ = fresh.outcome_transform(values(joined))
    fresh.set_train_data(targets=Y.squeeze(-1), strict=False)
    assert_same_posterior(conditioned, fresh, Q, atol=1e-5)
    assert len(model.train_targets) == 7


@every_surrogate
def test_fantasies_have_the_shape_that_botorch_expects(kind):
    model = surrogate(kind, unc.Normal(0.2), 2)
    X = designs(6, 2, seed=1).reshape(3, 2, 2)
    fantasies = model.fantasize(X, sampler=SobolQMCNormalSampler(torch.Size([4]), seed=0))
    assert fantasies.posterior(designs(5, 2, seed=2)).mean.shape == (4, 3, 5, 1)
    assert fantasies.posterior(X).mean.shape == (4, 3, 2, 1)
    assert torch.isfinite(fantasies.posterior(X).variance).all()


@every_surrogate_in_every_way
def test_a_state_dict_carries_the_posterior(kind, uncertainty, d):
    model = set_hyperparameters(surrogate(kind, uncertainty, d))
    other = surrogate(kind, uncertainty, d)
    Q = designs(4, d, seed=2)
    other.posterior(Q)  # what was remembered has to go
    other.load_state_dict(model.state_dict())
    assert_same_posterior(model, other, Q)
    assert_same_posterior(other, model, Q)


@every_surrogate
def test_posterior_samples_have_shapes_and_gradients(kind):
    model = surrogate(kind, unc.Normal(0.2), 2)
    X = designs(6, 2, seed=1).reshape(3, 2, 2).requires_grad_()
    samples = model.posterior(X).rsample(torch.Size([5]))
    assert samples.shape == (5, 3, 2, 1)
    samples.sum().backward()
    assert torch.isfinite(X.grad).all()
    assert (X.grad != 0).any()


@every_surrogate
def test_observation_noise_widens_the_posterior(kind):
    model = surrogate(kind, unc.Normal(0.2), 2)
    Q = designs(3, 2, seed=1)
    noisy = model.posterior(Q, observation_noise=True).variance
    assert (noisy > model.posterior(Q).variance).all()


def acquisitions(model, d):
    X = designs(7, d)
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
    candidates = designs(20, d, seed=9)
    return {
        "ucb": (lambda: UpperConfidenceBound(model, 4.0), 1),
        "logei": (lambda: LogExpectedImprovement(model, values(X).max()), 1),
        "qnei": (lambda: qLogNoisyExpectedImprovement(model, X, sampler=sampler), 2),
        "qucb": (lambda: qUpperConfidenceBound(model, 4.0, sampler=sampler), 2),
        "mes": (lambda: qMaxValueEntropy(model, candidates, num_fantasies=2), 1),
        "kg": (lambda: qKnowledgeGradient(model, num_fantasies=2), 1),
    }


def optimize(model, name, d):
    make, q = acquisitions(model, d)[name]
    torch.manual_seed(0)
    options = {"maxiter": 1, "batch_limit": 2, "init_batch_limit": 4}
    candidate, value = optimize_acqf(
        make(), box(d), q=q, num_restarts=2, raw_samples=2, options=options
    )
    assert candidate.shape == (q, d)
    assert torch.isfinite(value).all()
    assert ((candidate >= -2) & (candidate <= 2)).all()


ACQUISITIONS = ["ucb", "logei", "qnei", "qucb", "mes", "kg"]
quietly = pytest.mark.filterwarnings(
    # one iteration is not meant to converge, nor two random points to cover the box
    "ignore:Optimization failed",
    "ignore:A not p.d., added jitter of 1.0e-08",  # neighbours on a line, without noise
    "ignore::botorch.exceptions.warnings.BadInitialCandidatesWarning",
)


@quietly
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in (MMDGP, ExpectationGP) for name in ACQUISITIONS]
    + [case(kind, "mes") for kind in (UGP, SKLGP, ERBFGP, NominalGP)],  # others: see below
)
def test_every_acquisition_function_can_be_optimized(kind, name):
    optimize(surrogate(kind, unc.Normal(0.2), 2), name, 2)


@quietly
@pytest.mark.parametrize(("uncertainty", "d"), SAMPLE_KINDS)
@pytest.mark.parametrize("estimator", [None, Empirical(8), Nystrom(16, 4)], ids=repr)
def test_mmdgp_can_be_optimized_under_every_kind_of_features(uncertainty, d, estimator):
    optimize(surrogate(MMDGP, uncertainty, d, estimator=estimator), "qnei", d)


@quietly
@every_surrogate
def test_acquisitions_work_where_observations_have_their_own_uncertainty(kind):
    X = designs(7, 2)
    mixed = [unc.Normal(0.2)] * 5 + [None] * 2
    model = kind(X, values(X), mixed, box(2))
    for name in ("ucb", "qnei", "kg"):
        optimize(model, name, 2)


@every_surrogate_in_every_way
def test_predicting_again_after_fitting_again_forgets_the_first_fit(kind, uncertainty, d):
    model = surrogate(kind, uncertainty, d)
    Q = designs(4, d, seed=2)
    model.posterior(Q)
    fit(model)
    fresh = surrogate(kind, uncertainty, d)
    fresh.load_state_dict(model.state_dict())
    assert_same_posterior(model, fresh, Q)


@pytest.mark.parametrize("change", ["no_grad", "frozen"])
def test_changed_length_scales_of_an_rbf_base_kernel_are_noticed(change):
    def build(lengthscale):
        base = RBFKernel(ard_num_dims=2).double()
        base.lengthscale = lengthscale
        base.raw_lengthscale.requires_grad_(change == "no_grad")
        return surrogate(MMDGP, unc.Normal(0.2), 2, base_kernel=base)

    Q = designs(4, 2, seed=1)
    model = build(0.3)
    with torch.no_grad():
        moments(model, Q)
        model.train()
        model.features.base_kernel.lengthscale = 1.5
        changed = moments(model, Q)
        expected = moments(build(1.5), Q)
    for a, b in zip(changed, expected, strict=True):
        torch.testing.assert_close(a, b)


@every_surrogate
def test_single_precision_stays_single(kind):
    X = designs(7, 2).float()
    with pytest.warns(InputDataWarning, match="double precision"):
        model = kind(X, values(X), unc.Normal(0.2), box(2).float())
    assert all(p.dtype == torch.float32 for p in model.parameters())
    posterior = model.posterior(X[:3] + 0.1)
    assert posterior.mean.dtype == posterior.variance.dtype == torch.float32
    assert torch.isfinite(posterior.variance).all()
    double = surrogate(kind, unc.Normal(0.2), 2).posterior((X[:3] + 0.1).double())
    torch.testing.assert_close(posterior.mean.double(), double.mean, atol=2e-2, rtol=0)


@every_surrogate
def test_a_pickle_carries_the_posterior(kind):
    model = fit(surrogate(kind, unc.Normal(0.1), 2))
    Q = designs(3, 2, seed=5)
    back = pickle.loads(pickle.dumps(model))
    for mine, its in zip(moments(model, Q), moments(back, Q), strict=True):
        torch.testing.assert_close(mine, its)


@every_surrogate
def test_noise_that_is_given_is_the_noise_that_is_added(kind):
    model = surrogate(kind, unc.Normal(0.1), 2)
    Q = designs(3, 2, seed=5)
    given = torch.tensor([[0.5], [1.0], [2.0]], dtype=torch.float64)
    plain = model.posterior(Q).variance
    added = model.posterior(Q, observation_noise=given).variance - plain
    scale = model.outcome_transform.stdvs.square().squeeze()
    torch.testing.assert_close(added, given * scale)


def test_noise_that_depends_on_the_design_is_that_of_the_observations_or_asks_for_designs():
    model = surrogate(ExpectationGP, unc.Normal(0.1), 2)
    prior = model.forward(*model.train_inputs)
    with_designs = model.likelihood(prior, *model.train_inputs).covariance_matrix
    torch.testing.assert_close(model.likelihood(prior).covariance_matrix, with_designs)
    with pytest.raises(ValueError, match="differs from design to design"):
        model.likelihood(model.forward(designs(3, 2)))
