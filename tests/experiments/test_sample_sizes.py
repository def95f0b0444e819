"""Errors of estimated MMDs and kernels, against formulas written out and against trials."""

import math

import pytest
import torch
from gpytorch.kernels import RBFKernel
from hypothesis import given
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom, Quadrature, default_base_kernel, mmd2
from experiments.theory.samples import (
    covariance_norm,
    effective_dimension,
    empirical_error,
    kernel_error,
    landmarks_for,
    least_landmarks,
    nystrom_error,
    sample_sizes,
    samples_for,
)

SHIFT, STD, LENGTHSCALE = 0.3, 0.2, 0.1


def rbf():
    kernel = RBFKernel().double()
    kernel.lengthscale = LENGTHSCALE
    return kernel


def draws(m, seed):
    generator = torch.Generator().manual_seed(seed)
    return STD * torch.randn(m, 1, generator=generator, dtype=torch.float64)


def true_mmd():
    v = LENGTHSCALE**2 + 2 * STD**2
    return math.sqrt(2 * LENGTHSCALE / math.sqrt(v) * (1 - math.exp(-(SHIFT**2) / (2 * v))))


def errors(m, repeats, estimator=None):
    estimates = torch.stack(
        [mmd2(draws(m, i), SHIFT + draws(m, 10**4 + i), rbf(), estimator) for i in range(repeats)]
    )
    return (estimates.detach().clamp_min(0).sqrt() - true_mmd()).abs()


