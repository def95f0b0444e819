"""Information gain against eigenvalues and against trying everything."""

import math
from itertools import combinations_with_replacement

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.kernels import RBFKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.models import ERBFGP, MMDGP, UGP, NominalGP
from airbo.theory import (
    information_gain,
    information_gain_bound,
    information_gains,
    max_information_gain,
    model_information_gain,
)


def rbf_gram(n, seed=0, lengthscale=0.2):
    X = torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel(X).to_dense().detach()


def by_eigenvalues(K, noise):
    return 0.5 * torch.log1p(torch.linalg.eigvalsh(K) / noise).sum().item()


@given(st.integers(1, 8), st.integers(0, 10**6), st.floats(1e-3, 10))
def test_the_gain_is_a_sum_over_eigenvalues(n, seed, noise):
    K = rbf_gram(n, seed)
    assert information_gain(K, noise).item() == pytest.approx(by_eigenvalues(K, noise), abs=1e-9)


def test_the_gain_of_one_observation_is_that_of_one_channel():
    K = torch.tensor([[3.0]], dtype=torch.float64)
    assert information_gain(K, 1.0).item() == pytest.approx(0.5 * math.log(4))


def test_with_unequal_noise_every_observation_counts_in_units_of_its_own():
    K, noise = rbf_gram(5), torch.tensor([0.1, 0.5, 1.0, 2.0, 0.3], dtype=torch.float64)
    scaled = K / (noise.unsqueeze(-1) * noise).sqrt()
    assert information_gain(K, noise).item() == pytest.approx(by_eigenvalues(scaled, 1.0))


def test_the_gains_are_those_of_the_first_observations():
    K = rbf_gram(7)
    expected = [by_eigenvalues(K[:i, :i], 0.1) for i in range(1, 8)]
    assert information_gains(K, 0.1).tolist() == pytest.approx(expected)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.01, 2), st.floats(0.05, 1))
def test_greedy_gain_is_between_the_largest_and_its_guarantee(seed, noise, lengthscale):
    K, n = rbf_gram(5, seed, lengthscale), 4
    greedy = max_information_gain(K, n, noise)
    for i in range(1, n + 1):
        best = max(
            by_eigenvalues(K[list(chosen)][:, list(chosen)], noise)
            for chosen in combinations_with_replacement(range(5), i)
        )
        assert (1 - 1 / math.e) * best - 1e-9 <= greedy[i - 1].item() <= best + 1e-9


def test_greedy_gain_is_the_gain_of_some_designs():
    K = torch.eye(3, dtype=torch.float64)  # unrelated designs: each once, then each again
    expected = [by_eigenvalues(K[idx][:, idx], 0.5) for idx in ([0], [0, 1], [0, 1, 2])]
    greedy = max_information_gain(K, 4, 0.5)
    assert greedy[:3].tolist() == pytest.approx(expected)
    twice = [0, 1, 2, 0]
    assert greedy[3].item() == pytest.approx(by_eigenvalues(K[twice][:, twice], 0.5))


def data(n=6):
    X = torch.rand(n, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return X, torch.sin(6 * X)


@pytest.mark.parametrize("surrogate", [MMDGP, UGP, NominalGP])
def test_the_gain_of_a_model_is_that_of_its_gram_matrix(surrogate):
    model = surrogate(*data(), unc.Normal(0.05)).eval()
    gram = model.covar_module(model.features(model.train_inputs[0])).to_dense().detach()
    expected = by_eigenvalues(gram, model.likelihood.noise.item())
    assert model_information_gain(model) == pytest.approx(expected, rel=1e-6)


def test_the_gain_of_a_model_knows_the_noise_of_unseen_inputs():
    model = ERBFGP(*data(), unc.Normal(0.05)).eval()
    gram = model.covar_module(model.features(model.train_inputs[0])).to_dense().detach()
    unseen = (model.covar_module.outputscale - gram[0, 0]).item()
    expected = by_eigenvalues(gram, model.likelihood.noise.item() + unseen)
    assert model_information_gain(model) == pytest.approx(expected, rel=1e-6)


def test_the_gain_of_any_botorch_model_is_the_same_in_training_and_after():
    X, Y = data()
    model = SingleTaskGP(10 * X, Y, input_transform=Normalize(1))
    before = model_information_gain(model.train())
    mean = model.posterior(10 * X).mean
    assert model_information_gain(model.eval()) == pytest.approx(before)
    assert not model.training
    torch.testing.assert_close(model.posterior(10 * X).mean, mean)


def test_the_rate_of_theorem_2_has_its_power_and_its_logarithm():
    # d = 2, r = 4: n^(6/10) log n
    assert information_gain_bound(100, 2, 4) == pytest.approx(100**0.6 * math.log(100))
    assert information_gain_bound(100, 2, math.inf) == pytest.approx(math.log(100))
    assert information_gain_bound(1, 3, 2) == 0


def test_the_rate_of_theorem_2_is_lower_for_smooth_kernels_and_few_parameters():
    assert information_gain_bound(50, 1, 4) < information_gain_bound(50, 1, 2)
    assert information_gain_bound(50, 1, 4) < information_gain_bound(50, 2, 4)


@pytest.mark.parametrize(("n", "d", "r", "name"), [(0, 1, 1, "n"), (9, 0, 1, "d"), (9, 1, -1, "r")])
def test_the_rate_of_theorem_2_refuses_what_is_no_number_of_anything(n, d, r, name):
    with pytest.raises(ValueError, match=f"^{name} must be at least"):
        information_gain_bound(n, d, r)
