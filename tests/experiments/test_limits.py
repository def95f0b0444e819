"""Designs that must keep limits: published optima, and the same errors for every method."""

import pytest
import torch

from experiments.harness.experiment import Results, Task
from experiments.measures.limits import LIMITS, PARTS, TOLERATED


def test_the_published_optimum_of_the_polynomial_just_keeps_its_limits():
    part = PARTS["polynomial"]
    cost, probability = part.judge([0.185, 0.840])
    assert cost == pytest.approx(part.best, abs=0.01)
    assert probability == pytest.approx(part.level, abs=0.002)
    cost, probability = part.judge([-0.10, 0.13])  # the best design without errors
    assert cost == pytest.approx(2.21, abs=0.05)
    assert probability == pytest.approx(0.41, abs=0.01)


def test_margins_of_the_speed_reducer_are_those_of_its_test_function():
    part = PARTS["speed-reducer"]
    X = part.bounds.mean(0).expand(2, 3, 7)
    rows = part.measured(X)
    assert rows.shape == (2, 3, 1 + part.n_limits)
    torch.testing.assert_close(rows[0, 0], rows[1, 2])


def test_the_error_of_experiment_i_does_not_depend_on_the_design():
    part = PARTS["polynomial"]
    one, other = ([0.0, 0.0], [2.0, 1.0])
    errors = [part.executed(x, 3, 5) - torch.tensor(x) for x in (one, other)]
    torch.testing.assert_close(*errors)
    assert not torch.equal(part.executed(one, 3, 5), part.executed(one, 3, 6))
    assert not torch.equal(part.executed(one, 3, 5), part.executed(one, 4, 5))


def test_designs_that_keep_their_limits_are_counted_and_their_cost_compared():
    part = PARTS["polynomial"]
    kept, missed = part.level - TOLERATED / 2, part.level - 2 * TOLERATED
    found = [(part.best * 1.1, kept), (part.best * 1.3, 1.0), (1.0, missed)]
    each = [
        (Task("limits", "polynomial, exact: airbo", i, {}), {"cost": cost, "probability": p})
        for i, (cost, p) in enumerate(found)
    ]
    text = LIMITS.summary(Results(each))
    assert "| polynomial, exact | 2 of 3, +20.0% | – |" in text
