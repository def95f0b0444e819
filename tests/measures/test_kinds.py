"""Measures of given values: closed forms, their order, and what they refuse."""

import itertools
import math
from statistics import NormalDist

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airbo import measures
from airbo.measures import (
    CVaR,
    InSpec,
    Mean,
    MeanStd,
    Quantile,
    Target,
    Worst,
    check_measure,
    measure_from,
)

ALL = [
    Mean(),
    MeanStd(1.5),
    Quantile(0.9),
    CVaR(0.8),
    Worst(),
    InSpec(low=-1.0, high=0.5),
    InSpec(high=0.5),
    Target(0.3),
]
NORMAL = NormalDist()


def normal_values(n=4096, a=3.0, b=1.0):
    """Values of b + a z over z ~ N(0, 1), at the middles of n equal steps."""
    u = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    return b + a * torch.special.ndtri(u)


def test_linear_values_under_a_normal_error_have_the_closed_forms():
    values, z = normal_values(), NORMAL.inv_cdf(0.9)
    expected = {
        Mean(): 1.0,
        MeanStd(2.0): 1.0 - 6.0,
        Quantile(0.9): 1.0 - 3 * z,
        CVaR(0.9): 1.0 - 3 * NORMAL.pdf(z) / 0.1,
        InSpec(low=0.0): NORMAL.cdf(1 / 3),
        InSpec(0.0, 2.0): 2 * NORMAL.cdf(1 / 3) - 1,
        Target(2.0): -(9.0 + 1.0),
    }
    for measure, number in expected.items():
        assert measure.of(values).item() == pytest.approx(number, abs=0.01), measure


def test_quadratic_values_under_a_normal_error_have_the_closed_forms():
    # f = -z², so that -f is chi-squared with one degree of freedom
    values = -normal_values(a=1.0, b=0.0).square()
    z = NORMAL.inv_cdf(0.95)
    assert Mean().of(values).item() == pytest.approx(-1.0, abs=0.01)
    assert MeanStd(1.0).of(values).item() == pytest.approx(-1.0 - math.sqrt(2), abs=0.03)
    assert Quantile(0.9).of(values).item() == pytest.approx(-(z**2), abs=0.01)
    # E[z²; |z| > c] = 2 (c φ(c) + 1 - Φ(c))
    tail = 2 * (z * NORMAL.pdf(z) + 1 - NORMAL.cdf(z)) / 0.1
    assert CVaR(0.9).of(values).item() == pytest.approx(-tail, abs=0.03)
    assert InSpec(low=-1.0).of(values).item() == pytest.approx(2 * NORMAL.cdf(1) - 1, abs=0.001)


def test_the_distance_of_quadratic_values_to_a_target_has_the_closed_form():
    # f = b + c z + a z²: E f = b + a, Var f = c² + 2 a²
    a, b, c, target = -0.7, 1.3, 0.4, 2.0
    z = normal_values(n=2**16, a=1.0, b=0.0)
    expected = -(c**2 + 2 * a**2 + (b + a - target) ** 2)
    found = Target(target).of(b + c * z + a * z.square()).item()
    assert found == pytest.approx(expected, abs=1e-3)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]),
)
def test_worst_cvar_quantile_and_mean_are_in_order(values, level):
    v = torch.tensor(values, dtype=torch.float64)
    slack = 1e-9 * (1 + v.abs().max())
    measured = [m.of(v) for m in (Worst(), CVaR(level), Quantile(level))]
    assert all(a <= b + slack for a, b in itertools.pairwise(measured))
    assert measured[1] <= Mean().of(v) + slack


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_a_higher_level_is_never_better(values):
    v = torch.tensor(values, dtype=torch.float64)
    for kind in (Quantile, CVaR):
        strict, lenient = kind(0.95).of(v), kind(0.6).of(v)
        assert strict <= lenient + 1e-9


