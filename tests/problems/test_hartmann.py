"""Hartmann's functions: wells in three and six dimensions."""

import pytest
import torch
from botorch.test_functions import Hartmann as BoTorchHartmann

from airbo.problems import Hartmann
from airbo.uncertainty import GaussianMixture, Normal, Product, base_draws
from tests.problems.common import HARTMANN

THREE = Hartmann(3, Normal(0.05))
MINIMA = {
    3: (0.114614, 0.555649, 0.852547),
    6: (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
}


@pytest.mark.parametrize(
    ("hartmann", "value"), [(THREE, -3.86278), (HARTMANN, -3.32237)], ids=["3", "6"]
)
def test_the_minimum_is_where_the_books_say_and_is_found(hartmann, value):
    X = torch.tensor([MINIMA[hartmann.d]], dtype=torch.float64)
    assert hartmann(X).item() == pytest.approx(value, abs=1e-5)
    assert hartmann.nominal_optimum.value == pytest.approx(value, abs=1e-5)
    assert hartmann.nominal_optimum.design.tolist() == pytest.approx(X[0].tolist(), abs=1e-2)


@pytest.mark.parametrize("hartmann", [THREE, HARTMANN], ids=["3", "6"])
def test_the_function_is_that_of_botorch(hartmann):
    X = base_draws(100, hartmann.d)
    torch.testing.assert_close(hartmann(X), BoTorchHartmann(hartmann.d).to(X)(X))


def test_the_function_fades_outside_the_cube():
    X = torch.stack([torch.full((6,), v, dtype=torch.float64) for v in (-50.0, -1.0, 1.5, 50.0)])
    values = HARTMANN(X)
    assert values.isfinite().all()
    assert (values.abs() < 0.1).all()


def test_the_expectation_of_a_well_is_a_product_over_the_inputs():
    X = base_draws(5, 6)
    quantiles = (torch.arange(2000, dtype=torch.float64) + 0.5).unsqueeze(-1) / 2000
    executed = HARTMANN.uncertainty.perturb(X, quantiles.expand(-1, 6))  # (n, s, 6)
    A, P, alpha = (BoTorchHartmann(6).state_dict()[name].to(X) for name in ("A", "P", "ALPHA"))
    inputs = torch.exp(-A * (executed.unsqueeze(-2) - 1e-4 * P).square()).mean(-3)  # (n, wells, 6)
    difference = HARTMANN.expected(X) + inputs.prod(-1) @ alpha
    assert (difference.abs() < HARTMANN.expected_error(X)).all()


def test_the_best_well_stays_the_best_and_loses_more_than_a_third_of_its_depth():
    nominal, robust = HARTMANN.nominal_optimum, HARTMANN.robust_optimum
    assert (nominal.design - robust.design).abs().max() < 0.02
    assert robust.value == pytest.approx(-2.078, abs=1e-3)
    assert robust.value > nominal.value * 2 / 3


def test_other_numbers_of_dimensions_are_refused():
    with pytest.raises(ValueError, match="3 or 6 dimensions, got 4"):
        Hartmann(4, Normal(0.1))


def test_an_uncertainty_of_another_dimension_is_refused():
    mixture = GaussianMixture([[0.0, 0.0]], [[0.1, 0.0], [0.0, 0.1]])
    with pytest.raises(ValueError, match="2 columns, got 3"):
        Hartmann(3, mixture)


def test_the_default_uncertainty_suits_any_dimension():
    assert Hartmann(3).uncertainty == Hartmann(6).uncertainty


def test_the_uncertainty_of_six_inputs_does_not_fit_three():
    with pytest.raises(ValueError, match="6 columns, got 3"):
        Hartmann(3, Product([Normal(0.1)] * 6))
