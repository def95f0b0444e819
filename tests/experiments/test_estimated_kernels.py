"""What an error of the kernel does to a model: theorem 3 beside perturbed kernels."""

import pytest
import torch

from airbo.theory import information_gain

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
    # for values of at most M + A = 1 and kernels of at most v
    n, v = 12, scale
    bounds = (
        (n / sigma2 + n**2 * v / sigma2**2) * ERROR,  # of the mean
        (1 + n * v / sigma2) ** 2 * ERROR,  # of the variance
        n**1.5 / (2 * sigma2) * ERROR,  # of the gain
    )
    for seed in range(20):
        exact, estimated = perturbed(seed, sigma2, scale)
        for one, other, bound in zip(exact, estimated, bounds, strict=True):
            assert abs(one - other).item() <= bound
