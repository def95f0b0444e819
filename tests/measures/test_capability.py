"""Shares in spec, Cpk, ppm and gains, from draws of values."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airbo.measures import InSpec
from airbo.measures.capability import Capability, Likely

SCATTER = torch.special.ndtri((torch.arange(64, dtype=torch.float64) + 0.5) / 64)


def values_of(n_within, n=100):
    """Draws of f: in the first ones all values are within -5 and 5, in the others none is."""
    level = torch.where(torch.arange(n) < n_within, 0.0, 20.0).to(torch.float64)
    return level.unsqueeze(-1) + SCATTER


@given(n_within=st.integers(0, 100))
def test_share_cpk_and_ppm_lie_in_their_own_intervals(n_within):
    found = Capability.of(InSpec(-5.0, 5.0), values_of(n_within))
    for name in ("share", "cpk", "ppm"):
        low, high = getattr(found, f"{name}_interval")
        assert low <= getattr(found, name) <= high
    assert found.share == pytest.approx(n_within / 100)


@pytest.mark.parametrize(("n_within", "expected"), [(99, (0.99, 1.0)), (1, (0.0, 0.01))])
def test_the_interval_of_a_skewed_share_reaches_as_far_as_its_mean(n_within, expected):
    found = Capability.of(InSpec(-5.0, 5.0), values_of(n_within))
    assert found.share_interval == pytest.approx(expected)
    low, high = found.share_interval
    assert found.ppm_interval == pytest.approx((1e6 * (1 - high), 1e6 * (1 - low)))


def test_the_mean_of_a_skewed_share_does_not_end_its_interval():
    """In three draws of a hundred nothing is within: the middle 90 draws know nothing of them."""
    found = Capability.of(InSpec(-5.0, 5.0), values_of(97))
    assert found.share_interval[0] < found.share == pytest.approx(0.97)
    assert found.cpk_interval[0] < found.cpk


@pytest.mark.parametrize(("level", "cpk"), [(0.0, 3.0), (7.0, -3.0)])
def test_values_that_do_not_scatter_have_the_largest_cpk(level, cpk):
    found = Capability.of(InSpec(-5.0, 5.0), torch.full((10, 1), level, dtype=torch.float64))
    assert (found.cpk, *found.cpk_interval) == (cpk, cpk, cpk)


NORMAL = torch.special.ndtri((torch.arange(2048, dtype=torch.float64) + 0.5) / 2048)


@pytest.mark.parametrize("high", [0.5, 1.5, 3.0, 5.0, 8.0])
@pytest.mark.parametrize("low", [-1.0, -4.0, -20.0, None])
def test_normal_values_have_the_usual_cpk(low, high):
    found = Capability.of(InSpec(low, high), NORMAL.repeat(4, 1))
    usual = min(high, high if low is None else -low) / 3
    assert found.cpk == pytest.approx(usual, rel=0.02, abs=0.005)
    missed = torch.special.ndtr(-torch.tensor([high, 1e9 if low is None else -low])).sum().item()
    assert found.ppm == pytest.approx(1e6 * missed, rel=0.2, abs=1e6 / 2048)


@given(
    level=st.floats(-2, 2),
    unknown=st.floats(0, 3),
    bend=st.floats(0, 1),
    low=st.floats(-6, -0.5),
    high=st.floats(0.5, 6),
)
def test_share_ppm_and_cpk_never_contradict_each_other(level, unknown, bend, low, high):
    """Φ(3 Cpk) is the share within the worse limit, so 2 Φ(3 Cpk) - 1 <= share <= Φ(3 Cpk)."""
    draws = level + unknown * SCATTER.unsqueeze(-1) + NORMAL + bend * NORMAL.square()
    found = Capability.of(InSpec(low, high), draws)
    within = torch.special.ndtr(torch.tensor(3 * found.cpk, dtype=torch.float64)).item()
    assert 2 * within - 1 - 1e-9 <= found.share <= within + 1e-9
    assert found.ppm == pytest.approx(1e6 * (1 - found.share))


def test_what_the_model_does_not_know_lowers_cpk():
    sure = Capability.of(InSpec(-6.0, 6.0), NORMAL.repeat(64, 1))
    draws = 2 * SCATTER.unsqueeze(-1) + NORMAL
    assert sure.cpk == pytest.approx(2.0, rel=0.02)
    one_sided = Capability.of(InSpec(high=6.0), draws)
    assert one_sided.cpk == pytest.approx(6 / 5**0.5 / 3, rel=0.06)  # variances add up
    # a draw misses one side or the other, and twice as often as it misses a given one
    both = Capability.of(InSpec(-6.0, 6.0), draws)
    missed = torch.special.ndtr(torch.tensor(-3 * one_sided.cpk, dtype=torch.float64))
    assert both.cpk == pytest.approx(-torch.special.ndtri(2 * missed).item() / 3, rel=0.02)


def test_skewed_values_count_on_their_own_side():
    skewed = Capability.of(InSpec(-2.0, 2.0), (NORMAL.exp() - 1).repeat(4, 1))
    missed = 1 - torch.special.ndtr(torch.tensor(3.0).double().log()).item()
    assert skewed.ppm == pytest.approx(1e6 * missed, rel=0.01)
    assert skewed.cpk == pytest.approx(torch.tensor(3.0).double().log().item() / 3, rel=0.01)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_what_is_likely_lies_in_its_own_interval(draws, factor):
    found = Likely.of(torch.tensor(draws, dtype=torch.float64), factor)
    assert found.low <= found.value <= found.high


def test_a_gain_in_a_few_draws_only_has_them_in_its_interval():
    gain = torch.zeros(100, dtype=torch.float64)
    gain[:2] = 0.04
    found = Likely.of(gain)
    assert (found.low, found.value, found.high) == pytest.approx((0.0, 8e-4, 0.04))


def test_the_interval_of_many_draws_alike_is_their_middle_90():
    found = Likely.of(torch.linspace(0, 1, 101, dtype=torch.float64))
    assert (found.low, found.value, found.high) == pytest.approx((0.05, 0.5, 0.95))
