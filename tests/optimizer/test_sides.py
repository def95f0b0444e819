"""The bad side of an outcome with a limit is the side of its limit."""

from functools import cache

import pytest

from airbo import AtLeast, AtMost, Between, Maximize, Optimizer
from airbo import uncertainty as unc
from airbo.measures import CVaR, InSpec, Mean, MeanStd, Quantile, Target, Worst
from tests.optimizer.common import LINE

pytestmark = pytest.mark.usefixtures("few_draws")
P = {"x": unc.Normal(0.05)}
SIDES = [(AtMost(1.2), "minimize"), (AtLeast(0.2), "maximize")]


@cache
def limited(limit):
    """An optimizer that knows a slope with a limit."""
    return told({"a": Maximize(), "b": limit})


@cache
def single(direction):
    """An optimizer that knows a slope as its only value."""
    return told(direction=direction)


def told(outcomes=None, **settings):
    optimizer = Optimizer(LINE, P, outcomes=outcomes, **settings)
    for i in range(9):
        x = i / 8
        optimizer.tell({"x": x}, 2 * x if outcomes is None else {"a": 0.0, "b": 2 * x})
    return optimizer


@pytest.mark.parametrize(("limit", "direction"), SIDES, ids=["at most", "at least"])
@pytest.mark.parametrize("measure", [MeanStd(), Quantile(0.9), CVaR(0.9), Worst()], ids=repr)
def test_the_tail_of_a_limited_outcome_is_that_of_a_single_value(limit, direction, measure):
    found = limited(limit).evaluate({"x": 0.5}, measure, outcome="b")
    same = single(direction).evaluate({"x": 0.5}, measure)
    # f = 2 x' at x = 0.5: mean 1, standard deviation 0.1; the bad tail lies on the limit's side
    assert found.mean == pytest.approx(same.mean, abs=0.02)
    bad = 1 if direction == "minimize" else -1
    assert bad * (found.mean - 1.0) > 0.05


@pytest.mark.parametrize("measure", [MeanStd(), Quantile(0.9), CVaR(0.9), Worst()], ids=repr)
def test_two_limits_have_no_bad_side(measure):
    between = limited(Between(0.2, 1.2))
    with pytest.raises(ValueError, match="'b' has limits on both sides"):
        between.evaluate({"x": 0.5}, measure, outcome="b")
    for fine in (Mean(), Target(1.0), InSpec(high=1.3)):
        assert between.evaluate({"x": 0.5}, fine, outcome="b").std >= 0
