"""The parts of the experiment that its conclusion rests on."""

import math

import numpy as np
import pytest
import torch

from experiments.theory.regret_growth import (
    LENGTHSCALE,
    METHODS,
    N_INITIAL,
    NOISE,
    NORM,
    STD,
    THEOREM,
    Drawn,
    designs_of,
    exponent,
    search,
)


@pytest.mark.parametrize("p", [0.3, 0.8, 1.0])
def test_the_exponent_of_a_power_is_found(p):
    assert exponent((5 * np.arange(1, 61) ** p).tolist()) == pytest.approx(p)


@pytest.mark.parametrize("seed", range(3))
def test_a_drawn_function_has_the_norm_that_it_is_said_to_have(seed):
    problem = Drawn.draw(seed)
    values = problem(problem.centers)  # f at its centres: ‖f‖² = aᵀ K a = aᵀ f(c)
    assert (problem.heights @ values).sqrt().item() == pytest.approx(NORM)


@pytest.mark.parametrize("seed", range(3))
def test_the_expectation_of_a_drawn_function_is_its_average(seed):
    problem = Drawn.draw(seed)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
    executed = (X + STD * torch.from_numpy(nodes)).unsqueeze(-1)  # (9, 60, 1)
    average = problem(executed) @ torch.from_numpy(weights / weights.sum())
    torch.testing.assert_close(problem.expected(X), average)


@pytest.mark.parametrize("seed", range(3))
def test_the_total_noise_is_sub_gaussian_of_the_size_claimed(seed):
    problem = Drawn.draw(seed)
    nodes, weights = (torch.from_numpy(v) for v in np.polynomial.hermite_e.hermegauss(80))
    X = torch.linspace(0, 1, 41, dtype=torch.float64).unsqueeze(-1)
    deviation = problem((X + STD * nodes).unsqueeze(-1)) - problem.expected(X).unsqueeze(-1)
    for t in (-3.0, -1.0, -0.1, 0.1, 1.0, 3.0):  # E exp(t (Δf + ζ)) ≤ exp(t² σ² / 2)
        moment = torch.exp(t * deviation) @ (weights / weights.sum())
        moment = moment * math.exp(0.5 * t**2 * NOISE**2)
        assert moment.max().item() <= math.exp(0.5 * t**2 * problem.total_noise**2)


def test_the_model_of_the_theorem_has_the_kernel_of_expected_values_and_is_not_fitted():
    problem = Drawn.draw(0)
    optimizer = search(problem, THEOREM, 0, N_INITIAL + 1)
    X = designs_of(optimizer)
    v = LENGTHSCALE**2 + 2 * STD**2
    expected = LENGTHSCALE / math.sqrt(v) * torch.exp(-0.5 * (X - X.mT) ** 2 / v)
    gram = optimizer.model.forward(X).covariance_matrix.detach()
    torch.testing.assert_close(gram, expected, rtol=1e-6, atol=1e-6)
    noise = optimizer.model.likelihood.noise.item()
    assert noise == pytest.approx(problem.total_noise**2)
    values = torch.tensor(optimizer.observations["value"].to_numpy())
    torch.testing.assert_close(optimizer.model.train_targets, values)


def test_random_designs_need_no_model():
    optimizer = search(Drawn.draw(0), METHODS[-1], 0, 40)
    X = designs_of(optimizer)
    assert len(X.unique()) == 40
    assert 0 <= X.min() < 0.2
    assert 0.8 < X.max() <= 1
