"""Every block of P_x its own way: they agree with brute force, with each other and with fits."""

import math
from functools import lru_cache

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from hypothesis import given, settings
from hypothesis import strategies as st

import airbo
from airbo import uncertainty as unc
from airbo.embeddings import Quadrature, RationalQuadraticSum, ScaleMixtureKernel, inner_product
from airbo.uncertainty import base_draws
from airbo.uncertainty.in_cube import by_columns, in_cube

PROMISED = 1e-4
"""Largest error, as a share of the base kernel at distance 0."""
CELLS = 3e-3
"""The same where cells stand for dependent columns and a length scale is as short as they are."""

LINEAR = airbo.Space({"a": (0.0, 1.0), "b": (0.0, 10.0)})
SQUARE = airbo.Space({"a": (0.0, 1.0), "b": (0.0, 1.0)})
LOG = airbo.Space({"a": airbo.Float(0.1, 10.0, log=True), "b": (0.0, 1.0)})
LOGGED = torch.randn(400, 2, generator=torch.Generator().manual_seed(0)).double()


def stretched(X, base):
    wave = torch.sin(7 * base[:, :1])
    deviation = torch.cat([wave, wave * base[:, 1:2]], dim=-1)
    return X.unsqueeze(-2) + (0.02 + 0.05 * X.unsqueeze(-2)) * deviation


def wavy_beta(x):
    return unc.Beta(0.5, 0.5, scale=0.1 * (torch.sin(4 * math.pi * x) + 1))


CASES = {
    "normal": (LINEAR, unc.Product([unc.Normal(0.05), unc.Normal(0.5)])),
    "uniform": (LINEAR, unc.Product([unc.Uniform(-0.1, 0.1), unc.Uniform(-1.0, 0.0)])),
    "beta and exact": (SQUARE, unc.Product([unc.Beta(0.4, 0.2, scale=0.1), unc.Exact()])),
    "chi-squared": (SQUARE, unc.Product([unc.ChiSquared(7.0, scale=0.01), unc.Normal(0.1)])),
    "ring": (SQUARE, unc.Ring(0.1)),
    "covariance": (LINEAR, unc.Normal(cov=[[0.01, 0.04], [0.04, 0.25]])),
    "mixture": (
        LINEAR,
        unc.GaussianMixture([[0.0, 0.0], [-0.1, 1.0]], [[0.01, -0.02], [-0.02, 0.09]]),
    ),
    "logged, one column": (
        SQUARE,
        unc.Product([unc.Empirical(0.03 * LOGGED[:, :1] ** 2), unc.Exact()]),
    ),
    "relative, uniform": (LINEAR, unc.Relative(unc.Uniform(-0.1, 0.1))),
    "relative, normal": (LINEAR, unc.Relative(unc.Normal(0.05))),
    "log-normal": (LINEAR, unc.LogNormal(0.05)),
    "log scale: normal": (LOG, unc.Product([unc.Normal(0.01), unc.Normal(0.05)])),
    "log scale: clipped": (LOG, unc.Product([unc.Normal(0.1).clipped(low=0.02), unc.Exact()])),
    "log scale: relative": (LOG, unc.Relative(unc.Uniform(-0.2, 0.2))),
    "log scale: log-normal": (LOG, unc.LogNormal(0.1)),
    "clipped": (LINEAR, unc.Product([unc.Normal(0.1).clipped(0.0, 1.0), unc.Normal(0.5)])),
    "varying normal": (LINEAR, unc.Varying(lambda x: unc.Normal(0.02 + 0.05 * x))),
    "varying beta": (SQUARE, unc.Varying(wavy_beta)),
    "steps": (
        SQUARE,
        unc.Product([unc.Piecewise([0.6], [unc.Uniform(0.0, 0.02), unc.Normal(0.1)]), unc.Exact()]),
    ),
}
DEPENDENT = {
    "logged, two columns": (SQUARE, unc.Empirical(0.03 * LOGGED.cumsum(-1))),
    "black box": (LINEAR, unc.Sampler(stretched)),
}
ALL = CASES | DEPENDENT
Z = torch.tensor([[0.3, 0.6], [0.34, 0.55], [0.8, 0.1]], dtype=torch.float64)


