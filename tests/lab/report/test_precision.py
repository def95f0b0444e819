"""What other precisions would do, against the truth where it is known."""

import random

import numpy as np
import pytest

import airbo
from airbo import uncertainty as unc
from airbo.lab.report import Slice, precision, precision_figure, precision_offers
from airbo.lab.report.beliefs import Estimate
from airbo.lab.report.precision import (
    ALL,
    change_verdict,
    gains,
    precision_section,
    strictness,
)
from tests.lab.report.common import milling, one, optimizer, outcome, ten

STD = 0.1


@pytest.fixture(scope="module", params=["maximize", "minimize"])
def found(request):
    """A parabola under normal deviations: E f(x + δ) = f(x) - std² / 0.3²."""
    opt = airbo.Optimizer({"x": (0.0, 1.0)}, {"x": unc.Normal(STD)}, direction=request.param)
    sign = 1 if request.param == "maximize" else -1
    rng = random.Random(3)
    for x in np.linspace(0.02, 0.98, 25):
        expected = 1 - ((x - 0.5) ** 2 + STD**2) / 0.3**2
        opt.tell({"x": x}, sign * expected + rng.gauss(0, 0.02))
    return outcome(opt)


@pytest.fixture(scope="module")
def offers(found):
    return precision_offers(found)


def test_changes_agree_with_the_truth(found, offers):
    today, halved, doubled = offers
    assert [o.factor for o in (today, halved, doubled)] == [1.0, 0.5, 2.0]
    assert float(today.same.change.mean) == float(today.best.change.mean) == 0
    for offer in (halved, doubled):
        truth = found.want.sign * (STD**2 - (offer.factor * STD) ** 2) / 0.3**2
        for what in (offer.same, offer.best):
            error = float(what.change.mean) - truth
            assert abs(error) < 3 * float(what.change.std) + 0.02
            assert float(what.change.std) < 0.1  # not by knowing nothing


def test_worse_machines_are_called_worse_in_both_directions(found, offers):
    *_, doubled = offers
    assert "worse" in change_verdict(found, doubled.same.change)
    assert gains(found, [doubled]) == []


def test_the_more_is_compared_the_clearer_a_change_has_to_be(found, offers):
    assert strictness(offers[:1]) == pytest.approx(1.96, abs=0.01)
    assert strictness(offers) == pytest.approx(2.50, abs=0.01)  # 4 changes: 0.05 / 4, two-sided
    change = Estimate(np.array(found.want.sign * 2.2), np.array(1.0))
    assert change_verdict(found, change, strictness(offers[:1])).endswith(": better")
    assert change_verdict(found, change, strictness(offers)).endswith(": no clear difference")


def test_chance_alone_seldom_makes_a_clear_change(found, offers):
    rng, k = np.random.default_rng(0), 4
    limit = strictness(offers)
    clear = (np.abs(rng.normal(size=(2000, k))) > limit).any(axis=1).mean()
    assert clear < 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5


def test_the_best_design_is_at_least_as_good_as_the_recommended(found, offers):
    for offer in offers:
        better = found.want.sign * (
            float(offer.best.expected.mean) - float(offer.same.expected.mean)
        )
        assert better >= -1e-9


@pytest.mark.usefixtures("as_without_shape_checks")
def test_groups_alone_and_together_and_of_many_only_these_are_searched(monkeypatch):
    monkeypatch.setattr(precision, "MAX_SEARCHES", 5)
    offers = precision_offers(outcome(milling(n=3, surrogate="ugp")))
    asked = [(offer.who, offer.factor) for offer in offers]
    assert asked == [(ALL, 1.0)] + [
        (who, factor) for who in ("speed", "depth", ALL) for factor in (0.5, 2.0)
    ]
    assert {offer.who for offer in offers if offer.best is not None} == {ALL}
    assert all(offer.same is not None for offer in offers)


def test_parameters_of_one_group_stay_together():
    groups = precision.uncertain_groups(outcome(ten(n=0)).findings)
    assert groups == {"x0": [0], "x1 and x2": [1]}
    whole = optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)}, unc.Ring(0.1), n=0)
    assert precision.uncertain_groups(outcome(whole).findings) == {"a and b": [0]}


def test_exact_use_has_no_precision_to_gain():
    assert precision_offers(outcome(one(n=3, deployment=unc.Exact()))) == []


def test_what_cannot_be_is_said():
    opt = optimizer({"x": airbo.Float(0.1, 1.0, log=True)}, {"x": unc.Uniform(-0.06, 0.06)}, n=4)
    findings = outcome(opt)
    today, halved, doubled = precision_offers(findings)
    assert halved.same is not None
    assert doubled.same is None
    assert "'x' is logarithmic and its executed input must stay > 0" in doubled.impossible
    assert len(precision_figure(findings, [today, halved, doubled]).data[0].x) == 2


@pytest.mark.parametrize("surrogate", ["mmd", "skl", "nominal"])
def test_a_surrogate_that_cannot_say_says_so(surrogate):
    found = outcome(one(n=2, surrogate=surrogate))
    assert found.what_if is None
    assert precision_offers(found) == []
    assert Slice(found, "x").nominal is None
    assert f"({surrogate}) cannot say" in precision_section(found).html()


@pytest.mark.parametrize("surrogate", ["default", "ugp", "erbf"])
def test_a_surrogate_that_is_linear_in_the_distribution_can_say(surrogate):
    assert outcome(one(n=2, surrogate=surrogate)).what_if is not None
