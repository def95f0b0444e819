"""β_n and the norm that goes into it, by hand and by trial."""

import math

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel

from airbo.theory import information_gain, rkhs_norm, ucb_beta

LENGTHSCALE = 0.2


def kernel(a, b):
    return torch.exp(-0.5 * (a - b.mT) ** 2 / LENGTHSCALE**2)


def known_kernel_model(X, y, noise_variance):
    covariance = RBFKernel().double()
    covariance.lengthscale = LENGTHSCALE
    model = SingleTaskGP(X, y, covar_module=covariance, outcome_transform=None).double()
    model.likelihood.noise = noise_variance
    return model.eval()


def test_beta_by_hand():
    # 1 + 0.5 √(2 (2 + 1 + ln 10))
    assert ucb_beta(2.0, b=1.0, noise_ratio=0.5, delta=0.1) == pytest.approx(2.62828, abs=1e-5)


def test_beta_without_noise_is_the_norm():
    assert ucb_beta(5.0, b=3.0, noise_ratio=0.0, delta=0.1) == 3.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delta": 0.0}, "delta must lie between 0 and 1, got 0.0"),
        ({"delta": 1.0}, "delta must lie between 0 and 1, got 1.0"),
        ({"b": -1.0}, "b must be finite and >= 0, got -1.0"),
        ({"noise_ratio": math.nan}, "noise_ratio must be finite and >= 0, got nan"),
        ({"information_gain": math.inf}, "gain must be finite and >= 0, got inf"),
    ],
)
def test_beta_of_impossible_quantities_is_refused(wrong, message):
    right = {"information_gain": 1.0, "b": 1.0, "noise_ratio": 1.0, "delta": 0.1}
    with pytest.raises(ValueError, match=message):
        ucb_beta(**(right | wrong))


def test_the_norm_is_that_of_the_posterior_mean():
    X = torch.tensor([[0.0], [0.3], [0.9]], dtype=torch.float64)
    y = torch.tensor([[1.0], [-2.0], [0.5]], dtype=torch.float64)
    model = known_kernel_model(X, y, 0.1)
    # the interpolant of the posterior mean through the observed designs is the mean itself
    mean = model.posterior(X).mean.detach()
    expected = (mean.mT @ torch.linalg.inv(kernel(X, X)) @ mean).sqrt().item()
    assert rkhs_norm(model) == pytest.approx(expected, rel=1e-6)


def test_the_norm_estimates_the_true_one_from_below():
    generator = torch.Generator().manual_seed(0)
    centers = torch.rand(5, 1, generator=generator, dtype=torch.float64)
    heights = torch.randn(5, 1, generator=generator, dtype=torch.float64)
    truth = (heights.mT @ kernel(centers, centers) @ heights).sqrt().item()
    X = torch.linspace(0, 1, 25, dtype=torch.float64).unsqueeze(-1)
    estimates = [
        rkhs_norm(known_kernel_model(X, kernel(X, centers) @ heights, noise))
        for noise in (1.0, 1e-2, 1e-4)
    ]
    assert estimates == sorted(estimates)
    assert 0.9 * truth < estimates[-1] <= truth


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_the_truth_stays_within_beta_deviations_as_often_as_promised(noise):
    delta, n, repeats = 0.2, 20, 100
    X = torch.linspace(0, 1, 101, dtype=torch.float64).unsqueeze(-1)
    generator = torch.Generator().manual_seed(0)
    held = 0
    for _ in range(repeats):
        centers = torch.rand(6, 1, generator=generator, dtype=torch.float64)
        heights = torch.randn(6, 1, generator=generator, dtype=torch.float64)
        b = (heights.mT @ kernel(centers, centers) @ heights).sqrt().item()
        observed = torch.rand(n, 1, generator=generator, dtype=torch.float64)
        y = kernel(observed, centers) @ heights
        y = y + noise * torch.randn(n, 1, generator=generator, dtype=torch.float64)

        K, k = kernel(observed, observed), kernel(X, observed)
        A = torch.linalg.inv(K + noise**2 * torch.eye(n, dtype=torch.float64))
        mean, variance = k @ A @ y, 1 - (k @ A * k).sum(-1, keepdim=True)
        beta = ucb_beta(information_gain(K, noise**2).item(), b, 1.0, delta)
        error = (mean - kernel(X, centers) @ heights).abs()
        held += bool((error <= beta * variance.clamp_min(0).sqrt()).all())
    assert held >= (1 - delta) * repeats