def test_the_empirical_bound_by_hand():
    # 4 √5 √(2 ln 60 / 100)
    assert empirical_error(100, 0.1, math.sqrt(5)) == pytest.approx(2.55949, abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("m", [10, 100])
def test_the_empirical_bound_holds_as_often_as_promised(m, epsilon):
    within = errors(m, repeats=200) <= empirical_error(m, epsilon, phi=1.0)
    assert within.double().mean() >= 1 - epsilon


def test_the_empirical_bound_is_of_the_right_order():
    typical = [errors(m, repeats=100).mean().item() for m in (50, 200)]
    bounds = [empirical_error(m, 0.1, phi=1.0) for m in (50, 200)]
    assert bounds[0] / bounds[1] == pytest.approx(2)
    assert typical[0] / typical[1] == pytest.approx(2, rel=0.4)


@given(st.floats(1e-3, 1), st.floats(1e-6, 0.5), st.floats(0.1, 3))
def test_samples_for_an_error_are_the_fewest_that_reach_it(error, epsilon, phi):
    m = samples_for(error, epsilon, phi)
    assert empirical_error(m, epsilon, phi) <= error * (1 + 1e-9)
    assert m == 1 or empirical_error(m - 1, epsilon, phi) >= error * (1 - 1e-9)


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_effective_dimension_is_the_matrix_formula(regularization):
    C = rbf()(draws(30, 0)).to_dense().detach() / 30
    eye = torch.eye(30, dtype=torch.float64)
    expected = torch.trace(C @ torch.linalg.inv(C + regularization * eye)).item()
    assert effective_dimension(30 * C, regularization) == pytest.approx(expected, rel=1e-6)


def test_effective_dimension_of_unrelated_samples_is_their_number():
    assert effective_dimension(torch.eye(8), 1e-9) == pytest.approx(8, rel=1e-4)


def test_the_norm_of_the_covariance_is_its_largest_singular_value():
    K = rbf()(draws(30, 0)).to_dense().detach()
    assert covariance_norm(K) == pytest.approx(torch.linalg.matrix_norm(K / 30, 2).item())


@pytest.mark.parametrize("delta", [0.3, 0.1, 0.001])
@pytest.mark.parametrize("norm", [0.01, 0.1, 1.0])
def test_least_landmarks_are_found_by_counting(delta, norm):
    factor = max(67, 12 * 5 / norm)
    expected = next(h for h in range(2, 10**6) if h >= factor * math.log(h / delta))
    assert least_landmarks(delta, math.sqrt(5), norm) == expected


def test_ten_landmarks_are_too_few_for_the_lemma():
    K = rbf()(draws(160, 0)).to_dense().detach()
    assert nystrom_error(K, 10, 0.1) == math.inf


def test_the_nystrom_bound_is_the_formula_of_the_lemma():
    m, h, delta = 1000, 900, 0.1
    K = rbf()(draws(m, 0)).to_dense().detach()
    regularization = 12 * math.log(h / delta) / h
    dimension = effective_dimension(K, regularization)
    c1, c2 = 2 * math.sqrt(2 * math.log(60)), 4 * math.sqrt(3) * math.log(120)
    c4 = 6 * math.sqrt(math.log(120))
    one = c1 / math.sqrt(m) + c2 / h + c4 * math.sqrt(math.log(h / delta) * dimension) / h
    assert nystrom_error(K, h, delta) == pytest.approx(2 * one)


def test_the_nystrom_bound_holds_with_as_many_landmarks_as_the_lemma_asks_for():
    m, delta = 900, 0.1
    K = rbf()(draws(m, 0)).to_dense().detach()
    h = least_landmarks(delta, 1.0, covariance_norm(K))
    bound = nystrom_error(K, h, delta)
    assert h < m
    assert (errors(m, 5, Nystrom(m, h)) <= bound).all()


def test_landmarks_in_both_cases_of_the_lemma():
    assert landmarks_for(10_000, 0.1) == math.ceil(100 * math.log(1000))
    assert landmarks_for(10_000, 0.1, c=120.0) == math.ceil(100 * math.log(2000))
    assert landmarks_for(10_000, 0.1, gamma=0.5) == math.ceil(10_000 ** (2 / 3) * math.log(10**5))


@given(st.floats(0.1, 20), st.floats(1e-4, 0.5), st.floats(0.05, 3))
def test_the_kernel_error_covers_every_pair_of_distances(alpha, error, largest):
    M = torch.linspace(0, largest, 400, dtype=torch.float64)
    for shifted in (M + error, (M - error).clamp_min(0)):
        actual = (torch.exp(-alpha * M**2) - torch.exp(-alpha * shifted**2)).abs().max().item()
        assert actual <= kernel_error(error, alpha, largest) + 1e-12
        assert actual <= kernel_error(error, alpha) + 1e-12


def test_the_kernel_error_is_reached_at_the_steepest_point():
    alpha, error = 2.0, 1e-4
    steepest = 1 / math.sqrt(2 * alpha)
    actual = math.exp(-alpha * steepest**2) - math.exp(-alpha * (steepest + error) ** 2)
    assert actual == pytest.approx(kernel_error(error, alpha), rel=1e-3)


@pytest.mark.parametrize("gamma", [1.2, 30.0])  # below and above n^(1/4)
def test_sample_sizes_grow_as_the_paper_says(gamma):
    def order(n):  # n⁵ γ⁻² (γ⁴ ∨ n) log(6 n / δ)
        return n**5 * gamma**-2 * max(gamma**4, n) * math.log(6 * n / 0.1)

    few, many = sample_sizes(10, gamma), sample_sizes(100, gamma)
    assert many.n_samples / few.n_samples == pytest.approx(order(100) / order(10), rel=1e-3)


def test_the_sample_sizes_reach_the_kernel_error_that_they_name():
    sizes = sample_sizes(20, 4.0, delta=0.1, alpha=0.5, phi=math.sqrt(5))
    assert sizes.epsilon == 0.1 / 20
    assert sizes.kernel_error == pytest.approx(20**-2.5 * 4.0 / 16)
    error = empirical_error(sizes.n_samples, sizes.epsilon, math.sqrt(5))
    assert kernel_error(error, 0.5) == pytest.approx(sizes.kernel_error, rel=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda p: empirical_error(10, p, 1.0),
        lambda p: samples_for(0.1, p, 1.0),
        lambda p: nystrom_error(torch.eye(3), 2, p),
        lambda p: landmarks_for(10, p),
        lambda p: sample_sizes(10, 1.0, p),
    ],
)
@pytest.mark.parametrize("probability", [0.0, 1.0, math.nan])
def test_probabilities_that_are_none_are_refused(call, probability):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        call(probability)


def test_real_errors_of_the_papers_sample_sizes_are_far_below_the_bounds():
    base_kernel = default_base_kernel(1).double()
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    X = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)

    def kernel_matrix(estimator):
        embedding = estimator.embed([unc.Normal(0.05)], base_kernel, bounds)
        features = embedding(X)
        return torch.exp(-embedding.mmd2(features, features)).detach()

    truth = kernel_matrix(Quadrature())  # in closed form for a Gaussian
    assert (kernel_matrix(Empirical(160)) - truth).abs().max() < 2e-4
    assert (kernel_matrix(Nystrom(160, 10)) - truth).abs().max() < 5e-4
