"""Branin's function: three equal valleys, of which the direction of the error prefers one."""

import math

import pytest
import torch
from botorch.test_functions import Branin as BoTorchBranin

from airbo.problems import Branin
from airbo.problems.truth import estimate
from airbo.uncertainty import Normal, Uniform, base_draws

MINIMA = torch.tensor(
    [[-math.pi, 12.275], [math.pi, 2.275], [3 * math.pi, 2.475]], dtype=torch.float64
)


def test_the_three_minima_are_where_the_books_say():
    assert Branin()(MINIMA).tolist() == pytest.approx([0.397887] * 3, abs=1e-6)


def test_the_nominal_optimum_is_one_of_them():
    best = Branin().nominal_optimum
    assert best.value == pytest.approx(0.397887, abs=1e-6)
    assert (best.design - MINIMA).abs().amax(-1).min() < 1e-2


def test_the_function_is_that_of_botorch():
    X = designs(100)
    torch.testing.assert_close(Branin()(X), BoTorchBranin()(X))


def test_the_function_goes_on_outside_the_box():
    X = torch.tensor([[-50.0, 8.0], [30.0, -30.0], [3.0, 1e3]], dtype=torch.float64)
    assert Branin()(X).isfinite().all()


@pytest.mark.parametrize("covariance", [-2.0, 0.0, 2.0])
def test_the_closed_form_is_the_mean_over_executed_inputs(covariance):
    branin, X = Branin(missing(covariance)), designs(20)
    sampled = estimate(branin, branin.uncertainty, X)
    assert ((branin.expected(X) - sampled.mean).abs() < sampled.error).all()
    assert not branin.expected_error(X).any()


def test_another_error_is_sampled():
    branin = Branin(Uniform(-1.0, 1.0))
    assert branin.exact(designs(3)) is None
    assert (branin.expected_error(designs(3)) > 0).all()


@pytest.mark.parametrize(("covariance", "valley"), [(2.0, 2), (-2.0, 1)])
def test_the_valley_that_lies_along_the_error_is_the_best(covariance, valley):
    best = Branin(missing(covariance)).robust_optimum.design
    assert (best - MINIMA).norm(dim=-1).argmin().item() == valley


def missing(covariance):
    return Normal(cov=[[2.25, covariance], [covariance, 2.25]])


def designs(n):
    low, high = Branin().bounds
    return low + (high - low) * base_draws(n, 2, seed=5)
