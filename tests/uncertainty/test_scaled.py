"""Laws of larger and smaller deviations."""

import pytest
import torch

from airbo import uncertainty as unc
from tests.uncertainties import ALL_UNCERTAINTIES, one_of_each_type, proportional_normal

UNLIMITED = [
    pair for pair in ALL_UNCERTAINTIES if not isinstance(pair[0], unc.Clipped | unc.Rounded)
]


def deviations(uncertainty, d):
    X = torch.linspace(-1, 1, 3 * d, dtype=torch.float64).reshape(3, d)
    base = unc.base_draws(32, uncertainty.n_base(d), seed=2)
    return uncertainty.perturb(X, base) - X.unsqueeze(-2)


@pytest.mark.parametrize(("uncertainty", "d"), one_of_each_type(UNLIMITED), ids=repr)
def test_scaling_twice_is_scaling_once(uncertainty, d):
    twice = uncertainty.scaled(0.5).scaled(3.0)
    torch.testing.assert_close(deviations(twice, d), deviations(uncertainty.scaled(1.5), d))


@pytest.mark.parametrize(
    "uncertainty",
    [
        u
        for u, _ in one_of_each_type(UNLIMITED)
        if not isinstance(
            u,
            unc.LogNormal | unc.SciPy | unc.Torch | unc.Sampler | unc.Varying | unc.GaussianMixture,
        )
    ],
    ids=repr,
)
def test_kinds_that_can_say_so_stay_what_they_are(uncertainty):
    assert type(uncertainty.scaled(0.5)) is type(uncertainty)
    assert uncertainty.scaled(0.5) == uncertainty.scaled(0.5)
    assert uncertainty.scaled(0.5) != uncertainty or uncertainty == unc.Exact()


def test_limits_do_not_move():
    assert unc.Normal(0.5).clipped(0, 1).scaled(2) == unc.Normal(1.0).clipped(0, 1)


def test_a_wrapper_in_a_wrapper_is_one_wrapper():
    black_box = unc.Sampler(lambda X, base: X.unsqueeze(-2) + base)
    assert black_box.scaled(0.5).scaled(4) == unc.Scaled(black_box, 2.0)


@pytest.mark.parametrize(
    ("factor", "error", "message"),
    [
        (-1, ValueError, "factor must be >= 0"),
        (float("nan"), ValueError, "factor must be finite"),
        ([1, 2], ValueError, "factor must have at most 0 dimensions"),
        ("half", TypeError, "factor must be a number"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_bad_factors_are_refused(factor, error, message):
    for kind in (unc.Normal(1.0), unc.Varying(proportional_normal)):
        with pytest.raises(error, match=message):
            kind.scaled(factor)
    with pytest.raises(error, match=message):
        unc.Scaled(unc.Normal(1.0), factor)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_is_no_uncertainty_is_refused():
    with pytest.raises(TypeError, match=r"expected an uncertainty, got 0\.1"):
        unc.Scaled(0.1, 2)
