"""Numbers and uncertainties as people read them."""

import numpy as np
import pytest

import airbo
from airbo import uncertainty as unc
from airbo import words
from airbo.report.beliefs import Estimate
from tests.uncertainties import ALL_UNCERTAINTIES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (120.0, "120"),
        (1234.5678, "1235"),
        (0.0012345678, "0.001235"),
        (-2.5, "−2.5"),
        (1e-7, "1e−07"),
        (123456789.0, "1.235e+08"),
        (99999.9, "100000"),
        (-1e-300, "−1e−300"),
    ],
)
def test_numbers_are_short(value, text):
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (1.23456, 0.0567, "1.235 ± 0.057"),
        (-123.4, 56.7, "−123 ± 57"),
        (5.0, 0.0, "5 ± 0"),
        (12345.6, 789.0, "12346 ± 789"),
        (1e-12, 1e-13, "1e−12 ± 1e−13"),
        (3e9, 2e8, "3e+09 ± 2e+08"),
    ],
)
def test_means_are_rounded_to_what_is_known(mean, std, text):
    assert words.plus_minus(Estimate(np.array(mean), np.array(std))) == text


def test_gains_carry_their_sign():
    assert words.plus_minus(Estimate(np.array(0.5), np.array(0.1)), signed=True) == "+0.50 ± 0.10"


def test_lists_read_as_sentences():
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(("uncertainty", "d"), ALL_UNCERTAINTIES, ids=repr)
def test_every_uncertainty_has_words(uncertainty, d):
    space = airbo.Space({f"x{i}": airbo.Float(-1.0, 1.0, unit="mm") for i in range(d)})
    for name in space.names:
        text = words.hit(space, uncertainty, name)
        assert text
        assert "tensor" not in text


def test_parameters_that_are_hit_together_are_named():
    space = airbo.Space({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)})
    P = unc.Product([unc.Ring(0.1), unc.Exact()], [(0, 2), (1,)])
    assert words.hit(space, P, "a") == "on a circle of radius 0.1; together with c"
    assert words.hit(space, P, "b") == "exactly"
