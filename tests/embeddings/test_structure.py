"""What a posterior works out, how often and how large: structure, never seconds."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from gpytorch.mlls import ExactMarginalLogLikelihood

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom, Quadrature, RationalQuadraticSum
from airbo.embeddings.kernels import MMDKernel
from airbo.models import MMDGP
from tests.operations import Operations
from tests.surrogates import box, designs, values
from tests.uncertainties import wavy_beta

N_OBSERVATIONS = 12
BETA = unc.Beta(0.4, 0.2, scale=0.1)


def widening_normal(x):
    return unc.Normal(0.02 + 0.1 * x)


DEFAULT_KINDS = {
    "normal 1": (unc.Normal(0.05), 1),
    "beta 1": (BETA, 1),
    "beta 3": (BETA, 3),
    "ring and normal 4": (unc.Product([unc.Ring(0.2), unc.Normal(0.1)]), 4),
    "varying beta 1": (unc.Varying(wavy_beta), 1),
    "varying normal 3": (unc.Varying(widening_normal), 3),
}
every_default_kind = pytest.mark.parametrize(
    ("uncertainty", "d"), DEFAULT_KINDS.values(), ids=DEFAULT_KINDS
)
every_estimator = pytest.mark.parametrize(
    "estimator", [Quadrature(), Empirical(20), Nystrom(40, 5)], ids=repr
)


class Box:
    """A black box that counts the samples it is asked for."""

    def __init__(self):
        self.drawn = []

    def __call__(self, X, base):
        self.drawn.append(X.shape[:-1].numel() * len(base))
        return X.unsqueeze(-2) + 0.1 * (1 + X.unsqueeze(-2)) * base


def surrogate(uncertainty, d, estimator=None, n=N_OBSERVATIONS):
    X = designs(n, d, low=0.0, high=1.0)
    bounds = box(d, 0.0, 1.0)
    return MMDGP(X, values(X), uncertainty, bounds, estimator=estimator).eval()


def unseen(n, d, seed):
    return designs(n, d, seed=seed, low=0.0, high=1.0)


def predict(model, X):
    with torch.no_grad():
        posterior = model.posterior(X)
        return posterior.mean, posterior.variance


def operations(model, X):
    with Operations() as done:
        predict(model, X)
    return done


@contextmanager
def recorded(owner, name, what):
    """Note something about every call of a method."""
    method, notes = getattr(owner, name), []

    def call(*args, **kwargs):
        notes.append(what(*args, **kwargs))
        return method(*args, **kwargs)

    with patch.object(owner, name, call):
        yield notes


def logged(m, d):
    draws = torch.randn(m, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return unc.Empirical(0.05 * (draws.cumsum(-1) + draws.square()))


def work(n_logged, d, joint):
    model = surrogate(logged(n_logged, d), d)
    predict(model, unseen(3, d, seed=1))
    X = unseen(50, d, seed=2)
    return operations(model, X if joint else X.unsqueeze(-2))


@pytest.mark.parametrize("joint", [True, False])
def test_the_work_of_a_posterior_does_not_grow_with_the_number_of_logged_deviations(joint):
    few, many = (work(m, 1, joint) for m in (100, 1000))
    assert many.n == few.n
    assert many.largest <= 1.2 * few.largest  # the rarest deviations reach a little farther


@pytest.mark.parametrize("joint", [True, False])
def test_in_several_columns_the_work_depends_on_the_shape_of_the_deviation_only(joint):
    # more of them show more of the tails, which take more Gaussians, up to a limit
    few, many = (work(m, 3, joint) for m in (100, 1000))
    assert many.n <= 1.25 * few.n
    assert many.largest <= 2 * few.largest


@every_default_kind
def test_a_second_posterior_evaluates_no_base_kernel_and_prepares_nothing(uncertainty, d):
    model = surrogate(uncertainty, d)
    predict(model, unseen(60, d, seed=1))
    with recorded(RationalQuadraticSum, "forward", lambda *a, **k: 1) as base_kernel:
        first = operations(model, unseen(40, d, seed=2))
        second = operations(model, unseen(40, d, seed=3))
    assert not base_kernel
    assert second.n <= first.n + 1  # designs as many as before are compared with those


@every_estimator
@pytest.mark.parametrize(
    ("uncertainty", "d"), [(BETA, 1), (BETA, 3), (unc.Varying(wavy_beta), 1)], ids=str
)
def test_observations_are_embedded_once_and_every_design_once(estimator, uncertainty, d):
    model = surrogate(uncertainty, d, estimator)
    embedding = type(model.features)
    with recorded(embedding, "compute", lambda self, X, choice: X.shape[:-1].numel()) as embedded:
        predict(model, unseen(30, d, seed=1))
        assert embedded.count(N_OBSERVATIONS) >= 1
        embedded.clear()
        predict(model, unseen(31, d, seed=2))
        predict(model, unseen(32, d, seed=3).unsqueeze(-2))
    assert embedded == [31, 32]


@every_estimator
def test_a_black_box_is_sampled_once_per_design_and_not_per_pair(estimator):
    box_ = Box()
    model = surrogate(unc.Sampler(box_), 2, estimator)
    predict(model, unseen(3, 2, seed=1))
    per_design = []
    for n_designs in (20, 40):
        box_.drawn.clear()
        predict(model, unseen(n_designs, 2, seed=n_designs))
        per_design.append(sum(box_.drawn) / n_designs)
    assert per_design[0] == per_design[1]
    assert len(box_.drawn) == 1


@every_estimator
def test_a_step_of_a_fit_draws_nothing_that_does_not_depend_on_hyperparameters(estimator):
    box_ = Box()
    model = surrogate(unc.Sampler(box_), 1, estimator)
    mll = ExactMarginalLogLikelihood(model.likelihood, model).train()

    def step():
        box_.drawn.clear()
        (-mll(model(*model.train_inputs), model.train_targets)).backward()
        return sum(box_.drawn)

    step()
    samples = 40 * N_OBSERVATIONS if isinstance(estimator, Nystrom) else 0
    assert step() == samples  # the weights of landmarks depend on hyper-parameters


@every_default_kind
def test_the_joint_mean_and_variance_of_many_designs_compare_them_with_the_observations_only(
    uncertainty, d
):
    n_designs = 2000
    model = surrogate(uncertainty, d)
    predict(model, unseen(3, d, seed=1))

    def pairs(self, x1, x2, diag=False, **kwargs):
        return x1.shape[-2] * (1 if diag else x2.shape[-2])

    with recorded(MMDKernel, "forward", pairs) as compared:
        done = operations(model, unseen(n_designs, d, seed=2))
    assert compared
    assert max(compared) <= n_designs * N_OBSERVATIONS
    assert done.largest < n_designs**2 / 2


@pytest.mark.parametrize("d", [1, 3])
def test_nothing_is_as_large_as_all_pairs_of_designs_and_samples(d):
    n_designs, m = 512, 1000
    model = surrogate(logged(m, d), d)
    predict(model, unseen(3, d, seed=1))
    for X in (unseen(n_designs, d, seed=2), unseen(n_designs, d, seed=2).unsqueeze(-2)):
        assert operations(model, X).largest < n_designs * N_OBSERVATIONS * m / 5


@every_default_kind
def test_many_designs_are_worked_on_in_portions(uncertainty, d):
    model = surrogate(uncertainty, d)
    predict(model, unseen(3, d, seed=1))
    n_designs, portion, features = 3000, 1_000_000, 250
    done = operations(model, unseen(n_designs, d, seed=2).unsqueeze(-2))
    assert done.largest <= max(portion, features * n_designs)


def test_dependent_columns_under_many_uncertainties_are_worked_on_in_portions():
    X = designs(N_OBSERVATIONS, 2, low=0.0, high=1.0)
    rings = [unc.Ring(0.1 + 0.01 * (k % 6)) for k in range(N_OBSERVATIONS)]
    model = MMDGP(X, values(X), rings, box(2, 0.0, 1.0)).eval()
    predict(model, unseen(3, 2, seed=1))
    done = operations(model, unseen(200, 2, seed=2).unsqueeze(-2))
    assert done.largest <= 1_000_000
