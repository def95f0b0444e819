"""The cliff: the best point is at its edge, the best design is not."""

import math

import pytest
import torch
from scipy.stats import chi2

from airbo.problems import Cliff
from airbo.uncertainty import ChiSquared, Exact, Product, base_draws

CLIFF = Cliff()


@pytest.mark.parametrize(("y", "edge"), [(0.0, 0.7), (0.25, 0.8), (0.5, 0.7), (0.75, 0.6)])
def test_the_slope_ends_at_the_edge(y, edge):
    before, beyond = row(edge - 1e-6, y), row(edge + 1e-6, y)
    assert CLIFF(before).item() == pytest.approx(edge + 0.2 * math.cos(2 * math.pi * y), abs=1e-5)
    assert CLIFF(beyond).item() == -1


def test_the_function_goes_on_outside_the_box():
    X = torch.cat([row(-1.0, 0.5), row(0.0, -0.5), row(0.5, 3.0), row(9.0, 0.0)])
    assert CLIFF(X).tolist() == pytest.approx([-1.2, -0.2, 0.7, -1.0])


def test_the_nominal_optimum_lies_at_the_edge():
    best = CLIFF.nominal_optimum
    assert 0 <= room(best.design) < 1e-3
    assert best.value == pytest.approx(0.7 + math.hypot(0.1, 0.2), abs=1e-3)


def test_the_robust_optimum_keeps_further_from_the_edge_than_the_mean_overshoot():
    best = CLIFF.robust_optimum.design
    overshoot = CLIFF.uncertainty.mean(best.unsqueeze(0))[0, 0] - best[0]
    assert overshoot.item() == pytest.approx(3 * 0.02)
    assert room(best) > 2 * overshoot


def test_at_the_edge_nearly_every_experiment_falls():
    assert CLIFF.regret(CLIFF.nominal_optimum.design.unsqueeze(0)).item() > 1.5


def test_the_expectation_follows_from_the_overshoot_if_the_other_input_is_exact():
    cliff = Cliff(Product([ChiSquared(3.0, scale=0.02), Exact()]))
    X = base_draws(20, 2)
    t = room(X) / 0.02  # the smallest chi-squared number that falls
    stays, falls = (torch.from_numpy(v).to(X) for v in (chi2.cdf(t, 3), chi2.sf(t, 3)))
    part = 3 * torch.from_numpy(chi2.cdf(t, 5)).to(X)  # E C 1{C < t} for chi-squared C
    slope = X[:, 0] + 0.2 * torch.cos(2 * math.pi * X[:, 1])
    difference = cliff.expected(X) - (slope * stays + 0.02 * part - falls)
    assert (difference.abs() < cliff.expected_error(X) + 1e-12).all()


def row(x, y):
    return torch.tensor([[x, y]], dtype=torch.float64)


def room(X):
    """Return how far designs are from the edge."""
    return 0.7 + 0.1 * torch.sin(2 * math.pi * X[..., 1]) - X[..., 0]
