"""Surrogates on other distances than the MMD: each compares what it says."""

import pytest
import torch

from airbo.models.energy import EnergyKernel
from airbo.models.wasserstein import SlicedQuantiles
from airbo.uncertainty import ChiSquared, Exact, Normal, Varying, base_draws


def unit(d):
    return torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.float64)


def squared_distances(features, X):
    f = features(X)
    return torch.cdist(f, f).square()


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("uncertainty", [Normal(0.1), ChiSquared(3.0, scale=0.02), Exact()])
def test_where_p_only_shifts_the_sliced_wasserstein_distance_is_that_of_the_designs(d, uncertainty):
    X = base_draws(6, d)
    apart = squared_distances(SlicedQuantiles([uncertainty], unit(d)), X)
    torch.testing.assert_close(apart, torch.cdist(X, X).square(), atol=1e-9, rtol=1e-6)


def test_on_a_line_it_is_the_wasserstein_distance_of_gaussians():
    P = Varying(lambda X: Normal(0.02 + 0.1 * X))
    X = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
    std = 0.02 + 0.1 * X
    expected = torch.cdist(X, X).square() + torch.cdist(std, std).square()
    apart = squared_distances(SlicedQuantiles([P], unit(1)), X)
    # 32 quantiles leave out the tails: the difference of deviations is up to a tenth too small
    torch.testing.assert_close(apart, expected, rtol=5e-3, atol=1e-4)


def test_designs_are_described_under_the_uncertainty_that_they_were_tried_under():
    both = SlicedQuantiles([Normal(0.1), Exact()], unit(2))
    X = base_draws(4, 2)
    numbered = torch.cat([X, torch.tensor([[0.0], [1.0], [1.0], [0.0]])], dim=-1)
    alone = [SlicedQuantiles([u], unit(2))(X) for u in (Normal(0.1), Exact())]
    expected = torch.stack([alone[0][0], alone[1][1], alone[1][2], alone[0][3]])
    torch.testing.assert_close(both(numbered), expected)


def test_under_the_distance_kernel_mmd_is_the_energy_distance():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(2, 40, 3, generator=generator, dtype=torch.float64)
    energy = torch.cdist(x, y).mean() - (torch.cdist(x, x).mean() + torch.cdist(y, y).mean()) / 2
    kernel = EnergyKernel(0.5)
    each = [kernel(a, b).to_dense().mean() for a, b in ((x, x), (y, y), (x, y))]
    torch.testing.assert_close(each[0] + each[1] - 2 * each[2], energy / 0.5)
    torch.testing.assert_close(kernel(x, y, diag=True), kernel(x, y).to_dense().diagonal())