def base_kernels(lengthscale, ratio):
    """Kernels whose second length scale is ``ratio`` times the first."""
    scales = torch.tensor([[lengthscale, lengthscale * ratio]])
    rbf, matern = RBFKernel(ard_num_dims=2), MaternKernel(nu=2.5, ard_num_dims=2)
    rbf.lengthscale = matern.lengthscale = scales
    mixture = ScaleMixtureKernel(lengthscale, ard_num_dims=2)
    mixture.factors = torch.tensor([1.0, ratio])
    paper = RationalQuadraticSum(lengthscale)
    return {"rbf": rbf, "matern": matern, "mixture": mixture, "paper": paper}


def embed(case, kernel, others=()):
    space, uncertainty = ALL[case]
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    known = [in_cube(space, uncertainty), *others]
    return Quadrature().embed(known, kernel.double(), bounds).eval()


def gram(embedding, designs=Z, training=False):
    embedding.train(training)
    f = embedding(designs)
    return embedding.inner(f, f).detach()


@lru_cache(maxsize=256)
def pairs(case, i, j, seed):
    """Pairs of independent draws u ~ P_x, v ~ P_x'."""
    space, uncertainty = ALL[case]
    P = in_cube(space, uncertainty)
    n = P.n_base(2)
    base = base_draws(2**14, 2 * n, seed=seed)
    return tuple(P.perturb(Z[[k]], b)[0] for k, b in ((i, base[:, :n]), (j, base[:, n:])))


def brute_force(case, kernel, i, j):
    """Return E k(u, v) and its standard error, over eight independent sets of draws."""
    with torch.no_grad():
        means = torch.stack([kernel(*pairs(case, i, j, s), diag=True).mean() for s in range(8)])
    return means.mean().item(), means.std().item() / math.sqrt(8)


def check_accuracy(case, lengthscale, ratio, promised, names=("rbf", "matern", "mixture", "paper")):
    kernels = base_kernels(lengthscale, ratio)
    for name, kernel in ((name, kernels[name]) for name in names):
        embedding = embed(case, kernel)
        K, at_zero = gram(embedding), kernel(Z[:1]).to_dense().item()
        for i, j in ((0, 0), (0, 1), (0, 2)):
            truth, error = brute_force(case, kernel, i, j)
            assert abs(K[i, j].item() - truth) <= promised * at_zero + 4 * error, (name, i, j)


@pytest.mark.parametrize(
    ("case", "name"),
    [(case, "mixture") for case in CASES]
    + [(case, "matern") for case in ("normal", "ring", "varying beta", "log scale: clipped")],
)
def test_the_kernel_is_that_of_brute_force(case, name):
    check_accuracy(case, 0.05, 10.0, PROMISED, names=(name,))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("lengthscale", "ratio"),
    [(0.05, 10.0), (0.05, 1.0), (0.3, 1.0), (0.3, 0.2), (2.0, 0.1), (5.0, 1.0)],
)
def test_the_kernel_is_that_of_brute_force_at_all_length_scales(case, lengthscale, ratio):
    check_accuracy(case, lengthscale, ratio, PROMISED)


@pytest.mark.parametrize("case", DEPENDENT)
@pytest.mark.parametrize(("lengthscale", "promised"), [(0.05, CELLS), (0.5, PROMISED)])
def test_cells_of_dependent_columns_are_fine_enough_for_longer_length_scales(
    case, lengthscale, promised
):
    check_accuracy(case, lengthscale, 1.0, promised)


@pytest.mark.parametrize("case", ALL)
@pytest.mark.parametrize("kernel", ["paper", "mixture"])
def test_a_fit_sees_the_kernel_of_predictions(case, kernel):
    chosen = base_kernels(0.4, 0.5)[kernel]
    embedding = embed(case, chosen)
    at_zero = chosen(Z[:1]).to_dense().item()
    embedding.requires_grad_(True)
    fitted = gram(embedding, training=True)
    embedding.requires_grad_(False)
    torch.testing.assert_close(fitted, gram(embedding), rtol=0, atol=1e-6 * at_zero)


LATER = [unc.Exact(), unc.Normal(0.07), unc.Relative(unc.Normal(0.1))]
PAIRS_OF_BOTH = [
    pytest.param(case, later, marks=() if i % 6 == 2 * j else pytest.mark.slow)
    for i, case in enumerate(ALL)
    for j, later in enumerate(LATER)
]
"""Every second case with one that comes later; in the slow tier all cases with all of them."""


