"""Which uncertainties have bounds."""

import pytest

from airbo import uncertainty as unc


@pytest.mark.parametrize(
    ("uncertainty", "bounded"),
    [
        (unc.Normal(0.1), False),
        (unc.Uniform(-1.0, 1.0), True),
        (unc.Normal(0.1).clipped(-1.0, 1.0), True),
        (unc.Relative(unc.Uniform(-0.1, 0.1)), True),
        (unc.Product([unc.Uniform(-1.0, 1.0), unc.Normal(0.1)]), False),
        (unc.Varying(lambda x: unc.Uniform(-0.1 * x, 0.1 * x)), True),
    ],
    ids=repr,
)
def test_the_support_is_known_to_be_bounded(uncertainty, bounded):
    assert uncertainty.is_bounded(2) is bounded