@pytest.mark.parametrize("measure", ALL, ids=repr)
def test_a_batch_is_measured_row_by_row(measure):
    values = torch.randn(3, 4, 17, generator=torch.Generator().manual_seed(0)).double()
    rows = torch.stack([torch.stack([measure.of(v) for v in some]) for some in values])
    torch.testing.assert_close(measure.of(values), rows)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("measure", [m for m in ALL if isinstance(m, InSpec | Target)], ids=repr)
def test_limits_and_targets_mean_the_users_values_in_both_directions(measure, sign):
    values, unit = normal_values(n=257, a=1.0, b=0.2), 0.01
    inside = measure.inside(sign, unit).of(sign * values / unit)
    torch.testing.assert_close(measure.factor(sign, unit) * inside, measure.of(values))


def test_the_bad_side_of_a_minimized_value_is_the_upper_one():
    cost = torch.tensor([1.0, 2.0, 3.0, 10.0], dtype=torch.float64)
    for measure in (Worst(), CVaR(0.75), Quantile(0.9)):
        assert measure.factor(-1, 1.0) * measure.of(-cost) == pytest.approx(10.0)


def test_soft_limits_agree_with_hard_ones_and_have_a_slope_far_outside():
    values = normal_values(n=512)
    limits = InSpec(low=0.0, high=4.0)
    assert limits.smooth(values, 1.0).item() == pytest.approx(limits.of(values).item(), abs=0.01)
    far = torch.full((8,), -3.0, dtype=torch.float64, requires_grad=True)
    limits.smooth(far, 10.0).backward()
    assert (far.grad > 0).all()


@pytest.mark.parametrize("measure", ALL, ids=repr)
def test_a_description_gives_the_measure_back(measure):
    assert measure_from(measure.to_dict()) == measure


@pytest.mark.parametrize("measure", ALL, ids=repr)
def test_a_written_measure_is_read_back(measure):
    assert measures.from_text(measures.to_text(measure)) == measure


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quantile(1.0), r"level must be a number between 0 and 1.* got 1\.0\.$"),
        (lambda: CVaR(0.0), "level must be a number between 0 and 1"),
        (lambda: CVaR(90), r"between 0 and 1, as 0\.9 for 90%, got 90\.$"),
        (lambda: Quantile("0.9"), r"got '0\.9'\.$"),
        (
            lambda: Quantile(0.9991),
            r"level must not exceed 0\.999 \(999 of 1,000\), got 0\.9991.* Use Worst\(\)",
        ),
        (lambda: CVaR(0.9999), r"must not exceed 0\.999 .* Use Worst\(\) for the worst case"),
        (lambda: measure_from({"kind": "CVaR", "level": 0.9999}), r"must not exceed 0\.999"),
        (lambda: measures.from_text("quantile:0.9999"), r"must not exceed 0\.999"),
        (lambda: MeanStd(-1.0), "k must be >= 0, got -1"),
        (lambda: MeanStd(math.nan), "k must be finite, got nan"),
        (lambda: InSpec(), "got neither"),
        (lambda: InSpec(2.0, 1.0), "The lower limit must be below the upper one"),
        (lambda: InSpec(low=math.inf), "low must be finite, got inf"),
        (lambda: Target(None), "value must be a number, got None"),
        (lambda: measure_from({"kind": "Median"}), "There is no measure 'Median'"),
        (lambda: measure_from({"kind": "CVaR", "k": 1}), "has no 'k'; it has level"),
        (lambda: measures.from_text("cvar:high"), "cvar: 'high' is not a number"),
        (lambda: measures.from_text("median"), "There is no measure 'median'"),
        (lambda: measures.from_text("in-spec:3..1"), "The lower limit must be below"),
        (lambda: measures.from_text("target"), "'target' is no measure: write target:50"),
        (lambda: measures.from_text("in-spec:1:2"), r"in-spec:0.5.. or in-spec:..2\.$"),
        (lambda: measures.from_text("worst:3"), "'worst:3' is no measure: write worst"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_senseless_measures_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_not_a_measure_is_refused():
    with pytest.raises(TypeError, match=r"measure is the class CVaR; make one"):
        check_measure(CVaR)
    with pytest.raises(TypeError, match=r"must be one of airbo.measures"):
        check_measure("cvar")