@pytest.mark.parametrize(("case", "later"), PAIRS_OF_BOTH)
def test_an_uncertainty_that_comes_later_is_seen_as_if_it_had_been_known(case, later):
    kernel = base_kernels(0.3, 2.0)["mixture"]
    known = embed(case, kernel, [later])
    first = embed(case, kernel)
    before = gram(first)
    grown = first.including(later)
    numbers = torch.tensor([0.0] * 3 + [1.0] * 3).double().unsqueeze(-1)
    X = torch.cat([torch.cat([Z, Z]), numbers], dim=-1)
    torch.testing.assert_close(gram(grown, X), gram(known, X), rtol=1e-9, atol=1e-9)
    assert torch.equal(gram(first), before)


@settings(max_examples=25, deadline=None)
@given(
    case=st.sampled_from(sorted(ALL)),
    lengthscale=st.floats(0.05, 5.0),
    ratio=st.floats(0.1, 10.0),
    name=st.sampled_from(["rbf", "matern", "mixture", "paper"]),
    mixed=st.booleans(),
    training=st.booleans(),
)
def test_gram_matrices_are_positive_semidefinite(case, lengthscale, ratio, name, mixed, training):
    others = [unc.Exact(), unc.Normal(0.1)] if mixed else []
    kernel = base_kernels(lengthscale, ratio)[name]
    embedding = embed(case, kernel, others)
    X = base_draws(14, 2, seed=3)
    if mixed:
        X = torch.cat([X, (torch.arange(14) % 3).double().unsqueeze(-1)], dim=-1)
    K = gram(embedding, X, training)
    slack = 1e-8 * K.diagonal().max() * len(K)
    assert torch.linalg.eigvalsh((K + K.mT) / 2)[0] > -slack


SAME = {
    "constants inside Varying": (unc.Uniform(-0.1, 0.1), unc.Varying(lambda x: same_uniform(x))),
    "one piece or two": (unc.Normal(0.1), unc.Piecewise([0.5], [unc.Normal(0.1)] * 2)),
    "one component": (
        unc.Normal([0.1, 0.05]),
        unc.GaussianMixture([[0.0, 0.0]], [[0.01, 0.0], [0.0, 0.0025]]),
    ),
    "independent columns in a matrix": (
        unc.Normal([0.1, 0.05]),
        unc.Normal(cov=[[0.01, 0.0], [0.0, 0.0025]]),
    ),
    "no limit in reach": (unc.Uniform(-0.1, 0.1), unc.Uniform(-0.1, 0.1).clipped(low=-9.0)),
}


def same_uniform(x):
    return unc.Uniform(torch.full_like(x, -0.1), torch.full_like(x, 0.1))


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
@pytest.mark.parametrize("kernel", ["rbf", "paper"])
def test_the_ways_agree_where_two_apply(pair, kernel):
    chosen = base_kernels(0.2, 1.0)[kernel].double()
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    one, two = (gram(Quadrature().embed([u], chosen, bounds)) for u in pair)
    at_zero = chosen(Z[:1]).to_dense().item()
    torch.testing.assert_close(one, two, rtol=0, atol=PROMISED * at_zero)


@pytest.mark.parametrize("case", ["uniform", "relative, normal", "ring", "black box", "normal"])
@pytest.mark.parametrize("name", ["paper", "mixture"])
def test_a_step_that_works_everything_out_again_has_the_same_value_and_gradient(
    case, name, monkeypatch
):
    def value_and_gradient():
        kernel = base_kernels(0.4, 0.5)[name]
        embedding = embed(case, kernel).train()
        f = embedding(base_draws(8, 2, seed=5))
        K = embedding.inner(f, f)
        K.sin().sum().backward()
        return K.detach(), torch.cat([p.grad.flatten() for p in kernel.parameters()])

    whole, gradient = value_and_gradient()
    monkeypatch.setattr(inner_product, "MAX_KEPT", 0)
    again, other = value_and_gradient()
    torch.testing.assert_close(again, whole, rtol=0, atol=2e-4)
    torch.testing.assert_close(other, gradient, rtol=1e-2, atol=5e-3 * gradient.abs().max().item())


