"""Parts that must keep limits, although they are not made exactly as they are drawn."""

import pytest
import torch

from airbo.uncertainty import base_draws
from experiments.subjects.reliability import LEVEL, RELIABLE


@pytest.mark.parametrize("name", RELIABLE)
def test_the_cheapest_reliable_design_keeps_every_limit_and_hardly_more(name):
    part = RELIABLE[name]
    design = part.robust_optimum.design.unsqueeze(0)
    low, high = part.bounds
    assert ((low <= design) & (design <= high)).all()
    least = part.reliability(design).amin().item()
    assert LEVEL <= least < LEVEL + 0.002
    assert part.is_reliable(design).item() == 1
    assert part.cost_gap(design).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", RELIABLE)
def test_margins_have_the_sign_of_the_slack_of_botorch(name):
    part = RELIABLE[name]
    low, high = part.bounds
    X = low + (high - low) * base_draws(64, part.d)
    slack = part.function.evaluate_slack_true(X)
    assert torch.equal(part.margins(X) >= 0, slack >= 0)
    torch.testing.assert_close(part.cost(X).exp(), part.function.evaluate_true(X))
    assert part.measured(X).shape == (64, 1 + part.n_limits)
