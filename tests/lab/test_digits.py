"""A machine is asked for what it can hold."""

import math

import pytest

import airbo
from airbo.lab.digits import as_held, digits_for
from airbo.space.parameters import Categorical, Float, Integer


@pytest.mark.parametrize("std", [1e-6, 0.03, 0.05, 0.4, 2.0, 5.0, 10.0, 40.0])
def test_rounding_adds_less_than_a_hundredth_to_the_variance(std):
    digits = digits_for(Float(0.0, 1000.0), std)
    step = 10.0 ** -digits(500.0)
    assert step**2 / 12 <= 0.01 * std**2
    assert step * 40 > std  # and no digit more than that takes


@pytest.mark.parametrize(("std", "places"), [(2.0, 1), (5.0, 0), (0.05, 2), (50.0, 0)])
def test_a_probe_good_for_two_degrees_is_asked_for_tenths(std, places):
    assert digits_for(Float(40.0, 120.0), std)(61.4) == places


@pytest.mark.parametrize("width", [1e-9, 0.3, 1.0, 80.0, 1e6])
def test_an_exact_parameter_has_hundreds_of_values(width):
    digits = digits_for(Float(0.0, width), None)
    assert width * 10.0 ** digits(width) * (1 + 1e-9) >= 500
    assert width * 10.0 ** digits(width) < 5001


@pytest.mark.parametrize(
    "parameter", [Integer(1, 5), Categorical(["A", "B"]), Float(0, 1, step=0.1)]
)
def test_what_has_values_of_its_own_is_not_rounded(parameter):
    assert digits_for(parameter, 0.1) is None


def test_logarithmic_parameters_have_significant_digits():
    digits = digits_for(Float(1e-4, 10.0, log=True), None)
    for value in (1.23456e-4, 0.0123456, 9.87654):
        assert math.isclose(round(value, digits(value)), value, rel_tol=5e-3)
        assert (
            len(f"{round(value, digits(value)):.12g}".strip("0.").replace(".", "").lstrip("0")) <= 3
        )


def tenths(value):
    return 1


def test_rounded_designs_stay_inside():
    space = airbo.Space({"x": (0.06, 0.94), "y": (0.0, 1.0)})
    digits = {"x": tenths}
    for x, expected in ((0.06, 0.1), (0.94, 0.9), (0.51, 0.5)):
        found = as_held(space, digits, {"x": x, "y": 0.123456789})
        assert found == {"x": expected, "y": 0.123456789}
    mixture = airbo.Space({"x": (0.0, 1.0), "y": (0.0, 1.0)}, ["x + y == 1"])
    both = {"x": tenths, "y": tenths}
    whole = {"x": 0.123456, "y": 0.876544}
    assert as_held(mixture, both, whole) == {"x": 0.1, "y": 0.9}
    assert as_held(mixture, {"x": tenths}, whole) == whole  # no longer a mixture
    narrow = airbo.Space({"x": (0.41, 0.44)})
    assert as_held(narrow, digits, {"x": 0.4234}) == {"x": 0.4234}  # nothing fits