@pytest.mark.parametrize("case", ALL)
def test_gradients_of_predictions_are_those_of_the_function(case):
    embedding = embed(case, base_kernels(0.3, 2.0)["mixture"])
    for p in embedding.base_kernel.parameters():
        p.requires_grad_(False)
    others = embedding(Z)

    def similarity(X):
        return embedding.inner(embedding(X), others).sum()

    X = torch.tensor([[0.52, 0.43]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(similarity(X), X)
    step = 1e-4 * torch.eye(2, dtype=torch.float64)
    with torch.no_grad():
        slopes = [(similarity(X + s) - similarity(X - s)).item() / 2e-4 for s in step.unsqueeze(1)]
    torch.testing.assert_close(gradient[0], torch.tensor(slopes).double(), rtol=1e-3, atol=2e-3)


def test_one_awkward_column_slows_down_no_other():
    space = airbo.Space({n: (1.0, 2.0) for n in "abcd"})
    P = {"a": unc.Normal(0.1), "b": unc.Relative(unc.Normal(0.05)), "c": unc.Uniform(-0.1, 0.1)}
    bounds = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.float64)
    uncertainty = in_cube(space, by_columns(space, P))
    groups = Quadrature().embed([uncertainty], RationalQuadraticSum().double(), bounds).groups
    assert [g.columns for g in groups] == [[0], [1], [2], [3]]
    assert [g.n == 1 for g in groups] == [True, True, False, True]
    assert [g.deviations is None for g in groups] == [False, True, False, False]


def test_an_error_in_percent_is_a_shift_on_a_log_scale():
    space = airbo.Space({"a": airbo.Float(0.1, 10.0, log=True)})
    assert in_cube(space, unc.Relative(unc.Normal(0.05))).is_additive
    assert in_cube(space, unc.LogNormal(0.05)).is_additive
    assert not in_cube(space, unc.Normal(0.05)).is_additive


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_a_matern_kernel_is_the_sum_of_gaussians_that_stands_for_it(nu):
    from airbo.embeddings.base_kernels import MATERN_TOLERANCE, gaussian_sum

    kernel = MaternKernel(nu=nu).double().requires_grad_(False)
    base = gaussian_sum(kernel)
    r = torch.cat([torch.zeros(1), torch.logspace(-4, 1.5, 300)]).double().unsqueeze(-1)
    truth = kernel(r[:1], r).to_dense().squeeze().detach()
    summed = torch.exp(-0.5 * r.square() * base.precisions * base.relevances) @ base.weights
    assert (summed - truth).abs().max() <= 1.1 * MATERN_TOLERANCE


def test_a_prediction_leaves_out_gaussians_without_weight_and_nothing_else():
    # the waves of the observations are kept from the fit, where there are all Gaussians
    class Sparse(ScaleMixtureKernel):
        WIDTHS, WEIGHTS, CONSTANT = (1e-3, 0.3, 1e-2, 1.0), (0.0, 0.6, 0.0, 0.4), 0.0

    class Dense(ScaleMixtureKernel):
        WIDTHS, WEIGHTS, CONSTANT = (0.3, 1.0), (0.6, 0.4), 0.0

    X = torch.rand(9, 1, generator=torch.Generator().manual_seed(0)).double()
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    found = []
    for kind in (Sparse, Dense):
        embedding = Quadrature().embed([unc.Uniform(-0.1, 0.1)], kind(0.3).double(), bounds)
        f, others = embedding(X), embedding(X + 0.01)
        embedding.inner(f, f)
        with torch.no_grad():
            found.append(embedding.inner(others, f))
    torch.testing.assert_close(*found, rtol=0, atol=1e-6)


@pytest.mark.parametrize("b", [2, 3])
@pytest.mark.parametrize("lengthscale", [0.1, 0.3])
def test_waves_of_dependent_columns_miss_no_more_than_is_promised(b, lengthscale):
    log = torch.randn(400, b, generator=torch.Generator().manual_seed(1)).double()
    P = unc.Empirical(0.03 * (log.cumsum(-1) + log.square()))
    bounds = torch.tensor([[0.0] * b, [1.0] * b], dtype=torch.float64)
    kernel = RBFKernel().double().requires_grad_(False)
    kernel.lengthscale = lengthscale
    embedding = Quadrature().embed([P], kernel, bounds)
    # corners, where the next period is nearest, and designs inside
    X = torch.cat([torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * b), base_draws(20, b, 4)])
    f = embedding(X.double())
    [group] = embedding.groups
    lam = torch.full((1, b), lengthscale**-2, dtype=torch.float64)
    t = (X.unsqueeze(1) - X.unsqueeze(0)).double().movedim(-1, 0)
    exact = group.between(0, 0).seen(lam, as_normal=False)(t)[0]
    # once for frequencies that are left out, once for the next period
    atol = 2 * inner_product.INVISIBLE[b]
    torch.testing.assert_close(embedding.inner(f, f), exact, rtol=0, atol=atol)
