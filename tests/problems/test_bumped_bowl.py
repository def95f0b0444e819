"""The bumped bowl: a ring of uncertainty around a ring of good points."""

import pytest
import torch

from airbo.problems import BumpedBowl
from airbo.problems.bumped_bowl import bump
from airbo.uncertainty import Exact, GaussianMixture, Normal, Product, Ring, Uniform, base_draws


def test_the_nominal_optimum_is_a_circle_of_the_radius_that_the_notes_give():
    best = BumpedBowl().nominal_optimum
    assert best.design.norm().item() == pytest.approx(0.503, abs=5e-4)
    assert not best.design[2:].any()


def test_the_robust_optimum_is_the_origin_with_the_value_of_the_notes():
    bowl = BumpedBowl()
    assert not bowl.robust_optimum.design.any()
    assert bowl.robust_optimum.value == pytest.approx(0.01247, abs=5e-6)
    on_the_ring = torch.tensor([[0.5, 0.0]], dtype=torch.float64)
    assert bump(on_the_ring).item() == pytest.approx(0.00891, abs=5e-6)
    assert bowl.robust_optimum.value / bump(on_the_ring).item() == pytest.approx(1.4)  # E h


@pytest.mark.parametrize("d", [3, 10, 25])
def test_every_further_dimension_adds_its_variance(d):
    best = BumpedBowl(d).robust_optimum
    assert best.design.shape == (d,)
    assert best.value == pytest.approx(0.008906 * (1 + 5 * 0.01 * (d - 2)), rel=1e-3)


@pytest.mark.parametrize(
    "uncertainty",
    [
        Product([Ring(0.5), Normal(0.1)]),
        Product([Ring(1.5), Uniform(-0.2, 0.5)]),
        Product([Ring(0.2), Normal(0.1), Exact()], columns=[[0, 1], [3], [2]]),
    ],
    ids=repr,
)
def test_the_exact_expectation_is_the_mean_over_executed_inputs(uncertainty):
    bowl = BumpedBowl(4, uncertainty)
    X = 4 * base_draws(20, 4) - 2
    sampled = bowl(uncertainty.perturb(X, base_draws(2**14, uncertainty.n_base(4)))).mean(-1)
    torch.testing.assert_close(bowl.expected(X), sampled, rtol=2e-3, atol=2e-3)
    assert not bowl.expected_error(X).any()


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.5, 1.0, 2.0])
def test_the_expectation_does_not_depend_on_the_direction(radius):
    angles = torch.linspace(0, 6, 7, dtype=torch.float64)
    X = torch.zeros(7, 5, dtype=torch.float64)
    X[:, 0], X[:, 1] = radius * angles.cos(), radius * angles.sin()
    E = BumpedBowl(5).expected(X)
    torch.testing.assert_close(E, E[:1].expand(7), rtol=1e-9, atol=1e-12)


def test_without_uncertainty_the_expectation_is_the_function():
    X = 4 * base_draws(5, 3) - 2
    bowl = BumpedBowl(3, Exact())
    torch.testing.assert_close(bowl.expected(X), bowl(X))
    assert bowl.robust_optimum.value == pytest.approx(bowl.nominal_optimum.value, abs=1e-6)


def test_what_is_off_centre_is_aimed_off():
    to_the_right = Product([Ring(0.5), Uniform(0.0, 0.6)])
    best = BumpedBowl(3, to_the_right).robust_optimum
    assert best.design.tolist() == pytest.approx([0.0, 0.0, -0.3], abs=5e-3)


def test_fewer_than_three_dimensions_are_refused():
    with pytest.raises(ValueError, match="d >= 3 dimensions, got 2"):
        BumpedBowl(2)


def test_an_uncertainty_of_another_dimension_is_refused():
    mixture = GaussianMixture([[0.0, 0.0]], [[0.1, 0.0], [0.0, 0.1]])
    with pytest.raises(ValueError, match="2 columns, got 3"):
        BumpedBowl(3, mixture)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_points_with_too_few_columns_are_refused():
    X = torch.zeros(1, 9, dtype=torch.float64)
    for f in (BumpedBowl(), BumpedBowl().expected):
        with pytest.raises(ValueError, match="bumped-bowl has points with 10 columns, got 9"):
            f(X)
