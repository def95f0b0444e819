"""What errors of the kernel do to a model: theorems 3 and 4 beside perturbed kernels."""

import math

import pytest
import torch

from airbo.theory import information_gain
from experiments.theory.regret import confidence_width
from experiments.theory.samples import posterior_errors

ERROR = 1e-6
"""So small that terms in its square do not matter."""


def perturbed(seed, sigma2, scale):
    """Return mean, variance and gain of a small model with exact and with perturbed kernels."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(13, 1, generator=generator, dtype=torch.float64)
    y = 2 * torch.rand(12, generator=generator, dtype=torch.float64) - 1
    K = scale * torch.exp(-0.5 * (X - X.mT) ** 2 / 0.2**2)
    E = ERROR * (2 * torch.rand(13, 13, generator=generator, dtype=torch.float64) - 1)
    E = E.tril() + E.tril(-1).mT
    return [posterior(K_, y, sigma2) for K_ in (K, K + E)]


def posterior(K, y, sigma2):
    k, A = K[:-1, -1], torch.linalg.inv(K[:-1, :-1] + sigma2 * torch.eye(12))
    return k @ A @ y, K[-1, -1] - k @ A @ k, information_gain(K[:-1, :-1], sigma2)


@pytest.mark.parametrize("sigma2", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_no_perturbed_kernel_changes_a_model_by_more_than_theorem_3_says(sigma2, scale):
    bound = posterior_errors(12, ERROR, 1.0, sigma2, scale)
    for seed in range(20):
        exact, estimated = perturbed(seed, sigma2, scale)
        changes = [abs(a - b).item() for a, b in zip(exact, estimated, strict=True)]
        assert changes[0] <= bound.mean
        assert changes[1] <= bound.variance
        assert changes[2] <= bound.gain


def test_theorem_3_by_hand():
    errors = posterior_errors(3, 0.01, 2.0)
    assert errors.mean == pytest.approx((3 + 9) * 2 * 0.01)
    assert errors.variance == pytest.approx(16 * 0.01)
    assert errors.gain == pytest.approx(3**1.5 / 2 * 0.01)


def test_theorem_4_adds_the_errors_of_theorem_3_to_the_confidence_of_exact_kernels():
    assert confidence_width(0.3, beta=2.0, n=10) == pytest.approx(0.6)
    # 2·0.3 + 2·11·√1e-4 + 110·1e-4·5
    width = confidence_width(0.3, beta=2.0, n=10, kernel_error=1e-4, largest_value=5.0)
    assert width == pytest.approx(0.6 + 2 * 11 * math.sqrt(1e-4) + 110 * 1e-4 * 5.0)
